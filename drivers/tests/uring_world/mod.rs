//! A tree of real files, a server of it on a thread, and peers that speak 9P in plain words.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use backend::host::os::{Os, Resolving, Roots};
use backend::{Agents, Limits, Tree};
use drivers::choose::{Chosen, Driver};
use drivers::listen::Listener;
use drivers::server::Options;
use drivers::signals::Stop;
use engine::port::Backend;
use proto::{Dialect, NOFID, NOTAG, Names, Rmessage, Tmessage};

/// A directory that goes with its value, with a harness's files in it.
pub(crate) struct Home(pub(crate) PathBuf);

impl Home {
    pub(crate) fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("9agents-uring-{}-{test}", std::process::id()));
        let files = path.join(".hermes/files");
        std::fs::create_dir_all(&files).unwrap();
        std::fs::create_dir(path.join("run")).unwrap();
        std::fs::create_dir(path.join("proc")).unwrap();
        std::fs::write(files.join("file"), vec![b'x'; FILE]).unwrap();
        for name in 0..20 {
            std::fs::write(files.join(format!("entry-{name}")), b"some text\n").unwrap();
        }
        Self(path)
    }

    fn tree(&self) -> Arc<dyn Backend<Tree>> {
        let root = |name: &str| self.0.join(name);
        let roots = Roots {
            claude: root(".claude"),
            codex: root(".codex"),
            omp: root(".omp"),
            hermes: root(".hermes"),
            dsh: root(".dsh"),
        };
        let host = Os::new(roots, root("proc"), Resolving::Probed);
        Arc::new(Agents::new(Arc::new(host), Limits { pinned_descriptors: 512 }))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server over a home, on a thread of its own.
pub(crate) struct Served {
    pub(crate) socket: PathBuf,
    pub(crate) stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    pub(crate) fn start(home: &Home, options: Options) -> Self {
        Self::start_with(Driver::Uring, home, options)
    }

    pub(crate) fn start_with(driver: Driver, home: &Home, options: Options) -> Self {
        let (socket, tree) = (home.0.join("socket"), home.tree());
        let stop = Arc::new(Stop::new().unwrap());
        let listener = Listener::unix(&socket).unwrap();
        let asked = Arc::clone(&stop);
        let serve = move || {
            let driver = Chosen::new(driver, false, &options).unwrap();
            driver.serve(&tree, &[listener], Vec::new(), &asked, &options).unwrap();
        };
        let thread = thread::Builder::new().name("reactor".into()).spawn(serve).unwrap();
        Self { socket, stop, thread: Some(thread) }
    }

    pub(crate) fn connect(&self) -> Peer {
        Peer::connect(&self.socket)
    }

    pub(crate) fn client(&self) -> Peer {
        Peer::client(&self.socket)
    }

    /// Waits for the server's end, having asked for it.
    pub(crate) fn end(&mut self) {
        self.stop.ask();
        if let Some(thread) = self.thread.take() {
            assert!(thread.join().is_ok() || thread::panicking(), "the server panicked");
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}

/// A client's end.
pub(crate) struct Peer {
    pub(crate) stream: UnixStream,
}

impl Peer {
    pub(crate) fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { stream }
    }

    /// A peer with the root as fid 0 and the file open as fid 1.
    pub(crate) fn client(socket: &Path) -> Self {
        Self::try_client(socket).unwrap()
    }

    /// The same, unless the server has no place for it.
    pub(crate) fn try_client(socket: &Path) -> io::Result<Self> {
        let mut peer = Self::connect(socket);
        let mut wire = [0; 64];
        let names = Names::pack([&b"hermes"[..], b"files", b"file"], &mut wire).unwrap();
        for (tag, message) in [
            (NOTAG, Tmessage::Version { msize: 64 * 1024, version: b"9P2000" }),
            (1, Tmessage::Attach { fid: 0, afid: NOFID, uname: b"", aname: b"", n_uname: None }),
            (1, Tmessage::Walk { fid: 0, newfid: 1, names }),
            (1, Tmessage::Open { fid: 1, mode: 0 }),
        ] {
            peer.stream.write_all(&encode(tag, &message))?;
            let reply = peer.reply().ok_or(io::ErrorKind::UnexpectedEof)?;
            assert_eq!(reply.unwrap().0, tag);
        }
        Ok(peer)
    }

    /// Asks, and takes the reply, which must not be an error. Yields its payload.
    pub(crate) fn ask(&mut self, tag: u16, message: &Tmessage<'_>) -> Vec<u8> {
        self.stream.write_all(&encode(tag, message)).unwrap();
        let (got, payload) = self.reply().unwrap().unwrap();
        assert_eq!(got, tag);
        payload
    }

    /// The next reply: its tag, and the data of a read; or the words of an error. `None` at the end.
    pub(crate) fn reply(&mut self) -> Option<Result<(u16, Vec<u8>), String>> {
        let mut size = [0; 4];
        self.stream.read_exact(&mut size).ok()?;
        let mut frame = size.to_vec();
        frame.resize(u32::from_le_bytes(size) as usize, 0);
        self.stream.read_exact(&mut frame[4..]).ok()?;
        Some(match Rmessage::decode(&frame, Dialect::Plain).unwrap() {
            (_, Rmessage::Error { ename, .. }) => Err(String::from_utf8_lossy(ename).into_owned()),
            (tag, Rmessage::Read { data }) => Ok((tag, data.to_vec())),
            (tag, _) => Ok((tag, Vec::new())),
        })
    }

    /// Whether the server has closed the connection, or does so soon.
    pub(crate) fn is_closed(&mut self) -> bool {
        loop {
            match self.stream.read(&mut [0]) {
                // The kernel's part of a ring that was tried on this thread goes in its own time, and interrupts what we do.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
                Ok(count) => return count == 0,
            }
        }
    }
}

pub(crate) fn encode(tag: u16, message: &Tmessage<'_>) -> Vec<u8> {
    let mut frame = vec![0; 512];
    let size = message.encode(tag, Dialect::Plain, &mut frame).unwrap();
    frame.truncate(size);
    frame
}

/// Length of the file.
pub(crate) const FILE: usize = 64 * 1024;
