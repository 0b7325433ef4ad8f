//! Why there is no ring, in words for the log.
//!
//! Owns: what an errno of the three system calls means to whoever runs the daemon. Must not know: rings.

use std::fs;

use rustix::io::Errno;

/// Why there is no ring.
#[derive(Copy, Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// io_uring_setup(2) is not there.
    #[error("io_uring_setup answers ENOSYS: the kernel has no io_uring, or a seccomp filter hides it")]
    Missing,
    /// The administrator has turned it off.
    #[error("io_uring_setup answers EPERM: the sysctl kernel.io_uring_disabled is {0}")]
    Disabled(u8),
    /// Something in front of the kernel forbids it.
    #[error("io_uring_setup answers {0}: a seccomp filter or a container's profile forbids it")]
    Forbidden(&'static str),
    /// The ring's memory cannot be had.
    #[error("io_uring_setup answers ENOMEM: its memory cannot be had, or RLIMIT_MEMLOCK is too low for it")]
    Memory,
    /// Another failure of io_uring_setup(2).
    #[error("io_uring_setup: {0}")]
    Setup(Errno),
    /// The kernel's io_uring lacks something that is needed.
    #[error("the kernel's io_uring is too old: Linux 5.11 is needed")]
    Old,
    /// io_uring_register(2) does not work.
    #[error("io_uring_register: {0}: a seccomp filter or a container's profile may forbid it")]
    Register(Errno),
    /// io_uring_enter(2) does not work.
    #[error("io_uring_enter: {0}: a seccomp filter or a container's profile may forbid it")]
    Enter(Errno),
}

impl Unavailable {
    /// What a failure of io_uring_setup(2) means here.
    pub(super) fn setup(errno: Errno) -> Self {
        match errno {
            Errno::NOSYS => Self::Missing,
            Errno::ACCESS => Self::Forbidden("EACCES"),
            Errno::PERM => match disabled() {
                Some(value @ 1..) => Self::Disabled(value),
                _ => Self::Forbidden("EPERM"),
            },
            Errno::NOMEM => Self::Memory,
            Errno::INVAL => Self::Old,
            errno => Self::Setup(errno),
        }
    }
}

/// The sysctl, see proc_sys_kernel(5): 1 leaves io_uring to a group, 2 to nobody.
fn disabled() -> Option<u8> {
    fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok()?.trim().parse().ok()
}
