//! The list: every kind of path, met by every kind of edit.

use backend::host::fixture::{Bytes, Edit, Special};

/// A tree, a path to ask about, and what happens meanwhile.
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) setup: Vec<Edit>,
    /// Below the base.
    pub(crate) path: String,
    pub(crate) edits: Vec<Edit>,
}

/// Every path with every sequence of edits.
pub(crate) fn all() -> Vec<Scenario> {
    let long = "n".repeat(255);
    let paths = PATHS.iter().copied().chain([long.as_str()]);
    paths
        .flat_map(|path| {
            sequences().into_iter().map(move |(name, edits)| Scenario {
                name: format!("{:?} while {name}", &path[..path.len().min(16)]),
                setup: tree(),
                path: path.to_owned(),
                edits,
            })
        })
        .collect()
}

const PATHS: [&str; 20] = [
    "",
    "f",
    "empty",
    "big",
    "d",
    "d/f",
    "d/e",
    "d/e/g",
    "hollow",
    "none",
    "d/none",
    "none/none",
    "f/x",
    "l",
    "ld/f",
    "out/f",
    "dangling",
    "fifo",
    "socket",
    "fifo/x",
];

fn tree() -> Vec<Edit> {
    let mut edits = Vec::new();
    for dir in ["d", "d/e", "hollow"] {
        edits.push(mkdir(dir));
    }
    for (file, bytes) in [("f", "first"), ("empty", ""), ("d/f", "second"), ("d/e/g", "third")] {
        edits.push(write(file, bytes));
    }
    edits.push(Edit::Write { path: at("big"), bytes: vec![b'x'; 200_000].into() });
    edits.push(Edit::Write { path: "/w/outside/f".into(), bytes: "outside".into() });
    for (link, target) in
        [("l", "/w/base/f"), ("ld", "/w/base/d"), ("out", "/w/outside"), ("dangling", "/w/nowhere")]
    {
        edits.push(symlink(link, target));
    }
    edits.push(Edit::Special { path: at("fifo"), kind: Special::Fifo });
    edits.push(Edit::Special { path: at("socket"), kind: Special::Socket });
    edits
}

fn sequences() -> Vec<(&'static str, Vec<Edit>)> {
    [content(), names(), swaps(), refusals()].concat()
}

fn content() -> Vec<(&'static str, Vec<Edit>)> {
    let overwrite = |path, offset, bytes: &str, keep_mtime| Edit::Overwrite {
        path: at(path),
        offset,
        bytes: bytes.into(),
        keep_mtime,
    };
    vec![
        (
            "files are written anew",
            vec![write("f", "other"), write("d/f", "longer than before"), write("empty", "x")],
        ),
        (
            "files grow",
            vec![
                Edit::Append { path: at("f"), bytes: " and more\n".into() },
                Edit::AppendHalf { path: at("d/e/g"), bytes: "{\"half\":1}\n".into() },
                Edit::Append { path: at("d/f"), bytes: "".into() },
            ],
        ),
        (
            "files shrink and grow again",
            vec![
                Edit::Truncate { path: at("f"), bytes: 2 },
                Edit::Truncate { path: at("big"), bytes: 0 },
                Edit::Truncate { path: at("f"), bytes: 9 },
            ],
        ),
        (
            "files are overwritten in place",
            vec![
                overwrite("f", 1, "IRS", false),
                overwrite("d/f", 0, "SECOND", true),
                overwrite("empty", 4, "x", true),
            ],
        ),
        (
            "times are set",
            vec![
                Edit::Touch { path: at("f"), mtime_ns: 1_600_000_000_123_456_789 },
                Edit::Touch { path: at("d"), mtime_ns: 1_600_000_000_000_000_000 },
            ],
        ),
        ("files are written through links", vec![write("l", "through"), write("ld/new", "through")]),
    ]
}

