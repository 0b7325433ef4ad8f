//! What a run of the mover's simulation is about, drawn beforehand.
//!
//! Owns: the machine with its agents, how each of them takes a signal, where and when sessions answer, and what happens beside
//! all that. Must not know: clients, or what comes of anything.

use backend::host::fixture::{Edit, Fixture, Script, Special};
use engine::port::Now;

use super::agents::{AGENTS, PLACES, began, life, start};
use crate::choices::Choices;

/// An agent.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    pub(super) harness: &'static str,
    pub(super) pid: u32,
    pub(super) start: u64,
    /// What resumes it.
    pub(super) resumed: &'static [&'static str],
    /// How it takes SIGTERM and SIGKILL.
    pub(super) deaths: [Option<u64>; 2],
}

/// All that is drawn before a run.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) agents: Vec<Agent>,
    /// How long after its start a session answers; `None` for never.
    pub(super) answers: Option<u64>,
    /// In which directory.
    pub(super) sockets: &'static str,
    /// What happens by itself, and when.
    pub(super) meanwhile: Option<(u64, Happening)>,
    /// What happens just before a call of the machine, counted from the first write.
    pub(super) race: Option<(u64, Happening)>,
    /// In how many of 1024 calls a call fails.
    pub(super) faults: u16,
}

/// Something that somebody else does.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) enum Happening {
    /// The first agent ends by itself, and is waited for or not.
    Exit,
    Zombie,
    /// Its number is taken by the same program with the same arguments.
    Reuse,
    /// A session of the first name begins.
    NameAppears,
    /// zmx, or the harness, or the directory the agents work in, goes.
    ZmxGoes,
    HarnessGoes,
    WorkGoes,
}

impl Scene {
    pub(super) fn draw(dice: &mut dyn Choices) -> Self {
        let agents = AGENTS.iter().map(|&(harness, pid, resumed)| {
            let death = |dice: &mut dyn Choices| match dice.below(8) {
                0..=2 => Some(0),
                3 => Some(ms(u64::from(dice.below(4_900)))),
                4 => Some(ms(4_900 + u64::from(dice.below(200)))),
                5 => Some(ms(11_900 + u64::from(dice.below(200)))),
                6 => Some(ms(u64::from(dice.below(13_000)))),
                _ => None,
            };
            Agent { harness, pid, start: began(pid), resumed, deaths: [death(dice), death(dice)] }
        });
        let agents = agents.collect();
        let answers = match dice.below(8) {
            0..=2 => Some(ms(u64::from(dice.below(400)))),
            3 => Some(ms(11_900)),
            4 => Some(ms(12_000)),
            5 => Some(ms(11_800 + u64::from(dice.below(400)))),
            6 => Some(ms(u64::from(dice.below(13_000)))),
            _ => None,
        };
        let sockets = if dice.below(2) == 0 { "/run/user/1000/zmx" } else { "/run/user/1000/9p/zmx" };
        let meanwhile =
            (dice.below(3) == 0).then(|| (ms(u64::from(dice.below(20_000))), Happening::draw(dice)));
        let race = (dice.below(3) == 0).then(|| (u64::from(dice.below(60)), Happening::draw(dice)));
        let faults = if dice.below(4) == 0 { 1 + dice.below(60) as u16 } else { 0 };
        Self { agents, answers, sockets, meanwhile, race, faults }
    }

    /// The machine.
    pub(super) fn machine(&self) -> Fixture {
        let mut script = String::from(PLACES);
        for agent in &self.agents {
            let [term, kill] =
                agent.deaths.map(|death| death.map_or_else(|| "never".to_owned(), |ns| format!("{ns}ns")));
            script += &start(agent.pid, &format!("term={term} kill={kill}"));
        }
        Fixture::new(Script::parse(&script).expect("a script").world().expect("a machine"))
    }
}

impl Happening {
    fn draw(dice: &mut dyn Choices) -> Self {
        const ALL: [Happening; 7] = [
            Happening::Exit,
            Happening::Zombie,
            Happening::Reuse,
            Happening::NameAppears,
            Happening::ZmxGoes,
            Happening::HarnessGoes,
            Happening::WorkGoes,
        ];
        ALL[dice.below(ALL.len() as u32) as usize]
    }

    /// Lets it happen; what cannot does not.
    pub(super) fn happen(self, machine: &Fixture, sockets: &str) {
        let (harness, pid, _) = AGENTS[0];
        let edit = match self {
            Self::Exit => Edit::Exit { pid },
            Self::Zombie => Edit::Zombie { pid },
            Self::Reuse => {
                let now: Now = machine.with(|world| world.now());
                let began = now.mono_ns / 10_000_000;
                let line = format!("reuse {pid} {} cwd=/home/me/work start={began}", life(pid).0);
                let script = Script::parse(&line).expect("a script");
                let [edit] = &script.edits().cloned().collect::<Vec<_>>()[..] else { return };
                edit.clone()
            }
            Self::NameAppears => {
                Edit::Special { path: format!("{sockets}/{}", NAMES[0]).into(), kind: Special::Server }
            }
            Self::ZmxGoes => Edit::Unlink { path: "/usr/bin/zmx".into() },
            Self::HarnessGoes => Edit::Unlink { path: format!("/usr/bin/{harness}").into() },
            Self::WorkGoes => Edit::Rename { from: "/home/me/work".into(), to: "/home/me/gone".into() },
        };
        let _ = machine.apply(&edit);
    }
}

fn ms(ms: u64) -> u64 {
    ms * 1_000_000
}

/// The names that are written.
pub(super) const NAMES: [&str; 2] = ["night", "noon"];
