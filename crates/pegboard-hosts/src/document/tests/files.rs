//! Saving replaces the file at once, keeps what belongs to it, and never overwrites a change by another process.

use std::fs;

use serde_json::json;

use super::Document;

#[test]
fn a_saved_file_has_the_edit_and_nothing_is_left_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/pegboard.toml");
    let mut document = Document::open(&path).unwrap();
    assert!(!document.exists() && document.get(&["a"]).is_none());
    document.set(&["a"], &json!(1)).unwrap();
    document.save().unwrap();
    document.set(&["b"], &json!(2)).unwrap();
    document.save().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "a = 1\nb = 2\n");
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_change_by_another_process_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    fs::write(&path, "{}").unwrap();
    let mut document = Document::open(&path).unwrap();
    document.set(&["a"], &json!(1)).unwrap();
    fs::write(&path, "{\"b\": 1}").unwrap();
    let error = document.save().unwrap_err().to_string();
    assert!(error.contains("another process has changed the file"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"b\": 1}");
    fs::remove_file(&path).unwrap();
    assert!(document.save().is_err(), "a file that was deleted does not come back");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn mode_and_link_stay_and_a_read_only_file_is_refused() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real.yaml");
    fs::write(&real, "a: 1\n").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path().join("link.yaml");
    symlink("real.yaml", &link).unwrap();
    let mut document = Document::open(&link).unwrap();
    document.set(&["b"], &json!(2)).unwrap();
    document.save().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "a: 1\nb: 2\n");
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);

    let missing = folder.path().join("missing.yaml");
    symlink("not/yet.yaml", &missing).unwrap();
    let mut document = Document::open(&missing).unwrap();
    document.set(&["b"], &json!(2)).unwrap();
    document.save().unwrap();
    let made = folder.path().join("not/yet.yaml");
    assert_eq!(fs::read_to_string(&made).unwrap(), "b: 2\n");
    assert_eq!(fs::metadata(&made).unwrap().permissions().mode() & 0o777, 0o600);

    fs::set_permissions(&real, fs::Permissions::from_mode(0o444)).unwrap();
    let mut document = Document::open(&link).unwrap();
    document.set(&["c"], &json!(3)).unwrap();
    assert!(document.save().unwrap_err().to_string().contains("read-only"));
}

#[test]
fn a_backup_has_what_was_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    assert_eq!(Document::open(&path).unwrap().back_up().unwrap(), None);
    fs::write(&path, "{} // old\n").unwrap();
    let mut document = Document::open(&path).unwrap();
    document.set(&["a"], &json!(1)).unwrap();
    let copies = [
        document.back_up().unwrap().unwrap(),
        document.back_up().unwrap().unwrap(),
    ];
    assert_ne!(copies[0], copies[1]);
    for copy in copies {
        assert!(copy.file_name().unwrap().to_string_lossy().starts_with("a.json.bak-20"));
        assert_eq!(fs::read_to_string(copy).unwrap(), "{} // old\n");
    }
}

#[test]
fn other_names_and_other_bytes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Document::open(&folder.path().join("a.ini")).is_err());
    let path = folder.path().join("a.toml");
    fs::write(&path, b"\xff\xfe").unwrap();
    assert!(
        Document::open(&path)
            .unwrap_err()
            .to_string()
            .ends_with("it is not UTF-8")
    );
    assert!(Document::open(folder.path()).is_err());
}

#[test]
fn a_file_that_holds_a_list_is_refused_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    fs::write(&path, "[]").unwrap();
    let error = Document::open(&path).unwrap().set(&["servers", "a"], &json!({}));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("the file is not an object"), "{error}");
}

#[cfg(unix)]
#[test]
fn an_edit_waits_for_that_of_another_process_but_not_for_ever() {
    use std::{fs::File, time::Duration};

    use crate::document::lock::EditLock;

    let folder = tempfile::tempdir().unwrap();
    let other = File::open(folder.path()).unwrap();
    other.lock().unwrap();
    let error = EditLock::within(folder.path(), Duration::ZERO).unwrap_err();
    assert!(
        error.to_string().contains("another process has been editing"),
        "{error}"
    );
    other.unlock().unwrap();
    let first = EditLock::within(folder.path(), Duration::ZERO).unwrap();
    // This process may lock it again.
    let second = EditLock::within(folder.path(), Duration::ZERO).unwrap();
    drop(first);
    assert!(other.try_lock().is_err());
    drop(second);
    other.try_lock().unwrap();
}
