//! A provider whose answers a test can change, and fake servers on each transport.

use std::{pin::Pin, sync::Arc, time::Duration};

use pegboard::{
    Config, Credential, Credentials, Kind, Outcome, Pegboard, Reply, ServerConfig, ServerName, Toolset,
    config::Transport,
    credential::{CredentialError, CredentialReason, CredentialRequest},
};
use pegboard_base::sync::Mutex;
use pegboard_testkit::{Era, FakeServer, NetHandle, Tool};
use serde_json::json;

use crate::support::{PATIENCE, call, endpoint, name};

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
/// The challenge of a fake server that refuses a token.
pub(crate) const CHALLENGE: &str = "Bearer error=\"invalid_token\"";

type Answer = Result<Credential, CredentialError>;

/// A provider that records every question. The test sets how it answers; the answer gets the number of the question.
#[derive(Clone)]
pub(crate) struct Issuer(Arc<Inner>);

struct Inner {
    asked: Mutex<Vec<Asked>>,
    answer: Mutex<Arc<dyn Fn(usize) -> Answer + Send + Sync>>,
    covers_processes: bool,
    hangs: Mutex<bool>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Asked {
    FirstUse,
    Refresh,
    Refused(Option<String>),
}

pub(crate) fn refused_with_challenge() -> Asked {
    Asked::Refused(Some(CHALLENGE.to_owned()))
}

impl Issuer {
    pub(crate) fn new(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::covering(false, answer)
    }

    pub(crate) fn of_processes(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::covering(true, answer)
    }

    fn covering(covers_processes: bool, answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            asked: Mutex::default(),
            answer: Mutex::new(Arc::new(answer)),
            covers_processes,
            hangs: Mutex::default(),
        }))
    }

    /// Returns `token-1`, `token-2` and so on, each valid for an hour.
    pub(crate) fn counting() -> Self {
        Self::new(|number| Ok(Credential::bearer(token(number)).valid_for(HOUR)))
    }

    pub(crate) fn answers(&self, answer: impl Fn(usize) -> Answer + Send + Sync + 'static) {
        *self.0.answer.lock() = Arc::new(answer);
    }

    /// Does not answer from now on.
    pub(crate) fn hangs(&self) {
        *self.0.hangs.lock() = true;
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.0.asked.lock().clone()
    }
}

impl Credentials for Issuer {
    fn covers(&self, _server: &ServerName, is_process: bool) -> bool {
        is_process == self.0.covers_processes
    }

    fn credential<'a>(&'a self, request: CredentialRequest<'a>) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        assert_eq!(request.principal, None);
        let asked = match request.reason {
            CredentialReason::FirstUse => Asked::FirstUse,
            CredentialReason::Refresh => Asked::Refresh,
            CredentialReason::Refused { challenge } => Asked::Refused(challenge.map(str::to_owned)),
        };
        Box::pin(async move {
            let number = {
                let mut all = self.0.asked.lock();
                all.push(asked);
                all.len()
            };
            if *self.0.hangs.lock() {
                std::future::pending::<()>().await;
            }
            // Gives other requests time to ask too.
            tokio::task::yield_now().await;
            let answer = self.0.answer.lock().clone();
            answer(number)
        })
    }
}

/// The token of the question with this number. Long enough to be masked.
pub(crate) fn token(number: usize) -> String {
    format!("t0ken-{number:04}-canary")
}

/// A transport and an era of a fake server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Place {
    Http(Era),
    Sse,
    WebSocket,
}

pub(crate) const REQUESTS: [Place; 3] = [Place::Http(Era::Legacy), Place::Http(Era::Modern), Place::Sse];
pub(crate) const PLACES: [Place; 4] = [
    Place::Http(Era::Legacy),
    Place::Http(Era::Modern),
    Place::Sse,
    Place::WebSocket,
];

impl Place {
    pub(crate) fn era(self) -> Era {
        match self {
            Self::Http(era) => era,
            Self::Sse | Self::WebSocket => Era::Legacy,
        }
    }

    pub(crate) async fn serve(self, fake: &FakeServer) -> NetHandle {
        let served = match self {
            Self::Http(_) => fake.serve_http().await,
            Self::Sse => fake.serve_sse().await,
            Self::WebSocket => fake.serve_ws().await,
        };
        served.unwrap()
    }

    pub(crate) fn config(self, url: &str) -> ServerConfig {
        let endpoint = endpoint(url);
        ServerConfig::new(match self {
            Self::Http(_) => Transport::http(endpoint),
            Self::Sse => Transport::sse(endpoint),
            Self::WebSocket => Transport::websocket(endpoint),
        })
    }

    /// A fake that greets, and a board of it that asks `issuer`.
    pub(crate) async fn board(self, fake: &FakeServer, issuer: &Issuer) -> (NetHandle, Pegboard) {
        let fake = self.serve(fake).await;
        let board = board_with(self.config(&fake.url()), issuer);
        (fake, board)
    }
}

pub(crate) fn fake(era: Era) -> FakeServer {
    FakeServer::new("fx")
        .era(era)
        .tool(Tool::new("hello").answers_text("hi"))
}

/// A board with one server, `fx`, whose credentials come from `issuer`.
pub(crate) fn board_with(config: ServerConfig, issuer: &Issuer) -> Pegboard {
    let mut whole = Config::default();
    whole.servers.insert(name("fx"), config);
    Pegboard::builder(whole).credentials(issuer.clone()).open()
}

pub(crate) async fn hello(tools: &Toolset) -> Reply {
    call(tools, "fx.hello", json!({})).await
}

#[track_caller]
pub(crate) fn assert_greeted(reply: &Reply) {
    assert_eq!(reply.text(), "hi", "{:?}", reply.outcome);
}

/// Asserts that the call was refused for lack of a credential and did not run. Returns its text.
#[track_caller]
pub(crate) fn assert_needs_auth(reply: &Reply) -> String {
    assert!(matches!(reply.outcome, Outcome::Refused(_)), "{:?}", reply.outcome);
    assert_eq!(reply.outcome.kind(), Kind::NeedsAuth, "{:?}", reply.outcome);
    assert!(!reply.outcome.may_have_executed());
    reply.text()
}

/// Makes a fake accept this token only.
pub(crate) fn accept_only(fake: &NetHandle, token: &str) {
    fake.change(|script| script.bearer = Some(token.to_owned()));
}

/// The `Authorization` headers that a fake has received, in order.
pub(crate) fn authorizations(fake: &NetHandle) -> Vec<String> {
    let requests = fake.requests().into_iter();
    let with_headers = requests.filter(|received| !received.headers.is_empty());
    with_headers
        .map(|received| received.header("authorization").unwrap_or("none").to_owned())
        .collect()
}

/// Calls until the server greets.
pub(crate) async fn until_greeted(tools: &Toolset) {
    let calling = async {
        while hello(tools).await.is_error() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, calling)
        .await
        .expect("the server greets in time");
}
