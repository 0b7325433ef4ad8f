//! The files a rollout continues.
//!
//! Owns: how a fork names its base, and how far such a chain is followed. Must not know: where rollouts lie.

use engine::port::Effort;

use super::super::Scene;
use super::records;
use super::rollout::{self, Stored};
use crate::active::OnDisk;
use crate::chat::compressed::Compressed;
use crate::chat::scan::Scanner;
use crate::chat::source::{Chain, Found, Library, Part};
use crate::chat::tape::Tape;
use crate::chat::{Error, Source};
use crate::host::{Errno, Host};
use crate::name::Root;
use crate::qid;

/// The rollouts of a machine, archived and compressed ones too.
pub(crate) struct Rollouts<'a> {
    pub(crate) host: &'a dyn Host,
}

impl Library for Rollouts<'_> {
    fn find(&self, id: &str) -> Result<Option<Found>, Errno> {
        let scene = Scene { host: self.host, root: Root::Codex, boot_s: 0, peers: &[], last_try: true };
        let Some(Stored { rel, is_compressed }) = rollout::stored(&scene, id) else { return Ok(None) };
        let (file, meta) = match self.host.open(Root::Codex, &rel, Effort::Full) {
            Err(Errno::NOENT) => return Ok(None),
            opened => opened?,
        };
        let file = Box::new(OnDisk(file));
        let source: Box<dyn Source> = if is_compressed { Box::new(Compressed::new(file)) } else { file };
        Ok(Some(Found { source, identity: qid::path(&meta) }))
    }
}

/// A rollout with the files it continues in front of it. A base that is not there, or was met before, ends the chain: what
/// was found so far is what there is to tell. `identity` is that of its own file.
pub(crate) fn chain(own: Box<dyn Source>, identity: u64, library: &dyn Library) -> Result<Chain, Error> {
    let mut bases: Vec<Part> = Vec::new();
    let mut met = vec![identity];
    let mut total = 0_u64;
    while bases.len() < DEEPEST {
        let newest = bases.last().map_or(&own, |part| &part.source);
        let Some(base) = first_base(&**newest)? else { break };
        let Some(Found { source, identity }) = library.find(&base.rollout)? else { break };
        total = total.saturating_add(base.length);
        if met.contains(&identity) || total > FURTHEST {
            break;
        }
        met.push(identity);
        bases.push(Part { source, length: base.length });
    }
    bases.reverse();
    Ok(Chain::new(bases, own))
}

/// The base that the first record of a rollout names.
fn first_base(source: &dyn Source) -> Result<Option<records::Base>, Error> {
    let mut scanner = Scanner::new(records::fields());
    let mut block = vec![0; BLOCK];
    let mut at = 0;
    while at < LONGEST_FIRST {
        let got = source.read_at(&mut block, at)?;
        let newline = memchr::memchr(b'\n', &block[..got]);
        let piece = &block[..newline.unwrap_or(got)];
        at += scanner.feed(piece, at, newline.is_some(), &|_: &Tape| true)? as u64;
        if newline.is_some() {
            return Ok(scanner.record().and_then(Tape::record).and_then(records::base));
        }
        if got < block.len() {
            break;
        }
    }
    Ok(None)
}

