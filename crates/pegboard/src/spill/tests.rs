//! Tests of stored outputs: random handles, isolation of toolsets, bounds, and cleanup.

use std::path::Path;

use super::*;

fn spill(parent: &Path, change: impl FnOnce(&mut SpillLimits)) -> Spill {
    let mut limits = SpillLimits {
        folder: Some(parent.to_owned()),
        ..SpillLimits::default()
    };
    change(&mut limits);
    Spill::new(limits)
}

fn text(text: &str) -> Output {
    Output {
        format: OutputFormat::Text,
        text: Arc::new(text.to_owned()),
    }
}

fn files(parent: &Path) -> usize {
    let folders = std::fs::read_dir(parent).unwrap().flatten();
    folders
        .map(|folder| std::fs::read_dir(folder.path()).unwrap().count())
        .sum()
}

#[tokio::test]
async fn an_output_is_read_back_unchanged() {
    let parent = tempfile::tempdir().unwrap();
    let spill = spill(parent.path(), |_| {});
    assert!(!spill.is_used());
    let output = text("a\né\n");
    let handle = spill.keep(output.clone()).await.unwrap();
    assert!(handle.starts_with("out_") && handle.len() == 36);
    assert_eq!(spill.fetch(&handle).await.unwrap(), output);
    assert!(spill.is_used());
    let page = spill.page(&handle, Query::start(), 1000).await.unwrap();
    assert_eq!(page, "[lines 1-2 of 2]\na\né\n");
}

