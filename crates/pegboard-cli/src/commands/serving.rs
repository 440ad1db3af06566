//! What `serve` and `mcp` have in common: a board that keeps running, and the reload of its config.

use std::{
    future::pending,
    net::SocketAddr,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use pegboard::{
    Config, Pegboard, Problem, ServerName,
    config::{ServeConfig, TokenConfig},
};
use pegboard_gateway::{Gateway, GatewayHost, Token};

use crate::{
    cli::Global,
    exit::Exit,
    output::{self, Output},
    settings::{self, Complaint, Settings},
    signals::Hangups,
};

/// How often the config files are checked for changes.
const POLL: Duration = Duration::from_millis(500);

/// What is said when a reload would open the gateway. A file that is half written, or a mistake, must not do that.
const KEPT_TOKENS: &str = "the config has no tokens any more, which would let every client in: those from before stay valid; \
    restart the gateway to serve without tokens";

/// How clients reach the board.
#[derive(Clone, Copy)]
pub(super) enum Door<'a> {
    /// Over HTTP, at these addresses of the command line, or at those of the config if there are none.
    Http(&'a [SocketAddr]),
    /// On stdin and stdout: only the program that started this one.
    Stdio,
}

/// The config to serve with, or why it cannot be served.
pub(super) fn prepare(settings: &Settings, door: Door<'_>) -> Result<Config, Complaint> {
    let mut config = settings.selected()?;
    check_errors(settings)?;
    if let Door::Http(listen) = door {
        if !listen.is_empty() {
            config.serve.listen = listen.to_vec();
        }
        check_addresses(&config)?;
    }
    Ok(config)
}

/// Refuses errors in views and in the settings of the gateway: less would be protected than was meant.
fn check_errors(settings: &Settings) -> Result<(), Complaint> {
    let is_served = |problem: &&Problem| {
        let first = problem.field.split('.').next().unwrap_or_default();
        ["serve", "views"].iter().any(|field| first.eq_ignore_ascii_case(field))
    };
    let errors: Vec<String> = settings
        .loaded
        .errors()
        .filter(is_served)
        .map(ToString::to_string)
        .collect();
    if errors.is_empty() {
        return Ok(());
    }
    Err(Complaint {
        message: "the config of the gateway has errors".to_owned(),
        hint: Some(errors.join("\n")),
        exit: Exit::Usage,
    })
}

/// Refuses addresses that other machines can reach if clients need no token.
fn check_addresses(config: &Config) -> Result<(), Complaint> {
    let open = config.serve.listen.iter().find(|address| !is_loopback(address));
    match open {
        Some(address) if !config.serve.requires_token() => Err(Complaint {
            message: format!("without tokens, {address} would let everyone on the network call every tool"),
            hint: Some(
                "`pegboard token new NAME` makes a token and prints the lines for the config; or listen on 127.0.0.1"
                    .to_owned(),
            ),
            exit: Exit::Usage,
        }),
        _ => Ok(()),
    }
}

/// Fails if the config has no such view.
pub(super) fn check_view(config: &Config, view: &str) -> Result<(), Complaint> {
    if config.views.contains_key(view) {
        return Ok(());
    }
    let known: Vec<&str> = config.views.keys().map(String::as_str).collect();
    Err(Complaint {
        message: format!("there is no view `{view}`"),
        hint: Some(match known.as_slice() {
            [] => format!("the config has no views; `[views.{view}]` adds this one"),
            known => format!(
                "the views are {}; `[views.{view}]` in the config adds this one",
                known.join(", ")
            ),
        }),
        exit: Exit::Usage,
    })
}

/// Opens a board that serves clients. What servers ask goes to the client whose call it belongs to.
pub(super) fn open(config: Config) -> Pegboard {
    settings::lasting_board(config).host(GatewayHost).open()
}

/// The gateway of a board, with the settings of its config.
pub(super) fn gateway(board: &Pegboard) -> Result<Gateway, Complaint> {
    let settings = board.gateway_settings();
    let serve = &settings.serve;
    let builder = Gateway::of_board(board.clone()).map_err(|error| Complaint {
        message: format!("the system has no random numbers: {error}"),
        hint: None,
        exit: Exit::Unavailable,
    })?;
    let mut builder = builder
        .hosts(serve.hosts.clone())
        .origins(serve.origins.clone())
        .max_connections(serve.max_connections)
        .max_in_flight(serve.max_in_flight)
        .max_body(serve.max_body)
        .max_sessions(serve.max_sessions)
        .session_idle(serve.session_idle);
    for token in tokens(serve) {
        builder = builder.token(token);
    }
    if serve.requires_token() {
        builder = builder.require_token();
    }
    Ok(builder.build())
}

fn tokens(serve: &ServeConfig) -> Vec<Token> {
    let one = |(name, config): (&String, &TokenConfig)| {
        let mut token = Token::new(name, config.sha256.to_bytes());
        if let Some(view) = &config.view {
            token = token.view(view);
        }
        match config.expires {
            Some(expires) => token.expires(expires.into()),
            None => token,
        }
    };
    serve.tokens.iter().map(one).collect()
}

/// Whether only programs of this machine can connect to an address.
pub(super) fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Applies the config to a running board when its files change, or when the process gets SIGHUP.
pub(super) struct Reloader<'a> {
    pub(super) global: &'a Global,
    pub(super) output: &'a Output,
    pub(super) board: &'a Pegboard,
    /// The gateway, unless clients are on stdio, and the settings that it was started with.
    pub(super) gateway: Option<(&'a Gateway, &'a ServeConfig)>,
    pub(super) door: Door<'a>,
}

/// What asks for a reload.
pub(super) struct Triggers {
    files: Files,
    hangups: Option<Hangups>,
}

