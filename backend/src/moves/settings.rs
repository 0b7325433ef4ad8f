//! What a move needs to know of the machine, found out once, at start.
//!
//! Owns: where zmx and the harnesses are, where sessions have their sockets, and the environment that a resumed agent is
//! given. Must not know: agents.

use std::collections::BTreeSet;
use std::fmt;

use crate::harness;
use crate::host::Host;
use crate::name::Root;

/// How agents are moved on one machine.
#[derive(Clone)]
pub struct Moving {
    /// The environment of what is started.
    env: Vec<Vec<u8>>,
    zmx: Option<Vec<u8>>,
    /// By [`Root::HARNESSES`].
    programs: [Option<Vec<u8>>; 5],
    /// Roots that are not where this environment would have them, so that a harness has to be told.
    pinned: Vec<Root>,
    /// Directories in which a session of either zmx that is begun with this environment has its socket.
    own: Vec<Vec<u8>>,
    /// Directories in which one that was begun with another environment may have its socket.
    others: Vec<Vec<u8>>,
}

impl Moving {
    /// Looks for everything, once. `environment`: this process's, `NAME=value` each. `zmx`: the program that is to be used in
    /// place of the one in PATH. `pinned`: the roots whose place the user has said.
    #[must_use]
    pub fn find(
        host: &dyn Host,
        environment: &[Vec<u8>],
        zmx: Option<&[u8]>,
        pinned: impl IntoIterator<Item = Root>,
    ) -> Self {
        let value = |name: &str| {
            let of_name = |variable: &'_ [u8]| -> Option<usize> {
                let rest = variable.strip_prefix(name.as_bytes())?;
                (rest.first() == Some(&b'=')).then_some(name.len() + 1)
            };
            let found = environment.iter().find_map(|variable| Some(&variable[of_name(variable)?..]));
            found.filter(|value| value.starts_with(b"/"))
        };
        let path = environment.iter().find_map(|variable| variable.strip_prefix(b"PATH="));
        let in_path = |name: &str| {
            let dirs = path.unwrap_or_default().split(|byte| *byte == b':');
            let absolute = dirs.filter(|dir| dir.starts_with(b"/"));
            absolute.map(|dir| below(dir, name.as_bytes())).find(|program| host.may_run(program))
        };
        let zmx = match zmx {
            Some(program) => {
                Some(program.to_vec()).filter(|_| program.starts_with(b"/") && host.may_run(program))
            }
            None => in_path("zmx"),
        };
        let of_user = format!("zmx-{}", host.me().uid);
        let runtime = value("XDG_RUNTIME_DIR");
        // In the order in which zmx looks for its directory; the last is always there.
        let places: Vec<Vec<u8>> = [
            value("ZMX_DIR").map(<[u8]>::to_vec),
            runtime.map(|runtime| below(runtime, b"zmx")),
            value("TMPDIR").map(|temporary| below(temporary, of_user.as_bytes())),
            Some(below(b"/tmp", of_user.as_bytes())),
        ]
        .into_iter()
        .flatten()
        .collect();
        let posted = runtime.map(|runtime| below(&below(runtime, b"9p"), b"zmx"));
        let own = posted.into_iter().chain(places.first().cloned()).collect();
        let others = places.into_iter().skip(1).collect();
        // Of two with one name the first is meant, here as by getenv(3).
        let mut names = BTreeSet::new();
        let env = environment.iter().filter(|variable| names.insert(name_of(variable)));
        Self {
            env: env.filter(|variable| is_handed_on(variable)).cloned().collect(),
            zmx,
            programs: Root::HARNESSES.map(|root| in_path(root.as_str())),
            pinned: pinned.into_iter().collect(),
            own,
            others,
        }
    }

    /// The zmx that is used; `None` if there is none, and nothing will be moved.
    #[must_use]
    pub fn zmx(&self) -> Option<&[u8]> {
        self.zmx.as_deref()
    }

    /// The program of a harness.
    pub(super) fn program(&self, root: Root) -> Option<&[u8]> {
        let at = Root::HARNESSES.iter().position(|harness| *harness == root)?;
        self.programs[at].as_deref()
    }

    /// The environment of an agent of a harness.
    pub(super) fn env(&self, host: &dyn Host, root: Root) -> Vec<Vec<u8>> {
        let mut env = self.env.clone();
        if let Some(harness) = harness::of(root).filter(|_| self.pinned.contains(&root)) {
            let name = [harness.home_variable().as_bytes(), b"="].concat();
            env.retain(|variable| !variable.starts_with(&name));
            env.push([name, host.base(root)].concat());
        }
        env
    }

    /// Where a new session will have its socket, in either kind of zmx; `None` if one of the paths cannot be bound.
    pub(super) fn sockets(&self, name: &[u8]) -> Option<Vec<Vec<u8>>> {
        let sockets: Vec<_> = self.own.iter().map(|dir| below(dir, name)).collect();
        sockets.iter().all(|socket| socket.len() <= MOST_SOCKET_BYTES).then_some(sockets)
    }

    /// Whether a session of this name lives, in any of the places where one can.
    pub(super) fn is_taken(&self, host: &dyn Host, name: &[u8]) -> bool {
        self.own.iter().chain(&self.others).any(|dir| host.is_live(&below(dir, name)))
    }
}

