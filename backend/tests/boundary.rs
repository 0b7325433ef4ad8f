//! The boundary of names: a table of examples, which other suites replay against a live tree, and the laws behind it.

use backend::name::{DATABASE_HEAD_BYTES, Name, Rel, Root, is_database};
use proptest::prelude::*;

const HIDDEN: &str = include_str!("../../tests/data/names-hidden.txt");
const INNOCENT: &str = include_str!("../../tests/data/names-innocent.txt");

// --- The table.

#[test]
fn hidden_names_are_hidden() {
    let examples = examples(HIDDEN);
    assert!(examples.len() >= 450, "the table shrank: {} names", examples.len());
    for example in &examples {
        for &root in &example.roots {
            assert_eq!(Name::vet(&example.name, root), None, "{example:?} below {root:?}");
        }
    }
}

#[test]
fn innocent_names_are_served_as_they_are_spelled() {
    let examples = examples(INNOCENT);
    assert!(examples.len() >= 270, "the table shrank: {} names", examples.len());
    for example in &examples {
        for &root in &example.roots {
            let name = Name::vet(&example.name, root);
            assert_eq!(name.map(Name::as_bytes), Some(&example.name[..]), "{example:?} below {root:?}");
        }
    }
}

#[test]
fn a_hidden_name_hides_in_every_disguise() {
    // What is malformed is so by its bytes, and has no disguise.
    for example in examples(HIDDEN).into_iter().filter(|example| !example.rule.starts_with(MALFORMED)) {
        let name = str::from_utf8(&example.name).unwrap();
        for disguise in [name.to_uppercase(), wide(name), with_ignorables(name, '\u{200d}')] {
            for &root in &example.roots {
                assert_eq!(
                    Name::vet(disguise.as_bytes(), root),
                    None,
                    "{disguise:?} below {root:?}, {example:?}"
                );
            }
        }
    }
}

