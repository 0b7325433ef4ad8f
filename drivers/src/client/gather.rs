//! Many small files at once.

use proto::error::errno;
use proto::{MAX_WALK, Names, Qid, Rmessage, Tmessage};

use super::{CALL_TAG, Client, Error, Purpose, ROOT, TreePath, UNEXPECTED, accepted, is_directory};

/// What the files of one directory hold, in the order in which they were asked for.
pub type Files = Each<Vec<u8>>;

/// What came of each of several requests.
type Each<T> = Vec<Result<T, Error>>;
/// From which fid to walk, and along which names.
type Walk<'n> = (u32, &'n [Box<[u8]>]);

impl Client {
    /// The first `most` bytes of the file under each of `names` in each of `directories`: what one read gives, so it is for
    /// files that hold a value each.
    ///
    /// A directory is walked to once, and its files from there: if another takes its place meanwhile, nothing is read of that.
    /// What can be asked together is, so that it takes few round trips, however many files there are.
    ///
    /// # Errors
    /// One that ends the connection. What is wrong with one directory or one file stands in its place.
    pub fn gather(
        &mut self,
        directories: &[TreePath],
        names: &[&str],
        most: u32,
    ) -> Result<Each<Files>, Error> {
        if self.lost {
            return Err(Error::Lost);
        }
        let mut gathered = Vec::with_capacity(directories.len());
        for some in directories.chunks((BATCH / names.len().max(1)).max(1)) {
            match self.gather_some(some, names, most) {
                Ok(files) => gathered.extend(files),
                Err(error) => {
                    self.lost = true;
                    return Err(error);
                }
            }
        }
        Ok(gathered)
    }

    fn gather_some(
        &mut self,
        directories: &[TreePath],
        names: &[&str],
        most: u32,
    ) -> Result<Each<Files>, Error> {
        let walks: Vec<Walk<'_>> = directories.iter().map(|path| (ROOT, path.names())).collect();
        let reached = self.walk_each(&walks)?;
        let dirs: Vec<u32> = reached.iter().flatten().map(|(fid, _)| *fid).collect();

        let names: Vec<[Box<[u8]>; 1]> = names.iter().map(|name| [name.as_bytes().into()]).collect();
        let walks: Vec<Walk<'_>> =
            dirs.iter().flat_map(|&dir| names.iter().map(move |name| (dir, &name[..]))).collect();
        let files = self.walk_each(&walks)?;
        let fids: Vec<u32> = files.iter().flatten().map(|(fid, _)| *fid).chain(dirs).collect();

        let files = self.open_each(files, most)?;
        let mut files = self.read_each(files)?.into_iter();
        self.clunk_each(fids)?;
        let mut of_one = || files.by_ref().take(names.len()).collect();
        Ok(reached.into_iter().map(|directory| directory.map(|_| of_one())).collect())
    }

