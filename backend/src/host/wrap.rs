//! Hosts that stand between the backend and another host, for tests.
//!
//! Owns: three decorators. [`Traced`] writes down what is asked and answered, [`Faulty`] fails calls, and [`Hooked`] does
//! something just before a call, such as changing the world or asking the backend again: a race without threads. Must
//! not know: which host stands behind.
//!
//! All three are one wrapper around every call of a host, its files and its directories, with something that
//! [watches](Watch). None has a clock or draws anything by itself, so the same calls always meet the same fate. They may
//! be stacked in any order, and none holds a lock while it calls anyone.

mod faults;
mod trace;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::port::{Effort, Now};

use super::{Dir, Errno, File, Held, Host, Launch, Me, Meta, Signal};
use crate::name::{Name, Rel, Root};

pub use self::faults::{Fault, FaultKind, Faults, Weights};
pub use self::trace::Trace;

/// One call.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Call<'a> {
    /// Which.
    pub verb: Verb,
    /// Below which root, where the call has one.
    pub root: Option<Root>,
    /// Which path: of a file or directory, the one that it was opened by.
    pub path: &'a str,
    /// With what effort; [`Effort::Full`] where the call does not say.
    pub effort: Effort,
}

/// What is called.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "each is the method of this name")]
pub enum Verb {
    Stat,
    Walk {
        from: usize,
    },
    Open,
    OpenDir,
    ReadLink,
    StatLink,
    User {
        uid: u32,
    },
    Group {
        gid: u32,
    },
    IsBase,
    MachineId,
    LookUp,
    MayRun,
    IsLive,
    Hold {
        pid: u32,
    },
    Spawn,
    /// [`Held::signal`].
    Signal {
        pid: u32,
        what: Signal,
    },
    /// [`Held::has_ended`].
    HasEnded {
        pid: u32,
    },
    /// [`File::read_at`].
    Read {
        offset: u64,
        bytes: usize,
    },
    /// [`File::meta`].
    FileMeta,
    /// [`Dir::names`].
    Names,
    /// [`Dir::stat`] of a name in the path's directory.
    EntryStat,
}

impl Verb {
    /// Whether the answer is handed on in pieces.
    fn is_piecemeal(self) -> bool {
        matches!(self, Self::Walk { .. } | Self::Names)
    }
}

/// A piece of an answer.
#[derive(Copy, Clone, Debug)]
#[expect(missing_docs, reason = "each says what it holds")]
pub enum Said<'a> {
    Meta(&'a Meta),
    /// A name of a listing, what a link says, what was read, a user's name.
    Bytes(&'a [u8]),
    Flag(bool),
    /// The answer is complete.
    Done,
    Failed(Errno),
}

/// What stands beside the calls of a [`Wrapped`] host.
pub trait Watch: Send + Sync + 'static {
    /// A call is about to be made. A fault stands in its place.
    fn before(&self, call: &Call<'_>) -> Option<Fault> {
        let _ = call;
        None
    }

    /// A piece of the answer came; the last one is [`Said::Done`] or [`Said::Failed`].
    fn said(&self, call: &Call<'_>, said: Said<'_>) {
        let _ = (call, said);
    }
}

/// A host with something that watches. [`Host::now`], [`Host::me`] and [`Host::base`], which cannot fail, go by unseen.
pub struct Wrapped<W> {
    inner: Arc<dyn Host>,
    watch: Arc<W>,
}

/// Writes down what is asked and what is answered.
pub type Traced = Wrapped<Trace>;
/// Fails calls.
pub type Faulty = Wrapped<Faults>;
/// Does something before a call.
pub type Hooked = Wrapped<Hooks>;

impl Hooked {
    /// Nothing happens yet.
    #[must_use]
    pub fn new(inner: Arc<dyn Host>) -> Self {
        Self::with(inner, Hooks { calls: AtomicU64::new(0), hooks: Mutex::default() })
    }

    /// Does something just before the call with this number, counted from 0. Calls that it makes itself are counted like
    /// any other.
    pub fn at(&self, number: u64, action: impl FnOnce() + Send + 'static) {
        self.on(move |at, _| at == number, action);
    }

