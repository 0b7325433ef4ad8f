//! What may not be read or searched, asked by somebody who is not root.

use std::thread;

use backend::host::fixture::{Edit, Special};

use crate::kernel::Kernel;
use crate::look::Looker;
use crate::{Rig, difference, fixture};

#[test]
fn both_hosts_refuse_the_same() {
    let modes = [0o000, 0o111, 0o444, 0o707, 0o070];
    let paths = ["", "d", "d/f", "d/e", "d/e/g", "d/none", "d/l", "d/l/x", "d/fifo", "f", "f/x"];
    let mut differences = Vec::new();
    for mode in modes {
        for closed in ["d", "d/f", "d/e", "f", ""] {
            for path in paths {
                let chmod = Edit::Chmod { path: format!("/w/base/{closed}").into(), mode };
                let kernel = Kernel::new();
                build(&kernel, &chmod);
                let on_kernel =
                    thread::scope(|scope| scope.spawn(|| look_as_nobody(&kernel, path)).join().unwrap());
                kernel.apply(&Edit::Chmod { path: format!("/w/base/{closed}").into(), mode: 0o755 }).unwrap();

                let fixture = fixture();
                let (owner, asker, gid) = owner_and_asker();
                let me = |uid| Edit::Me { pid: 4000, uid, gid };
                fixture.apply(&me(owner)).unwrap();
                fixture.apply(&Edit::Chown { path: "/w/base".into(), uid: owner, gid }).unwrap();
                build(&fixture, &chmod);
                fixture.apply(&me(asker)).unwrap();
                let name = format!("{path:?} below {closed:?} of mode {mode:o}");
                differences.extend(difference(&name, &on_kernel, &look(&fixture, path)));
            }
        }
    }
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences[..differences.len().min(10)].join("\n")
    );
}

fn build(rig: &dyn Rig, last: &Edit) {
    let at = |path: &str| format!("/w/base/{path}").into();
    for edit in [
        Edit::Mkdir { path: at("d") },
        Edit::Mkdir { path: at("d/e") },
        Edit::Write { path: at("f"), bytes: "f".into() },
        Edit::Write { path: at("d/f"), bytes: "df".into() },
        Edit::Write { path: at("d/e/g"), bytes: "deg".into() },
        Edit::Symlink { path: at("d/l"), target: "/w/base/d/e".into() },
        Edit::Special { path: at("d/fifo"), kind: Special::Fifo },
        last.clone(),
    ] {
        rig.apply(&edit).unwrap_or_else(|error| panic!("{edit:?}: {error}"));
    }
}

/// Gives up root's rights for this thread alone.
fn look_as_nobody(rig: &Kernel, path: &str) -> Vec<String> {
    if rustix::process::geteuid().is_root() {
        let nobody = rustix::fs::Uid::from_raw(NOBODY);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
    }
    look(rig, path)
}

fn look(rig: &dyn Rig, path: &str) -> Vec<String> {
    let mut looker = Looker::new(rig.host());
    looker.look(path);
    looker.finish()
}

/// Who makes the files, who asks, and the group of both: root and another, or the same where the test does not run as
/// root.
fn owner_and_asker() -> (u32, u32, u32) {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    (uid, if uid == 0 { NOBODY } else { uid }, gid)
}

const NOBODY: u32 = 65534;
