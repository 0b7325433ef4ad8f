//! The one place where drivers read the time.

use engine::port::Now;
use rustix::time::{ClockId, clock_gettime};

/// The time now. Costs no system call: the kernel maps its clocks into every process (vdso(7)).
pub fn now() -> Now {
    let (mono, wall) = (clock_gettime(ClockId::Monotonic), clock_gettime(ClockId::Realtime));
    Now {
        mono_ns: (mono.tv_sec as u64).saturating_mul(NS).saturating_add(mono.tv_nsec as u64),
        wall_ns: wall.tv_sec.saturating_mul(NS as i64).saturating_add(wall.tv_nsec),
    }
}

/// Nanoseconds of a second.
pub const NS: u64 = 1_000_000_000;
