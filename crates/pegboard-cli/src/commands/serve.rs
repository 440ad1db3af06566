//! `pegboard serve`: all tools at one MCP endpoint over HTTP, until a signal stops it.

use std::{
    future::pending,
    net::SocketAddr,
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use pegboard::{
    Config, Pegboard, ServerName, State, Timestamp,
    config::{AccessLogTarget, RunningSettings, TokenDigest},
    status::ServerStatus,
};
use pegboard_base::log_event;
use pegboard_daemon::{Daemon, Reloads};
use pegboard_gateway::{Gateway, Listeners, Owner};
use pegboard_telemetry::Recorder;
use serde_json::json;
use tokio::{net::TcpListener, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    added_servers::AddedServers,
    command::Run,
    context::{Context, TIMEOUT},
    dashboard_door::DashboardDoor,
    reload_triggers::Triggers,
    reloader::{Reloader, Role},
    replicas,
    serving::{self, Door, GatewayParts, is_loopback},
    tls_files,
};
use crate::{
    access_log::AccessLogWriter,
    cli::{access_log, address, duration},
    daemon::{
        self, Claim, DaemonSocket, Detached, Identified, Identity, NotOccupied, Occupied, OwnerToken, Started,
        random_token, user_id,
    },
    exit::Exit,
    logging::LogUse,
    output::{self, Output, Report, path_text},
    settings::{Complaint, Settings},
    signals::Hangups,
    systemd::{self, Notifier},
    telemetry,
};

/// How often a daemon looks whether its socket and its lock are still there.
const LOOK: Duration = Duration::from_secs(3);

/// How long the calls of a daemon may go on that commands cannot find: as long as a call may take, unless the config says otherwise.
const LAST_CALLS: Duration = Duration::from_secs(600);

/// How often such a daemon looks whether it has calls.
const BETWEEN_CALLS: Duration = Duration::from_millis(100);

/// What is said about an address beyond loopback.
const NO_TLS: &str = "is not encrypted: tokens and results can be read on the network; set `[serve.tls]`, or put a proxy with TLS in front of it";

/// Serve all tools at one MCP endpoint over HTTP
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard serve\n  pegboard serve --listen 127.0.0.1:8080 -c pegboard.toml")]
pub(crate) struct Serve {
    /// Where to listen, such as 127.0.0.1:7337 or only a port; may be
    /// repeated; instead of `listen` of the config
    #[arg(long, value_name = "ADDR", value_parser = address)]
    listen: Vec<SocketAddr>,
    /// Write a line for each request to stderr or a file, or
    /// `off`; instead of `access_log` of the config
    #[arg(long, value_name = "WHERE", value_parser = access_log)]
    access_log: Option<AccessLogTarget>,
    /// Serve the commands of this user only, at no address
    #[arg(long, conflicts_with_all = ["listen", "no_socket"])]
    socket_only: bool,
    /// Leave the commands of this user alone, and other daemons too
    #[arg(long)]
    no_socket: bool,
    /// End after this time without a client
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    idle: Option<Duration>,
    /// Leave the terminal, and keep this log short
    #[arg(long, value_name = "LOG", hide = true)]
    detached: Option<PathBuf>,
    /// Start servers when they are needed
    #[arg(long, hide = true)]
    lazy: bool,
    /// Take the place of this process
    #[arg(long, value_name = "PID", requires = "detached", hide = true)]
    replaces: Option<u32>,
}

impl Run for Serve {
    const LOG: LogUse = LogUse::SERVING;

    async fn run(self, mut context: Context<'_>) -> Exit {
        let detached = self.detached.clone().map(Detached::new);
        let read_at = Timestamp::now();
        let settings = Settings::load(&context.global);
        let (reloads, requests) = Reloads::new();
        let triggers = Triggers::listen(&settings, &context.output, requests);
        let nothing = json!({"addresses": [], "endpoints": [], "socket": null, "token_file": null, "warnings": []});
        let notifier = Notifier::from_environment();
        let passed = match take_passed(&self) {
            Ok(passed) => passed,
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        };
        // The addresses of sockets that are open already count as if they were options.
        let listen = match &passed {
            Some(listeners) => addresses(listeners),
            None => self.listen.clone(),
        };
        let door = match self.socket_only && passed.is_none() {
            true => Door::Socket { is_lazy: self.lazy },
            false => Door::Http(&listen),
        };
        let config = match serving::prepare(&settings, door) {
            Ok(config) => config,
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        };
        if let (true, Err(complaint)) = (detached.is_some(), serving::check_stdout(&config)) {
            return context.refuse(&complaint, &nothing).await;
        }
        let mut occupied = match occupy(&context, &settings, &self).await {
            Ok(occupied) => occupied,
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        };
        let tls = match config.serve.tls.as_ref().map(tls_files::load).transpose() {
            Ok(tls) => tls,
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        };
        // Before any server is started, so that clients can connect at once.
        let listeners = match passed {
            Some(listeners) => Ok(listeners),
            None => bind(&config.serve.listen).await,
        };
        let listeners = match listeners {
            Ok(listeners) => listeners,
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        };
        let sealer = match serving::sealer(&config.serve) {
            Ok(sealer) => sealer,
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        };
        // Other replicas send nothing to a process for the commands of one user.
        let together = match self.socket_only {
            true => Ok(None),
            false => replicas::join(&config.serve, &sealer).await,
        };
        let (replicas, of_replicas) = match together {
            Ok(joined) => joined.map(|joined| (joined.replicas, joined.listener)).unzip(),
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        };
        let addresses = addresses(&listeners);
        let what = what_is_served(&config);
        let running = RunningSettings::new(&config, true);
        let (journal, untold) = occupied.as_mut().and_then(Occupied::take_journal).unzip();
        for call in untold.iter().flat_map(|untold| untold.calls()) {
            context.output.say(&output::warning(&call.to_string()));
        }
        let target = self.access_log.as_ref().unwrap_or(&config.serve.access_log);
        let access_log = match start_access_log(target, &context.output) {
            Ok(access_log) => access_log,
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        };
        // Before clients are told that it listens. If the signal cannot be listened for, the triggers of a reload have said so.
        let hangups = access_log.as_ref().and_then(|_| Hangups::listen().ok());
        let exporter = telemetry::start(&config, &context.output);
        let recorder = Recorder::new(exporter.clone());
        let board = serving::open_noting(config, journal, replicas.as_ref(), &recorder);
        serving::warn_of_unconnected(&board, &context.output, |name| {
            format!(
                "a client of `/mcp/{name}` connects it, as do `pegboard tools --server {name}` and `POST /api/v1/mcp/servers/{name}/reconnect`; or set `start = \"lazy\"`"
            )
        });
        let stop = CancellationToken::new();
        let added = Arc::new(AddedServers::new(context.global.clone()));
        let daemon = Daemon::new(board.clone(), reloads.clone())
            .server_settings(added.clone())
            .stop_with(stop.clone())
            .with_recorder(recorder);
        let (tls, tls_warnings) = tls.map(|loaded| (loaded.tls, loaded.warnings)).unzip();
        let started = Started {
            log: self.detached.clone(),
            idle: self.idle,
        };
        let identified = Identified::new(&settings, read_at, started);
        let has_dashboard = board.gateway_settings().serve.dashboard;
        let (door_of_browsers, wanted_addresses) = DashboardDoor::new(&addresses, tls.is_some(), has_dashboard);
        let local = {
            let (identified, daemon, logs) = (identified.clone(), daemon.clone(), context.logs.clone());
            move |monitor, sessions| {
                let commands = daemon::router(identified, daemon, untold, logs, monitor);
                commands.merge(door_of_browsers.router(sessions))
            }
        };
        let (owner, token_file) = match owner(&context) {
            Ok(owner) => owner,
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        };
        let parts = GatewayParts {
            tls,
            owner,
            exporter: exporter.as_ref(),
            access_log: access_log.as_ref(),
            sealer,
            replicas,
        };
        let gateway = serving::gateway(&daemon, parts, &context.global, local);
        let socket = occupied.as_ref().map(|occupied| occupied.path().to_owned());
        // Where tokens are configured, that of the user counts at the socket only.
        let token_file = token_file.filter(|_| !board.gateway_settings().serve.requires_token());
        let files = Files {
            socket: socket.as_deref(),
            token: token_file.as_deref(),
        };
        announce(&mut context, &settings, &addresses, files, &what, tls_warnings).await;
        context.output.begin_log();
        let is_usable = |server: &&ServerStatus| !matches!(server.state, State::Misconfigured | State::PendingTrust);
        let usable = board.status().servers.iter().filter(is_usable).count();
        tracing::info!(
            name: log_event::GATEWAY_STARTED,
            version = env!("CARGO_PKG_VERSION"),
            addresses = joined(&addresses),
            servers = usable,
            "the gateway has started"
        );
        notifier.ready(&what);
        let started = board.gateway_settings();
        let mut listeners = Listeners::from(listeners);
        if let Some(of_replicas) = of_replicas {
            listeners = listeners.replicas(of_replicas);
        }
        let (place, listeners) = match occupied {
            Some(occupied) => {
                let (place, listeners) = occupied.listen(listeners);
                (Some(place), listeners)
            }
            None => (None, listeners),
        };
        let mut serving = pin!(gateway.serve(listeners, stop.clone().cancelled_owned()));
        let reloader = Reloader {
            global: &context.global,
            added: Some(added),
            output: &context.output,
            board: &board,
            gateway: Some((&gateway, &started.serve)),
            door,
            notifier: Some(&notifier),
            reloads: &reloads,
            role: Role::Daemon(&identified),
        };
        let mut reason = "it was asked to";
        let report = tokio::select! {
            biased;
            () = context.signals.heard() => {
                reason = "a signal";
                Report::new(Exit::Done)
            }
            () = limit(context.global.timeout) => {
                reason = "the timeout passed";
                Report::new(Exit::Timeout).error(reason, Some(TIMEOUT))
            }
            served = &mut serving => match served {
                Ok(()) => Report::new(Exit::Done),
                Err(error) => {
                    reason = "it cannot serve";
                    Report::new(Exit::Usage).error(&error.to_string(), None)
                }
            },
            () = reloader.run(triggers, running) => Report::new(Exit::Done),
            () = wanted_addresses.listen(&gateway, &stop) => Report::new(Exit::Done),
            () = notifier.feed_watchdog() => Report::new(Exit::Done),
            why = wait_until_unused(&gateway, &self, &settings) => {
                reason = why;
                Report::new(Exit::Done)
            }
            why = wait_until_lost(place.as_ref(), &board, &self, &context.output) => {
                reason = why;
                Report::new(Exit::Done)
            }
            () = follow_hangups(access_log.as_ref(), hangups) => Report::new(Exit::Done),
            () = keep_log_short(detached.as_ref()) => Report::new(Exit::Done),
        };
        tracing::info!(name: log_event::GATEWAY_STOPPING, reason, "the gateway stops");
        notifier.stopping();
        if !stop.is_cancelled() && report.exit != Exit::Usage {
            stop.cancel();
            // Requests in flight are answered. A second signal does not wait for them.
            tokio::select! {
                _ = &mut serving => {}
                () = context.signals.heard() => {}
                () = notifier.feed_watchdog() => {}
            }
        }
        let exit = context.close(&board, report).await;
        tracing::info!(name: log_event::GATEWAY_STOPPED, "the gateway has stopped");
        if let Some(access_log) = access_log {
            access_log.flush().await;
        }
        if let Some(exporter) = exporter {
            exporter.stop().await;
        }
        drop(place);
        exit
    }
}

/// Makes this process the daemon of its config, unless the user does not want that or there is no room for a socket.
async fn occupy(context: &Context<'_>, settings: &Settings, options: &Serve) -> Result<Option<Occupied>, Complaint> {
    if options.no_socket {
        return Ok(None);
    }
    let claim = match options.detached {
        Some(_) => Claim::Background {
            replaces: options.replaces,
        },
        None => Claim::User,
    };
    let identity = Identity::for_daemon(&context.global, settings);
    match daemon::occupy(&identity, claim, |note| context.output.note(&note)).await {
        Ok(occupied) => Ok(Some(occupied)),
        Err(NotOccupied::Refused(complaint)) => Err(complaint),
        Err(NotOccupied::Impossible(why)) if options.socket_only => Err(Complaint {
            message: format!("there is no room for the socket: {why}"),
            hint: None,
            exit: Exit::Usage,
        }),
        Err(NotOccupied::Impossible(why)) => {
            context
                .output
                .note(&format!("the commands of this user cannot use this daemon: {why}"));
            Ok(None)
        }
    }
}

/// The user who runs this gateway, and the file of that user's token. Without a path for the file, no caller is admitted by a token.
fn owner(context: &Context<'_>) -> Result<(Owner, Option<PathBuf>), Complaint> {
    let (text, path) = match OwnerToken::open_or_create() {
        Ok(token) => (token.text, Some(token.path)),
        Err(why) => {
            context.output.note(&format!(
                "requests that change what runs are refused without tokens in the config: there is no place for the token of this user: {why}"
            ));
            let random = random_token().map_err(|error| Complaint {
                message: format!("the system has no random numbers: {error}"),
                hint: None,
                exit: Exit::Unavailable,
            });
            (random?, None)
        }
    };
    Ok((Owner::new(user_id(), TokenDigest::compute(&text).to_bytes()), path))
}

/// The files by which the commands of this user reach the gateway.
#[derive(Clone, Copy)]
struct Files<'a> {
    socket: Option<&'a Path>,
    token: Option<&'a Path>,
}

