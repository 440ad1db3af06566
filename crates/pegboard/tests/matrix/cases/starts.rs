//! Faults between the start of a server and its first listing.

use pegboard::{Command, ServerConfig, State, Transport};
use pegboard_testkit::{Era, Fault, Refusal, When, refused_address, stalled_listener};

use super::{BOTH, CUT, DOWN, EVERY, TIMEOUT, UNREADABLE, WEB, at_start, cannot_run, on_call, play, told};
use crate::{
    case::{Case, Wire},
    secure::Clients,
    stage::Stage,
    support::*,
};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = processes();
    cases.extend(networks());
    cases.extend(handshakes());
    cases
}

fn processes() -> Vec<Case> {
    vec![
        Case {
            id: "F001",
            fault: "the program does not exist",
            must: "the error of exec, and no start until the config changes",
            wires: "S",
            eras: BOTH,
            bound: 1_000,
            how: play!(|stage| {
                let command = Command::new("/nonexistent/program");
                stage.open_at(ServerConfig::new(Transport::Stdio(command))).await;
                let word = told(stage, &["/nonexistent/program", "was not found"]).await;
                tokio::time::sleep(std::time::Duration::from_millis(300)).await;
                format!("{word}; {} restarts", stage.status().restarts)
            }),
            ends: &[("", "", "refused unavailable, ran 0; 0 restarts")],
        },
        Case {
            id: "F002",
            fault: "exits at once with a code",
            must: "the code and the end of stderr",
            wires: "S",
            eras: BOTH,
            bound: 1_500,
            how: play!(|stage| {
                let (code, stderr) = (3, "boom-77\n".to_owned());
                at_start(
                    stage,
                    When::default(),
                    Fault::ExitsAtStart { code, stderr },
                    &["3", "boom-77"],
                )
                .await
            }),
            ends: &[("", "", DOWN)],
        },
        Case {
            id: "F003",
            fault: "exits at once with code 0",
            must: "the code and the end of stderr",
            wires: "S",
            eras: BOTH,
            bound: 1_500,
            how: play!(|stage| {
                let (code, stderr) = (0, "boom-77\n".to_owned());
                at_start(
                    stage,
                    When::default(),
                    Fault::ExitsAtStart { code, stderr },
                    &["code 0", "boom-77"],
                )
                .await
            }),
            ends: &[("", "", DOWN)],
        },
        Case {
            id: "F004",
            fault: "starts and stays silent",
            must: "both eras are tried, then the connect limit ends it",
            wires: "SM2HW",
            eras: BOTH,
            bound: 4_000,
            how: play!(|stage| at_start(stage, When::default(), Fault::SilentHandshake, &[]).await),
            ends: &[("", "", DOWN)],
        },
        Case {
            id: "F005",
            fault: "asks a question without a newline",
            must: "the error quotes the question",
            wires: "S",
            eras: BOTH,
            bound: 4_000,
            how: play!(|stage| {
                let text = "Ok to proceed? (y) ".to_owned();
                at_start(stage, When::default(), Fault::Prompts { text }, &["Ok to proceed?"]).await
            }),
            ends: &[("", "", DOWN)],
        },
        Case {
            id: "F007",
            fault: "forks a daemon and exits",
            must: "the end of the main process ends the connection, and the tree is killed",
            wires: "S",
            eras: BOTH,
            bound: 2_000,
            how: play!(|stage| {
                let (pid_file, keeps_stdout) = (stage.path("pids"), false);
                at_start(
                    stage,
                    When::default(),
                    Fault::ForksAndExits { pid_file, keeps_stdout },
                    &[],
                )
                .await
            }),
            ends: &[("", "", DOWN)],
        },
        cannot_run(
            "F008",
            "fork bomb",
            "a limit on processes stops it, and the tree is killed",
            "the limit on processes does not bind root, and without it the bomb would end the machine",
        ),
        cannot_run(
            "F009",
            "no descriptor is left",
            "that start fails, the other servers live, and a later start works",
            "it takes the descriptors of every other cell of the process",
        ),
    ]
}

