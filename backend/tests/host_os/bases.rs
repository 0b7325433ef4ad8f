//! Base directories that come, go, and are replaced.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread;
use std::time::Duration;

use backend::host::{Errno, Host};
use backend::name::Root;

use crate::world::both;

#[test]
fn a_base_may_come_go_and_be_replaced() {
    both(|w| {
        fs::remove_dir(&w.base).unwrap();
        for _ in 0..2 {
            assert_eq!(w.stat(""), Err(Errno::NOENT));
            assert_eq!(w.read("f"), Err(Errno::NOENT));
            assert_eq!(w.list(""), Err(Errno::NOENT));
        }
        w.write("f", b"made later");
        assert_eq!(w.read("f"), Ok(b"made later".to_vec()));
        fs::rename(&w.base, w.outside.join("moved")).unwrap();
        w.write("g", b"in its place");
        assert_eq!(w.read("g"), Ok(b"in its place".to_vec()), "a miss looks at the base again");
        assert_eq!(w.read("f"), Err(Errno::NOENT));
        fs::rename(&w.base, w.outside.join("moved too")).unwrap();
        fs::rename(w.outside.join("moved"), &w.base).unwrap();
        thread::sleep(Duration::from_millis(120));
        assert_eq!(w.read("g"), Err(Errno::NOENT), "the base is looked at every 100 ms");
        assert_eq!(w.read("f"), Ok(b"made later".to_vec()));
        fs::remove_dir_all(&w.base).unwrap();
        assert_eq!(w.stat(""), Err(Errno::NOENT));
        fs::write(&w.base, b"a file").unwrap();
        assert_eq!(w.stat(""), Err(Errno::NOENT));
        assert_eq!(w.stat("f"), Err(Errno::NOENT));
    });
}

#[test]
fn a_base_may_be_a_link_and_point_elsewhere_later() {
    both(|w| {
        fs::remove_dir(&w.base).unwrap();
        for one in ["one", "two"] {
            fs::create_dir(w.outside.join(one)).unwrap();
            fs::write(w.outside.join(one).join(one), one).unwrap();
        }
        symlink(w.outside.join("one"), &w.base).unwrap();
        assert_eq!(w.read("one"), Ok(b"one".to_vec()));
        assert_eq!(w.list(""), Ok(vec!["one".to_owned()]));
        fs::remove_file(&w.base).unwrap();
        symlink(w.outside.join("two"), &w.base).unwrap();
        assert_eq!(w.read("two"), Ok(b"two".to_vec()));
        assert_eq!(w.read("one"), Err(Errno::NOENT));
        fs::remove_file(&w.base).unwrap();
        symlink("nowhere", &w.base).unwrap();
        assert_eq!(w.read("three"), Err(Errno::NOENT));
    });
}

#[test]
fn a_path_leads_to_a_base_by_whatever_links() {
    both(|w| {
        let link = w.top.join("link");
        symlink(&w.base, &link).unwrap();
        let leads = |path: &Path| w.os.is_base(Root::Hermes, path.as_os_str().as_encoded_bytes());
        assert!(leads(&w.base));
        assert!(leads(&w.base.join("../base/.")));
        assert!(leads(&link));
        for other in [&w.outside, &w.top.join("absent"), Path::new("base"), Path::new("")] {
            assert!(!leads(other), "{other:?}");
        }
        assert!(!w.os.is_base(Root::Claude, w.top.join("absent").as_os_str().as_encoded_bytes()));
    });
}
