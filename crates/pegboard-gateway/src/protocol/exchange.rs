//! [`Exchange`]: what a service can do for the client while it answers one request.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use bytes::{BufMut, Bytes, BytesMut};
use pegboard::{journal::Delivery, telemetry::Parent};
use pegboard_protocol::{RpcError, code, method::notification};
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::{
    capability,
    client::Client,
    log_level::LogLevel,
    outgoing::{Outgoing, to_text},
    questions::{Asked, Questions},
    request_info::RequestInfo,
    request_stream::RequestStream,
    sealer::{EndpointSealer, Purpose},
};

/// One request that is being answered: sends notifications on its stream, and asks the client questions. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Exchange(pub(super) Arc<ExchangeState>);

/// What a request and its exchange share.
#[derive(Debug)]
pub(super) struct ExchangeState {
    pub(super) client: Arc<Client>,
    pub(super) stream: RequestStream,
    pub(super) sealer: Arc<EndpointSealer>,
    /// The questions of a legacy client; `None` for a modern one, whose questions are results.
    pub(super) questions: Option<Arc<Questions>>,
    /// How long a question may wait for its answer.
    pub(super) question_time: Duration,
    /// Whether the request may have taken effect: one of the constants below.
    pub(super) effect: AtomicU8,
    /// Whether the client only listens, so that the request never ends by itself.
    pub(super) is_listening: bool,
    /// What calls are told of the trace of the request.
    pub(super) parent: Parent,
    /// What the log knows of the request.
    pub(super) info: RequestInfo,
    /// The kind of failure that the result tells of.
    pub(super) failure: OnceLock<&'static str>,
}

/// The service does not say, so a request that was started may have taken effect.
pub(super) const UNKNOWN: u8 = 0;
/// Nothing was done that a client could notice.
pub(super) const NONE: u8 = 1;
/// It was sent to a server.
const SENT: u8 = 2;

impl ExchangeState {
    /// Whether the request, which was started, may have taken effect.
    pub(super) fn may_have_executed(&self) -> bool {
        self.effect.load(Ordering::Acquire) != NONE
    }
}

impl Delivery for ExchangeState {
    fn sending(&self) {
        self.effect.store(SENT, Ordering::Release);
    }

    fn not_run(&self) {
        self.effect.store(NONE, Ordering::Release);
    }
}

impl Exchange {
    /// The client that sent the request.
    pub fn client(&self) -> &Arc<Client> {
        &self.0.client
    }

    /// Whether the client wants progress. If not, [`Exchange::progress`] does nothing.
    pub fn wants_progress(&self) -> bool {
        self.0.stream.wants().progress_token.is_some()
    }

    /// Reports progress under the client's token. `fields` are those of `notifications/progress` without the token.
    pub async fn progress(&self, mut fields: Map<String, Value>) {
        if let Some(token) = self.0.stream.wants().progress_token {
            fields.remove("progressToken");
            let params = with_token(&token, &fields);
            self.notify_raw(notification::PROGRESS, params).await;
        }
    }

    /// The lowest level of log messages that the client wants; `None` if it wants none.
    pub fn log_level(&self) -> Option<LogLevel> {
        self.0.stream.wants().level
    }

    /// Sends a log message, unless the client wants none of this level. `params` are those of `notifications/message`.
    pub async fn log(&self, level: LogLevel, mut params: Map<String, Value>) {
        if self.log_level().is_some_and(|lowest| level >= lowest) {
            params.insert("level".into(), level.as_str().into());
            self.notify(notification::MESSAGE, params).await;
        }
    }

    /// Sends any other notification on the stream of the request.
    pub async fn notify(&self, method: &str, params: Map<String, Value>) {
        self.notify_raw(method, to_text(&params)).await;
    }

    /// Sends any other notification, with params that are the text of a JSON object.
    pub async fn notify_raw(&self, method: &str, params: Bytes) {
        self.0.stream.push(Outgoing::notification(method, params)).await;
    }

    /// Asks the client: `elicitation/create`, `sampling/createMessage` or `roots/list`. A legacy client gets a request; a modern one
    /// gets a result that asks for input, and answers with its next request, while the work for this one goes on.
    ///
    /// Fails with [`code::MISSING_CAPABILITY`] if the client does not declare what the question needs.
    pub async fn ask(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        self.ask_named(None, method, params).await
    }

    /// As [`Exchange::ask`], with the name that a server gave to the question. A modern client sees it as the key of the question, and may
    /// have answered it in advance.
    pub async fn ask_named(&self, name: Option<&str>, method: &str, params: Value) -> Result<Value, RpcError> {
        capability::check(self.0.client.capabilities(), method, &params)?;
        let params = to_text(&params);
        let answer = match &self.0.questions {
            Some(questions) => self.ask_legacy(questions, method, params).await?,
            None => self.ask_modern(name, method, params).await?,
        };
        serde_json::from_slice(&answer).map_err(|error| {
            let message = format!("the client's answer to `{method}` cannot be read: {error}");
            RpcError::new(code::INVALID_PARAMS, message)
        })
    }