impl fmt::Debug for Moving {
    /// The environment is nobody's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Moving")
            .field("zmx", &self.zmx.as_ref().map(|zmx| zmx.escape_ascii().to_string()))
            .finish_non_exhaustive()
    }
}

/// Whether a variable is for an agent too. The session that we live in is not its session, the sockets that we were given
/// are not its sockets, our supervisor does not wait to hear from it (systemd.exec(5)), and it works elsewhere.
fn is_handed_on(variable: &[u8]) -> bool {
    let name = name_of(variable);
    !name.is_empty()
        && name.len() < variable.len()
        && !name.starts_with(b"ZMX_SESSION")
        && !matches!(name, b"LISTEN_PID" | b"LISTEN_FDS" | b"LISTEN_FDNAMES" | b"LISTEN_PIDFDID")
        && !matches!(name, b"NOTIFY_SOCKET" | b"WATCHDOG_PID" | b"WATCHDOG_USEC" | b"JOURNAL_STREAM")
        && !matches!(name, b"PWD" | b"OLDPWD")
}

fn name_of(variable: &[u8]) -> &[u8] {
    variable.split(|byte| *byte == b'=').next().unwrap_or_default()
}

fn below(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let dir = dir.strip_suffix(b"/").unwrap_or(dir);
    [dir, b"/", name].concat()
}