/// Waits until there has been no client for as long as `--idle` says. A daemon in the background also ends when its config files are gone and
/// it has no client. Returns the reason.
async fn wait_until_unused(gateway: &Gateway, options: &Serve, settings: &Settings) -> &'static str {
    let Some(limit) = options.idle else {
        return pending().await;
    };
    let pause = (limit / 10).clamp(Duration::from_millis(10), Duration::from_secs(5));
    let files = &settings.loaded.sources;
    let follows_files = options.detached.is_some() && files.iter().any(|file| Path::new(file).exists());
    let (mut last, mut quiet_since) = (gateway.traffic(), Instant::now());
    while quiet_since.elapsed() < limit {
        tokio::time::sleep(pause).await;
        let now = gateway.traffic();
        if follows_files && now.open == 0 && !files.iter().any(|file| Path::new(file).exists()) {
            return "its config files are gone";
        }
        if now.open > 0 || now.accepted != last.accepted {
            (last, quiet_since) = (now, Instant::now());
        }
    }
    "no client has been there for the time that `--idle` sets"
}

/// Waits until commands cannot find this daemon any more, because its lock or its socket was removed: they start another one. One in the background
/// then ends, once its calls in flight have ended. Returns the reason.
async fn wait_until_lost(
    place: Option<&DaemonSocket>,
    board: &Pegboard,
    options: &Serve,
    output: &Output,
) -> &'static str {
    let Some(place) = place else {
        return pending().await;
    };
    while place.is_there() {
        tokio::time::sleep(LOOK).await;
    }
    if options.detached.is_none() {
        output.say(&output::warning(
            "the socket or the lock of this daemon was removed, so commands of this user no longer find it until it is started again",
        ));
        return pending().await;
    }
    let lost_at = Instant::now();
    let has_calls = || board.status().servers.iter().any(|server| server.in_flight > 0);
    while has_calls() && lost_at.elapsed() < LAST_CALLS {
        tokio::time::sleep(BETWEEN_CALLS).await;
    }
    "its socket or its lock was removed, so that commands cannot find it"
}