    /// Walks from a fid along names, each time to a new fid, and yields that.
    fn walk_each(&mut self, walks: &[Walk<'_>]) -> Result<Each<(u32, Qid)>, Error> {
        let mut walked: Vec<_> = walks.iter().map(|_| Err(Error::NameTooLong)).collect();
        let mut sent = Vec::with_capacity(walks.len());
        for (at, (_, names)) in walks.iter().enumerate() {
            let mut wire = vec![0; names.iter().map(|name| 2 + name.len()).sum()];
            let fits = self.leg(names, MAX_WALK).len() == names.len();
            if fits && Names::pack(names.iter().map(|name| &**name), &mut wire).is_ok() {
                sent.push((at, self.fids.take(), wire));
            }
        }
        let request = |index: usize| {
            let (at, newfid, wire) = &sent[index];
            let (fid, names) = walks[*at];
            let names = Names::new(names.len() as u16, wire).unwrap_or(Names::EMPTY);
            Tmessage::Walk { fid, newfid: *newfid, names }
        };
        self.batch(sent.len(), request, |index, answer| {
            let (at, newfid, _) = sent[index];
            let names = walks[at].1.len();
            walked[at] = match answer {
                Ok(Rmessage::Walk { qids }) if qids.len() == names => {
                    Ok((newfid, qids.iter().last().unwrap_or_default()))
                }
                // Part of the way is no way, and only of the first name it is said why.
                Ok(Rmessage::Walk { qids }) if (1..names).contains(&qids.len()) => {
                    Err(Error::numbered(errno::ENOENT))
                }
                Ok(_) => return Err(UNEXPECTED),
                Err(refused) => Err(refused),
            };
            Ok(())
        })?;
        for (at, newfid, _) in sent {
            if walked[at].is_err() {
                self.fids.give_back(newfid);
            }
        }
        Ok(walked)
    }

    /// Opens files, and yields with each fid how many bytes to ask for.
    fn open_each(&mut self, files: Each<(u32, Qid)>, most: u32) -> Result<Each<(u32, u32)>, Error> {
        let mut opened: Each<(u32, u32)> = files
            .into_iter()
            .map(|file| match file? {
                (_, qid) if is_directory(qid) => Err(Error::Directory),
                (fid, _) => Ok((fid, most)),
            })
            .collect();
        let sent = succeeded(&opened);
        let requests: Vec<_> = sent.iter().map(|(_, (fid, _))| self.opening(*fid, Purpose::Read)).collect();
        let room = self.io_room();
        self.batch(
            sent.len(),
            |index| requests[index],
            |index, answer| {
                let (at, (fid, most)) = sent[index];
                opened[at] = match answer {
                    Ok(Rmessage::Open { iounit: 0, .. } | Rmessage::Lopen { iounit: 0, .. }) => {
                        Ok((fid, most.min(room)))
                    }
                    Ok(Rmessage::Open { iounit, .. } | Rmessage::Lopen { iounit, .. }) => {
                        Ok((fid, most.min(room).min(iounit)))
                    }
                    Ok(_) => return Err(UNEXPECTED),
                    Err(refused) => Err(refused),
                };
                Ok(())
            },
        )?;
        Ok(opened)
    }

    /// Reads the beginning of open files.
    fn read_each(&mut self, files: Each<(u32, u32)>) -> Result<Files, Error> {
        let sent = succeeded(&files);
        let mut read: Files = files.into_iter().map(|file| file.map(|_| Vec::new())).collect();
        let request = |index: usize| {
            let (_, (fid, count)) = sent[index];
            Tmessage::Read { fid, offset: 0, count }
        };
        self.batch(sent.len(), request, |index, answer| {
            let (at, (_, count)) = sent[index];
            read[at] = match answer {
                Ok(Rmessage::Read { data }) if data.len() <= count as usize => Ok(data.to_vec()),
                Ok(_) => return Err(UNEXPECTED),
                Err(refused) => Err(refused),
            };
            Ok(())
        })?;
        Ok(read)
    }

    /// Clunks fids, which are free whatever the server says (clunk(5)).
    fn clunk_each(&mut self, fids: Vec<u32>) -> Result<(), Error> {
        let request = |index: usize| Tmessage::Clunk { fid: fids[index] };
        self.batch(fids.len(), request, |_, answer| match answer {
            Ok(Rmessage::Clunk) | Err(_) => Ok(()),
            Ok(_) => Err(UNEXPECTED),
        })?;
        fids.into_iter().for_each(|fid| self.fids.give_back(fid));
        Ok(())
    }

    /// Sends `count` requests, as many at once as [`BATCH`] says, and hands the answer to each to `each` with the request's
    /// index, in the order in which they come.
    fn batch<'r>(
        &mut self,
        count: usize,
        request: impl Fn(usize) -> Tmessage<'r>,
        mut each: impl FnMut(usize, Result<Rmessage<'_>, Error>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for first in (0..count).step_by(BATCH) {
            let mut waiting = vec![true; BATCH.min(count - first)];
            for (index, tag) in (first..first + waiting.len()).zip(FIRST_TAG..) {
                if self.queue(tag, &request(index)).is_err() {
                    // The outbox is full.
                    self.flush()?;
                    self.queue(tag, &request(index))?;
                }
            }
            self.flush()?;
            while waiting.contains(&true) {
                let (tag, answer) = self.answer()?;
                let at = tag.checked_sub(FIRST_TAG).map(usize::from).ok_or(UNEXPECTED)?;
                let waits = waiting.get_mut(at).filter(|waits| **waits).ok_or(UNEXPECTED)?;
                *waits = false;
                each(first + at, accepted(answer))?;
            }
        }
        Ok(())
    }
}

/// What went well, with its place.
fn succeeded<T: Copy>(outcomes: &[Result<T, Error>]) -> Vec<(usize, T)> {
    let good = |(at, outcome): (usize, &Result<T, Error>)| Some((at, *outcome.as_ref().ok()?));
    outcomes.iter().enumerate().filter_map(good).collect()
}

/// Requests in flight. What a server does not want yet waits in the socket, and neither side ever has more there, requests or
/// answers, than the smallest of socket buffers holds: so it takes no reading while sending.
const BATCH: usize = 256;
const FIRST_TAG: u16 = CALL_TAG + 1;
