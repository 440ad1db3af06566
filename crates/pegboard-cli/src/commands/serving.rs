//! What `serve` and `mcp` have in common: a config that can be served, the board that keeps running, and its gateway.

use std::{net::SocketAddr, sync::Arc};

use axum::Router;
use pegboard::{
    Builder, Config, Pegboard, Problem, ServerName,
    config::{AuditTarget, ServeConfig, ServeMetrics, Start, TokenConfig},
    metrics::MetricLabels,
    url::{Host, Url},
};
use pegboard_daemon::Daemon;
use pegboard_dashboard::Dashboard;
use pegboard_gateway::{
    BrowserSessions, Gateway, GatewayHost, Monitor, Owner, Replicas, Scope, Scopes, Sealer, Tls, Token,
};
use pegboard_telemetry::{Exporter, Recorder};

use super::{shown_config, state_key};
use crate::{
    access_log::AccessLogWriter,
    cli::Global,
    daemon::CallsInFlight,
    exit::Exit,
    output::{self, Output},
    settings::{self, Complaint, Settings},
};

/// How clients reach the board.
#[derive(Clone, Copy)]
pub(super) enum Door<'a> {
    /// Over HTTP, at these addresses of the command line, or at those of the config if there are none.
    Http(&'a [SocketAddr]),
    /// At the local socket only: the commands of this user. If it `is_lazy`, servers start when a command needs
    /// them, which waits for them as it would without the daemon.
    Socket { is_lazy: bool },
    /// On stdin and stdout: only the program that started this one.
    Stdio,
}