fn names() -> Vec<(&'static str, Vec<Edit>)> {
    vec![
        ("files are replaced", vec![replace("f", "new"), replace("d/f", "new"), replace("none", "new")]),
        (
            "names move",
            vec![rename("f", "g"), rename("d/f", "f"), rename("g", "none"), rename("d/e", "none2")],
        ),
        (
            "names move over others",
            vec![rename("f", "d/f"), rename("big", "empty"), rename("hollow", "none")],
        ),
        ("a directory moves over an empty one", vec![rename("d/e", "hollow"), rename("hollow", "d/e")]),
        (
            "names are removed",
            vec![unlink("f"), unlink("l"), unlink("fifo"), unlink("socket"), unlink("d/e/g"), rmdir("d/e")],
        ),
        (
            "names are removed and come back",
            vec![unlink("f"), write("f", "again"), rmdir("hollow"), mkdir("hollow")],
        ),
        (
            "hard links come and go",
            vec![link("f", "d/none"), link("d/f", "none"), unlink("f"), unlink("d/none"), link("l", "l2")],
        ),
        ("one file moves onto its other name", vec![link("f", "d/none"), rename("f", "d/none"), unlink("f")]),
        (
            "names are made",
            vec![mkdir("none"), write("none/none", "x"), mkdir("d/none"), write(&"n".repeat(255), "long")],
        ),
        (
            "a tree is removed",
            vec![unlink("d/f"), unlink("d/e/g"), rmdir("d/e"), rmdir("d"), mkdir("d"), write("d/f", "new")],
        ),
    ]
}

fn swaps() -> Vec<(&'static str, Vec<Edit>)> {
    let fifo = |path| Edit::Special { path: at(path), kind: Special::Fifo };
    vec![
        (
            "a directory becomes a link",
            vec![rename("d", "real"), symlink("d", "/w/base/real"), unlink("d"), rename("real", "d")],
        ),
        ("a directory becomes a link out of the base", vec![rename("d", "real"), symlink("d", "/w/outside")]),
        ("a file becomes a link", vec![unlink("f"), symlink("f", "/w/outside/f"), rename("l", "d/f")]),
        ("a file becomes a fifo", vec![unlink("f"), fifo("f"), rename("fifo", "d/f")]),
        ("a file becomes a directory", vec![unlink("f"), mkdir("f"), write("f/x", "below")]),
        (
            "a directory becomes a file",
            vec![rename("d", "away"), write("d", "file"), rmdir("hollow"), write("hollow", "")],
        ),
        (
            "a link becomes a file",
            vec![unlink("l"), write("l", "file"), unlink("ld"), mkdir("ld"), write("ld/f", "in it")],
        ),
        (
            "a fifo becomes a directory",
            vec![unlink("fifo"), mkdir("fifo"), write("fifo/x", "below"), rename("f", "socket")],
        ),
    ]
}

fn refusals() -> Vec<(&'static str, Vec<Edit>)> {
    vec![(
        "edits are refused",
        vec![
            mkdir("f"),
            mkdir("d"),
            mkdir("l"),
            mkdir("none/none"),
            mkdir("f/x"),
            rmdir("d"),
            rmdir("f"),
            rmdir("none"),
            rmdir("l"),
            unlink("d"),
            unlink("none"),
            unlink("f/x"),
            write("d", "x"),
            write("none/x", "x"),
            write("f/x", "x"),
            write(&"n".repeat(256), "x"),
            rename("none", "f"),
            rename("f", "d"),
            rename("d", "f"),
            rename("d", "d/e/x"),
            rename("hollow", "d"),
            rename("f", "none/f"),
            rename("fifo", "hollow"),
            rename("f", "f"),
            rename("d", "d"),
            link("d", "none"),
            link("f", "l"),
            link("none", "x"),
            symlink("f", "x"),
            symlink("none/x", "x"),
            Edit::Truncate { path: at("d"), bytes: 0 },
            Edit::Truncate { path: at("dangling"), bytes: 0 },
            Edit::Special { path: at("f"), kind: Special::Fifo },
            replace("d", "x"),
            replace("none/x", "x"),
        ],
    )]
}

fn at(path: &str) -> Bytes {
    format!("/w/base/{path}").into()
}

fn mkdir(path: &str) -> Edit {
    Edit::Mkdir { path: at(path) }
}

fn rmdir(path: &str) -> Edit {
    Edit::Rmdir { path: at(path) }
}

fn write(path: &str, bytes: &str) -> Edit {
    Edit::Write { path: at(path), bytes: bytes.into() }
}

fn replace(path: &str, bytes: &str) -> Edit {
    Edit::Replace { path: at(path), bytes: bytes.into() }
}

fn rename(from: &str, to: &str) -> Edit {
    Edit::Rename { from: at(from), to: at(to) }
}

fn link(from: &str, to: &str) -> Edit {
    Edit::HardLink { from: at(from), to: at(to) }
}

fn unlink(path: &str) -> Edit {
    Edit::Unlink { path: at(path) }
}

fn symlink(path: &str, target: &str) -> Edit {
    Edit::Symlink { path: at(path), target: target.into() }
}
