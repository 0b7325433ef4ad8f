//! One pass over the process table: which processes are agents.
//!
//! Owns: which files of a process are looked at, and what is remembered from one pass to the next. Must not know: sessions.
//!
//! Each process is touched once, and as little as will do. `stat` tells the owner, state, parent and start of every
//! process; that alone is read of another user's process, a kernel thread or a corpse. Of one's own, the arguments and the path of
//! the executable decide; they are read when a program is first seen, and again when `stat` shows that another has taken
//! its place: every execve(2) puts stack and arguments somewhere else. So a pass over known processes costs one small
//! file each. `environ` and `fd` are not looked at here at all.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::harness::{self, Program, Role, Scene, Torn};
use crate::host::{Errno, Host};
use crate::name::Root;
use crate::process::{self, Process, Stat};
use crate::tree::halt::Halt;

use super::place::Agent;

/// What a pass came to.
#[derive(Debug, Default)]
pub(super) struct Table {
    agents: Vec<Arc<Agent>>,
    /// Agents that are not listed, because this process descends from them. Their sessions are theirs all the same.
    unlisted: Vec<Agent>,
    /// By pid: what was seen, so that the next pass need not look again.
    seen: BTreeMap<u32, Seen>,
}

/// What is remembered of a process of any kind.
#[derive(Clone, Debug)]
struct Seen {
    stat: Stat,
    program: Judgement,
}

/// What is known of the program of a process.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
enum Judgement {
    /// Another user's, or the kernel's: none of ours.
    Foreign,
    /// It cannot be looked at just now.
    Unknown,
    /// A program of no harness.
    Other,
    /// A program of a harness.
    Of(Root, Role),
}

impl Table {
    /// The agents of a harness.
    pub(super) fn agents(&self, root: Root) -> impl Iterator<Item = &Arc<Agent>> {
        self.agents.iter().filter(move |agent| agent.root == root)
    }

    /// The processes of a harness's agents, listed or not.
    pub(super) fn processes(&self, root: Root) -> Vec<Process> {
        let all = self.agents.iter().map(|agent| &**agent).chain(&self.unlisted);
        all.filter(|agent| agent.root == root).map(|agent| agent.process).collect()
    }

    /// The agent of a harness with this pid.
    pub(super) fn agent(&self, root: Root, pid: u32) -> Option<Arc<Agent>> {
        self.agents(root).find(|agent| agent.process.pid == pid).cloned()
    }
}

/// How to take a pass.
pub(super) struct Pass<'a> {
    pub(super) host: &'a dyn Host,
    /// What the last one saw.
    pub(super) last: &'a Table,
    pub(super) boot_s: i64,
    /// Whether this process's own ancestors count.
    pub(super) with_ancestors: bool,
    pub(super) last_try: bool,
}