/// Starts the access log, if there is to be one.
fn start_access_log(target: &AccessLogTarget, output: &Output) -> Result<Option<AccessLogWriter>, Complaint> {
    AccessLogWriter::start(target, output).map_err(|error| Complaint {
        message: format!("the access log cannot be written: {error}"),
        hint: Some(
            "`access_log` of `[serve]` and `--access-log` name a file in a folder that only this user may write to"
                .to_owned(),
        ),
        exit: Exit::Usage,
    })
}

async fn follow_hangups(access_log: Option<&AccessLogWriter>, hangups: Option<Hangups>) {
    match (access_log, hangups) {
        (Some(access_log), Some(hangups)) => access_log.follow(hangups).await,
        _ => pending().await,
    }
}

async fn keep_log_short(detached: Option<&Detached>) {
    match detached {
        Some(detached) => detached.keep_log_short().await,
        None => pending().await,
    }
}

/// The listeners that systemd opened for this process, if any.
fn take_passed(options: &Serve) -> Result<Option<Vec<TcpListener>>, Complaint> {
    let complaint = |message: String, hint: &str| Complaint {
        message,
        hint: Some(hint.to_owned()),
        exit: Exit::Usage,
    };
    let unusable = "check the `.socket` unit that starts this service";
    let Some(listeners) = systemd::passed_listeners().map_err(|message| complaint(message, unusable))? else {
        return Ok(None);
    };
    if !options.listen.is_empty() {
        let message = "systemd has opened the sockets already, so `--listen` has no effect".to_owned();
        return Err(complaint(message, "remove the option, or the `.socket` unit"));
    }
    let listeners = listeners.into_iter().map(TcpListener::from_std);
    let listeners: Result<Vec<_>, _> = listeners.collect();
    let failed = |error| complaint(format!("a socket of systemd cannot be used: {error}"), unusable);
    listeners.map(Some).map_err(failed)
}

