//! Laws of the table of refusals.

use proto::error::{PLAIN_MAX, UNIX_MAX, errno};
use proto::{Dialect, Refusal, Rmessage};

#[test]
fn every_text_fits_where_clients_have_room_for_it() {
    for refusal in Refusal::ALL {
        assert!(refusal.plain.len() <= PLAIN_MAX, "{refusal:?}");
        assert!(refusal.unix.len() <= UNIX_MAX, "{refusal:?}");
        for dialect in Dialect::ALL {
            // Linux reads an Rerror into a buffer of 139 bytes (net/9p/client.c).
            let mut out = [0; 139];
            let size = Rmessage::refusal(*refusal, dialect).encode(1, dialect, &mut out);
            assert!(size.is_ok(), "{refusal:?}");
        }
    }
}

#[test]
fn every_text_is_one_line_of_plain_words() {
    for text in texts().map(|(text, _)| text) {
        assert!(!text.is_empty() && text.trim() == text && !text.ends_with('.'), "{text}");
        assert!(text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()), "{text}");
        assert!(is_exempt(text) || !text.starts_with(char::is_uppercase), "{text}");
        assert!(!text.contains("/home") && !text.contains("/run") && !text.contains("/proc"), "{text}");
    }
}

#[test]
fn a_text_of_linux_has_the_number_linux_gives_it() {
    for (text, errno) in texts() {
        if let Some((_, linux)) = LINUX.iter().find(|(linux, _)| *linux == text) {
            assert_eq!(errno, *linux, "{text}");
        }
    }
}

#[test]
fn the_texts_of_the_host_are_all_of_linux() {
    for number in 0..200 {
        let refusal = Refusal::from_errno(number);
        assert!(
            LINUX.contains(&(refusal.plain, refusal.errno)) || refusal == Refusal::NO_PROCESS,
            "{refusal:?}"
        );
        assert_eq!(refusal.plain, refusal.unix);
        assert!(refusal.errno == number || refusal == Refusal::IO, "{number}");
    }
}

#[test]
fn numbers_of_the_host_that_matter_are_not_blurred() {
    for number in [
        1, 2, 3, 4, 5, 6, 9, 11, 12, 13, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 27, 28, 29, 30, 32, 34, 36,
        38,
    ] {
        assert_eq!(Refusal::from_errno(number).errno, number);
    }
    for number in [39, 40, 61, 95, 110] {
        assert_eq!(Refusal::from_errno(number).errno, number);
    }
    for number in [0, 7, 25, 133, 4095, u32::MAX] {
        assert_eq!(Refusal::from_errno(number), Refusal::IO);
    }
}

#[test]
fn words_of_our_own_hold_the_phrase_of_their_number() {
    for (text, errno) in texts() {
        if !is_exempt(text) {
            let phrases: Vec<_> = PHRASES.iter().filter(|(_, of)| of.contains(&errno)).collect();
            assert!(phrases.iter().any(|(phrase, _)| holds(text, phrase)), "{errno}: {text}");
        }
    }
}

#[test]
fn words_of_our_own_hold_no_phrase_of_another_number() {
    for (text, errno) in texts() {
        if !is_exempt(text) {
            for (phrase, of) in PHRASES {
                assert!(of.contains(&errno) || !holds(text, phrase), "{errno}: {text} holds {phrase:?}");
            }
        }
    }
}

/// The same, of the phrases that clients are known to look for, without exemption.
#[test]
fn no_text_at_all_is_taken_for_another_number() {
    for (text, number) in texts() {
        for (phrase, of) in [
            ("permission", errno::EACCES),
            ("denied", errno::EACCES),
            ("read-only", errno::EROFS),
            ("fid", errno::EBADF),
            ("not permitted", errno::EPERM),
        ] {
            assert!(number == of || !holds(text, phrase), "{number}: {text}");
        }
    }
}

#[test]
fn a_limit_that_is_met_is_named() {
    for (refusal, limit) in [
        (Refusal::TOO_MANY_NAMES, "16"),
        (Refusal::CONNECTION_FIDS, "32768"),
        (Refusal::DAEMON_FIDS, "262144"),
        (Refusal::TOO_MANY_PARKED, "32"),
        (Refusal::WORKERS_STUCK, "8"),
        (Refusal::LISTING_TOO_LARGE, "16 MiB"),
        (Refusal::LISTINGS_TOO_LARGE, "64 MiB"),
        (Refusal::TOO_MANY_SUBAGENTS, "65536"),
        (Refusal::CHAT_TOO_LARGE, "64 MiB"),
        (Refusal::CHAT_TOO_MANY_TOOLS, "65535"),
        (Refusal::SMALL_MSIZE, "4096"),
        (Refusal::MOVE_NAME, "64"),
        (Refusal::MOVE_LONG_NAME, "107"),
    ] {
        assert!(refusal.plain.contains(limit) && refusal.unix.contains(limit), "{refusal:?}");
        assert!(refusal.plain.contains("limit") || refusal.errno == errno::EINVAL, "{refusal:?}");
    }
}

