//! Posting, tried on real directories.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::fitness::skip;

#[test]
fn a_name_gets_a_private_socket_in_a_private_directory() {
    let dir = Scratch::new("private");
    let (_listener, post) = dir.post("agents").unwrap();
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().mode() & 0o7777;
    assert_eq!(mode(&dir.0.join("9p")), 0o700);
    assert_eq!(mode(post.location()), 0o600);
    assert_eq!(mode(&dir.0.join("9p/.agents.lock")), 0o600);
    assert_eq!(post.location(), path_of(Some(dir.0.as_os_str()), &"agents".parse().unwrap()).unwrap());
    UnixStream::connect(post.location()).unwrap();
    assert!(post.unpost());
    assert!(!dir.0.join("9p/agents").exists());
}

#[test]
fn a_live_server_is_found_and_left_alone() {
    let dir = Scratch::new("live");
    let (_listener, post) = dir.post("agents").unwrap();
    let error = dir.post("agents").unwrap_err();
    assert_eq!(error.to_string(), "the name `agents` is already posted by a live server");
    UnixStream::connect(post.location()).unwrap();
    dir.post("other").unwrap();
    // One that holds no lock, because it is another program's, counts as much.
    let _alien = UnixListener::bind(dir.0.join("9p/alien")).unwrap();
    assert!(matches!(dir.post("alien"), Err(PostError::LiveName { .. })));
}

#[test]
fn a_server_with_a_full_backlog_is_live() {
    let dir = Scratch::new("backlog");
    let path = dir.0.join("s");
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &address_of(&path).unwrap()).unwrap();
    rustix::net::listen(&socket, 0).unwrap();
    let _waiting = UnixStream::connect(&path).unwrap();
    assert_eq!(dial(&address_of(&path).unwrap()), Err(Errno::AGAIN));
    assert!(matches!(Post::path(&path), Err(PostError::LivePath { .. })));
}

#[test]
fn a_stale_socket_is_replaced() {
    let dir = Scratch::new("stale");
    for path in [dir.0.join("9p/agents"), dir.0.join("s")] {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        drop(UnixListener::bind(&path).unwrap());
    }
    let (_listener, post) = dir.post("agents").unwrap();
    UnixStream::connect(post.location()).unwrap();
    let (_listener, post) = Post::path(&dir.0.join("s")).unwrap();
    UnixStream::connect(post.location()).unwrap();
}

#[test]
fn of_several_starting_at_once_exactly_one_wins() {
    let dir = Scratch::new("race");
    fs::create_dir(dir.0.join("9p")).unwrap();
    let path = dir.0.join("s");
    for round in 0..200 {
        let by_name = round % 2 == 0;
        let at = if by_name { dir.0.join("9p/agents") } else { path.clone() };
        drop(UnixListener::bind(&at).unwrap());
        // Spinning, because those who wait in a barrier are woken one by one.
        let waiting = AtomicUsize::new(RACERS);
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let racer = || {
                waiting.fetch_sub(1, Ordering::SeqCst);
                while waiting.load(Ordering::SeqCst) > 0 {
                    std::hint::spin_loop();
                }
                if by_name { dir.post("agents") } else { Post::path(&path) }
            };
            let racers: Vec<_> = (0..RACERS).map(|_| scope.spawn(racer)).collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        UnixStream::connect(&at).unwrap();
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "round {round}");
        let lost = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
        for error in lost {
            let live = matches!(error, PostError::LiveName { .. } | PostError::LivePath { .. });
            assert!(live, "round {round}: {error}");
        }
    }
}

#[test]
fn what_is_not_a_socket_of_ours_is_left_alone() {
    let dir = Scratch::new("taken");
    let path = dir.0.join("s");
    let target = dir.0.join("target");
    drop(UnixListener::bind(&target).unwrap());
    let kinds: [(&dyn Fn(), &str); 3] = [
        (&|| fs::write(&path, "precious").unwrap(), "a file that is not a socket"),
        (&|| symlink(&target, &path).unwrap(), "a symbolic link"),
        (&|| fs::create_dir(&path).unwrap(), "a directory"),
    ];
    for (make, what) in kinds {
        make();
        let before = fs::symlink_metadata(&path).unwrap().ino();
        let error = Post::path(&path).unwrap_err();
        assert!(error.to_string().ends_with(&format!("taken by {what}: left alone")), "{error}");
        assert_eq!(fs::symlink_metadata(&path).unwrap().ino(), before);
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
    }
    assert!(target.exists());
}

