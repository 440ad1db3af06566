//! The store in a folder.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use pegboard_store::{FileStore, Key, Limits, PutNew, Refusal, Replaced, Store, StoreError};

use crate::{
    conformance::conforms,
    fixture::{Fixture, LONG, SHORT, bytes, eventually, text},
};

mod plain {
    super::conforms!(super::open, flavor = "multi_thread", worker_threads = 2);
}

mod sealed {
    async fn open() -> crate::fixture::Fixture {
        super::open().await.sealed()
    }
    super::conforms!(open, flavor = "multi_thread", worker_threads = 2);
}

/// Tells a process of this test which folder it shares.
const SHARED_FOLDER: &str = "PEGBOARD_TEST_SHARED_FOLDER";

/// A busy machine is slow, and the limit is not what most tests are about.
fn limits() -> Limits {
    Limits {
        time: crate::fixture::PATIENCE,
        ..Limits::default()
    }
}

async fn open_at(folder: &Path) -> FileStore {
    FileStore::open(folder, limits()).await.unwrap()
}

async fn open() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..3 {
        stores.push(Arc::new(open_at(&folder.path().join("store")).await));
    }
    Fixture::new(stores, folder)
}

/// The files with values, logs, buckets and leases.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for sort in ["values", "logs", "buckets", "leases"] {
        for shelf in fs::read_dir(folder.join(sort)).into_iter().flatten() {
            let entries = fs::read_dir(shelf.unwrap().path()).unwrap();
            files.extend(entries.map(|entry| entry.unwrap().path()));
        }
    }
    files
}

/// Counts in the shared folder, as one of several processes. Without the folder it is a test of nothing.
#[tokio::test]
async fn child_counts() {
    let Some(folder) = std::env::var_os(SHARED_FOLDER) else {
        return;
    };
    let (store, key) = (open_at(Path::new(&folder)).await, Key::new("counter", &[]));
    for _ in 0..25 {
        loop {
            let value = match store.put_new(&key, bytes("1"), LONG).await.unwrap() {
                PutNew::Stored(_) => break,
                PutNew::Exists(value) => value,
            };
            let number: u32 = std::str::from_utf8(&value.bytes).unwrap().parse().unwrap();
            let next = bytes(&(number + 1).to_string());
            if let Replaced::Stored(_) = store.replace(&key, &value.version, next, LONG).await.unwrap() {
                break;
            }
        }
    }
}

#[tokio::test]
async fn several_processes_lose_no_change() {
    let folder = tempfile::tempdir().unwrap();
    let mut children: Vec<_> = (0..4)
        .map(|_| {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child
                .args(["--exact", "file::child_counts"])
                .env(SHARED_FOLDER, folder.path());
            child.stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let store = open_at(folder.path()).await;
    assert_eq!(text(&store, &Key::new("counter", &[])).await.as_deref(), Some("100"));
}

#[tokio::test]
async fn a_file_that_was_changed_cut_or_moved_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let (store, key) = (open_at(folder.path()).await, Key::new("k", &["a"]));
    store.put(&key, bytes("value"), LONG).await.unwrap();
    let [file] = &files(folder.path())[..] else {
        panic!("one file")
    };
    let content = fs::read(file).unwrap();
    let assert_damaged = async |content: &[u8], what: &str| {
        fs::write(file, content).unwrap();
        let error = store.get(&key).await.unwrap_err();
        assert!(matches!(&error, StoreError::Damaged { .. }), "{what}: {error}");
        let listing = store.list(&Key::new("k", &[]), 10).await.unwrap();
        assert_eq!(listing.damaged, 1, "{what}");
    };
    for position in 0..content.len() {
        let mut changed = content.clone();
        changed[position] ^= 1;
        assert_damaged(&changed, "changed").await;
        assert_damaged(&content[..position], "cut").await;
    }
    store.put(&Key::new("k", &["b"]), bytes("other"), LONG).await.unwrap();
    let other = files(folder.path()).into_iter().find(|path| path != file).unwrap();
    let moved = fs::read(&other).unwrap();
    fs::remove_file(other).unwrap();
    assert_damaged(&moved, "moved").await;
    assert!(store.put_new(&key, bytes("x"), LONG).await.is_err());
    assert!(store.remove(&key).await.unwrap(), "it can be removed");
    store.put(&key, bytes("again"), LONG).await.unwrap();
    assert_eq!(text(&store, &key).await.as_deref(), Some("again"));
}

#[tokio::test]
async fn expired_files_are_removed_by_and_by() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_at(folder.path()).await;
    for number in 0..50 {
        store
            .put(&Key::new("k", &[&number.to_string()]), bytes("x"), SHORT)
            .await
            .unwrap();
    }
    let kept = Key::new("kept", &[]);
    // Every change looks at some of the files.
    eventually(|| async {
        store.put(&kept, bytes("x"), LONG).await.unwrap();
        (files(folder.path()).len() == 1).then_some(())
    })
    .await;
    assert_eq!(text(&store, &kept).await.as_deref(), Some("x"));
}

