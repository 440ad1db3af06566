//! [`Reloader`]: applies the config to a running board when it is asked to.

use std::{sync::Arc, time::Duration};

use pegboard::{
    Config, Pegboard, Problem, ServerName, Timestamp,
    audit::{AdminChange, ChangeOutcome},
    board::Applied,
    config::ServeConfig,
};
use pegboard_daemon::{FailedReload, ReloadNote, Reloads};
use pegboard_gateway::Gateway;

use super::{
    added_servers::AddedServers,
    config_sources::Sources,
    reload_triggers::{Files, Triggers},
    serving::{Door, prepare, tokens},
    tls_files,
};
use crate::{
    cli::Global,
    daemon::{self, Identified, config_digest},
    exit::Exit,
    output::{self, Output},
    settings::{Complaint, Settings},
    systemd::Notifier,
};

/// What is said when a reload would open the gateway. A file that is half written, or a mistake, must not do that.
const KEPT_TOKENS: &str = "the config has no tokens any more, which would let every client in: those from before stay valid; \
    restart the gateway to serve without tokens";

/// What is said when settings have changed that a running gateway cannot change.
const NEXT_START: &str =
    "`listen`, `state_key`, the limits of `serve`, and whether it speaks HTTPS take effect at the next start";

/// How long a file that looks unfinished is left alone before it is read again.
const A_MOMENT: Duration = Duration::from_millis(400);

/// Applies the config to a running board when something [triggers](Triggers) it.
pub(super) struct Reloader<'a> {
    pub(super) global: &'a Global,
    /// The servers that a reload keeps besides those of the config.
    pub(super) added: Option<Arc<AddedServers>>,
    pub(super) output: &'a Output,
    pub(super) board: &'a Pegboard,
    /// The gateway, unless clients are on stdio, and the settings that it was started with.
    pub(super) gateway: Option<(&'a Gateway, &'a ServeConfig)>,
    pub(super) door: Door<'a>,
    /// Tells systemd when a reload begins and ends.
    pub(super) notifier: Option<&'a Notifier>,
    /// Where it is noted how a reload ended.
    pub(super) reloads: &'a Reloads,
    /// How the board relates to the user's daemon.
    pub(super) role: Role<'a>,
}

/// How a board relates to the user's daemon.
#[derive(Clone, Copy)]
pub(super) enum Role<'a> {
    /// It has nothing to do with it.
    Alone,
    /// It is the board of the daemon.
    Daemon(&'a Identified),
    /// Its servers are those of the daemon.
    Client,
}

/// A reload that was tried.
struct Attempt {
    /// The files that were read, if they could be.
    files: Option<Files>,
    outcome: Result<(), FailedReload>,
}

