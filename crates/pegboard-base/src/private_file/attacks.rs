//! Attacks on a file of the user, for the tests of everything that stores one.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown, symlink},
    path::Path,
};

/// Asserts that a stored file is readable by its owner only, and that `is_read` returns `false` when the file was replaced by a link, may be
/// written or replaced by others, or belongs to another user.
pub fn assert_refused(path: &Path, is_read: impl Fn() -> bool) {
    let set_mode = |mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the file is ours");
    let mode = fs::metadata(path).expect("the file exists").permissions().mode() & 0o777;
    assert_eq!((mode, is_read()), (0o600, true));
    set_mode(0o666);
    assert!(!is_read(), "others may write to it");
    set_mode(0o600);
    // Only root can give a file away.
    if chown(path, Some(65534), None).is_ok() {
        assert!(!is_read(), "it belongs to another user");
        chown(path, Some(0), None).expect("we are root");
    }
    assert!(is_read());
    let folder = path.parent().expect("it is in a folder");
    let folder_mode = fs::metadata(folder).expect("the folder exists").permissions();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("the folder is ours");
    assert!(!is_read(), "others may replace it");
    fs::set_permissions(folder, folder_mode).expect("the folder is ours");
    assert!(is_read());
    let elsewhere = path.with_extension("elsewhere");
    fs::rename(path, &elsewhere).expect("the folder is ours");
    symlink(&elsewhere, path).expect("the folder is ours");
    assert!(!is_read(), "it is a link");
}