#[tokio::test]
async fn a_key_that_another_process_holds_for_too_long_is_a_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits {
        time: std::time::Duration::from_millis(50),
        ..Limits::default()
    };
    let store = open_at(folder.path()).await;
    let key = Key::new("k", &[]);
    store.put(&key, bytes("x"), LONG).await.unwrap();
    let locks = fs::read_dir(folder.path().join("locks")).unwrap();
    let held: Vec<fs::File> = locks
        .map(|lock| fs::File::open(lock.unwrap().path()).unwrap())
        .collect();
    for lock in &held {
        lock.lock().unwrap();
    }
    let hurried = FileStore::open(folder.path(), limits).await.unwrap();
    let error = hurried.put(&key, bytes("y"), LONG).await.unwrap_err();
    assert!(matches!(&error, StoreError::TimedOut { .. }), "{error}");
    assert!(
        error.to_string().contains(&folder.path().display().to_string()),
        "{error}"
    );
    drop(held);
    store.put(&key, bytes("z"), LONG).await.unwrap();
}

#[tokio::test]
async fn a_folder_with_other_files_or_another_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("report.doc"), "x").unwrap();
    let error = FileStore::open(folder.path(), limits()).await.unwrap_err();
    assert!(matches!(&error, StoreError::Refused { refusal: Refusal::ForeignData(name), .. } if name == "report.doc"));
    fs::write(folder.path().join("format"), "pegboard-store 9\n").unwrap();
    let error = FileStore::open(folder.path(), limits()).await.unwrap_err();
    assert!(
        matches!(
            &error,
            StoreError::Refused {
                refusal: Refusal::OtherFormat { .. },
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("pegboard-store 9"), "{error}");
}

#[cfg(unix)]
mod private {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn only_the_user_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = open_at(&folder.path().join("store")).await;
        store.put(&Key::new("k", &[]), bytes("x"), LONG).await.unwrap();
        assert_eq!(mode(&folder.path().join("store")), 0o700);
        for file in files(&folder.path().join("store")) {
            assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        }
    }

    #[tokio::test]
    async fn a_folder_that_others_may_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for shared in [0o770, 0o777, 0o1777] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(shared)).unwrap();
            let error = FileStore::open(folder.path(), limits()).await.unwrap_err();
            let refused = matches!(
                &error,
                StoreError::Refused {
                    refusal: Refusal::NotPrivate(_),
                    ..
                }
            );
            assert!(refused, "{shared:o}: {error}");
        }
    }

    #[tokio::test]
    async fn a_link_in_place_of_a_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (store, key) = (open_at(&folder.path().join("store")).await, Key::new("k", &[]));
        store.put(&key, bytes("x"), LONG).await.unwrap();
        let [file] = &files(&folder.path().join("store"))[..] else {
            panic!("one file")
        };
        fs::rename(file, folder.path().join("elsewhere")).unwrap();
        symlink(folder.path().join("elsewhere"), file).unwrap();
        assert!(store.get(&key).await.is_err());
    }

    #[tokio::test]
    async fn a_folder_that_is_a_file_is_unreachable() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let error = FileStore::open(&folder.path().join("file"), limits())
            .await
            .unwrap_err();
        assert!(matches!(&error, StoreError::Unreachable { .. }), "{error}");
    }
}