#[test]
fn a_socket_that_cannot_be_understood_is_left_alone() {
    let dir = Scratch::new("unclear");
    let path = dir.0.join("s");
    let _datagrams = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    assert!(matches!(Post::path(&path), Err(PostError::Unclear { .. })));
    assert!(path.exists());
}

#[test]
fn another_users_socket_is_left_alone() {
    if !geteuid().is_root() {
        return skip("only root can make a file of another user");
    }
    let dir = Scratch::new("foreign");
    let path = dir.0.join("s");
    drop(UnixListener::bind(&path).unwrap());
    std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
    let error = Post::path(&path).unwrap_err();
    assert!(error.to_string().contains("a socket of another user"), "{error}");
    assert!(path.exists());
}

#[test]
fn only_our_own_file_is_unposted() {
    let dir = Scratch::new("unpost");
    let path = dir.0.join("s");
    let (_listener, post) = Post::path(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let _other = UnixListener::bind(&path).unwrap();
    assert!(!post.unpost());
    UnixStream::connect(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let (_listener, post) = Post::path(&path).unwrap();
    drop(post);
    assert!(!path.exists());
}

#[test]
fn a_directory_that_others_can_change_is_refused() {
    let dir = Scratch::new("loose");
    let posts = dir.0.join("9p");
    fs::create_dir(&posts).unwrap();
    for mode in [0o770, 0o702, 0o777] {
        fs::set_permissions(&posts, Permissions::from_mode(mode)).unwrap();
        let error = dir.post("agents").unwrap_err();
        assert!(error.to_string().contains("can be written by"), "{error}");
        assert_eq!(fs::metadata(&posts).unwrap().mode() & 0o7777, mode, "left as it was");
    }
    fs::set_permissions(&posts, Permissions::from_mode(0o755)).unwrap();
    dir.post("agents").unwrap();
    assert_eq!(fs::metadata(&posts).unwrap().mode() & 0o7777, 0o755, "left as it was");
    if !geteuid().is_root() {
        return skip("only root can make a directory of another user");
    }
    std::os::unix::fs::chown(&posts, Some(12345), None).unwrap();
    let error = dir.post("agents").unwrap_err();
    assert!(error.to_string().contains("belongs to another user"), "{error}");
}

#[test]
fn a_directory_that_is_a_link_is_refused() {
    let dir = Scratch::new("link");
    fs::create_dir(dir.0.join("elsewhere")).unwrap();
    symlink(dir.0.join("elsewhere"), dir.0.join("9p")).unwrap();
    assert!(matches!(dir.post("agents"), Err(PostError::Failed { .. })));
    assert_eq!(fs::read_dir(dir.0.join("elsewhere")).unwrap().count(), 0);
}

#[test]
fn without_a_runtime_directory_the_error_names_it_and_the_way_out() {
    let name = "agents".parse().unwrap();
    for unset in [None, Some(OsStr::new(""))] {
        let error = Post::name(unset, &name).unwrap_err().to_string();
        assert!(error.contains("XDG_RUNTIME_DIR") && error.contains("--unix PATH --no-post"), "{error}");
    }
    let error = Post::name(Some(OsStr::new("run")), &name).unwrap_err();
    assert!(matches!(error, PostError::RelativeRuntimeDir(_)));
}

#[test]
fn a_path_that_does_not_fit_a_socket_address_is_refused() {
    let path = PathBuf::from(format!("/tmp/{}", "x".repeat(PATH_BYTES_MAX)));
    let error = Post::path(&path).unwrap_err().to_string();
    assert!(error.ends_with("too long for a unix socket: 112 bytes, the limit is 107"), "{error}");
    assert!(Post::path(Path::new("")).is_err());
}

#[test]
fn a_path_of_the_greatest_length_works() {
    let dir = Scratch::new("long");
    let room = PATH_BYTES_MAX - dir.0.as_os_str().len() - 1;
    let (_listener, post) = Post::path(&dir.0.join("x".repeat(room))).unwrap();
    UnixStream::connect(post.location()).unwrap();
}

#[test]
fn names_are_checked() {
    for good in ["agents", "a", "my agents", "x.y", &"n".repeat(NAME_BYTES_MAX)] {
        assert!(good.parse::<Name>().is_ok(), "{good}");
    }
    for bad in ["", ".", "..", ".agents", "a/b", "/", "a\nb", "a\0", &"n".repeat(NAME_BYTES_MAX + 1)] {
        assert!(bad.parse::<Name>().is_err(), "{bad:?}");
    }
}

/// A directory that stands for the runtime directory, removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("9agents-post-{}-{test}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn post(&self, name: &str) -> Result<(OwnedFd, Post), PostError> {
        Post::name(Some(self.0.as_os_str()), &name.parse()?)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const RACERS: usize = 2;
