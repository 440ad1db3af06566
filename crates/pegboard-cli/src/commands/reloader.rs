//! [`Reloader`]: applies the config to a running board when it is asked to.

use std::{pin::pin, sync::Arc, time::Duration};

use pegboard::{
    Config, Pegboard, Problem, ServerName, Timestamp,
    audit::{AdminChange, ChangeOutcome},
    board::{Applied, GatewaySettings},
    config::{RunningSettings, ServeConfig, Withheld},
};
use pegboard_daemon::{FailedReload, ReloadNote, ReloadRequest, Reloads};
use pegboard_gateway::Gateway;

use super::{
    added_servers::AddedServers,
    config_sources::Sources,
    reload_report,
    reload_triggers::{Files, Triggers},
    serving::{Door, prepare, tokens},
    tls_files,
};
use pegboard_base::log_event;

use crate::{
    cli::Global,
    daemon::{self, ConfigDigests, Identified},
    exit::Exit,
    output::{self, Output},
    settings::{Complaint, Settings},
    systemd::Notifier,
};

/// What is said when a reload would open the gateway. A file that is half written, or a mistake, must not do that.
const KEPT_TOKENS: &str = "the config has no tokens any more, which would let every client in: those from before stay valid; \
    restart the gateway to serve without tokens";

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

