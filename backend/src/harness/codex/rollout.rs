//! What a rollout is called and where it lies: `sessions/YYYY/MM/DD/rollout-<time>-<thread>[_<rollout>].jsonl`.
//!
//! The thread's id is the first UUID behind the time; a thread that was taken back goes on in a file with a second one. The
//! day is the local one of its beginning, whatever is appended later, while an id that tells a time tells UTC.

use super::super::{Scene, is_uuid, path};
use crate::name::{Name, Rel};

/// A rollout by name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Rollout {
    pub(super) rel: Rel,
}

impl Rollout {
    /// The rollout that a path of any process leads to, if it is one below a sessions directory. Nothing but the names
    /// is taken from the path.
    pub(super) fn by_path(path: &str) -> Option<Self> {
        let mut names = path.rsplit('/');
        let (name, day, month, year) = (names.next()?, names.next()?, names.next()?, names.next()?);
        (names.next() == Some(SESSIONS)).then(|| Self::new([year, month, day], name)).flatten()
    }

    /// The rollout with this name in the directory of a day.
    pub(super) fn new(day: [&str; 3], name: &str) -> Option<Self> {
        let [y, m, d] = day;
        let is_day = is_number(y, 4) && is_number(m, 2) && is_number(d, 2);
        if !is_day || parse(name).is_none() {
            return None;
        }
        Some(Self { rel: path(&[SESSIONS, y, m, d, name])? })
    }

    /// The file's name, which begins with its time: names sort by age.
    pub(super) fn name(&self) -> &str {
        self.rel.name().unwrap_or_default()
    }

    /// The thread's id.
    pub(super) fn thread(&self) -> &str {
        parse(self.name()).unwrap_or_default()
    }
}

/// The newest rollout of a thread.
///
/// An id of version 7 tells when it was made; its rollout lies in that day or, as days differ around the world, in one
/// beside it. Another id's is looked for in the newest [`MOST_DAYS`] days.
pub(super) fn newest_of(scene: &Scene<'_>, thread: &str) -> Option<Rollout> {
    let near = days_of(thread).and_then(|days| newest_in(scene, thread, &days));
    near.or_else(|| days(scene).into_iter().find_map(|day| newest_in(scene, thread, &[day])))
}

/// Where a rollout lies, of whichever thread and in whatever form.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Stored {
    pub(super) rel: Rel,
    pub(super) is_compressed: bool,
}

/// The rollout with an id of its own: the last in its name. It is looked for where its thread's newest one would be, then
/// among the archived ones, which lie in one directory or in those of days. Where it lies both plain and compressed, as it does for a moment, the plain one counts.
pub(super) fn stored(scene: &Scene<'_>, id: &str) -> Option<Stored> {
    let in_dir = |names: &[&str]| {
        let dir = path(names)?;
        let mut found =
            scene.names(&dir, &|name| rollout_id(name.strip_suffix(COMPRESSED).unwrap_or(name)) == Some(id));
        found.sort_unstable_by_key(|name| name.ends_with(COMPRESSED));
        let stored = |name: &String| {
            let is_compressed = name.ends_with(COMPRESSED);
            Some(Stored { rel: dir.join(Name::of_harness(name)?), is_compressed })
        };
        found.iter().filter_map(stored).find(|stored| scene.file(&stored.rel).is_some())
    };
    let of_day = |[y, m, d]: &Day| in_dir(&[SESSIONS, y, m, d]);
    let of_archived_day = |[y, m, d]: &Day| in_dir(&[ARCHIVED, y, m, d]);
    let near = days_of(id).and_then(|days| days.iter().find_map(of_day));
    near.or_else(|| in_dir(&[ARCHIVED]))
        .or_else(|| days(scene).iter().find_map(of_day))
        .or_else(|| days_in(scene, ARCHIVED).iter().find_map(of_archived_day))
}

/// Every rollout that lies in the directory of a day.
pub(super) fn of_day(scene: &Scene<'_>, day: &Day) -> Vec<Rollout> {
    let [y, m, d] = day.each_ref().map(String::as_str);
    let Some(dir) = path(&[SESSIONS, y, m, d]) else { return Vec::new() };
    let names = scene.names(&dir, &|name| parse(name).is_some());
    names.iter().filter_map(|name| Rollout::new([y, m, d], name)).collect()
}

/// The directories of days, newest first, at most [`MOST_DAYS`].
pub(super) fn days(scene: &Scene<'_>) -> Vec<Day> {
    days_in(scene, SESSIONS)
}

fn days_in(scene: &Scene<'_>, top: &str) -> Vec<Day> {
    let below = |names: &[&str], digits| {
        let mut found =
            path(names).map_or_else(Vec::new, |dir| scene.names(&dir, &|name| is_number(name, digits)));
        found.sort_unstable_by(|a, b| b.cmp(a));
        found
    };
    let mut days = Vec::new();
    for y in below(&[top], 4) {
        for m in below(&[top, &y], 2) {
            for d in below(&[top, &y, &m], 2) {
                days.push([y.clone(), m.clone(), d]);
                if days.len() == MOST_DAYS {
                    return days;
                }
            }
        }
    }
    days
}

/// Year, month and day, as directories are called.
pub(super) type Day = [String; 3];