/// `sun_path` of unix(7), less its NUL.
const MOST_SOCKET_BYTES: usize = 107;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::{Edit, Fixture, Special};

    fn machine(programs: &[&str]) -> Fixture {
        let fixture = Fixture::default();
        for program in programs {
            let (dir, _) = program.rsplit_once('/').unwrap();
            fixture.apply(&Edit::MkdirAll { path: dir.into() }).unwrap();
            fixture.apply(&Edit::Write { path: (*program).into(), bytes: "".into() }).unwrap();
        }
        fixture
    }

    fn find(fixture: &Fixture, env: &[&str], zmx: Option<&str>, pinned: &[Root]) -> Moving {
        let env: Vec<_> = env.iter().map(|variable| variable.as_bytes().to_vec()).collect();
        Moving::find(fixture, &env, zmx.map(str::as_bytes), pinned.iter().copied())
    }

    fn paths(paths: &[Vec<u8>]) -> Vec<&str> {
        paths.iter().map(|path| str::from_utf8(path).unwrap()).collect()
    }

    #[test]
    fn programs_are_found_in_absolute_directories_in_their_order() {
        let fixture = machine(&["/a/zmx", "/b/zmx", "/b/claude", "/w/codex"]);
        fixture.apply(&Edit::MkdirAll { path: "/a/claude".into() }).unwrap();
        let found = find(&fixture, &["PATH=w:.::/none:/a/:/b", "PATH=/w"], None, &[]);
        assert_eq!(found.zmx(), Some(&b"/a/zmx"[..]));
        assert_eq!(found.program(Root::Claude), Some(&b"/b/claude"[..]), "a directory is no program");
        assert_eq!((found.program(Root::Codex), found.program(Root::Proc)), (None, None));
        for (zmx, expected) in [("/b/zmx", Some(&b"/b/zmx"[..])), ("b/zmx", None), ("/none", None)] {
            assert_eq!(find(&fixture, &["PATH=/a"], Some(zmx), &[]).zmx(), expected);
        }
        assert_eq!(find(&fixture, &[], None, &[]).zmx(), None);
    }

    #[test]
    fn sessions_are_looked_for_where_either_zmx_has_them() {
        let fixture = machine(&[]);
        let all = ["XDG_RUNTIME_DIR=/run/u", "ZMX_DIR=/z", "TMPDIR=/t/"];
        let found = find(&fixture, &all, None, &[]);
        assert_eq!(paths(&found.sockets(b"n").unwrap()), ["/run/u/9p/zmx/n", "/z/n"]);
        let everywhere = ["/run/u/9p/zmx", "/z", "/run/u/zmx", "/t/zmx-1000", "/tmp/zmx-1000"];
        for dir in everywhere {
            assert!(!found.is_taken(&fixture, b"n"));
            let path = || format!("{dir}/n").into();
            fixture.apply(&Edit::MkdirAll { path: dir.into() }).unwrap();
            fixture.apply(&Edit::Special { path: path(), kind: Special::Socket }).unwrap();
            assert!(!found.is_taken(&fixture, b"n"), "nobody answers there");
            fixture.apply(&Edit::Unlink { path: path() }).unwrap();
            fixture.apply(&Edit::Special { path: path(), kind: Special::Server }).unwrap();
            assert!(found.is_taken(&fixture, b"n") && !found.is_taken(&fixture, b"m"), "{dir}");
            fixture.apply(&Edit::Unlink { path: path() }).unwrap();
        }
        for (env, expected) in [
            (&all[..1], &["/run/u/9p/zmx/n", "/run/u/zmx/n"][..]),
            (&all[2..], &["/t/zmx-1000/n"]),
            (&[], &["/tmp/zmx-1000/n"]),
            (&["ZMX_DIR=", "XDG_RUNTIME_DIR=run"], &["/tmp/zmx-1000/n"]),
        ] {
            assert_eq!(paths(&find(&fixture, env, None, &[]).sockets(b"n").unwrap()), expected);
        }
    }

    #[test]
    fn a_socket_that_cannot_be_bound_is_none() {
        let dir = format!("ZMX_DIR=/{}", "d".repeat(101));
        let found = find(&machine(&[]), &[&dir], None, &[]);
        assert_eq!(found.sockets(b"1234").unwrap()[0].len(), 107);
        assert_eq!(found.sockets(b"12345"), None);
    }

    #[test]
    fn the_environment_is_handed_on_but_for_what_is_ours() {
        let env = [
            "A=1",
            "ZMX_SESSION=x",
            "ZMX_SESSION_PREFIX=p",
            "ZMX_DIR=/z",
            "LISTEN_FDS=1",
            "LISTEN_PID=2",
            "LISTEN_FDNAMES=n",
            "NOTIFY_SOCKET=/n",
            "WATCHDOG_USEC=1",
            "JOURNAL_STREAM=8:1",
            "PWD=/here",
            "OLDPWD=/there",
            "B=",
            "A=2",
            "CODEX_HOME=/e",
            "CODEX_HOMES=/h",
            "odd",
            "=odd",
        ];
        let fixture = machine(&[]);
        let kept = ["A=1", "ZMX_DIR=/z", "B=", "CODEX_HOME=/e", "CODEX_HOMES=/h"];
        let found = find(&fixture, &env, None, &[]);
        assert_eq!(paths(&found.env(&fixture, Root::Codex)), kept);
        assert!(!format!("{found:?}").contains("A=1"));
        // A harness whose files the user has said to be elsewhere is told where.
        let found = find(&fixture, &env, None, &[Root::Codex]);
        let told = ["A=1", "ZMX_DIR=/z", "B=", "CODEX_HOMES=/h", "CODEX_HOME=/home/me/.codex"];
        assert_eq!(paths(&found.env(&fixture, Root::Codex)), told);
        assert_eq!(paths(&found.env(&fixture, Root::Claude)), kept);
    }
}
