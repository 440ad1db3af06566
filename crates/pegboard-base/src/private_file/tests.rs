//! What is refused, and what a failure leaves behind.

use std::path::PathBuf;

use super::*;

fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/file.json");
    (folder, path)
}

#[test]
fn what_is_replaced_is_read_back() {
    let (_folder, path) = file();
    replace(&path, b"one").unwrap();
    replace(&path, b"two").unwrap();
    assert_eq!(read(&path, 3).unwrap(), b"two");
    assert_eq!(read(&path, 2).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    let left = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(left, 1);
}

#[test]
fn appended_lines_follow_each_other() {
    let (_folder, path) = file();
    append(&path).unwrap().write_all(b"one\n").unwrap();
    append(&path).unwrap().write_all(b"two\n").unwrap();
    assert_eq!(read(&path, 100).unwrap(), b"one\ntwo\n");
    edit(&path).unwrap().write_all(b"ONE").unwrap();
    assert_eq!(read(&path, 100).unwrap(), b"ONE\ntwo\n");
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_the_user_may_read_what_is_written() {
        let (_folder, path) = file();
        replace(&path, b"x").unwrap();
        assert_eq!([mode(&path), mode(parent(&path))], [0o600, 0o700]);
    }

    #[test]
    fn a_file_that_others_may_write_is_refused() {
        let (_folder, path) = file();
        replace(&path, b"x").unwrap();
        for mode in [0o620, 0o602, 0o666] {
            set_mode(&path, mode);
            for opened in [open(&path), append(&path), edit(&path)] {
                assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
            }
        }
    }

    #[test]
    fn a_file_that_is_created_to_be_appended_to_is_the_users_own() {
        for create in [append, edit] {
            let (_folder, path) = file();
            create(&path).unwrap();
            assert_eq!([mode(&path), mode(parent(&path))], [0o600, 0o700]);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        let (_folder, path) = file();
        std::fs::create_dir(parent(&path)).unwrap();
        let made = rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        );
        made.unwrap();
        for opened in [open(&path), append(&path), edit(&path)] {
            opened.unwrap_err();
        }
    }

    #[test]
    fn a_folder_that_others_may_write_is_refused() {
        let (_folder, path) = file();
        replace(&path, b"x").unwrap();
        set_mode(parent(&path), 0o777);
        assert_eq!(
            replace(&path, b"y").unwrap_err().kind(),
            io::ErrorKind::PermissionDenied
        );
        assert_eq!(std::fs::read(&path).unwrap(), b"x");
    }

    #[test]
    fn a_link_is_neither_read_nor_written_through() {
        let (folder, path) = file();
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "keep").unwrap();
        std::fs::create_dir(parent(&path)).unwrap();
        symlink(&victim, &path).unwrap();
        assert!(read(&path, 10).is_err());
        assert!(append(&path).is_err() && edit(&path).is_err());
        replace(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&victim).unwrap(), b"keep");
        assert_eq!(read(&path, 10).unwrap(), b"new");
    }

    #[test]
    fn a_file_of_another_user_is_refused() {
        let (_folder, path) = file();
        replace(&path, b"x").unwrap();
        // Only root can give a file away.
        if std::os::unix::fs::chown(&path, Some(65534), None).is_ok() {
            assert_eq!(read(&path, 10).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
    }
}