/// The day an id of version 7 was made, in UTC, and those beside it.
pub(super) fn days_of(id: &str) -> Option<[Day; 3]> {
    const DAY_MS: i64 = 86_400_000;
    let made_ms = time_ms(id)?;
    Some([made_ms, made_ms - DAY_MS, made_ms + DAY_MS].map(|ms| civil(ms.div_euclid(DAY_MS))))
}

fn newest_in(scene: &Scene<'_>, thread: &str, days: &[Day]) -> Option<Rollout> {
    let all = days.iter().flat_map(|day| of_day(scene, day));
    let of_thread = all.filter(|rollout| rollout.thread() == thread && scene.file(&rollout.rel).is_some());
    of_thread.max_by(|one, other| one.name().cmp(other.name()))
}

/// The thread in a rollout's name; `None` if it is no such name.
fn parse(name: &str) -> Option<&str> {
    ids(name).map(|(thread, _)| thread)
}

/// The rollout's own id in its name: the thread's, unless it has another.
fn rollout_id(name: &str) -> Option<&str> {
    ids(name).map(|(thread, rollout)| rollout.unwrap_or(thread))
}

fn ids(name: &str) -> Option<(&str, Option<&str>)> {
    let rest = name.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
    let (time, ids) = (rest.get(..TIME.len())?, rest.get(TIME.len()..)?.strip_prefix('-')?);
    let is_time = time.bytes().zip(TIME.bytes()).all(|(byte, form)| match form {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    });
    let (thread, rollout) =
        ids.split_once('_').map_or((ids, None), |(thread, rollout)| (thread, Some(rollout)));
    (is_time && is_uuid(thread) && rollout.is_none_or(is_uuid)).then_some((thread, rollout))
}

/// When an id of version 7 was made, in milliseconds since 1970: its first 48 bits (RFC 9562, section 5.7).
fn time_ms(id: &str) -> Option<i64> {
    if !is_uuid(id) || id.as_bytes()[14] != b'7' {
        return None;
    }
    i64::from_str_radix(&[&id[..8], &id[9..13]].concat(), 16).ok()
}

/// The date of a day counted from 1970, in the Gregorian calendar. Counts in eras of 400 years that begin in March, so
/// that the day that may lack stands at the end.
fn civil(day: i64) -> Day {
    let since = day + 719_468;
    let era = since.div_euclid(146_097);
    let of_era = since.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let d = of_year - (153 * month + 2) / 5 + 1;
    let m = if month < 10 { month + 3 } else { month - 9 };
    let y = year + era * 400 + i64::from(m <= 2);
    [format!("{y:04}"), format!("{m:02}"), format!("{d:02}")]
}

fn is_number(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())
}

const SESSIONS: &str = "sessions";
const ARCHIVED: &str = "archived_sessions";
const COMPRESSED: &str = ".zst";
const TIME: &str = "0000-00-00T00-00-00";
/// How many days are searched.
pub(super) const MOST_DAYS: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "019f624a-cc95-7c50-b9fa-1db381270b73";
    const OTHER: &str = "5e2b7c11-3a4d-4c5e-8f60-718293a4b5c6";

    #[test]
    fn a_name_tells_the_thread() {
        assert_eq!(parse(&format!("rollout-2026-07-14T20-21-37-{ID}.jsonl")), Some(ID));
        assert_eq!(parse(&format!("rollout-2026-07-14T20-21-37-{ID}_{OTHER}.jsonl")), Some(ID));
        for other in [
            format!("rollout-2026-07-14T20-21-37-{ID}.jsonl.zst"),
            format!("rollout-2026-07-14T20:21:37-{ID}.jsonl"),
            format!("rollout-2026-07-14-{ID}.jsonl"),
            format!("rollout-2026-07-14T20-21-37-{ID}_x.jsonl"),
            format!("rollout-2026-07-14T20-21-37-{ID}_{OTHER}_{OTHER}.jsonl"),
            format!("rollout-2026-07-14T20-21-37-ü{}.jsonl", &ID[2..]),
            format!("x-2026-07-14T20-21-37-{ID}.jsonl"),
            "rollout-.jsonl".into(),
        ] {
            assert_eq!(parse(&other), None, "{other}");
        }
    }

    #[test]
    fn a_path_counts_by_its_last_names() {
        let name = format!("rollout-2026-07-14T20-21-37-{ID}.jsonl");
        let by_path = |dir: &str| Rollout::by_path(&format!("{dir}/{name}"));
        let rollout = by_path("/mnt/other/.codex/sessions/2026/07/14").unwrap();
        assert_eq!(rollout.rel.as_str(), format!("sessions/2026/07/14/{name}"));
        assert_eq!(rollout.thread(), ID);
        for other in [
            "/c/sessions/2026/07",
            "/c/sessions/2026/07/1/14",
            "/c/sessions/2026/../14",
            "/c/archived/2026/07/14",
            "",
        ] {
            assert_eq!(by_path(other), None, "{other}");
        }
        assert_eq!(Rollout::by_path(&format!("/c/sessions/2026/07/14/{name} (deleted)")), None);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (day, date) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_788, "2026-12-01"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(civil(day).join("-"), date);
        }
        let days = days_of(ID).unwrap();
        assert_eq!(days.map(|day| day.join("-")), ["2026-07-14", "2026-07-13", "2026-07-15"]);
        assert_eq!(days_of(OTHER), None);
    }
}
