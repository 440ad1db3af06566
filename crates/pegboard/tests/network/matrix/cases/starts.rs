//! Faults between the start of a server and its handshake.

use pegboard::{
    ServerConfig,
    config::{Command, Transport},
};
use pegboard_testkit::{Fault, When, refused_address, stalled_listener};

use super::{DOWN, RARELY_RETRIED, at_start, cannot_run, case, diagnosis, play};
use crate::{
    matrix::{
        case::{Case, Wire},
        stage::Stage,
    },
    support::*,
    tls_front::Clients,
};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = processes();
    cases.extend(networks());
    cases
}

fn processes() -> Vec<Case> {
    vec![
        case(
            "F001",
            "the program does not exist",
            "the error of exec, and no start until the config changes",
            play!(|stage| {
                let command = Command::new("/nonexistent/program");
                stage.open_at(ServerConfig::new(Transport::Stdio(command))).await;
                let outcome = diagnosis(stage, &["/nonexistent/program", "was not found"]).await;
                tokio::time::sleep(std::time::Duration::from_millis(300)).await;
                format!("{outcome}; {} restarts", stage.status().restarts)
            }),
            "refused unavailable, ran 0; 0 restarts",
        )
        .on("S")
        .within(1_000),
        case(
            "F002",
            "the program exits at once with an error code",
            "the error has the exit code and the end of stderr",
            play!(|stage| {
                let (code, stderr) = (3, "boom-77\n".to_owned());
                at_start(
                    stage,
                    When::default(),
                    Fault::ExitsAtStart { code, stderr },
                    &["3", "boom-77"],
                )
                .await
            }),
            DOWN,
        )
        .on("S")
        .within(1_500),
        case(
            "F003",
            "the program exits at once with code 0",
            "the error has the exit code and the end of stderr",
            play!(|stage| {
                let (code, stderr) = (0, "boom-77\n".to_owned());
                at_start(
                    stage,
                    When::default(),
                    Fault::ExitsAtStart { code, stderr },
                    &["code 0", "boom-77"],
                )
                .await
            }),
            DOWN,
        )
        .on("S")
        .within(1_500),
        case(
            "F004",
            "the server starts and never sends a message",
            "both eras are tried, then the connect timeout ends the start",
            play!(|stage| at_start(stage, When::default(), Fault::SilentHandshake, &[]).await),
            DOWN,
        )
        .on("SM2HW")
        .within(4_000),
        case(
            "F005",
            "the program prompts for input without a newline",
            "the error quotes the prompt",
            play!(|stage| {
                let text = "Ok to proceed? (y) ".to_owned();
                at_start(stage, When::default(), Fault::Prompts { text }, &["Ok to proceed?"]).await
            }),
            DOWN,
        )
        .on("S")
        .within(4_000),
        case(
            "F007",
            "the program forks a daemon and exits",
            "the exit of the main process ends the connection, and the process tree is killed",
            play!(|stage| {
                let (pid_file, keeps_stdout) = (stage.path("pids"), false);
                at_start(
                    stage,
                    When::default(),
                    Fault::ForksAndExits { pid_file, keeps_stdout },
                    &[],
                )
                .await
            }),
            DOWN,
        )
        .on("S")
        .within(2_000),
        cannot_run(
            "F008",
            "the server is a fork bomb",
            "a limit on processes stops it, and the process tree is killed",
            "the limit on processes does not bind root, and without it the bomb would end the machine",
        ),
        cannot_run(
            "F009",
            "no file descriptor is free",
            "that start fails, the other servers live, and a later start works",
            "it takes the descriptors of every other cell of the process",
        ),
    ]
}

fn networks() -> Vec<Case> {
    vec![
        case(
            "F010",
            "the host name does not resolve",
            "unavailable, with the host name",
            play!(|stage| {
                let scheme = if stage.cell.wire == Wire::WebSocket {
                    "ws"
                } else {
                    "http"
                };
                let config = stage.at(endpoint(&format!("{scheme}://nowhere.invalid/mcp")));
                stage.open_at(config).await;
                diagnosis(stage, &["nowhere.invalid"]).await
            }),
            DOWN,
        )
        .on("HLW")
        .within(5_000),
        case(
            "F011",
            "the connection is refused",
            "unavailable, with the address",
            play!(|stage| {
                let address = refused_address().await.unwrap();
                let config = stage.reach(address).await;
                stage.open_at(config).await;
                diagnosis(stage, &["127.0.0.1", "refused"]).await
            }),
            DOWN,
        )
        .on("HLW")
        .within(1_500),
        case(
            "F014",
            "the TLS handshake stalls",
            "the connect timeout ends the start",
            play!(|stage| {
                let (address, guard) = stage.on_servers(async { stalled_listener().await.unwrap() }).await;
                let scheme = if stage.cell.wire == Wire::WebSocket {
                    "wss"
                } else {
                    "https"
                };
                let config = stage.at(endpoint(&format!("{scheme}://{address}/mcp")));
                stage.open_at(config).await;
                let outcome = diagnosis(stage, &[]).await;
                drop(guard);
                outcome
            }),
            DOWN,
        )
        .on("2LW")
        .within(4_000),
        case(
            "F015",
            "the server requires a client certificate, and none is configured",
            "unavailable and not retried; the error names the setting",
            play!(|stage| {
                let net = stage.serve(&stage.fake()).await;
                let http_2 = stage.cell.wire == Wire::Http2;
                let config = stage.reach_secure(net.address(), Clients::Certified, http_2).await;
                stage.open_at(config).await;
                format!(
                    "{}; {} requests",
                    diagnosis(stage, &["client certificate", "`tls.cert`", RARELY_RETRIED]).await,
                    net.requests().len()
                )
            }),
            "refused unavailable, ran 0; 0 requests",
        )
        .on("2LW")
        .within(2_000),
        case(
            "F016",
            "the server redirects to another origin",
            "refused, and the other origin gets no request",
            play!(|stage| {
                let other = stage.serve(&stage.fake()).await;
                let (status, to) = (307, format!("http://{}/mcp", other.address()));
                let outcome = at_start(stage, When::default(), Fault::Redirect { status, to }, &["redirect"]).await;
                format!("{outcome}; {} requests there", other.requests().len())
            }),
            "refused unavailable, ran 0; 0 requests there",
        )
        .on("H2L")
        .within(2_000),
        case(
            "F016b",
            "the server redirects to itself in a loop",
            "refused",
            play!(|stage| {
                let to = if stage.cell.wire == Wire::Sse { "/sse" } else { "/mcp" };
                let (status, to) = (307, to.to_owned());
                at_start(stage, When::default(), Fault::Redirect { status, to }, &["redirect"]).await
            }),
            DOWN,
        )
        .on("H2L")
        .within(2_000),
        case(
            "F017",
            "the URL serves a sign-in page in place of the server",
            "unavailable and not retried, with the start of the page",
            play!(|stage| at_start(stage, When::default(), Fault::HtmlPage, &["text/html", RARELY_RETRIED]).await),
            DOWN,
        )
        .on("H2L")
        .within(2_000),
    ]
}

impl Stage {
    /// Runs a future on the runtime of the servers.
    async fn on_servers<T: Send + 'static>(&self, act: impl Future<Output = T> + Send + 'static) -> T {
        self.servers().spawn(act).await.unwrap()
    }
}