impl Reloader<'_> {
    /// Reloads until it is dropped.
    pub(super) async fn run(&self, mut triggers: Triggers) {
        loop {
            let mut asked = triggers.next().await;
            // Before they are read, so that a change while they are read leads to another reload.
            let before = triggers.files.stat_again();
            asked.extend(triggers.requests.take_waiting());
            if let Some(notifier) = self.notifier {
                notifier.reloading();
            }
            let Attempt { files, outcome } = {
                let _alone = self.reloads.lock_changes().await;
                self.reload(&mut triggers.sources).await
            };
            if let Some(notifier) = self.notifier {
                notifier.reloaded();
            }
            // A request is recorded with the client that sent it.
            if asked.is_empty() {
                let outcome = match &outcome {
                    Ok(()) => ChangeOutcome::Done,
                    Err(_) => ChangeOutcome::Failed,
                };
                self.board.record_change(AdminChange::new("reload", outcome));
            }
            triggers.files = match files {
                Some(files) => files.since(&before),
                None => before,
            };
            for request in asked {
                request.answer(outcome.clone());
            }
        }
    }

    /// Applies the config as it is now. A broken one changes nothing, and `sources` are still those of the config in effect.
    async fn reload(&self, sources: &mut Sources) -> Attempt {
        let mut read_at = Timestamp::now();
        let mut loaded = self.load().await;
        if let Ok((settings, _)) = &loaded
            && sources.look_unfinished(settings)
        {
            tokio::time::sleep(A_MOMENT).await;
            read_at = Timestamp::now();
            loaded = self.load().await;
        }
        let (settings, digest) = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                let message = format!("the config cannot be read again: {error}");
                self.warn(&message);
                return Attempt {
                    files: None,
                    outcome: Err(self.reloads.note_failed(&message, None)),
                };
            }
        };
        let prepared = sources
            .check(&settings)
            .and_then(|()| prepare(&settings, self.door))
            .and_then(|config| check_general_errors(&settings, config))
            .and_then(|config| Ok((self.certificate(&config)?, config)));
        let outcome = match prepared {
            Ok((tls, config)) => {
                self.apply_tls(tls);
                let (notes, changes) = self.apply(&settings, config).await;
                if let Role::Daemon(daemon) = self.role {
                    daemon.applied(digest, read_at);
                }
                self.reloads.note_applied_with(&notes, changes);
                *sources = Sources::new(&settings);
                Ok(())
            }
            Err(complaint) => {
                let message = format!("the config is not reloaded, nothing has changed: {}", complaint.message);
                let hint = complaint.hint.as_deref();
                self.output.say(&output::error(&message, hint));
                Err(self.reloads.note_failed(&message, hint))
            }
        };
        Attempt {
            files: Some(Files::stat(&settings)),
            outcome,
        }
    }

    /// Loads the settings, and the digest by which commands find out whether the daemon reads the same files.
    async fn load(&self) -> Result<(Settings, String), tokio::task::JoinError> {
        let (global, added) = (self.global.clone(), self.added.clone());
        // Files may be on a slow disk.
        let loading = tokio::task::spawn_blocking(move || match added {
            Some(added) => added.load(),
            None => {
                let settings = Settings::load(&global);
                let digest = config_digest(&settings.loaded.config);
                (settings, digest)
            }
        });
        loading.await
    }

    /// Reads the certificate again, unless the gateway has none: clients know whether it speaks HTTPS, so that is decided at its start.
    fn certificate(&self, config: &Config) -> Result<Option<tls_files::Loaded>, Complaint> {
        match (self.gateway, &config.serve.tls) {
            (Some((_, started)), Some(files)) if started.tls.is_some() => tls_files::load(files).map(Some),
            _ => Ok(None),
        }
    }

    fn apply_tls(&self, loaded: Option<tls_files::Loaded>) {
        if let (Some((gateway, _)), Some(loaded)) = (self.gateway, loaded) {
            for warning in &loaded.warnings {
                self.warn(warning);
            }
            gateway.set_tls(&loaded.tls);
        }
    }

    /// Applies a config. Returns what of it is not in effect, and what has changed.
    async fn apply(&self, settings: &Settings, mut config: Config) -> (Vec<ReloadNote>, Applied) {
        let mut notes = Vec::new();
        let before = self.board.gateway_settings();
        for problem in settings.problems() {
            self.warn(&problem.to_string());
        }
        if let Some((_, started)) = self.gateway
            && fixed_settings(&config.serve) != fixed_settings(started)
        {
            // Said once for each change, and in the status until the next start.
            if fixed_settings(&config.serve) != fixed_settings(&before.serve) {
                self.warn(NEXT_START);
            }
            notes.push(ReloadNote::new("restart", NEXT_START));
        }
        if self.gateway.is_some() && before.serve.requires_token() && !config.serve.requires_token() {
            self.warn(KEPT_TOKENS);
            tracing::warn!("{KEPT_TOKENS}");
            notes.push(ReloadNote::new("tokens", KEPT_TOKENS));
            config.serve.tokens.clone_from(&before.serve.tokens);
            config.serve.unusable_tokens.clone_from(&before.serve.unusable_tokens);
            config.serve.oauth.clone_from(&before.serve.oauth);
            config.serve.public_url.clone_from(&before.serve.public_url);
        }
        // The door first: a token that is gone must not use what the new config adds.
        if let Some((gateway, _)) = self.gateway {
            let serve = &config.serve;
            gateway.set_tokens(tokens(serve), serve.requires_token());
            gateway.set_oauth(serve.oauth.as_ref(), serve.public_url.as_deref());
            gateway.set_sites(serve.hosts.clone(), serve.origins.clone());
        }
        if let Role::Client = self.role {
            daemon::adapt(&mut config);
        }
        let applied = self.board.apply(config).await;
        // What is wrong with the config of a server was said above.
        let is_told = |server: &ServerName| {
            let mut errors = settings.loaded.errors();
            errors.any(|problem| problem.server() == Some(server.as_str()))
        };
        for error in applied.errors.iter().filter(|error| !is_told(&error.server)) {
            self.warn(&format!("server `{}`: {}", error.server, error.error));
            tracing::warn!(server = %error.server, error = error.error, "a server of the new config failed");
        }
        let kept = note_kept(&applied);
        for note in &kept {
            self.warn(&note.message);
        }
        notes.extend(kept);
        self.output.note(&format!("config reloaded; {}", summary(&applied)));
        (notes, applied)
    }

    fn warn(&self, message: &str) {
        self.output.say(&output::warning(message));
    }
}

/// The servers that go on under their old settings. The file says something else until a reload succeeds.
fn note_kept(applied: &Applied) -> Vec<ReloadNote> {
    let notes = applied.kept.iter().map(|server| {
        let why = applied.errors.iter().find(|error| error.server == *server);
        let why = why.map_or("they do not work", |error| error.error.as_str());
        let message = format!(
            "server `{server}` goes on under its old settings, because the new ones do not work: {why}; correct the \
             config or the server, then reload"
        );
        ReloadNote::for_server(server.clone(), message)
    });
    notes.collect()
}

/// How many servers a reload has changed, and how many failed.
fn summary(applied: &Applied) -> String {
    let failed = applied.errors.len().saturating_sub(applied.kept.len());
    let counts = [
        (applied.added.len(), "added"),
        (applied.removed.len(), "removed"),
        (applied.replaced.len(), "replaced"),
        (applied.retuned.len(), "changed"),
        (applied.kept.len(), "kept under their old settings"),
        (failed, "failed"),
        (applied.refused.len(), "refused"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, what)| format!("{count} {what}")).collect();
    match counts.as_slice() {
        [] => "no server changed".to_owned(),
        counts => format!("servers: {}", counts.join(", ")),
    }
}

/// The settings that a running gateway cannot change.
fn fixed_settings(serve: &ServeConfig) -> impl PartialEq {
    (
        (serve.listen.clone(), serve.state_key.clone()),
        (serve.max_connections, serve.max_in_flight, serve.max_body),
        (serve.max_sessions, serve.session_idle, serve.tls.is_some()),
    )
}

/// Returns the config unless something outside of its servers is wrong. A server with errors goes on as it was.
fn check_general_errors(settings: &Settings, config: Config) -> Result<Config, Complaint> {
    let is_general = |problem: &&Problem| problem.server().is_none();
    let errors: Vec<String> = settings
        .loaded
        .errors()
        .filter(is_general)
        .map(ToString::to_string)
        .collect();
    if errors.is_empty() {
        return Ok(config);
    }
    Err(Complaint {
        message: "it has errors".to_owned(),
        hint: Some(errors.join("\n")),
        exit: Exit::Usage,
    })
}
