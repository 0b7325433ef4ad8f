//! How facts about files are written down.

use drivers::client::{Stat, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use proto::{DMAPPEND, DMDEVICE, DMDIR, DMNAMEDPIPE, DMSOCKET, DMSYMLINK};

/// A mode as ls(1) has it: kind and permissions, `dr-xr-xr-x`.
pub(super) fn mode(mode: u32) -> String {
    let kinds = [
        (DMDIR, 'd'),
        (DMSYMLINK, 'l'),
        (DMDEVICE, 'D'),
        (DMNAMEDPIPE, 'p'),
        (DMSOCKET, 's'),
        (DMAPPEND, 'a'),
    ];
    let kind = kinds.iter().find(|(bit, _)| mode & bit != 0).map_or('-', |(_, letter)| *letter);
    let permissions = "rwxrwxrwx".chars().enumerate();
    let permissions = permissions.map(|(at, letter)| if mode >> (8 - at) & 1 == 1 { letter } else { '-' });
    std::iter::once(kind).chain(permissions).collect()
}

/// What a file is, in words.
pub(super) fn kind(stat: &Stat) -> &'static str {
    let kinds =
        [(DMSYMLINK, "symbolic link"), (DMDEVICE, "device"), (DMNAMEDPIPE, "fifo"), (DMSOCKET, "socket")];
    match kinds.iter().find(|(bit, _)| stat.mode & bit != 0) {
        Some((_, words)) => words,
        None if stat.is_directory() => "directory",
        None => "file",
    }
}

/// Local time, as ls(1) has it: with the time of day within half a year before now, else with the year. Always as wide.
#[derive(Debug)]
pub(super) struct Clock {
    now: Timestamp,
    zone: TimeZone,
}

impl Clock {
    /// The clock on the wall.
    pub(super) fn new() -> Self {
        Self { now: Timestamp::now(), zone: TimeZone::system() }
    }

    /// For a column.
    pub(super) fn short(&self, time: Time) -> String {
        let Some(zoned) = self.zoned(time) else { return time.sec.to_string() };
        let age = self.now.as_second() - time.sec;
        let format = if (0..HALF_A_YEAR_S).contains(&age) { "%b %e %H:%M" } else { "%b %e  %Y" };
        zoned.strftime(format).to_string()
    }

    /// To the last digit, with the distance from UTC.
    pub(super) fn long(&self, time: Time) -> String {
        let Some(zoned) = self.zoned(time) else { return format!("{} seconds since 1970", time.sec) };
        let fraction = if time.nsec == 0 { String::new() } else { format!(".{:09}", time.nsec) };
        format!("{}{fraction} {}", zoned.strftime("%F %T"), zoned.strftime("%:z"))
    }

    /// `None` for a time that no calendar has.
    fn zoned(&self, time: Time) -> Option<Zoned> {
        let nsec = i32::try_from(time.nsec).ok()?;
        Some(Timestamp::new(time.sec, nsec).ok()?.to_zoned(self.zone.clone()))
    }
}

/// Half a year of the Gregorian calendar.
const HALF_A_YEAR_S: i64 = 31_556_952 / 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_shown_as_ls_does() {
        for (bits, shown) in [
            (DMDIR | 0o555, "dr-xr-xr-x"),
            (0o444, "-r--r--r--"),
            (0o640, "-rw-r-----"),
            (DMSYMLINK | 0o777, "lrwxrwxrwx"),
            (DMAPPEND | 0o001, "a--------x"),
        ] {
            assert_eq!(mode(bits), shown);
        }
    }

    #[test]
    fn recent_times_have_the_hour_and_others_the_year() {
        let clock = Clock { now: Timestamp::from_second(NOW_S).unwrap(), zone: TimeZone::UTC };
        let short = |sec| clock.short(Time { sec, nsec: 0 });
        assert_eq!(short(NOW_S), "Nov 29 21:03");
        assert_eq!(short(NOW_S - 3 * 86_400), "Nov 26 21:03");
        assert_eq!(short(NOW_S - 24 * 86_400), "Nov  5 21:03");
        assert_eq!(short(NOW_S - HALF_A_YEAR_S), "May 31  2024");
        assert_eq!(short(NOW_S + 86_400), "Nov 30  2024");
        assert_eq!(short(0), "Jan  1  1970");
    }

    #[test]
    fn times_that_no_calendar_has_are_numbers() {
        let clock = Clock { now: Timestamp::from_second(NOW_S).unwrap(), zone: TimeZone::UTC };
        for sec in [i64::MIN, i64::MAX] {
            assert_eq!(clock.short(Time { sec, nsec: 0 }), sec.to_string());
        }
        assert_eq!(clock.short(Time { sec: 1, nsec: u64::MAX }), "1");
        assert_eq!(clock.long(Time { sec: i64::MAX, nsec: 0 }), "9223372036854775807 seconds since 1970");
    }

    #[test]
    fn a_long_time_has_all_there_is() {
        let clock = Clock { now: Timestamp::UNIX_EPOCH, zone: TimeZone::fixed(jiff::tz::offset(-5)) };
        assert_eq!(clock.long(Time { sec: NOW_S, nsec: 0 }), "2024-11-29 16:03:00 -05:00");
        assert_eq!(clock.long(Time { sec: NOW_S, nsec: 5 }), "2024-11-29 16:03:00.000000005 -05:00");
    }

    /// 2024-11-29 21:03 UTC.
    const NOW_S: i64 = 1_732_914_180;
}