#[test]
fn an_innocent_name_needs_no_disguise() {
    for example in examples(INNOCENT) {
        let name = str::from_utf8(&example.name).unwrap();
        for disguise in [name.to_uppercase(), with_ignorables(name, '\u{ad}')] {
            for &root in &example.roots {
                // The short list of databases is exact.
                let served = !Name::vet(name.as_bytes(), root).unwrap().is_served_database(root);
                if disguise.len() <= Name::MAX_BYTES {
                    assert_eq!(
                        Name::vet(disguise.as_bytes(), root).is_some(),
                        served,
                        "{disguise:?} below {root:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_short_list_of_databases_is_six_names() {
    for root in Root::HARNESSES {
        for name in
            ["history.db", "history.db-wal", "history.db-shm", "state.db", "state.db-wal", "state.db-shm"]
        {
            let listed = match root {
                Root::Omp => name.starts_with("history"),
                Root::Hermes => name.starts_with("state"),
                _ => false,
            };
            assert_eq!(Name::vet(name.as_bytes(), root).is_some(), listed, "{name} below {root:?}");
            assert_eq!(
                Name::of_harness(name).unwrap().is_served_database(root),
                listed,
                "{name} below {root:?}"
            );
        }
        assert!(!Name::of_harness("history.db.bak").unwrap().is_served_database(root));
        assert!(!Name::of_harness("notes.md").unwrap().is_served_database(root));
    }
}

#[test]
fn a_harness_may_derive_what_a_client_may_not_say() {
    let project = "-home-me-auth-service";
    assert_eq!(Name::vet(project.as_bytes(), Root::Claude), None);
    assert_eq!(Name::of_harness(project).map(Name::as_str), Some(project));
    let too_long = "x".repeat(Name::MAX_BYTES + 1);
    for malformed in ["", ".", "..", "/", "a/b", "a\0", &too_long] {
        assert_eq!(Name::of_harness(malformed), None, "{malformed:?}");
    }
}

// --- Content.

#[test]
fn sqlite_files_are_known_by_their_first_bytes() {
    let database = b"SQLite format 3\0\x10\0\x02\x02";
    assert!(is_database(database));
    assert!(is_database(&database[..DATABASE_HEAD_BYTES]));
    assert!(is_database(b"\x37\x7f\x06\x82\0\x2d\xe2\x18"));
    assert!(is_database(b"\x37\x7f\x06\x83\0\x2d\xe2\x18"));
    assert!(is_database(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7\xff\xff\xff\xff"));
}

#[test]
fn other_content_is_no_database() {
    for head in [
        &b""[..],
        b"SQLite format 3",
        b"SQLite format 3 is described here",
        b"sqlite format 3\0",
        b" SQLite format 3\0",
        b"\x37\x7f\x06",
        b"\x37\x7f\x06\x84",
        b"\x82\x06\x7f\x37",
        b"\xd9\xd5\x05\xf9\x20\xa1\x63",
        b"{\"type\":\"session\"}",
        &[0; 16],
    ] {
        assert!(!is_database(head), "{head:?}");
    }
}

// --- Paths.

#[test]
fn a_path_is_a_list_of_names() {
    let base = Rel::base();
    assert_eq!((base.as_str(), base.name(), base.depth()), ("", None, 0));
    assert_eq!(base.parent(), None);
    assert_eq!(base.components().next(), None);

    let path = Rel::from_harness("projects/-w/a.jsonl").unwrap();
    assert_eq!((path.as_str(), path.name(), path.depth()), ("projects/-w/a.jsonl", Some("a.jsonl"), 3));
    assert_eq!(path.components().map(Name::as_str).collect::<Vec<_>>(), ["projects", "-w", "a.jsonl"]);
    assert_eq!(path.parent(), Rel::from_harness("projects/-w"));
    assert_eq!(Rel::from_harness("projects").unwrap().parent(), Some(base));
}

#[test]
fn a_derived_path_with_one_bad_name_is_none() {
    for path in ["", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", "a/b\0", "a/../b"] {
        assert_eq!(Rel::from_harness(path), None, "{path:?}");
    }
}

#[test]
fn a_path_may_be_longer_than_any_the_kernel_takes() {
    let name = Name::of_harness("a name of some length").unwrap();
    let path = (0..400).fold(Rel::base(), |path, _| path.join(name));
    assert_eq!(path.depth(), 400);
    assert!(path.components().all(|component| component == name));
}

// --- Laws.

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn vetting_keeps_the_spelling_and_holds_no_separator(name in names(), root in roots()) {
        if let Some(vetted) = Name::vet(name.as_bytes(), root) {
            prop_assert_eq!(vetted.as_str(), &name);
            prop_assert_eq!(Name::vet(vetted.as_bytes(), root), Some(vetted));
            prop_assert!(!name.contains(['/', '\0']) && !["", ".", ".."].contains(&&name[..]));
        }
    }

    #[test]
    fn any_bytes_are_vetted(bytes in prop::collection::vec(any::<u8>(), 0..300), root in roots()) {
        if let Some(name) = Name::vet(&bytes, root) {
            prop_assert_eq!(name.as_bytes(), &bytes[..]);
            prop_assert_eq!(Name::of_harness(name.as_str()), Some(name));
        }
    }

    #[test]
    fn a_change_of_case_decides_nothing(name in names(), root in roots()) {
        let shown = Name::vet(name.as_bytes(), root).is_some();
        for other in [name.to_uppercase(), name.to_lowercase(), name.to_ascii_uppercase()] {
            prop_assume!(!is_exact(&name, root) && !is_exact(&other, root));
            prop_assert_eq!(Name::vet(other.as_bytes(), root).is_some(), shown, "{:?}", other);
        }
    }

    #[test]
    fn an_ignorable_character_decides_nothing(
        name in names(),
        root in roots(),
        ignorable in prop::sample::select(IGNORABLES),
        at in any::<prop::sample::Index>(),
    ) {
        prop_assume!(!is_exact(&name, root));
        let mut characters: Vec<char> = name.chars().collect();
        characters.insert(at.index(characters.len() + 1), ignorable);
        let other: String = characters.into_iter().collect();
        let shown = Name::vet(name.as_bytes(), root).is_some();
        prop_assert_eq!(Name::vet(other.as_bytes(), root).is_some(), shown, "{:?}", other);
    }

    #[test]
    fn a_secret_word_hides_whatever_surrounds_it(
        before in "[^/\0]{0,12}",
        word in prop::sample::select(WORDS),
        after in "[a-z0-9 ._-]{0,12}",
        root in roots(),
    ) {
        let name = format!("{before}{word}{after}");
        prop_assert_eq!(Name::vet(name.as_bytes(), root), None);
    }

    #[test]
    fn parent_undoes_join(names in prop::collection::vec(names(), 0..8), last in names()) {
        let names: Vec<Name<'_>> = names.iter().filter_map(|name| Name::of_harness(name)).collect();
        let path = names.iter().fold(Rel::base(), |path, &name| path.join(name));
        prop_assert_eq!(path.depth(), names.len());
        prop_assert!(path.components().eq(names.iter().copied()));
        prop_assert_eq!(path.parent().is_none(), names.is_empty());
        if let Some(last) = Name::of_harness(&last) {
            let longer = path.join(last);
            prop_assert_eq!(longer.name(), Some(last.as_str()));
            prop_assert_eq!(Rel::from_harness(longer.as_str()), Some(longer.clone()));
            prop_assert_eq!(longer.parent(), Some(path));
        }
    }
}

/// Names of a few pieces: words of the rules, plain and disguised, and anything at all.
fn names() -> impl Strategy<Value = String> {
    let word = || prop::sample::select(PIECES.split(' ').collect::<Vec<_>>());
    let piece = prop_oneof![
        4 => word().prop_map(str::to_owned),
        1 => word().prop_map(str::to_uppercase),
        1 => word().prop_map(wide),
        2 => "[a-zA-Z0-9._~# -]{1,3}",
        1 => prop::sample::select(&["\u{131}", "\u{130}", "\u{17f}", "\u{212a}", "\u{df}", "\u{fb01}", "\u{1d6a4}", "\u{345}", "\u{301}", "\u{3a3}", "\u{2025}"][..]).prop_map(str::to_owned),
        1 => "\\PC{1,2}",
    ];
    prop::collection::vec(piece, 1..5).prop_map(|pieces| pieces.concat())
}

fn roots() -> impl Strategy<Value = Root> {
    prop::sample::select(&Root::HARNESSES[..])
}

/// Whether the name is one of those that are served in one spelling only.
fn is_exact(name: &str, root: Root) -> bool {
    Name::of_harness(name).is_some_and(|name| name.is_served_database(root))
}

/// The name in full-width forms.
fn wide(name: &str) -> String {
    let wide = |c| if ('!'..='~').contains(&c) { char::from_u32(u32::from(c) + 0xfee0) } else { None };
    name.chars().map(|c| wide(c).unwrap_or(c)).collect()
}

fn with_ignorables(name: &str, ignorable: char) -> String {
    name.chars().flat_map(|c| [ignorable, c]).collect()
}

/// How the rule column begins where a name has no form at all.
const MALFORMED: &str = "malformed";

// --- The data files; their own first lines tell the format.

#[derive(Debug)]
struct Example {
    roots: Vec<Root>,
    name: Vec<u8>,
    rule: &'static str,
}

fn examples(table: &'static str) -> Vec<Example> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| example(line).unwrap_or_else(|| panic!("not a line of the table: {line}"))).collect()
}

fn example(line: &'static str) -> Option<Example> {
    let mut fields = line.split('\t');
    let (roots, name, rule) = (fields.next()?, fields.next()?, fields.next()?);
    let roots = match roots {
        "*" => Root::HARNESSES.to_vec(),
        list => list.split(',').map(root).collect::<Option<_>>()?,
    };
    fields.next().is_none().then_some(Example { roots, name: unescape(name)?, rule })
}

fn root(name: &str) -> Option<Root> {
    Root::HARNESSES.into_iter().find(|root| root.as_str() == name)
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut name = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        name.extend(rest[..at].bytes());
        rest = &rest[at + 1..];
        match rest.chars().next()? {
            'x' => {
                name.push(u8::from_str_radix(rest.get(1..3)?, 16).ok()?);
                rest = &rest[3..];
            }
            'u' => {
                let (digits, after) = rest[1..].strip_prefix('{')?.split_once('}')?;
                let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
                name.extend(c.encode_utf8(&mut [0; 4]).bytes());
                rest = after;
            }
            c @ ('t' | '\\') => {
                name.push(if c == 't' { b'\t' } else { b'\\' });
                rest = &rest[1..];
            }
            _ => return None,
        }
    }
    name.extend(rest.bytes());
    Some(name)
}

const WORDS: &[&str] = &[
    "credential",
    "creds",
    "token",
    "auth",
    "secret",
    "password",
    "passwd",
    "apikey",
    "api_key",
    "api-key",
    "keyring",
    "cookie",
    "jwt",
    "private_key",
    "private-key",
    ".tar.",
    ".key.",
    ".env-",
];

const PIECES: &str = "auth aut h api key _ - . .. token tok en creds cred ential jwt jw t private secret pass word wd \
                      cookie keyring .key .pem .p12 .env .age .asc .db .sqlite -wal -shm state.db history.db .git .ssh \
                      id_rsa id_ ed25519 settings config models mcp .json .yml cordis session_ request_dump bws_ \
                      op_cache webhook pairing backups # ~ .tmp .swp .tar .zip .tgz x 1";

const IGNORABLES: &[char] = &[
    '\u{ad}',
    '\u{34f}',
    '\u{61c}',
    '\u{115f}',
    '\u{17b4}',
    '\u{180b}',
    '\u{180e}',
    '\u{200b}',
    '\u{200d}',
    '\u{200e}',
    '\u{202e}',
    '\u{2060}',
    '\u{2064}',
    '\u{206f}',
    '\u{3164}',
    '\u{fe0f}',
    '\u{feff}',
    '\u{ffa0}',
    '\u{1d173}',
    '\u{e0001}',
    '\u{e007f}',
    '\u{e01ef}',
];