fn addresses(listeners: &[TcpListener]) -> Vec<SocketAddr> {
    let addresses = listeners.iter().filter_map(|listener| listener.local_addr().ok());
    addresses.collect()
}

/// Addresses for the log; `None` if there are none.
fn joined(addresses: &[SocketAddr]) -> Option<String> {
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    (!addresses.is_empty()).then(|| addresses.join(", "))
}

async fn bind(wanted: &[SocketAddr]) -> Result<Vec<TcpListener>, Complaint> {
    let mut listeners = Vec::new();
    for address in wanted {
        let listener = TcpListener::bind(address).await.map_err(|error| Complaint {
            message: format!("cannot listen on {address}: {error}"),
            hint: Some("`--listen ADDR` takes another address; port 0 is any free port".to_owned()),
            exit: Exit::Usage,
        })?;
        listeners.push(listener);
    }
    Ok(listeners)
}

/// Waits for the limit of the whole command, if there is one.
async fn limit(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => pending().await,
    }
}

/// The most servers that the start-up line names.
const NAMED: usize = 10;

fn what_is_served(config: &Config) -> String {
    let names: Vec<&str> = config.servers.keys().map(ServerName::as_str).collect();
    let named = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let servers = match names.len() {
        0 => match config.misconfigured.len() {
            0 => "serving no server".to_owned(),
            1 => "serving no server: the one of the config cannot be used".to_owned(),
            count => format!("serving no server: the {count} of the config cannot be used"),
        },
        1 => format!("serving 1 server: {named}"),
        count if count > NAMED => format!("serving {count} servers: {named}, …"),
        count => format!("serving {count} servers: {named}"),
    };
    let views: Vec<&str> = config.views.keys().map(String::as_str).collect();
    match views.as_slice() {
        [] => servers,
        views => format!("{servers}; views: {}", views.join(", ")),
    }
}