/// What a reload knows of those before it.
struct Before {
    /// The files of the config that is in effect.
    sources: Sources,
    /// The settings of the whole board that it has.
    running: RunningSettings,
    /// The settings that were said to take effect at the next start.
    told: Withheld,
    /// The tokens and views that the line of the newest reload was about.
    door: Arc<GatewaySettings>,
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

/// A config that was read and may be applied.
struct Checked {
    settings: Settings,
    digests: ConfigDigests,
    read_at: Timestamp,
    config: Config,
    tls: Option<tls_files::Loaded>,
}

/// What asked for a further reload while one is under way.
#[derive(Default)]
struct Further {
    is_wanted: bool,
    requests: Vec<ReloadRequest>,
}

impl Reloader<'_> {
    /// Reloads until it is dropped. `running` are the settings that the board was opened with.
    pub(super) async fn run(&self, mut triggers: Triggers, running: RunningSettings) {
        let mut before = Before {
            sources: std::mem::take(&mut triggers.sources),
            running,
            told: Withheld::default(),
            door: self.board.gateway_settings(),
        };
        let mut further = Further::default();
        loop {
            let mut asked = std::mem::take(&mut further.requests);
            if !std::mem::take(&mut further.is_wanted) {
                asked.extend(triggers.next().await);
            }
            // Before they are read, so that a change while they are read leads to another reload.
            let files_before = triggers.files.stat_again();
            triggers.files = files_before.clone();
            asked.extend(triggers.requests.take_waiting());
            if let Some(notifier) = self.notifier {
                notifier.reloading();
            }
            let Attempt { files, outcome } = self.reload(&mut triggers, &mut before, &mut further).await;
            if let Role::Daemon(daemon) = self.role
                && !further.is_wanted
            {
                daemon.settled();
            }
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
                Some(files) => files.since(&files_before),
                None => files_before,
            };
            for request in asked {
                request.answer(outcome.clone());
            }
        }
    }

    /// Applies the config as it is now. A broken one changes nothing, and `before` is still about the config in effect.
    async fn reload(&self, triggers: &mut Triggers, before: &mut Before, further: &mut Further) -> Attempt {
        let sources = before.sources.clone();
        let _alone = match self.reloads.try_lock_changes() {
            Some(alone) => Some(alone),
            None => {
                self.open_door_early(&sources).await;
                let alone = self.reloads.lock_changes();
                self.while_watching(triggers, &sources, further, alone).await
            }
        };
        let checked = match self.read(&sources).await {
            Ok(checked) => checked,
            Err(failed) => return failed,
        };
        let files = Some(Files::stat(&checked.settings));
        let Checked {
            settings,
            digests,
            read_at,
            mut config,
            tls,
        } = checked;
        self.apply_tls(tls);
        let (mut notes, withheld) = self.apply_settings(&settings, &mut config, before);
        self.note_applying(&digests);
        let applying = self.board.apply_servers(config);
        let applied = self.while_watching(triggers, &sources, further, applying).await;
        notes.extend(self.tell_applied(&settings, &applied, &withheld, before));
        if let Role::Daemon(daemon) = self.role {
            daemon.applied(digests, read_at);
        }
        self.reloads.note_applied_with(&notes, applied);
        before.sources = Sources::new(&settings);
        Attempt { files, outcome: Ok(()) }
    }

    /// Waits for a part of a reload that may take as long as a server needs to start. A token that is removed meanwhile does not last that long:
    /// the door follows each change of the config at once, and its servers follow in a further reload.
    async fn while_watching<T>(
        &self,
        triggers: &mut Triggers,
        sources: &Sources,
        further: &mut Further,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                requests = triggers.next() => {
                    further.is_wanted = true;
                    further.requests.extend(requests);
                    triggers.files = triggers.files.stat_again();
                    self.open_door_early(sources).await;
                }
            }
        }
    }

    /// Lets in whom the config lets in now, before its servers are applied. A config that cannot be applied is reported by the reload that
    /// tries to.
    async fn open_door_early(&self, sources: &Sources) {
        let Ok((settings, digests)) = self.load().await else {
            return;
        };
        if sources.look_unfinished(&settings) {
            return;
        }
        if let Ok((mut config, _)) = self.check(&settings, sources) {
            self.keep_tokens(&mut config);
            self.open_door(&mut config);
            self.note_applying(&digests);
        }
    }

    /// Lets the commands of the user know which config is being applied.
    fn note_applying(&self, digests: &ConfigDigests) {
        if let Role::Daemon(daemon) = self.role {
            daemon.applying(digests);
        }
    }

    /// Reads the config, and reports one that cannot be applied.
    async fn read(&self, sources: &Sources) -> Result<Checked, Attempt> {
        let mut read_at = Timestamp::now();
        let mut loaded = self.load().await;
        if let Ok((settings, _)) = &loaded
            && sources.look_unfinished(settings)
        {
            tokio::time::sleep(A_MOMENT).await;
            read_at = Timestamp::now();
            loaded = self.load().await;
        }
        let (settings, digests) = loaded.map_err(|error| {
            let message = format!("the config cannot be read again: {error}");
            self.warn(&message);
            Attempt {
                files: None,
                outcome: Err(self.reloads.note_failed(&message, None)),
            }
        })?;
        match self.check(&settings, sources) {
            Ok((config, tls)) => Ok(Checked {
                settings,
                digests,
                read_at,
                config,
                tls,
            }),
            Err(complaint) => {
                let message = format!("the config is not reloaded, nothing has changed: {}", complaint.message);
                let hint = complaint.hint.as_deref();
                match self.role {
                    Role::Daemon(_) => {
                        tracing::error!(name: log_event::CONFIG_NOT_RELOADED, hint, "{message}");
                    }
                    Role::Alone | Role::Client => self.output.say(&output::error(&message, hint)),
                }
                Err(Attempt {
                    files: Some(Files::stat(&settings)),
                    outcome: Err(self.reloads.note_failed(&message, hint)),
                })
            }
        }
    }

    /// The config of these settings and the certificate, or why it cannot be applied.
    fn check(&self, settings: &Settings, sources: &Sources) -> Result<(Config, Option<tls_files::Loaded>), Complaint> {
        sources.check(settings)?;
        let config = prepare(settings, self.door)?;
        let config = check_general_errors(settings, config)?;
        let tls = self.certificate(&config)?;
        Ok((config, tls))
    }

    /// Loads the settings, and the digests by which commands find out whether the daemon reads the same files.
    async fn load(&self) -> Result<(Settings, ConfigDigests), tokio::task::JoinError> {
        let (global, added) = (self.global.clone(), self.added.clone());
        // Files may be on a slow disk.
        let loading = tokio::task::spawn_blocking(move || match added {
            Some(added) => added.load(),
            None => {
                let settings = Settings::load(&global);
                let digests = ConfigDigests::new(&settings.loaded.config);
                (settings, digests)
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

    /// Applies what needs no server: whom the gateway lets in, and the views. Returns what of the config is not in effect.
    fn apply_settings(
        &self,
        settings: &Settings,
        config: &mut Config,
        before: &mut Before,
    ) -> (Vec<ReloadNote>, Withheld) {
        for problem in settings.problems() {
            self.warn(&problem.to_string());
        }
        if let Role::Client = self.role {
            daemon::adapt(config);
        }
        let withheld = self.withhold(config, before);
        let mut notes = reload_report::notes(&withheld);
        if self.keep_tokens(config) {
            self.warn(KEPT_TOKENS);
            tracing::warn!("{KEPT_TOKENS}");
            notes.push(ReloadNote::new("tokens", KEPT_TOKENS));
        }
        self.open_door(config);
        (notes, withheld)
    }

    /// Says what a reload has changed, and which servers failed. Returns the notes about servers.
    fn tell_applied(
        &self,
        settings: &Settings,
        applied: &Applied,
        withheld: &Withheld,
        before: &mut Before,
    ) -> Vec<ReloadNote> {
        // What is wrong with the config of a server was said above.
        let is_told = |server: &ServerName| {
            let mut errors = settings.loaded.errors();
            errors.any(|problem| problem.server() == Some(server.as_str()))
        };
        for error in applied.errors.iter().filter(|error| !is_told(&error.server)) {
            self.warn(&format!("server `{}`: {}", error.server, error.error));
            tracing::warn!(name: log_event::CONFIG_SERVER_FAILED, server = %error.server, error = error.error, "a server of the new config failed");
        }
        let kept = note_kept(applied);
        for note in &kept {
            self.warn(&note.message);
        }
        let door = self.board.gateway_settings();
        let doors = (before.door.as_ref(), door.as_ref());
        let line = reload_report::line(applied, doors, self.gateway.is_some(), withheld);
        match self.role {
            Role::Daemon(_) => tracing::info!(name: log_event::CONFIG_RELOADED, "{line}"),
            Role::Alone | Role::Client => self.output.note(&line),
        }
        before.door = door;
        kept
    }

    /// What of a config this board does not apply. It is warned of once for each change.
    fn withhold(&self, config: &Config, before: &mut Before) -> Withheld {
        let withheld = before.running.apply(config);
        if !withheld.settings.is_empty() && withheld.settings != before.told.settings {
            self.warn(&reload_report::at_next_start(&withheld));
        }
        if withheld.misses_required_audit && !before.told.misses_required_audit {
            self.warn(reload_report::UNAUDITED);
            tracing::warn!("{}", reload_report::UNAUDITED);
        }
        before.told.clone_from(&withheld);
        withheld
    }

    /// Puts the tokens from before into a config without any, which would let everyone in. Returns whether it did.
    fn keep_tokens(&self, config: &mut Config) -> bool {
        let before = self.board.gateway_settings();
        let keeps = self.gateway.is_some() && before.serve.requires_token() && !config.serve.requires_token();
        if keeps {
            config.serve.tokens.clone_from(&before.serve.tokens);
            config.serve.unusable_tokens.clone_from(&before.serve.unusable_tokens);
            config.serve.oauth.clone_from(&before.serve.oauth);
            config.serve.public_url.clone_from(&before.serve.public_url);
        }
        keeps
    }

    /// Lets in whom a config lets in, and shows its views. The door first: a token that is gone must not use what the new config adds.
    fn open_door(&self, config: &mut Config) {
        if let Some((gateway, _)) = self.gateway {
            let serve = &config.serve;
            gateway.set_tokens(tokens(serve), serve.requires_token());
            gateway.set_oauth(serve.oauth.as_ref(), serve.public_url.as_deref());
            gateway.set_sites(serve.hosts.clone(), serve.origins.clone());
        }
        self.board.publish_gateway_settings(config);
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
