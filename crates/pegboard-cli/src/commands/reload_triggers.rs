//! What asks for a reload: a config file that changes, SIGHUP, or a request.

use std::{
    future::pending,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use pegboard_daemon::{ReloadRequest, ReloadRequests};

use super::config_sources::Sources;
use crate::{
    output::{self, Output},
    settings::{Settings, secret_store},
    signals::Hangups,
};

/// How often the config files are checked for changes.
const POLL: Duration = Duration::from_millis(500);

/// What asks for a reload.
pub(super) struct Triggers {
    pub(super) files: Files,
    hangups: Option<Hangups>,
    pub(super) requests: ReloadRequests,
    /// The sources of the settings that were loaded before.
    pub(super) sources: Sources,
}

impl Triggers {
    /// Notes how the config files are, and listens for SIGHUP from now on. To be called as soon as the settings are loaded, so that no
    /// change and no signal is missed while the board is opened.
    pub(super) fn listen(settings: &Settings, output: &Output, requests: ReloadRequests) -> Self {
        let files = Files::stat(settings);
        let hangups = Hangups::listen().inspect_err(|error| {
            output.say(&output::warning(&format!("SIGHUP cannot be listened for: {error}")));
        });
        Self {
            files,
            hangups: hangups.ok(),
            requests,
            sources: Sources::new(settings),
        }
    }

    /// Waits until a reload is wanted. Returns the requests that want it, if it is none of the other triggers.
    pub(super) async fn next(&mut self) -> Vec<ReloadRequest> {
        tokio::select! {
            () = wait_for_hangup(self.hangups.as_mut()) => Vec::new(),
            () = self.files.changed() => Vec::new(),
            request = self.requests.next() => vec![request],
        }
    }
}

async fn wait_for_hangup(hangups: Option<&mut Hangups>) {
    match hangups {
        Some(hangups) => hangups.heard().await,
        None => pending().await,
    }
}

/// The config files, that of the user's secrets if the config refers to one, and those of the gateway's certificate, and when each was last written.
#[derive(Clone)]
pub(super) struct Files {
    paths: Vec<PathBuf>,
    written: Vec<Written>,
}

/// When a file was last written, and its size; `None` if it cannot be read.
type Written = Option<(SystemTime, u64)>;

impl Files {
    pub(super) fn stat(settings: &Settings) -> Self {
        let loaded = &settings.loaded;
        let sources = loaded.sources.iter().chain(&loaded.unreadable).map(PathBuf::from);
        let tls = loaded.config.serve.tls.iter();
        let tls = tls.flat_map(|files| [files.cert.clone(), files.key.clone()]);
        // A secret that is stored, changed or removed changes this file.
        let secrets = settings.uses_secrets().then(secret_store).flatten();
        let secrets = secrets.map(|store| store.path().to_owned());
        let mut paths: Vec<PathBuf> = sources.chain(tls).chain(secrets).collect();
        paths.sort();
        paths.dedup();
        let written = stat_all(&paths);
        Self { paths, written }
    }

    /// The same files as they are now.
    pub(super) fn stat_again(&self) -> Self {
        Self {
            paths: self.paths.clone(),
            written: stat_all(&self.paths),
        }
    }

    /// These files, each as it was `before` if it was known then.
    pub(super) fn since(mut self, before: &Self) -> Self {
        for (path, written) in self.paths.iter().zip(&mut self.written) {
            if let Some(at) = before.paths.iter().position(|known| known == path) {
                *written = before.written[at];
            }
        }
        self
    }

    /// Waits until a file is another than when this was made, and has been left alone since the last look.
    async fn changed(&self) {
        let mut last = self.written.clone();
        loop {
            tokio::time::sleep(POLL).await;
            let now = stat_all(&self.paths);
            if now != self.written && now == last {
                return;
            }
            last = now;
        }
    }
}

fn stat_all(paths: &[PathBuf]) -> Vec<Written> {
    let one = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    paths.iter().map(one).collect()
}