/// Says where it listens and what it serves: to people on stderr, to programs in one document on stdout.
///
/// `tls_warnings` are those about its certificate; `None` means that it speaks HTTP.
async fn announce(
    context: &mut Context<'_>,
    settings: &Settings,
    addresses: &[SocketAddr],
    files: Files<'_>,
    what: &str,
    tls_warnings: Option<Vec<String>>,
) {
    let scheme = if tls_warnings.is_some() { "https" } else { "http" };
    let endpoints: Vec<String> = addresses
        .iter()
        .map(|address| format!("{scheme}://{address}/mcp"))
        .collect();
    let open = addresses.iter().filter(|address| !is_loopback(address));
    let of_address = |address: &SocketAddr| format!("http://{address} {NO_TLS}");
    let unsafe_ones = tls_warnings.unwrap_or_else(|| open.map(of_address).collect());
    for warning in &unsafe_ones {
        context.output.say(&output::warning(warning));
    }
    if context.output.is_json() {
        let warnings: Vec<String> = settings.warnings().chain(unsafe_ones).collect();
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let document = json!({"addresses": addresses, "endpoints": endpoints, "socket": files.socket.map(path_text), "token_file": files.token.map(path_text), "warnings": warnings});
        context.print(Report::json(Exit::Done, &document)).await;
        return;
    }
    settings.announce(&context.output);
    if let Some(note) = settings.unused_hosts_note() {
        context.output.note(&note);
    }
    for endpoint in endpoints {
        context.output.note(&format!("listening on {endpoint}"));
    }
    if let Some(socket) = files.socket {
        context.output.note(&format!(
            "listening on {} for the commands of this user",
            socket.display()
        ));
    }
    if let Some(token) = files.token.filter(|_| !addresses.is_empty()) {
        context.output.note(&format!(
            "this user needs no token for tools; changes over HTTP need the one in {}",
            token.display()
        ));
    }
    context.output.note(what);
}