impl Pass<'_> {
    /// Takes it. Nothing of a process that ends meanwhile is left.
    pub(super) fn take(&self) -> Result<Arc<Table>, Halt> {
        let mut seen = BTreeMap::new();
        for pid in process::pids(self.host)?.unwrap_or_default() {
            if let Some(found) = self.look(pid)? {
                seen.insert(pid, found);
            }
        }
        let line = if self.with_ancestors {
            Vec::new()
        } else {
            process::ancestry(self.host, &|pid| seen.get(&pid).map(|found| found.stat.ppid))?
        };
        #[cfg(feature = "planted")]
        let line = if engine::planted::is(engine::planted::Bug::AncestorListed) { Vec::new() } else { line };
        let (unlisted, agents): (Vec<_>, Vec<_>) =
            self.agents(&seen)?.into_iter().partition(|agent| line.contains(&agent.process.pid));
        let agents = agents.into_iter().map(Arc::new).collect();
        Ok(Arc::new(Table { agents, unlisted, seen }))
    }

    /// Looks at one process; `None` if it is gone or may not be looked at.
    fn look(&self, pid: u32) -> Result<Option<Seen>, Halt> {
        match self.look_at(pid) {
            Ok(found) => Ok(found),
            Err(errno) if process::is_of_process(errno) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn look_at(&self, pid: u32) -> Result<Option<Seen>, Errno> {
        let (stat, meta) = Stat::read(self.host, pid)?;
        if !stat.is_alive() {
            return Ok(None);
        }
        let known = self
            .last
            .seen
            .get(&pid)
            .filter(|seen| seen.stat.process == stat.process && seen.stat.comm == stat.comm);
        let uid = self.host.me().uid;
        if stat.is_kernel() || (meta.uid != uid && !self.is_own(&stat, meta.uid, known)?) {
            return Ok(Some(Seen { stat, program: Judgement::Foreign }));
        }
        let program = match known.map(|seen| (seen.stat.image, seen.program)) {
            Some((image, known @ (Judgement::Other | Judgement::Of(..))))
                if image == stat.image && image != [0; 3] =>
            {
                known
            }
            // It waits for a disk, and whoever asks it for its arguments may come to wait with it.
            Some((_, known)) if stat.state == b'D' => known,
            None if stat.state == b'D' => Judgement::Unknown,
            _ => self.judge(stat.process),
        };
        Ok(Some(Seen { stat, program }))
    }

    /// Whether a process is our user's although its files say `owner`: they say root of one that is not dumpable.
    fn is_own(&self, stat: &Stat, owner: u32, known: Option<&Seen>) -> Result<bool, Errno> {
        Ok(match known {
            _ if owner != ROOT_UID => false,
            Some(seen) => seen.program != Judgement::Foreign,
            None => process::uid(self.host, stat.process.pid)? == self.host.me().uid,
        })
    }

    /// Decides by arguments and executable.
    fn judge(&self, process: Process) -> Judgement {
        let Some(cmdline) = process.cmdline(self.host) else { return Judgement::Unknown };
        let exe = process.exe(self.host).unwrap_or_default();
        let (cmdline, exe) = (String::from_utf8_lossy(&cmdline), String::from_utf8_lossy(&exe));
        let program = Program::new(&cmdline, &exe);
        let roles =
            Root::HARNESSES.into_iter().filter_map(|root| Some((root, harness::of(root)?.role(&program)?)));
        roles.into_iter().next().map_or(Judgement::Other, |(root, role)| Judgement::Of(root, role))
    }

    /// The agents among what was seen, with what the harnesses themselves have on record.
    fn agents(&self, seen: &BTreeMap<u32, Seen>) -> Result<Vec<Agent>, Torn> {
        let mut roles: BTreeMap<Agent, Role> = BTreeMap::new();
        for found in seen.values() {
            if let Judgement::Of(root, role) = found.program {
                roles.insert(Agent { process: found.stat.process, root }, role);
            }
        }
        let own = |pid: u32| {
            let found = seen.get(&pid).filter(|found| found.program != Judgement::Foreign)?;
            Some(found.stat.process)
        };
        for root in Root::HARNESSES {
            let Some(harness) = harness::of(root) else { continue };
            let scene =
                Scene { host: self.host, root, boot_s: self.boot_s, peers: &[], last_try: self.last_try };
            for (process, role) in harness.vouched(&scene, &own)? {
                let known = roles.keys().find(|agent| agent.process == process).copied();
                match known {
                    // It may say that an agent is at other work, and never that other work is an agent.
                    Some(agent) if agent.root == root && role == Role::Helper => {
                        _ = roles.insert(agent, role)
                    }
                    Some(_) => {}
                    None => _ = roles.insert(Agent { process, root }, role),
                }
            }
        }
        let has_child = |wrapper: &Agent| {
            roles.iter().any(|(agent, role)| {
                let parent = seen.get(&agent.process.pid).map(|found| found.stat.ppid);
                *role == Role::Agent && agent.root == wrapper.root && parent == Some(wrapper.process.pid)
            })
        };
        let counts = |(agent, role): (&Agent, &Role)| match role {
            Role::Agent => true,
            Role::Wrapper => !has_child(agent),
            Role::Helper => false,
        };
        Ok(roles.iter().filter(|entry| counts(*entry)).map(|(agent, _)| *agent).collect())
    }
}

const ROOT_UID: u32 = 0;