#[tokio::test]
async fn another_toolset_cannot_read_a_handle() {
    let parent = tempfile::tempdir().unwrap();
    let (ours, theirs) = (spill(parent.path(), |_| {}), spill(parent.path(), |_| {}));
    let handle = ours.keep(text("ours")).await.unwrap();
    theirs.keep(text("theirs")).await.unwrap();
    for tried in [handle.as_str(), "out_1", "../out_1", ""] {
        let problem = theirs.fetch(tried).await.unwrap_err();
        assert!(matches!(problem, SpillError::Unknown(_)), "{problem}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_output_expires() {
    let parent = tempfile::tempdir().unwrap();
    let spill = spill(parent.path(), |limits| limits.ttl = Duration::from_secs(60));
    let old = spill.keep(text("old")).await.unwrap();
    tokio::time::advance(Duration::from_secs(40)).await;
    let young = spill.keep(text("young")).await.unwrap();
    tokio::time::advance(Duration::from_secs(30)).await;
    assert!(spill.fetch(&old).await.is_err());
    assert!(spill.fetch(&young).await.is_ok());
    assert_eq!(files(parent.path()), 1);
}

#[tokio::test]
async fn the_oldest_outputs_are_evicted_for_new_ones() {
    let parent = tempfile::tempdir().unwrap();
    let spill = spill(parent.path(), |limits| (limits.bytes, limits.files) = (100, 3));
    let mut handles = Vec::new();
    for _ in 0..4 {
        handles.push(spill.keep(text("0123456789")).await.unwrap());
    }
    assert!(spill.fetch(&handles[0]).await.is_err(), "only three are kept");
    assert!(spill.fetch(&handles[1]).await.is_ok());
    let large = spill.keep(text(&"x".repeat(85))).await.unwrap();
    assert!(spill.fetch(&handles[2]).await.is_err(), "only a hundred bytes are kept");
    assert!(spill.fetch(&handles[3]).await.is_ok());
    assert!(spill.fetch(&large).await.is_ok());
    assert_eq!(files(parent.path()), 2);
    let problem = spill.keep(text(&"x".repeat(101))).await.unwrap_err();
    assert_eq!(problem.to_string(), "it has 101 bytes, and 100 are kept altogether");
}

#[tokio::test]
async fn an_output_is_intact_whichever_file_it_overwrote() {
    let parent = tempfile::tempdir().unwrap();
    let spill = spill(parent.path(), |limits| (limits.bytes, limits.files) = (1000, 3));
    let mut kept = Vec::new();
    for size in [900, 50, 50, 700, 1, 300, 0, 999, 2, 3, 1000] {
        let output = text(&"x".repeat(size));
        kept.push((spill.keep(output.clone()).await.unwrap(), output));
        for (handle, output) in &kept {
            if let Ok(found) = spill.fetch(handle).await {
                assert_eq!(found, *output);
            }
        }
        let (newest, output) = &kept[kept.len() - 1];
        assert_eq!(spill.fetch(newest).await.unwrap(), *output);
        assert!(files(parent.path()) <= 3);
    }
    assert_eq!(files(parent.path()), 1);
}

#[tokio::test]
async fn an_output_in_a_reused_file_ends_with_its_own_tail() {
    let parent = tempfile::tempdir().unwrap();
    let spill = spill(parent.path(), |limits| limits.files = 1);
    spill
        .keep(text(&"a line of the old output\n".repeat(100)))
        .await
        .unwrap();
    let handle = spill.keep(text("the first line\nthe last line\n")).await.unwrap();
    let tail = spill.page(&handle, Query::range("2-").unwrap(), 1000).await.unwrap();
    assert_eq!(tail, "[lines 2-2 of 2]\nthe last line\n");
    // The file is read only up to the output's length, so the rest of the old one would show on disk alone.
    let entry = spill.0.find(&handle).unwrap();
    let file = std::fs::read_to_string(entry.folder.path().join(&handle)).unwrap();
    assert_eq!(file, "the first line\nthe last line\n");
}

#[tokio::test]
async fn an_output_that_is_evicted_while_it_is_read_is_unknown() {
    let parent = tempfile::tempdir().unwrap();
    let spill = spill(parent.path(), |limits| limits.files = 1);
    let handle = spill.keep(text("old")).await.unwrap();
    let entry = spill.0.find(&handle).unwrap();
    spill.keep(text("new")).await.unwrap();
    // A reader that opened the file before the eviction reads the new content.
    let newest = spill.0.state.lock().entries[0].handle.clone();
    std::fs::hard_link(entry.folder.path().join(newest), entry.folder.path().join(&handle)).unwrap();
    assert!(matches!(spill.0.read(&entry), Err(SpillError::Unknown(_))));
}

#[tokio::test]
async fn nothing_is_left_when_a_toolset_is_closed_or_dropped() {
    let parent = tempfile::tempdir().unwrap();
    let closed = spill(parent.path(), |_| {});
    let handle = closed.keep(text("x")).await.unwrap();
    closed.close().await;
    assert!(closed.fetch(&handle).await.is_err());
    assert!(matches!(closed.keep(text("y")).await, Err(SpillError::Closed)));
    let dropped = spill(parent.path(), |_| {});
    dropped.keep(text("x")).await.unwrap();
    drop(dropped);
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_removed_folder_is_created_again() {
    let parent = tempfile::tempdir().unwrap();
    let spill = spill(parent.path(), |_| {});
    let handle = spill.keep(text("x")).await.unwrap();
    for folder in std::fs::read_dir(parent.path()).unwrap().flatten() {
        std::fs::remove_dir_all(folder.path()).unwrap();
    }
    assert!(matches!(spill.fetch(&handle).await, Err(SpillError::Unknown(_))));
    assert!(spill.keep(text("lost")).await.is_err());
    let again = spill.keep(text("again")).await.unwrap();
    assert_eq!(*spill.fetch(&again).await.unwrap().text, "again");
}

/// Set in the child process that runs with a file size limit.
#[cfg(target_os = "linux")]
const LIMITED: &str = "PEGBOARD_TEST_FILES_ARE_LIMITED";

/// A write beyond `RLIMIT_FSIZE` raises SIGXFSZ, which kills a process without a handler. The limit applies to a whole process, so this test
/// re-executes itself in a child process.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_file_over_the_process_limit_is_an_error_and_does_not_kill_the_process() {
    if std::env::var_os(LIMITED).is_none() {
        let this = std::env::current_exe().unwrap();
        let status = tokio::process::Command::new("sh")
            .args(["-c", "ulimit -f 8; exec \"$0\" --exact \"$1\" --test-threads 1"])
            .arg(this)
            .arg("spill::tests::a_file_over_the_process_limit_is_an_error_and_does_not_kill_the_process")
            .env(LIMITED, "1")
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status()
            .await
            .unwrap();
        assert!(status.success(), "{status}");
        return;
    }
    let parent = tempfile::tempdir().unwrap();
    let spill = spill(parent.path(), |_| {});
    let failed = spill.keep(text(&"x".repeat(1 << 20))).await.unwrap_err();
    assert!(failed.to_string().contains("File too large"), "{failed}");
    assert_eq!(files(parent.path()), 0, "the part that was written is removed");
    spill.keep(text("short")).await.unwrap();
}