    /// What is told when the request is sent to a server. Until then the request has had no effect.
    pub(crate) fn delivery(&self) -> Arc<dyn Delivery> {
        let effect = &self.0.effect;
        let _ = effect.compare_exchange(UNKNOWN, NONE, Ordering::AcqRel, Ordering::Acquire);
        self.0.clone()
    }

    /// The trace of the request, as a call for it carries it on.
    pub(crate) fn parent(&self) -> Parent {
        self.0.parent.clone()
    }

    /// Notes that the result tells of a failure.
    pub(crate) fn note_failure(&self, kind: &'static str) {
        // The first one decided about the result.
        let _ = self.0.failure.set(kind);
    }

    /// Whether the client was asked and has not come back yet.
    pub(crate) fn is_parked(&self) -> bool {
        self.0.stream.is_parked()
    }

    /// An exchange that no wire carries.
    #[cfg(test)]
    pub(crate) fn detached(client: Client) -> Self {
        let sealer = EndpointSealer {
            sealer: Arc::new(super::sealer::Sealer::with_key(&[1; 32])),
            endpoint: "/mcp".into(),
        };
        Self(Arc::new(ExchangeState {
            client: Arc::new(client),
            stream: RequestStream::default(),
            sealer: Arc::new(sealer),
            questions: None,
            question_time: Duration::ZERO,
            effect: AtomicU8::new(UNKNOWN),
            is_listening: false,
            parent: Parent::Unknown,
            info: RequestInfo::default(),
            failure: OnceLock::new(),
        }))
    }

    /// Says that the client was asked and has not come back yet.
    #[cfg(test)]
    pub(crate) fn park(&self) {
        self.0.stream.park();
    }

    async fn ask_legacy(&self, questions: &Arc<Questions>, method: &str, params: Bytes) -> Result<Bytes, RpcError> {
        let mut open = OpenQuestion {
            asked: questions.ask()?,
            shared: &self.0,
        };
        let message = Outgoing::request(open.asked.id, method, params);
        let answer = async {
            if let Err(message) = self.0.stream.push_now(message) {
                // The stream of the request carries no messages, but the client may have a general one.
                let _ = questions.outbox.send(message).await;
            }
            open.asked.outcome().await
        };
        timeout(self.0.question_time, answer)
            .await
            .unwrap_or_else(|_| Err(unanswered_error(method)))
    }

    async fn ask_modern(&self, name: Option<&str>, method: &str, params: Bytes) -> Result<Bytes, RpcError> {
        let stream = &self.0.stream;
        let (key, answer) = stream.ask(name, method, params);
        let _withdraw = Withdraw { stream, key: &key };
        match timeout(self.0.question_time, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            _ => Err(unanswered_error(method)),
        }
    }

    /// Encrypts a state that the client is to send back, such as a server's own `requestState`. Only the same principal can use it,
    /// and only at this endpoint.
    pub fn seal(&self, state: &[u8]) -> Result<String, RpcError> {
        self.0.sealer.seal(self.0.client.principal(), Purpose::Service, state)
    }

    /// Opens what [`Exchange::seal`] returned.
    pub fn unseal(&self, sealed: &str) -> Result<Vec<u8>, RpcError> {
        match self.0.sealer.open(self.0.client.principal(), sealed)? {
            (Purpose::Service, state) => Ok(state),
            (Purpose::ParkedCall | Purpose::Session, _) => {
                Err(RpcError::invalid_params("`requestState` belongs to another request"))
            }
        }
    }
}

fn unanswered_error(method: &str) -> RpcError {
    RpcError::new(
        code::INTERNAL_ERROR,
        format!("the client did not answer `{method}` in time"),
    )
}

/// Puts the client's token first, as it wrote it.
fn with_token(token: &Bytes, fields: &Map<String, Value>) -> Bytes {
    let fields = to_text(fields);
    let mut params = BytesMut::with_capacity(token.len() + fields.len() + 24);
    params.put_slice(b"{\"progressToken\":");
    params.put_slice(token);
    if fields.len() > 2 {
        params.put_u8(b',');
    }
    params.put_slice(&fields[1..]);
    params.freeze()
}

/// Cancels the question to a legacy client if the work stops waiting for it.
struct OpenQuestion<'a> {
    asked: Asked,
    shared: &'a ExchangeState,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if self.asked.is_open() {
            let unsent = self.shared.stream.push_now(self.asked.cancellation());
            if let Err(message) = unsent {
                self.asked.send_elsewhere(message);
            }
        }
    }
}

/// Withdraws the question to a modern client if the work stops waiting for it.
struct Withdraw<'a> {
    stream: &'a RequestStream,
    key: &'a str,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        self.stream.withdraw(self.key);
    }
}
