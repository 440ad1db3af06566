//! The result of the newest whole `pegboard torture` of each configured server, for the page of the server. A file of the user's state each.

use std::path::PathBuf;

use pegboard::{ServerName, Timestamp, config::ServerConfig};
use pegboard_base::private_file;
use pegboard_dashboard::{TortureFailure, TortureScore};
use pegboard_torture::{Card, Verdict};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::settings;

/// The most failed cases that are kept.
const MAX_FAILURES: usize = 20;
/// The longest file that is read.
const MAX_FILE: usize = 64 << 10;

/// What is kept of a result.
#[derive(Debug, Serialize, Deserialize)]
struct LastScore {
    /// A digest of the settings with which the server was tried.
    settings: String,
    at: Timestamp,
    grade: char,
    passed: usize,
    failed: usize,
    skipped: usize,
    failures: Vec<Failure>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Failure {
    title: String,
    mend: String,
}

/// Keeps the result of a server of the config. Fails if it cannot be written.
pub(super) fn keep(name: &ServerName, config: &ServerConfig, card: &Card) -> std::io::Result<()> {
    let (Some(path), Some(grade)) = (path(name), card.grade) else {
        return Ok(());
    };
    let failed = card.cases.iter().filter(|case| case.verdict == Verdict::Failed);
    let score = LastScore {
        settings: digest(config),
        at: Timestamp::now(),
        grade,
        passed: card.passed,
        failed: card.failed,
        skipped: card.skipped,
        failures: failed
            .take(MAX_FAILURES)
            .map(|case| Failure {
                title: case.title.to_owned(),
                mend: case.mend.to_owned(),
            })
            .collect(),
    };
    private_file::replace(&path, &serde_json::to_vec(&score)?)
}

/// The kept result of a server. One that cannot be read was never kept.
pub(crate) fn read(name: &ServerName, config: impl FnOnce() -> Option<ServerConfig>) -> Option<TortureScore> {
    let content = private_file::read(&path(name)?, MAX_FILE).ok()?;
    let score: LastScore = serde_json::from_slice(&content).ok()?;
    let failure = |failure: Failure| TortureFailure {
        title: failure.title,
        mend: failure.mend,
    };
    Some(TortureScore {
        at: score.at,
        grade: score.grade,
        passed: score.passed,
        failed: score.failed,
        skipped: score.skipped,
        failures: score.failures.into_iter().map(failure).collect(),
        is_of_these_settings: config().is_some_and(|config| digest(&config) == score.settings),
    })
}

fn path(name: &ServerName) -> Option<PathBuf> {
    Some(settings::torture_folder()?.join(format!("{name}.json")))
}

/// A digest of the settings, in which secrets are left out.
fn digest(config: &ServerConfig) -> String {
    let written = serde_json::to_vec(config).unwrap_or_default();
    let digest = Sha256::digest(written);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
