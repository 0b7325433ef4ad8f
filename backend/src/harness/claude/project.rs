//! Where the transcript of a session lies: `projects/<directory>/<id>.jsonl`.
//!
//! A project directory is named after the working directory the session was filed under, by a rule that cannot be turned
//! back (several directories come to one name), so it is only ever computed, never read. A session that moves (a worktree,
//! `/cd`) is filed under another one, and may be left under the first as well.

use super::super::{Scene, is_uuid, path};
use crate::host::Time;
use crate::name::Rel;

/// The transcript of a session, a regular file now: the one filed under `cwd`, else the newest.
pub(super) fn transcript(scene: &Scene<'_>, id: &str, cwd: Option<&str>) -> Option<Rel> {
    if !is_uuid(id) {
        return None;
    }
    let filed = cwd.and_then(|cwd| file(&directory_name(cwd), id));
    filed.filter(|rel| scene.file(rel).is_some()).or_else(|| newest(scene, id))
}

/// The path of a session's transcript in a project directory.
pub(super) fn file(directory: &str, id: &str) -> Option<Rel> {
    path(&[PROJECTS, directory, &format!("{id}.jsonl")])
}

/// The id of the session whose transcript has this name: a main transcript's is nothing but its id.
pub(super) fn id_of(name: &str) -> Option<&str> {
    name.strip_suffix(".jsonl").filter(|id| is_uuid(id))
}

fn newest(scene: &Scene<'_>, id: &str) -> Option<Rel> {
    let directories = scene.names(&path(&[PROJECTS])?, &is_directory_name);
    let found = directories.iter().filter_map(|directory| {
        let rel = file(directory, id)?;
        let meta = scene.file(&rel)?;
        Some((meta.mtime, rel))
    });
    found.max_by_key(|(mtime, rel): &(Time, Rel)| (*mtime, rel.as_str().to_owned())).map(|(_, rel)| rel)
}

/// The project directory of a working directory: every UTF-16 unit but ASCII letters and digits is `-`, and what is longer
/// than [`NAME_UNITS`] is cut and told apart by a hash.
pub(super) fn directory_name(cwd: &str) -> String {
    let plain = |unit: u16| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => byte as char,
        _ => '-',
    };
    let mut name: String = cwd.encode_utf16().map(plain).collect();
    if name.len() > NAME_UNITS {
        name.truncate(NAME_UNITS);
        name.push('-');
        name.push_str(&base36(hash(cwd).unsigned_abs()));
    }
    name
}

fn is_directory_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The string hash of Java, `h × 31 + unit`, in 32 bits.
fn hash(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

pub(super) const PROJECTS: &str = "projects";
const NAME_UNITS: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_named_unit_by_unit() {
        for (cwd, name) in [
            ("/home/me/my.app_2", "-home-me-my-app-2"),
            ("/w/a b@c", "-w-a-b-c"),
            ("/w/ü", "-w--"),
            ("/w/\u{1f600}", "-w---"),
            ("/", "-"),
        ] {
            assert_eq!(directory_name(cwd), name, "{cwd}");
        }
    }

    #[test]
    fn a_long_name_is_cut_and_told_apart_by_a_hash() {
        let exact = format!("/{}", "a".repeat(199));
        assert_eq!(directory_name(&exact), format!("-{}", "a".repeat(199)));
        let (one, other) = (format!("{exact}b"), format!("{exact}c"));
        let cut = format!("-{}-", "a".repeat(199));
        assert!(directory_name(&one).starts_with(&cut) && directory_name(&other).starts_with(&cut));
        assert_ne!(directory_name(&one), directory_name(&other));
        // Java says "hello".hashCode() is 99162322.
        assert_eq!((hash("hello"), base36(99_162_322), base36(0)), (99_162_322, "1n1e4y".into(), "0".into()));
    }

    #[test]
    fn only_a_uuid_names_a_main_transcript() {
        let id = "0f3f1a52-9f6e-4b77-8a49-0a51a2ab71b4";
        assert_eq!(id_of(&format!("{id}.jsonl")), Some(id));
        for other in
            ["agent-1.jsonl", "x.jsonl", id, "0f3f1a52-9f6e-4b77-8a49-0a51a2ab71b4.json", "../x.jsonl"]
        {
            assert_eq!(id_of(other), None, "{other}");
        }
    }
}