impl Triggers {
    /// Notes how the config files are, and listens for SIGHUP from now on. To be called as soon as the settings are loaded, so that no
    /// change and no signal is missed while the board is opened.
    pub(super) fn listen(settings: &Settings, output: &Output) -> Self {
        let files = Files::of(settings);
        let hangups = Hangups::listen().inspect_err(|error| {
            output.say(&output::warning(&format!("SIGHUP cannot be listened for: {error}")));
        });
        Self {
            files,
            hangups: hangups.ok(),
        }
    }

    async fn next(&mut self) {
        tokio::select! {
            () = heard(self.hangups.as_mut()) => {}
            () = self.files.changed() => {}
        }
    }
}

impl Reloader<'_> {
    /// Reloads until it is dropped.
    pub(super) async fn run(&self, mut triggers: Triggers) {
        loop {
            triggers.next().await;
            // Before they are read, so that a change while they are read leads to another reload.
            let before = triggers.files.looked_at_again();
            triggers.files = match self.reload().await {
                Some(files) => files.since(&before),
                None => before,
            };
        }
    }

    /// Applies the config as it is now. A broken one changes nothing.
    async fn reload(&self) -> Option<Files> {
        let global = self.global.clone();
        // Files may be on a slow disk.
        let settings = tokio::task::spawn_blocking(move || Settings::load(&global)).await;
        let settings = match settings {
            Ok(settings) => settings,
            Err(error) => {
                self.warn(&format!("the config cannot be read again: {error}"));
                return None;
            }
        };
        let files = Files::of(&settings);
        match prepare(&settings, self.door).and_then(|config| whole(&settings, config)) {
            Ok(config) => self.apply(&settings, config).await,
            Err(complaint) => {
                let message = format!("the config is not reloaded, nothing has changed: {}", complaint.message);
                self.output.say(&output::error(&message, complaint.hint.as_deref()));
            }
        }
        Some(files)
    }

    async fn apply(&self, settings: &Settings, mut config: Config) {
        let before = self.board.gateway_settings();
        for problem in &settings.loaded.problems {
            self.warn(&problem.to_string());
        }
        if let Some((_, started)) = self.gateway
            && fixed(&config.serve) != fixed(started)
            && fixed(&config.serve) != fixed(&before.serve)
        {
            self.warn("`listen` and the limits of `serve` take effect at the next start");
        }
        if self.gateway.is_some() && before.serve.requires_token() && !config.serve.requires_token() {
            self.warn(KEPT_TOKENS);
            config.serve.tokens.clone_from(&before.serve.tokens);
            config.serve.unusable_tokens.clone_from(&before.serve.unusable_tokens);
        }
        // The door first: a token that is gone must not use what the new config adds.
        if let Some((gateway, _)) = self.gateway {
            let serve = &config.serve;
            gateway.set_tokens(tokens(serve), serve.requires_token());
            gateway.set_sites(serve.hosts.clone(), serve.origins.clone());
        }
        let applied = self.board.apply(config).await;
        // What is wrong with the config of a server was said above.
        let is_told = |server: &ServerName| {
            let mut errors = settings.loaded.errors();
            errors.any(|problem| problem.server() == Some(server.as_str()))
        };
        for error in applied.errors.iter().filter(|error| !is_told(&error.server)) {
            self.warn(&format!("server `{}`: {}", error.server, error.error));
        }
        let counts = [
            (applied.added.len(), "added"),
            (applied.removed.len(), "removed"),
            (applied.replaced.len(), "replaced"),
            (applied.retuned.len(), "changed"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts.map(|(count, what)| format!("{count} {what}")).collect();
        let servers = match counts.as_slice() {
            [] => "no server changed".to_owned(),
            counts => format!("servers: {}", counts.join(", ")),
        };
        self.output.note(&format!("config reloaded; {servers}"));
    }

    fn warn(&self, message: &str) {
        self.output.say(&output::warning(message));
    }
}

/// The settings that a running gateway cannot change.
fn fixed(serve: &ServeConfig) -> impl PartialEq {
    (
        serve.listen.clone(),
        (serve.max_connections, serve.max_in_flight, serve.max_body),
        (serve.max_sessions, serve.session_idle),
    )
}

/// Returns the config unless something outside of its servers is wrong. A server with errors goes on as it was.
fn whole(settings: &Settings, config: Config) -> Result<Config, Complaint> {
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

async fn heard(hangups: Option<&mut Hangups>) {
    match hangups {
        Some(hangups) => hangups.heard().await,
        None => pending().await,
    }
}

/// The config files, and when each was last written.
struct Files {
    paths: Vec<PathBuf>,
    written: Vec<Written>,
}

/// When a file was last written, and its size; `None` if it cannot be read.
type Written = Option<(SystemTime, u64)>;

impl Files {
    fn of(settings: &Settings) -> Self {
        let loaded = &settings.loaded;
        let sources = loaded.sources.iter().chain(&loaded.unreadable).map(PathBuf::from);
        let mut paths: Vec<PathBuf> = sources.collect();
        paths.sort();
        paths.dedup();
        let written = written(&paths);
        Self { paths, written }
    }

    /// The same files as they are now.
    fn looked_at_again(&self) -> Self {
        Self {
            paths: self.paths.clone(),
            written: written(&self.paths),
        }
    }

    /// These files, each as it was `before` if it was known then.
    fn since(mut self, before: &Self) -> Self {
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
            let now = written(&self.paths);
            if now != self.written && now == last {
                return;
            }
            last = now;
        }
    }
}

fn written(paths: &[PathBuf]) -> Vec<Written> {
    let one = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    paths.iter().map(one).collect()
}
