//! Servers from PyPI that speak both eras: which one is chosen, and that it makes no difference to the results.

use std::path::Path;

use pegboard::{config::EraChoice, status::Era};
use serde_json::json;
use tempfile::TempDir;

use crate::{peer::*, support::*, talk::*};

#[tokio::test]
async fn the_time_is_told_in_both_eras() {
    for (era, expected) in choices() {
        let board = board(in_era(stdio(&time()), era));
        let tools = board.toolset();
        assert_eq!(listed(&tools).await, of_fx(&["convert_time", "get_current_time"]));
        assert_eq!(spoken(&board), expected);
        let now = text(&tools, "get_current_time", json!({"timezone": "Etc/UTC"})).await;
        assert!(now.contains("+00:00"), "{now}");
        let noon = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
        let converted = text(&tools, "convert_time", noon).await;
        assert!(converted.contains("T21:00:00+09:00"), "{converted}");
        let wrong = complaint(&tools, "get_current_time", json!({"timezone": "Mars/Olympus"})).await;
        assert!(wrong.contains("Mars/Olympus"), "{wrong}");
        board.shutdown().await;
    }
}

#[tokio::test]
async fn a_repository_is_read_in_both_eras() {
    let folder = TempDir::new().unwrap();
    let root = repository_in(folder.path());
    for (era, expected) in choices() {
        let board = board(in_era(stdio(&git(&root)), era));
        let tools = board.toolset();
        assert_eq!(listed(&tools).await.len(), 12);
        assert_eq!(spoken(&board), expected);
        let status = text(&tools, "git_status", json!({"repo_path": root})).await;
        assert!(
            status.contains("On branch main") && status.contains("new.txt"),
            "{status}"
        );
        let log = text(&tools, "fx.git_log", json!({"repo_path": root, "max_count": 1})).await;
        assert!(log.contains("Plant a tree") && log.contains("Ada"), "{log}");
        let elsewhere = complaint(&tools, "git_status", json!({"repo_path": "/"})).await;
        assert!(elsewhere.contains("outside"), "{elsewhere}");
        board.shutdown().await;
    }
}

/// The values of the era setting, and the era that each must give on stdio.
fn choices() -> [(EraChoice, (Era, String)); 2] {
    [(EraChoice::Auto, handshake()), (EraChoice::Modern, no_handshake())]
}

/// A repository with one commit and one untracked file.
pub(crate) fn repository_in(folder: &Path) -> std::path::PathBuf {
    let root = folder.canonicalize().unwrap();
    std::fs::write(root.join("tree.txt"), "oak\n").unwrap();
    let commit = "-c user.name=Ada -c user.email=ada@example.com commit -q -m";
    let commit: Vec<_> = commit.split(' ').chain(["Plant a tree"]).collect();
    for arguments in [&["init", "-q", "-b", "main"][..], &["add", "tree.txt"], &commit] {
        let mut git = std::process::Command::new("git");
        // The developer's own git settings must not matter.
        git.env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        assert!(git.args(arguments).current_dir(&root).status().unwrap().success());
    }
    std::fs::write(root.join("new.txt"), "new\n").unwrap();
    root
}