/// How many bases are followed.
const DEEPEST: usize = 16;
/// No offset in a chain passes what a file's may be.
const FURTHEST: u64 = i64::MAX as u64 / 2;
/// How long a first record may be. The longest known have 120 KB.
const LONGEST_FIRST: u64 = 4 * 1024 * 1024;
const BLOCK: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{Builder, Format};

    struct Shelf(Vec<(&'static str, &'static [u8])>);

    impl Library for Shelf {
        fn find(&self, id: &str) -> Result<Option<Found>, Errno> {
            let found = self.0.iter().enumerate().find(|(_, (name, _))| *name == id);
            Ok(found.map(|(at, (_, bytes))| Found { source: Box::new(*bytes), identity: at as u64 + 1 }))
        }
    }

    fn meta(id: &str, base: Option<(&str, usize)>, more: &str) -> String {
        let base = base.map_or(String::new(), |(base, end)| {
            format!(r#","history_base":{{"thread_id":"{base}","end_ordinal_exclusive":3,"end_byte_offset":{end}}}"#)
        });
        format!("{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{id}\"{base}{more}}}}}\n")
    }

    fn said(text: &str) -> String {
        format!(
            r#"{{"type":"response_item","payload":{{"type":"message","role":"user","content":"{text}"}}}}{}"#,
            "\n"
        )
    }

    fn leak(text: String) -> &'static [u8] {
        text.leak().as_bytes()
    }

    fn told(own: &'static [u8], shelf: &Shelf) -> Vec<String> {
        let chain = chain(Box::new(own), 0, shelf).unwrap();
        let mut builder = Builder::new(Format::Codex, &chain.lengths());
        let end = chain.own_start() + own.len() as u64;
        assert!(builder.step(&chain, end, usize::MAX).unwrap());
        let read = |entry: crate::chat::Entry<'_>| {
            let mut buf = vec![0; entry.length() as usize];
            crate::chat::render::Reader::new(&entry).read(&chain, 0, &mut buf, 1).unwrap();
            String::from_utf8(buf).unwrap().trim_end().to_string()
        };
        builder.index().entries(0).map(read).collect()
    }

    #[test]
    fn a_fork_tells_its_bases_up_to_where_it_left_them() {
        let a = leak(meta("a", None, "") + &said("a1") + &said("a2"));
        let left = a.len() - said("a2").len();
        let b = leak(meta("b", Some(("a", left)), "") + &said("b1"));
        // The half of a line at the end of a base is no line, and does not run into the next file.
        let c = leak(meta("c", Some(("b", b.len() - 3)), "") + &said("c1"));
        let shelf = Shelf(vec![("a", a), ("b", b)]);
        assert_eq!(told(b, &shelf), ["a1", "b1"]);
        assert_eq!(told(c, &shelf), ["a1", "c1"]);
        let beyond = leak(meta("d", Some(("a", 1_000_000)), "") + &said("d1"));
        assert_eq!(told(beyond, &shelf), ["a1", "a2", "d1"]);
    }

    #[test]
    fn a_missing_base_a_ring_and_a_subagent_give_the_own_lines() {
        let own = leak(meta("x", Some(("gone", 10)), "") + &said("x1"));
        assert_eq!(told(own, &Shelf(vec![])), ["x1"]);
        let y = leak(meta("y", Some(("x", 1000)), "") + &said("y1"));
        let x = leak(meta("x", Some(("y", 1000)), "") + &said("x1"));
        assert_eq!(told(x, &Shelf(vec![("y", y)])), ["y1", "x1"]);
        let ring = Shelf(vec![("y", y), ("x", x)]);
        let chain = chain(Box::new(y), 1, &ring).unwrap();
        assert_eq!(chain.lengths(), [1000]);
        let sub = leak(meta("s", Some(("y", 1000)), r#","thread_source":"subagent""#) + &said("s1"));
        assert_eq!(told(sub, &Shelf(vec![("y", y)])), ["s1"]);
    }

    #[test]
    fn a_chain_is_followed_sixteen_deep() {
        let names: Vec<&'static str> = (0..20).map(|at| &*format!("r{at}").leak()).collect();
        let files = names.iter().enumerate().map(|(at, name)| {
            let base = at.checked_sub(1).map(|before| (names[before], 100_000));
            (*name, leak(meta(name, base, "") + &said(name)))
        });
        let shelf = Shelf(files.collect());
        let told = told(shelf.0[19].1, &shelf);
        assert_eq!(told.len(), 17);
        assert_eq!((told[0].as_str(), told[16].as_str()), ("r3", "r19"));
    }
}