#[test]
fn no_two_refusals_of_a_move_sound_alike() {
    let moves: Vec<_> = Refusal::ALL.iter().skip_while(|refusal| **refusal != Refusal::MOVE_NAME).collect();
    assert_eq!(moves.len(), 19);
    for refusal in &moves {
        let alike = |other: &&Refusal| other.plain == refusal.plain || other.unix == refusal.unix;
        assert_eq!(Refusal::ALL.iter().filter(alike).count(), 1, "{refusal:?}");
    }
}

#[test]
fn a_dialect_tells_a_refusal_in_its_own_way() {
    let Refusal { errno, plain, unix, .. } = Refusal::VIEW;
    assert_eq!(
        Rmessage::refusal(Refusal::VIEW, Dialect::Plain),
        Rmessage::Error { ename: plain.as_bytes(), errno: None }
    );
    assert_eq!(
        Rmessage::refusal(Refusal::VIEW, Dialect::Unix),
        Rmessage::Error { ename: unix.as_bytes(), errno: Some(errno) }
    );
    assert_eq!(Rmessage::refusal(Refusal::VIEW, Dialect::Linux), Rmessage::Lerror { ecode: errno });
    assert_eq!(Refusal::VIEW.to_string(), unix);
    assert_eq!(plain, "Operation not permitted");
}

fn texts() -> impl Iterator<Item = (&'static str, u32)> {
    Refusal::ALL.iter().flat_map(|refusal| [(refusal.plain, refusal.errno), (refusal.unix, refusal.errno)])
}

/// Whether a text is not ours to word: it is Linux's, or a set phrase of 9P or of strerror(3) that Linux's table lacks.
fn is_exempt(text: &str) -> bool {
    LINUX.iter().any(|(linux, _)| *linux == text) || SET_PHRASES.contains(&text)
}

fn holds(text: &str, phrase: &str) -> bool {
    text.to_ascii_lowercase().contains(phrase)
}

const SET_PHRASES: [&str; 3] = ["authentication not required", "duplicate tag", "No such process"];

/// What a client may look for inside a text, in lower case, and the numbers it would take it for.
const PHRASES: &[(&str, &[u32])] = &[
    ("not permitted", &[errno::EPERM]),
    ("no such process", &[errno::ESRCH]),
    ("no such", &[errno::ENOENT, errno::ESRCH]),
    ("does not exist", &[errno::ENOENT]),
    ("not found", &[errno::ENOENT]),
    ("i/o error", &[errno::EIO]),
    ("fid", &[errno::EBADF]),
    ("permission", &[errno::EACCES]),
    ("denied", &[errno::EACCES]),
    ("busy", &[errno::EBUSY]),
    ("exists", &[errno::EEXIST]),
    ("not a directory", &[errno::ENOTDIR]),
    ("is a directory", &[errno::EISDIR]),
    ("invalid", &[errno::EINVAL]),
    ("too many", &[errno::ENFILE, errno::EMFILE]),
    ("too large", &[errno::EFBIG]),
    ("read-only", &[errno::EROFS]),
    ("read only", &[errno::EROFS]),
    ("too long", &[errno::ENAMETOOLONG]),
    ("not empty", &[errno::ENOTEMPTY]),
    ("not supported", &[errno::EOPNOTSUPP]),
    ("protocol error", &[errno::EPROTO]),
    ("interrupted", &[errno::EINTR]),
    ("memory", &[errno::ENOMEM]),
    ("no space", &[errno::ENOSPC]),
    ("timed out", &[errno::ETIMEDOUT]),
];

/// The part of Linux's table of texts that a file server has a use for (`net/9p/error.c`), with the numbers it gives
/// them.
const LINUX: &[(&str, u32)] = &[
    ("Operation not permitted", 1),
    ("wstat prohibited", 1),
    ("No such file or directory", 2),
    ("file does not exist", 2),
    ("Interrupted system call", 4),
    ("Input/output error", 5),
    ("i/o error", 5),
    ("No such device or address", 6),
    ("Bad file descriptor", 9),
    ("fid unknown or out of range", 9),
    ("bad use of fid", 9),
    ("fid already in use", 9),
    ("Resource temporarily unavailable", 11),
    ("Cannot allocate memory", 12),
    ("permission denied", 13),
    ("Device or resource busy", 16),
    ("File exists", 17),
    ("Invalid cross-device link", 18),
    ("No such device", 19),
    ("not a directory", 20),
    ("Is a directory", 21),
    ("Invalid argument", 22),
    ("illegal offset", 22),
    ("Too many open files in system", 23),
    ("Too many open files", 24),
    ("Text file busy", 26),
    ("File too large", 27),
    ("No space left on device", 28),
    ("bad offset in directory read", 29),
    ("read only file system", 30),
    ("Broken pipe", 32),
    ("Numerical result out of range", 34),
    ("File name too long", 36),
    ("Function not implemented", 38),
    ("Directory not empty", 39),
    ("Too many levels of symbolic links", 40),
    ("No data available", 61),
    ("Protocol error", 71),
    ("protocol botch", 71),
    ("Operation not supported", 95),
    ("Connection timed out", 110),
];