/// The config to serve with, or why it cannot be served.
pub(super) fn prepare(settings: &Settings, door: Door<'_>) -> Result<Config, Complaint> {
    let mut config = settings.selected_config()?;
    check_errors(settings)?;
    if let Door::Stdio = door {
        check_stdout(&config)?;
    }
    if let Door::Http(listen) = door {
        if !listen.is_empty() {
            config.serve.listen = listen.to_vec();
        }
        check_addresses(&config)?;
        check_public_url(&config)?;
    }
    if let Door::Socket { is_lazy } = door {
        config.serve.listen.clear();
        let eager = config
            .servers
            .values_mut()
            .filter(|server| server.start == Start::Eager);
        for server in eager.filter(|_| is_lazy) {
            server.start = Start::Lazy;
        }
        if is_lazy {
            settings.await_starts(&mut config);
        }
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

/// Refuses an audit log on stdout where stdout has the messages of the protocol, or leads nowhere.
pub(super) fn check_stdout(config: &Config) -> Result<(), Complaint> {
    let is_on_stdout = config
        .audit
        .as_ref()
        .is_some_and(|audit| audit.to == AuditTarget::Stdout);
    if !is_on_stdout {
        return Ok(());
    }
    Err(Complaint {
        message: "`audit.to = \"stdout\"` is for `pegboard serve` in the foreground only".to_owned(),
        hint: Some("`audit = \"FILE\"`, or `audit = { to = \"syslog\" }`, is for all commands".to_owned()),
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

/// Refuses a public name if clients need no token: the proxy behind it runs as this user, whom the gateway serves without one, and so does
/// everyone who reaches the proxy.
fn check_public_url(config: &Config) -> Result<(), Complaint> {
    let Some(url) = config
        .serve
        .public_url
        .as_ref()
        .filter(|_| !config.serve.requires_token())
    else {
        return Ok(());
    };
    if Url::parse(url).is_ok_and(|url| is_of_this_machine(&url)) {
        return Ok(());
    }
    Err(Complaint {
        message: format!(
            "without tokens, everyone who reaches {url} could call every tool: what comes through a proxy of this user counts as this user"
        ),
        hint: Some(
            "`pegboard token new NAME` makes a token and prints the lines for the config; or remove `serve.public_url`"
                .to_owned(),
        ),
        exit: Exit::Usage,
    })
}

/// Whether a URL is one of this machine alone.
fn is_of_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
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
pub(super) fn open(config: Config, exporter: Option<&Exporter>) -> Pegboard {
    with_telemetry(settings::serving_board(config), exporter)
        .host(GatewayHost)
        .open()
}

/// Lets the board report its calls.
pub(super) fn with_telemetry(builder: Builder, exporter: Option<&Exporter>) -> Builder {
    match exporter {
        Some(exporter) => builder.telemetry(exporter.clone()),
        None => builder,
    }
}

/// The most endpoints whose calls are counted.
const MAX_VIEWS: usize = 500;

/// Opens the board of a daemon, which notes the calls in flight and has a page of metrics.
pub(super) fn open_noting(
    config: Config,
    journal: Option<CallsInFlight>,
    replicas: Option<&Replicas>,
    recorder: &Recorder,
) -> Pegboard {
    let ServeMetrics {
        max_tools,
        max_principals,
        ..
    } = config.serve.metrics;
    // The labels of views are endpoints, of which the config has few.
    let labels = MetricLabels::new(max_tools, max_principals, MAX_VIEWS);
    let mut builder = settings::serving_board(config)
        .metric_labels(labels)
        .telemetry(recorder.clone())
        .host(GatewayHost);
    if let Some(replicas) = replicas {
        builder = builder.shared_rates(replicas.clone());
    }
    match journal {
        Some(journal) => builder.journal(journal).open(),
        None => builder.open(),
    }
}

/// Warns of `explicit` servers that are not connected yet: no client is offered their tools.
pub(super) fn warn_of_unconnected(board: &Pegboard, output: &Output, advice: impl Fn(&ServerName) -> String) {
    let rows = board.status().servers;
    for row in rows.iter().filter(|row| row.awaits_connect) {
        let name = &row.name;
        output.say(&output::warning(&format!(
            "server `{name}` is not connected, so its tools are offered to nobody: its config says `start = \"explicit\"`; {}",
            advice(name)
        )));
    }
}

/// What seals the state that clients keep.
pub(super) fn sealer(serve: &ServeConfig) -> Result<Arc<Sealer>, Complaint> {
    state_key::sealer(serve).map(Arc::new).map_err(|error| Complaint {
        message: format!("the system has no random numbers: {error}"),
        hint: None,
        exit: Exit::Unavailable,
    })
}

/// What a gateway has besides the settings of its config.
pub(super) struct GatewayParts<'a> {
    pub(super) tls: Option<Tls>,
    pub(super) owner: Owner,
    pub(super) exporter: Option<&'a Exporter>,
    pub(super) access_log: Option<&'a AccessLogWriter>,
    pub(super) sealer: Arc<Sealer>,
    pub(super) replicas: Option<Replicas>,
}

/// The gateway of a daemon, with the settings of its config.
pub(super) fn gateway(
    daemon: &Daemon,
    parts: GatewayParts<'_>,
    global: &Global,
    more: impl FnOnce(Monitor, BrowserSessions) -> Router,
) -> Gateway {
    let GatewayParts {
        tls,
        owner,
        exporter,
        access_log,
        sealer,
        replicas,
    } = parts;
    let board = daemon.board();
    let settings = board.gateway_settings();
    let serve = &settings.serve;
    let builder = Gateway::for_board_with(board.clone(), sealer);
    let more = more(builder.monitor(), builder.browser_sessions());
    let daemon = daemon.clone().with_monitor(builder.monitor());
    if let Some(exporter) = exporter {
        let observed = daemon.clone();
        exporter.collect(move || observed.metrics());
    }
    let sessions = builder.browser_sessions();
    let has_dashboard = serve.dashboard;
    let routes = daemon
        .with_sign_in_links(builder.sign_in_links())
        .router_with(|api| match has_dashboard {
            true => Dashboard::new(api, sessions)
                .config(shown_config::reader(global.clone()))
                .scores(shown_config::scores(global.clone()))
                .router(),
            false => Router::new(),
        });
    let mut builder = builder
        .fallback(routes.merge(more))
        .owner(owner)
        .hosts(serve.hosts.clone())
        .origins(serve.origins.clone())
        .max_connections(serve.max_connections)
        .max_in_flight(serve.max_in_flight)
        .max_body(serve.max_body)
        .max_sessions(serve.max_sessions)
        .session_idle(serve.session_idle);
    if let Some(access_log) = access_log {
        builder = builder.access_log(Arc::new(access_log.clone()));
    }
    if let Some(tls) = tls {
        builder = builder.tls(tls);
    }
    if let Some(replicas) = replicas {
        builder = builder.replicas(replicas);
    }
    for token in tokens(serve) {
        builder = builder.token(token);
    }
    if serve.requires_token() {
        builder = builder.require_token();
    }
    if let Some(url) = &serve.public_url {
        builder = builder.public_url(url);
    }
    if let Some(oauth) = &serve.oauth {
        builder = builder.oauth(oauth.clone());
    }
    builder.build()
}

pub(super) fn tokens(serve: &ServeConfig) -> Vec<Token> {
    let one = |(name, config): (&String, &TokenConfig)| {
        let scopes: Scopes = config
            .scopes
            .iter()
            .filter_map(|scope| Scope::from_config(*scope))
            .collect();
        let mut token = Token::new(name, config.sha256.to_bytes()).scopes(scopes);
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