fn networks() -> Vec<Case> {
    vec![
        Case {
            id: "F010",
            fault: "the name of the host does not resolve",
            must: "unavailable, with the name",
            wires: "HLW",
            eras: BOTH,
            bound: 5_000,
            how: play!(|stage| {
                let scheme = if stage.cell.wire == Wire::WebSocket {
                    "ws"
                } else {
                    "http"
                };
                let config = stage.at(endpoint(&format!("{scheme}://nowhere.invalid/mcp")));
                stage.open_at(config).await;
                told(stage, &["nowhere.invalid"]).await
            }),
            ends: &[("", "", DOWN)],
        },
        Case {
            id: "F011",
            fault: "connection refused",
            must: "unavailable, with the address",
            wires: "HLW",
            eras: BOTH,
            bound: 1_500,
            how: play!(|stage| {
                let address = refused_address().await.unwrap();
                let config = stage.reach(address).await;
                stage.open_at(config).await;
                told(stage, &["127.0.0.1", "refused"]).await
            }),
            ends: &[("", "", DOWN)],
        },
        Case {
            id: "F014",
            fault: "the TLS handshake stalls",
            must: "the connect limit ends it",
            wires: "2LW",
            eras: BOTH,
            bound: 4_000,
            how: play!(|stage| {
                let (address, guard) = stage.on_servers(async { stalled_listener().await.unwrap() }).await;
                let scheme = if stage.cell.wire == Wire::WebSocket {
                    "wss"
                } else {
                    "https"
                };
                let config = stage.at(endpoint(&format!("{scheme}://{address}/mcp")));
                stage.open_at(config).await;
                let word = told(stage, &[]).await;
                drop(guard);
                word
            }),
            ends: &[("", "", DOWN)],
        },
        Case {
            id: "F015",
            fault: "the server asks for a client certificate, and there is none",
            must: "unavailable and not tried again; the setting of the client certificate is named",
            wires: "2LW",
            eras: BOTH,
            bound: 2_000,
            how: play!(|stage| {
                let net = stage.serve(&stage.fake()).await;
                let http_2 = stage.cell.wire == Wire::Http2;
                let config = stage.reach_secure(net.address(), Clients::Certified, http_2).await;
                stage.open_at(config).await;
                format!(
                    "{}; {} requests",
                    told(stage, &["client certificate", "`tls.cert`", ONCE]).await,
                    net.requests().len()
                )
            }),
            ends: &[("", "", "refused unavailable, ran 0; 0 requests")],
        },
        Case {
            id: "F016",
            fault: "redirects to another origin",
            must: "refused, and the other origin hears nothing",
            wires: "H2L",
            eras: BOTH,
            bound: 2_000,
            how: play!(|stage| {
                let other = stage.serve(&stage.fake()).await;
                let (status, to) = (307, format!("http://{}/mcp", other.address()));
                let word = at_start(stage, When::default(), Fault::Redirect { status, to }, &["redirect"]).await;
                format!("{word}; {} requests there", other.requests().len())
            }),
            ends: &[("", "", "refused unavailable, ran 0; 0 requests there")],
        },
        Case {
            id: "F016b",
            fault: "redirects to itself without end",
            must: "refused",
            wires: "H2L",
            eras: BOTH,
            bound: 2_000,
            how: play!(|stage| {
                let to = if stage.cell.wire == Wire::Sse { "/sse" } else { "/mcp" };
                let (status, to) = (307, to.to_owned());
                at_start(stage, When::default(), Fault::Redirect { status, to }, &["redirect"]).await
            }),
            ends: &[("", "", DOWN)],
        },
        Case {
            id: "F017",
            fault: "a sign-in page instead of the server",
            must: "unavailable and not tried again, with the beginning of the page",
            wires: "H2L",
            eras: BOTH,
            bound: 2_000,
            how: play!(|stage| at_start(stage, When::default(), Fault::HtmlPage, &["text/html", ONCE]).await),
            ends: &[("", "", DOWN)],
        },
    ]
}