    /// Does something just before the next call that `is_it` says yes to; it gets the number of the call.
    pub fn on(
        &self,
        is_it: impl Fn(u64, &Call<'_>) -> bool + Send + 'static,
        action: impl FnOnce() + Send + 'static,
    ) {
        lock(&self.watch.hooks).push(Hook { is_it: Box::new(is_it), action: Box::new(action) });
    }

    /// How many calls there were.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.watch.calls.load(Relaxed)
    }

    /// How many actions still wait for their call.
    #[must_use]
    pub fn waiting(&self) -> usize {
        lock(&self.watch.hooks).len()
    }
}

impl fmt::Display for Call<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = self.root.map_or("", Root::as_str);
        write!(out, "{:?} {root}/{} {:?}", self.verb, self.path, self.effort)
    }
}

/// What [`Hooked`] keeps.
pub struct Hooks {
    calls: AtomicU64,
    hooks: Mutex<Vec<Hook>>,
}

struct Hook {
    is_it: Box<IsIt>,
    action: Box<dyn FnOnce() + Send>,
}

type IsIt = dyn Fn(u64, &Call<'_>) -> bool + Send;

impl Watch for Hooks {
    fn before(&self, call: &Call<'_>) -> Option<Fault> {
        let number = self.calls.fetch_add(1, Relaxed);
        let due: Vec<Hook> = lock(&self.hooks).extract_if(.., |hook| (hook.is_it)(number, call)).collect();
        for hook in due {
            (hook.action)();
        }
        None
    }
}

impl<W: Watch> Wrapped<W> {
    /// A host with a watch of one's own.
    #[must_use]
    pub fn with(inner: Arc<dyn Host>, watch: W) -> Self {
        Self { inner, watch: Arc::new(watch) }
    }
}

impl<W: Watch> Host for Wrapped<W> {
    fn now(&self) -> Now {
        self.inner.now()
    }

    fn stat(&self, root: Root, rel: &Rel, effort: Effort) -> Result<Meta, Errno> {
        let call = Call { verb: Verb::Stat, root: Some(root), path: rel.as_str(), effort };
        watched(&*self.watch, &call, |_| self.inner.stat(root, rel, effort), say_meta)
    }

    fn walk(
        &self,
        root: Root,
        rel: &Rel,
        from: usize,
        effort: Effort,
        each: &mut dyn FnMut(&Meta),
    ) -> Result<(), Errno> {
        let call = Call { verb: Verb::Walk { from }, root: Some(root), path: rel.as_str(), effort };
        let walk = |fault: Option<Fault>| {
            let mut left = fault.map_or(u32::MAX, |fault| fault.after);
            let answer = self.inner.walk(root, rel, from, effort, &mut |meta| {
                if left > 0 {
                    left -= 1;
                    self.watch.said(&call, Said::Meta(meta));
                    each(meta);
                }
            });
            fault.map_or(answer, |fault| Err(fault.kind.errno()))
        };
        watched(&*self.watch, &call, walk, say_nothing)
    }

    fn open(&self, root: Root, rel: &Rel, effort: Effort) -> Result<(Box<dyn File>, Meta), Errno> {
        let call = Call { verb: Verb::Open, root: Some(root), path: rel.as_str(), effort };
        let open = |_| self.inner.open(root, rel, effort);
        let (inner, meta) = watched(&*self.watch, &call, open, |(_, meta), say| say_meta(meta, say))?;
        Ok((Box::new(WrappedFile { inner, watch: Arc::clone(&self.watch), root, rel: rel.clone() }), meta))
    }

    fn open_dir(&self, root: Root, rel: &Rel) -> Result<(Box<dyn Dir>, Meta), Errno> {
        let call = Call { verb: Verb::OpenDir, root: Some(root), path: rel.as_str(), effort: Effort::Full };
        let open = |_| self.inner.open_dir(root, rel);
        let (inner, meta) = watched(&*self.watch, &call, open, |(_, meta), say| say_meta(meta, say))?;
        Ok((Box::new(WrappedDir { inner, watch: Arc::clone(&self.watch), root, rel: rel.clone() }), meta))
    }

    fn read_link(&self, rel: &Rel) -> Result<Vec<u8>, Errno> {
        let call = of_proc(Verb::ReadLink, rel);
        watched(&*self.watch, &call, |_| self.inner.read_link(rel), |text, say| say(Said::Bytes(text)))
    }

    fn stat_link(&self, rel: &Rel) -> Result<Meta, Errno> {
        watched(&*self.watch, &of_proc(Verb::StatLink, rel), |_| self.inner.stat_link(rel), say_meta)
    }

    fn user(&self, uid: u32) -> Option<Arc<str>> {
        self.ask(Verb::User { uid }, || self.inner.user(uid), say_name)
    }

    fn group(&self, gid: u32) -> Option<Arc<str>> {
        self.ask(Verb::Group { gid }, || self.inner.group(gid), say_name)
    }

    fn me(&self) -> Me {
        self.inner.me()
    }

    fn is_base(&self, root: Root, path: &[u8]) -> bool {
        let ask = || self.inner.is_base(root, path);
        self.ask(Verb::IsBase, ask, say_flag)
    }

    fn machine_id(&self) -> Option<Arc<str>> {
        self.ask(Verb::MachineId, || self.inner.machine_id(), say_name)
    }

    fn base(&self, root: Root) -> Vec<u8> {
        self.inner.base(root)
    }

    fn look_up(&self, path: &[u8]) -> Result<Meta, Errno> {
        let spelt = String::from_utf8_lossy(path);
        let call = anywhere(Verb::LookUp, &spelt);
        watched(&*self.watch, &call, |_| self.inner.look_up(path), say_meta)
    }

    fn may_run(&self, path: &[u8]) -> bool {
        self.ask_of(Verb::MayRun, path, || self.inner.may_run(path), say_flag)
    }

    fn is_live(&self, socket: &[u8]) -> bool {
        self.ask_of(Verb::IsLive, socket, || self.inner.is_live(socket), say_flag)
    }

    fn hold(&self, pid: u32, start: u64) -> Result<Box<dyn Held>, Errno> {
        let call = anywhere(Verb::Hold { pid }, "");
        let inner = watched(&*self.watch, &call, |_| self.inner.hold(pid, start), say_nothing)?;
        Ok(Box::new(WrappedHeld { inner, watch: Arc::clone(&self.watch), pid }))
    }

    fn spawn(&self, launch: &Launch<'_>) -> Result<(), Errno> {
        let spelt = String::from_utf8_lossy(launch.args.first().map_or(&[][..], |program| program));
        watched(&*self.watch, &anywhere(Verb::Spawn, &spelt), |_| self.inner.spawn(launch), say_nothing)
    }
}

impl<W: Watch> Wrapped<W> {
    /// Makes a call that cannot fail.
    fn ask<T>(&self, verb: Verb, ask: impl FnOnce() -> T, say: impl FnOnce(&T, &Say<'_>)) -> T {
        self.ask_of(verb, b"", ask, say)
    }

    fn ask_of<T>(
        &self,
        verb: Verb,
        path: &[u8],
        ask: impl FnOnce() -> T,
        say: impl FnOnce(&T, &Say<'_>),
    ) -> T {
        let spelt = String::from_utf8_lossy(path);
        let call = anywhere(verb, &spelt);
        self.watch.before(&call);
        let answer = ask();
        say(&answer, &|said| self.watch.said(&call, said));
        self.watch.said(&call, Said::Done);
        answer
    }
}

struct WrappedFile<W> {
    inner: Box<dyn File>,
    watch: Arc<W>,
    root: Root,
    rel: Rel,
}

impl<W: Watch> File for WrappedFile<W> {
    fn read_at(&self, buf: &mut [u8], offset: u64, effort: Effort) -> Result<usize, Errno> {
        let verb = Verb::Read { offset, bytes: buf.len() };
        let call = Call { verb, root: Some(self.root), path: self.rel.as_str(), effort };
        let read = |_| {
            let bytes = self.inner.read_at(buf, offset, effort)?;
            self.watch.said(&call, Said::Bytes(&buf[..bytes]));
            Ok(bytes)
        };
        watched(&*self.watch, &call, read, say_nothing)
    }

    fn meta(&self) -> Result<Meta, Errno> {
        let call = Call {
            verb: Verb::FileMeta,
            root: Some(self.root),
            path: self.rel.as_str(),
            effort: Effort::Full,
        };
        watched(&*self.watch, &call, |_| self.inner.meta(), say_meta)
    }

    fn tells_replacement(&self) -> bool {
        self.inner.tells_replacement()
    }
}

struct WrappedDir<W> {
    inner: Box<dyn Dir>,
    watch: Arc<W>,
    root: Root,
    rel: Rel,
}

impl<W: Watch> Dir for WrappedDir<W> {
    fn names(&self, each: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Errno> {
        let call =
            Call { verb: Verb::Names, root: Some(self.root), path: self.rel.as_str(), effort: Effort::Full };
        let list = |fault: Option<Fault>| {
            let mut left = fault.map_or(u32::MAX, |fault| fault.after);
            // Whoever has seen enough is not told of what fails later.
            let mut is_enough = false;
            let answer = self.inner.names(&mut |name| {
                if left == 0 {
                    return false;
                }
                left -= 1;
                self.watch.said(&call, Said::Bytes(name));
                is_enough = !each(name);
                !is_enough
            });
            match fault {
                Some(fault) if !is_enough => Err(fault.kind.errno()),
                _ => answer,
            }
        };
        watched(&*self.watch, &call, list, say_nothing)
    }

    fn stat(&self, name: Name<'_>) -> Result<Meta, Errno> {
        let path = self.rel.join(name);
        let call =
            Call { verb: Verb::EntryStat, root: Some(self.root), path: path.as_str(), effort: Effort::Full };
        watched(&*self.watch, &call, |_| self.inner.stat(name), say_meta)
    }
}

struct WrappedHeld<W> {
    inner: Box<dyn Held>,
    watch: Arc<W>,
    pid: u32,
}

impl<W: Watch> Held for WrappedHeld<W> {
    fn signal(&self, what: Signal) -> Result<(), Errno> {
        let call = anywhere(Verb::Signal { pid: self.pid, what }, "");
        watched(&*self.watch, &call, |_| self.inner.signal(what), say_nothing)
    }

    fn has_ended(&self) -> bool {
        let call = anywhere(Verb::HasEnded { pid: self.pid }, "");
        self.watch.before(&call);
        let ended = self.inner.has_ended();
        self.watch.said(&call, Said::Flag(ended));
        self.watch.said(&call, Said::Done);
        ended
    }
}

/// Makes a call under a watch. `make` gets the fault that it has to end with if it hands on pieces; a call that does not
/// is not made at all then.
fn watched<T, W: Watch>(
    watch: &W,
    call: &Call<'_>,
    make: impl FnOnce(Option<Fault>) -> Result<T, Errno>,
    say: impl FnOnce(&T, &Say<'_>),
) -> Result<T, Errno> {
    let answer = match watch.before(call) {
        Some(fault) if !call.verb.is_piecemeal() => Err(fault.kind.errno()),
        fault => make(fault),
    };
    match &answer {
        Ok(value) => {
            say(value, &|said| watch.said(call, said));
            watch.said(call, Said::Done);
        }
        Err(error) => watch.said(call, Said::Failed(*error)),
    }
    answer
}

type Say<'a> = dyn Fn(Said<'_>) + 'a;

fn say_meta(meta: &Meta, say: &Say<'_>) {
    say(Said::Meta(meta));
}

fn say_name(name: &Option<Arc<str>>, say: &Say<'_>) {
    say(Said::Bytes(name.as_deref().unwrap_or_default().as_bytes()));
}

fn say_flag(flag: &bool, say: &Say<'_>) {
    say(Said::Flag(*flag));
}

/// What came was said piece by piece, or there was nothing to say of it.
fn say_nothing<T>(_: &T, _: &Say<'_>) {}

fn of_proc(verb: Verb, rel: &Rel) -> Call<'_> {
    Call { verb, root: Some(Root::Proc), path: rel.as_str(), effort: Effort::Full }
}

/// A call that is below no root.
fn anywhere(verb: Verb, path: &str) -> Call<'_> {
    Call { verb, root: None, path, effort: Effort::Full }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
