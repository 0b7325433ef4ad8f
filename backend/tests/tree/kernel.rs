//! The tree over real directories: what the machine in memory may have got too right.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use backend::host::os::{Os, Resolving, Roots};
use proto::Refusal;

use crate::client::Client;

/// Five homes in a directory of their own, removed at the end.
struct Homes(PathBuf);

impl Homes {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("9agents-tree-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(unique);
        fs::create_dir_all(path.join("hermes")).unwrap();
        Self(path)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    fn client(&self) -> Client {
        let roots = Roots {
            claude: self.at("claude"),
            codex: self.at("codex"),
            omp: self.at("omp"),
            hermes: self.at("hermes"),
            dsh: self.at("dsh"),
        };
        let proc = Path::new("/proc").to_path_buf();
        Client::over(Arc::new(Os::new(roots, proc, Resolving::Probed)), 64)
    }
}

impl Drop for Homes {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn real_files_list_stat_and_read() {
    let homes = Homes::new();
    fs::write(homes.at("hermes/b.md"), "hello").unwrap();
    fs::write(homes.at("hermes/auth.json"), "secret").unwrap();
    fs::create_dir(homes.at("hermes/a")).unwrap();
    symlink("b.md", homes.at("hermes/link")).unwrap();
    fs::write(homes.0.join("hermes").join(OsStr::from_bytes(b"latin-\xe9")), "").unwrap();
    fs::hard_link(homes.at("hermes/b.md"), homes.at("hermes/a/hard")).unwrap();
    let mut client = homes.client();
    assert_eq!(client.names("hermes"), ["a", "b.md"]);
    assert_eq!(client.cat("hermes/b.md").unwrap(), "hello");
    assert_eq!(client.find("hermes/b.md").unwrap().0, client.find("hermes/a/hard").unwrap().0);
    for record in client.ls("hermes", 8192).unwrap() {
        assert_eq!(client.stat_path(&format!("hermes/{}", record.name)).unwrap(), record);
    }
    for hidden in ["hermes/auth.json", "hermes/link"] {
        assert_eq!(client.find(hidden).unwrap_err(), Refusal::NOT_FOUND);
    }
    assert_eq!(client.names("claude"), ["projects"]);
    assert!(client.names("dsh").is_empty());
    fs::create_dir_all(homes.at("dsh/logs")).unwrap();
    assert_eq!(client.names("dsh"), ["logs"]);
}

#[test]
fn a_real_file_is_followed_by_its_path() {
    let homes = Homes::new();
    let notes = homes.at("hermes/notes.md");
    fs::write(&notes, "one\n").unwrap();
    let mut client = homes.client();
    let open = client.open_path("hermes/notes.md").unwrap();
    assert_eq!(client.read(&open, 0, 100).unwrap(), b"one\n");
    fs::write(&notes, "one\ntwo\n").unwrap();
    assert_eq!(client.read(&open, 4, 100).unwrap(), b"two\n");
    // As editors save: another file takes the name.
    fs::write(homes.at("hermes/new"), "three\n").unwrap();
    fs::rename(homes.at("hermes/new"), &notes).unwrap();
    assert_eq!(client.read(&open, 0, 100).unwrap(), b"three\n");
    client.pass_ms(101);
    fs::rename(&notes, homes.at("hermes/token")).unwrap();
    assert_eq!(client.read(&open, 0, 2).unwrap_err(), Refusal::NOT_FOUND);
    fs::rename(homes.at("hermes/token"), &notes).unwrap();
    assert_eq!(client.read(&open, 0, 2).unwrap(), b"th");
    client.pass_ms(101);
    fs::remove_file(&notes).unwrap();
    symlink("/etc/hostname", &notes).unwrap();
    assert_eq!(client.read(&open, 0, 2).unwrap_err(), Refusal::NOT_FOUND);
}

#[test]
fn a_real_fifo_lists_and_is_never_opened() {
    let homes = Homes::new();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, homes.at("hermes/pipe"), rustix::fs::FileType::Fifo, mode, 0)
        .unwrap();
    let mut client = homes.client();
    assert_eq!(client.names("hermes"), ["pipe"]);
    assert_eq!(client.stat_path("hermes/pipe").unwrap().length, 0);
    assert_eq!(client.open_path("hermes/pipe").unwrap_err(), Refusal::NOT_REGULAR);
}

#[test]
fn a_real_database_is_known_by_its_head() {
    let homes = Homes::new();
    let innocent = homes.at("hermes/innocent");
    fs::write(&innocent, "text, and enough of it").unwrap();
    let mut client = homes.client();
    let open = client.open_path("hermes/innocent").unwrap();
    fs::write(&innocent, b"SQLite format 3\0 and more").unwrap();
    client.pass_ms(101);
    assert_eq!(client.read(&open, 0, 2).unwrap_err(), Refusal::HIDDEN_DATABASE);
    assert_eq!(client.open_path("hermes/innocent").unwrap_err(), Refusal::HIDDEN_DATABASE);
}

#[test]
fn reads_beside_a_replacement_see_one_file_or_the_other() {
    let homes = Homes::new();
    let save = |byte: u8| {
        fs::write(homes.at("hermes/new"), vec![byte; 4096]).unwrap();
        fs::rename(homes.at("hermes/new"), homes.at("hermes/notes.md")).unwrap();
    };
    save(b'a');
    let mut client = homes.client();
    let open = client.open_path("hermes/notes.md").unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0..200 {
                save(b'a' + turn % 26);
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            // Longer than the file: each read is checked before it is answered.
            let read = client.read(&open, 0, 5000).unwrap();
            assert_eq!(read, vec![read[0]; 4096]);
        }
    });
    assert_eq!(client.read(&open, 0, 5000).unwrap(), vec![b'a' + 199 % 26; 4096]);
}

#[test]
fn a_thousand_real_files_list_once_each_in_reads_of_300_bytes() {
    let homes = Homes::new();
    for n in 0..1000 {
        fs::write(homes.at(&format!("hermes/{n:04}")), "x").unwrap();
    }
    let names: Vec<String> = (0..1000).map(|n| format!("{n:04}")).collect();
    let mut client = homes.client();
    let listed: Vec<String> =
        client.ls("hermes", 300).unwrap().into_iter().map(|record| record.name).collect();
    assert_eq!(listed, names);
}