/// What is told of a server that is not started again by itself.
pub(super) const ONCE: &str = "it is not tried again before it is reconnected";

fn handshakes() -> Vec<Case> {
    vec![
        Case {
            id: "F018",
            fault: "an older server answers the probe for the newest era with an odd error",
            must: "initialize follows, and the call works",
            wires: "SMW",
            eras: "l",
            bound: 3_000,
            how: play!(|stage| {
                let fake = stage.fake().on_discover(Refusal::Error { code: -32000 });
                stage.open(&fake).await;
                stage.call().await
            }),
            ends: &[("", "", "ok, ran 1")],
        },
        Case {
            id: "F020",
            fault: "an older server answers the probe for the newest era with 400 and no body",
            must: "initialize follows, and the call works",
            wires: WEB,
            eras: "l",
            bound: 3_000,
            how: play!(|stage| {
                let fault = status(400, "");
                let fake = stage.fake().fault_on(When::method("server/discover"), fault);
                stage.open(&fake).await;
                stage.call().await
            }),
            ends: &[("", "", "ok, ran 1")],
        },
        Case {
            id: "F021",
            fault: "a server of 2024-11-05 refuses POST with 405",
            must: "the older transport is used",
            wires: "L",
            eras: "l",
            bound: 3_000,
            how: play!(|stage| {
                let net = stage.serve(&stage.fake()).await;
                stage.addresses.push(net.address());
                stage.open_at(at(&net.url())).await;
                stage.call().await
            }),
            ends: &[("", "", "ok, ran 1")],
        },
        Case {
            id: "F022",
            fault: "the endpoint event never comes",
            must: "the connect limit ends it",
            wires: "L",
            eras: "l",
            bound: 4_000,
            how: play!(|stage| at_start(stage, When::default(), Fault::NoEndpoint, &["did not name an address"]).await),
            ends: &[("", "", DOWN)],
        },
        Case {
            id: "F023",
            fault: "the endpoint event names another origin",
            must: "refused, and the other origin hears nothing",
            wires: "L",
            eras: "l",
            bound: 2_000,
            how: play!(|stage| {
                let other = stage.serve(&stage.fake()).await;
                let url = format!("http://{}/messages?session=SESSION", other.address());
                let word = at_start(
                    stage,
                    When::default(),
                    Fault::Endpoint { url },
                    &["nothing is sent there"],
                )
                .await;
                format!("{word}; {} requests there", other.requests().len())
            }),
            ends: &[("", "", "refused unavailable, ran 0; 0 requests there")],
        },
        Case {
            id: "F026",
            fault: "an answer under another number",
            must: "it reaches no call; over HTTP it cannot be for another one, and the call ends at once",
            wires: EVERY,
            eras: BOTH,
            bound: 2_500,
            how: play!(|stage| on_call(stage, Fault::WrongId).await),
            ends: &[("H2", "", UNREADABLE), ("", "", TIMEOUT)],
        },
        Case {
            id: "F026b",
            fault: "an answer under the id as a string",
            must: "it reaches no call",
            wires: EVERY,
            eras: BOTH,
            bound: 2_500,
            how: play!(|stage| on_call(stage, Fault::StringId).await),
            ends: &[("H2", "", UNREADABLE), ("", "", TIMEOUT)],
        },
        Case {
            id: "F026c",
            fault: "an answer under the id as a float",
            must: "it reaches no call",
            wires: EVERY,
            eras: BOTH,
            bound: 2_500,
            how: play!(|stage| on_call(stage, Fault::FloatId).await),
            ends: &[("H2", "", UNREADABLE), ("", "", TIMEOUT)],
        },
        Case {
            id: "F026d",
            fault: "an answer without an id",
            must: "it reaches no call",
            wires: EVERY,
            eras: BOTH,
            bound: 2_500,
            how: play!(|stage| on_call(stage, Fault::MissingId).await),
            ends: &[("H2", "", UNREADABLE), ("", "", TIMEOUT)],
        },
        Case {
            id: "F026e",
            fault: "an answer with the id null",
            must: "it reaches no call",
            wires: EVERY,
            eras: BOTH,
            bound: 2_500,
            how: play!(|stage| on_call(stage, Fault::NullId).await),
            ends: &[("H2", "", UNREADABLE), ("", "", TIMEOUT)],
        },
        Case {
            id: "F026f",
            fault: "the handshake is answered under another number",
            must: "unavailable within the connect limit",
            wires: EVERY,
            eras: BOTH,
            bound: 4_000,
            how: play!(|stage| {
                let when = if stage.cell.era == crate::case::Era::Legacy {
                    "initialize"
                } else {
                    "server/discover"
                };
                at_start(stage, When::method(when), Fault::WrongId, &[]).await
            }),
            ends: &[("", "", DOWN)],
        },
        Case {
            id: "F027",
            fault: "the era changes with a restart",
            must: "the server is asked again, and the next call is made in the new era",
            wires: "SMH2W",
            eras: BOTH,
            bound: 3_000,
            how: play!(|stage| {
                let other = if stage.cell.era == crate::case::Era::Legacy {
                    Era::Modern
                } else {
                    Era::Legacy
                };
                let dying = stage.fake().fault(Fault::DiesAfterExecuting { code: 1 });
                let fake = dying.then_after(1, stage.fake_of(other));
                stage.open(&fake).await;
                stage.warm().await;
                let first = stage.call().await;
                format!("{first}; {}", stage.then().await)
            }),
            ends: &[("", "", CUT)],
        },
        Case {
            id: "F028",
            fault: "401 without metadata",
            must: "the call did not run, and somebody must sign in",
            wires: WEB,
            eras: BOTH,
            bound: 2_000,
            how: play!(|stage| {
                let fake = stage.fake().fault_on(When::tool("pay"), status(401, ""));
                stage.open(&fake).await;
                stage.warm().await;
                let word = stage.call().await;
                let calls = stage.count("tools/call");
                format!("{word}; at most 3 rounds: {}", calls <= 3)
            }),
            ends: &[("", "", "refused needs_auth, ran 0; at most 3 rounds: true")],
        },
        Case {
            id: "F028b",
            fault: "401 at the start",
            must: "the server waits for somebody to sign in",
            wires: "H2LW",
            eras: BOTH,
            bound: 2_000,
            how: play!(|stage| {
                let fake = stage.fake().bearer("secret");
                stage.open(&fake).await;
                let word = stage.call().await;
                format!(
                    "{word}; {}",
                    if stage.status().state == State::NeedsAuth {
                        "needs_auth"
                    } else {
                        "not so"
                    }
                )
            }),
            ends: &[("", "", "refused needs_auth, ran 0; needs_auth")],
        },
        Case {
            id: "F029",
            fault: "a session id with characters that it must not have",
            must: "refused",
            wires: WEB,
            eras: "l",
            bound: 2_000,
            how: play!(|stage| {
                let id = "no spaces allowed".to_owned();
                at_start(stage, When::default(), Fault::SessionId { id }, &["session"]).await
            }),
            ends: &[("", "", DOWN)],
        },
        Case {
            id: "F029b",
            fault: "the session id changes with the answer to a call",
            must: "the answer is not used, and a new session is opened",
            wires: WEB,
            eras: "l",
            bound: 2_000,
            how: play!(|stage| {
                let id = "another".to_owned();
                let word = on_call(stage, Fault::SessionId { id }).await;
                format!("{word}; {} sessions", stage.count("initialize"))
            }),
            ends: &[("", "", "lost internal, may have run, ran 1; then ok, ran 1; 2 sessions")],
        },
    ]
}

/// An HTTP answer with this status and body.
pub(super) fn status(status: u16, body: &str) -> Fault {
    Fault::Status {
        status,
        headers: Vec::new(),
        body: body.to_owned(),
    }
}

impl Stage {
    /// Does something where the servers run.
    async fn on_servers<T: Send + 'static>(&self, act: impl Future<Output = T> + Send + 'static) -> T {
        self.servers().spawn(act).await.unwrap()
    }
}
