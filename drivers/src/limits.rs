//! What the process was started with that a child of ours is to have again, and the limit that the daemon
//! raises for itself.
//!
//! Owns the record of it, taken at start before anything is changed. Who starts children, and when, is not
//! known here.
//!
//! Rust's runtime ignores SIGPIPE before `main`, so what it was before cannot be known; its `Command` gives a
//! child the default.

use std::ffi::OsString;
use std::fmt::Write;
use std::io;

use rustix::process::{Resource, Rlimit};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Signals and limits as they were at start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inherited {
    /// The signals that were ignored.
    pub ignored: Signals,
    /// The signals that were blocked. Nothing here changes a mask, so a child has this one anyway.
    pub blocked: Signals,
    /// RLIMIT_NOFILE.
    pub descriptors: Rlimit,
}

impl Inherited {
    /// Takes the record. To be called first.
    pub fn record() -> io::Result<Self> {
        let status = std::fs::read("/proc/self/status")?;
        let set = |field| signals(&status, field).ok_or(io::ErrorKind::InvalidData);
        Ok(Self {
            ignored: set("SigIgn:")?,
            blocked: set("SigBlk:")?,
            descriptors: rustix::process::getrlimit(Resource::Nofile),
        })
    }

    /// Raises the soft RLIMIT_NOFILE of this process to the hard one and says how many descriptors it may now
    /// have.
    pub fn raise_descriptors(&self) -> io::Result<u64> {
        let Rlimit { current, maximum } = self.descriptors;
        if current != maximum {
            rustix::process::setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
        }
        Ok(maximum.unwrap_or(u64::MAX))
    }

    /// The words in front of a program's own that make a child what this record says: our own `launch`, with the limit that was
    /// raised, and the script if there is anything for it to do. For a child of this process: the first word leads to the program
    /// that this is.
    pub fn launcher(&self) -> Vec<OsString> {
        let Rlimit { current, maximum } = self.descriptors;
        let soft = current.filter(|_| current != maximum);
        let limit = soft.map(|soft| format!("--descriptors={soft}").into());
        let script = self.restoring_script();
        let shell = script.map(|script| ["/bin/sh".into(), "-c".into(), script.into(), "sh".into()]);
        let ours = ["/proc/self/exe".into(), "launch".into()].into_iter().chain(limit);
        ours.chain(shell.into_iter().flatten()).collect()
    }

    /// A script for `sh -c SCRIPT sh PROGRAM ARGUMENT...` that becomes PROGRAM with the signals ignored that were, and that
    /// `signals` handles. sh(1) can do to itself what Rust cannot do without unsafe code. `None` where a child needs nothing of
    /// the kind, which is better: a shell hands on no variable whose name it could not spell.
    fn restoring_script(&self) -> Option<String> {
        let mut script = String::new();
        for (signal, name) in [(SIGINT, "INT"), (SIGTERM, "TERM")] {
            if self.ignored.has(signal) {
                let _ = write!(script, "trap '' {name} && ");
            }
        }
        (!script.is_empty()).then(|| script + "exec \"$@\"")
    }
}

/// Lowers the soft RLIMIT_NOFILE of this process.
pub fn lower_descriptors(soft: u64) -> io::Result<()> {
    let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
    Ok(rustix::process::setrlimit(Resource::Nofile, Rlimit { current: Some(soft), maximum })?)
}

/// A set of signals, as the kernel shows one: bit n is signal n + 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Signals(u64);

impl Signals {
    /// Whether the set has a signal.
    pub fn has(self, signal: i32) -> bool {
        matches!(signal, 1..=64) && self.0 >> (signal - 1) & 1 == 1
    }
}

/// A set of signals in the text of `/proc/PID/status`, see proc_pid_status(5).
fn signals(status: &[u8], field: &str) -> Option<Signals> {
    let line = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(field.as_bytes()))?;
    let digits = std::str::from_utf8(line).ok()?.trim();
    u64::from_str_radix(digits, 16).ok().map(Signals)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use signal_hook::consts::SIGHUP;

    use super::*;

    #[test]
    fn a_status_says_which_signals_are_ignored() {
        let status = b"Name:\tSigIgn:\nSigBlk:\t0000000000010000\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        let ignored = signals(status, "SigIgn:").unwrap();
        assert!(ignored.has(SIGHUP) && ignored.has(13));
        assert!(!ignored.has(SIGTERM) && !ignored.has(0) && !ignored.has(-1) && !ignored.has(65));
        assert!(signals(status, "SigBlk:").unwrap().has(17));
        assert_eq!(signals(b"SigIgn:\tx\n", "SigIgn:"), None);
        assert_eq!(signals(b"", "SigIgn:"), None);
    }

    #[test]
    fn our_own_status_is_understood() {
        // The runtime of Rust has seen to this one.
        assert!(Inherited::record().unwrap().ignored.has(13));
    }

    proptest! {
        #[test]
        fn any_status_is_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = signals(&bytes, "SigIgn:");
            let _ = signals(&[b"SigIgn:", bytes.as_slice()].concat(), "SigIgn:");
        }
    }

    #[test]
    fn a_launcher_is_ourselves_with_what_there_is_to_restore() {
        let same = Rlimit { current: Some(64), maximum: Some(64) };
        let words = Inherited { descriptors: same, ..record(1) }.launcher();
        assert_eq!(words, ["/proc/self/exe", "launch"], "a hang-up that was ignored still is");
        let words = record(0).launcher();
        assert_eq!(words[2..], ["--descriptors=37"]);
        let words = record(0b10).launcher();
        assert_eq!(words[3..5], ["/bin/sh", "-c"]);
        assert_eq!((words.len(), &words[6]), (7, &OsString::from("sh")));
    }

    #[test]
    fn the_script_restores_ignored_signals_and_hands_on_the_arguments() {
        let script = record(0b100_0000_0000_0010).restoring_script().unwrap();
        let show = "grep SigIgn /proc/self/status; printf '%s|' \"$@\"";
        let output = Command::new("sh")
            .args(["-c", &script, "sh", "sh", "-c", show, "sh", "a b", "$c"])
            .output()
            .unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        let (mask, arguments) = shown.split_once('\n').unwrap();
        let ignored = signals(mask.as_bytes(), "SigIgn:").unwrap();
        assert!(ignored.has(SIGINT) && ignored.has(SIGTERM), "{mask}");
        assert_eq!(arguments, "a b|$c|");
    }

    fn record(ignored: u64) -> Inherited {
        let descriptors = Rlimit { current: Some(37), maximum: Some(64) };
        Inherited { ignored: Signals(ignored), blocked: Signals::default(), descriptors }
    }
}
