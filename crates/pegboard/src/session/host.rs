//! What a server may ask of us, and who answers: the program's [`Host`] if it offers such answers, otherwise "no such method".

mod catch_panic;
mod form;
mod question;
mod sample;
mod tasks;

use catch_panic::caught;
pub use form::{Choice, Field, FieldKind, Form, TextFormat};
pub(super) use question::RequestParams;
use tasks::HostTasks;

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::{desired_state::DesiredState, json_rpc, pending_requests::ServerRequest, trace};
use crate::{
    mask::ServerMasker,
    name::ServerName,
    status::Era,
    transport::{Delivery, Envelope, Outgoing, Wire},
};

/// How many requests of one server are thought about at once, and how many more may wait for that.
const AT_ONCE: usize = 16;
const WAITING: usize = 64;
/// How many responses to other requests of one server may be on their way to it. It must accept them before further requests are read; those
/// that do not fit into the queue meanwhile are dropped and counted.
const QUICK_AT_ONCE: usize = 16;
/// How long a response that the server does not accept counts as on its way.
const ACCEPTED: Duration = Duration::from_secs(30);
/// How long a user or a model may take for an answer. The server may lose its patience long before.
const ANSWER: Duration = Duration::from_secs(600);
/// The longest question that is shown to a user.
const MAX_MESSAGE: usize = 8 << 10;

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Answers what servers ask of the program that embeds the board. A capability is offered to servers only when it is switched on here.
///
/// The futures that these methods return may be dropped at any time: when the call that they belong to is given up, or its time is up.
pub trait Host: Send + Sync + 'static {
    /// Whether [`Host::elicit`] is there for the servers.
    fn offers_elicitation(&self) -> bool {
        false
    }

    /// Whether [`Host::elicit`] can also send a user to a page. Looked at only when elicitation is offered at all.
    fn offers_pages(&self) -> bool {
        true
    }

    /// A server wants something from the user.
    fn elicit<'a>(&'a self, server: &'a ServerName, request: Elicitation) -> Boxed<'a, ElicitAnswer> {
        let _ = (server, request);
        Box::pin(std::future::ready(ElicitAnswer::Decline))
    }

    /// Whether [`Host::sample`] is there for the servers.
    fn offers_sampling(&self) -> bool {
        false
    }

    /// Whether the model of [`Host::sample`] may be given tools of the server's (`tools` and `toolChoice`). Without this, such requests are
    /// refused.
    fn offers_sampling_tools(&self) -> bool {
        false
    }

    /// Whether [`Host::sample`] adds what other servers know when `includeContext` asks for it. Without this, it is not asked for.
    fn offers_sampling_context(&self) -> bool {
        false
    }

    /// How much servers may ask of the model.
    fn sampling_limits(&self) -> SamplingLimits {
        SamplingLimits::default()
    }

    /// Whether this request may reach the model, for hosts that ask their user first. `params` are those of `sampling/createMessage`,
    /// with the limits applied.
    fn approve_sampling<'a>(&'a self, server: &'a ServerName, params: &'a Value) -> Boxed<'a, bool> {
        let _ = (server, params);
        Box::pin(std::future::ready(true))
    }

    /// A server wants a model's answer: `params` and the result are those of `sampling/createMessage`. A result without `role`, `model` or
    /// proper `content` is not sent.
    fn sample<'a>(&'a self, server: &'a ServerName, params: Value) -> Boxed<'a, Result<Value, String>> {
        let _ = (server, params);
        Box::pin(std::future::ready(Err("no model is offered to servers".to_owned())))
    }
}

/// Offers nothing to servers.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl Host for NoHost {}

/// How much one server may ask of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SamplingLimits {
    /// The most tokens of one answer. A server that asks for more gets this many.
    pub tokens: u64,
    /// The most requests in any minute. What is over is refused.
    pub per_minute: usize,
}

impl Default for SamplingLimits {
    fn default() -> Self {
        Self {
            tokens: 4096,
            per_minute: 10,
        }
    }
}

/// What a server wants from the user.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Elicitation {
    /// The server's words.
    pub message: String,
    /// The form to fill in.
    pub form: Option<Form>,
    /// The form as the server wrote it: a JSON Schema of a flat object.
    pub schema: Option<Value>,
    /// Or a page to visit. Show it in full before you open it; never open it by yourself.
    pub url: Option<String>,
    /// The id under which the server tells that the visit is done.
    pub id: Option<String>,
}

impl Elicitation {
    /// Reads the parameters of `elicitation/create`, for hosts that want to try out their own questions.
    pub fn read(params: Value) -> Result<Self, String> {
        read(params, &[], true).map_err(|(_, problem)| problem)
    }
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ElicitAnswer {
    /// Here it is. Fields that are left out get the form's defaults. For a page: the user has opened it.
    Accept(Map<String, Value>),
    /// For a page: the user says that all is done there, so nothing need be waited for.
    Finished,
    /// The user says no.
    Decline,
    /// The user did not say anything.
    Cancel,
}

/// The one who answers a server, with all that is needed for it.
pub(super) struct Responder {
    pub(super) server: ServerName,
    pub(super) host: Arc<dyn Host>,
    pub(super) desired_state: Arc<DesiredState>,
    masker: ServerMasker,
    tasks: HostTasks,
    /// How often the user or the model was asked something.
    questions: Arc<AtomicU64>,
}

/// The error that a server gets.
pub(super) type Refusal = (i64, String);

impl Responder {
    pub(super) fn new(
        server: ServerName,
        host: Arc<dyn Host>,
        desired_state: Arc<DesiredState>,
        masker: ServerMasker,
    ) -> Self {
        Self {
            server,
            host,
            desired_state,
            masker,
            tasks: HostTasks::default(),
            questions: Arc::default(),
        }
    }

    /// How often the user or the model was asked something in this session so far.
    pub(super) fn questions(&self) -> u64 {
        self.questions.load(Ordering::Relaxed)
    }

    fn count_question(&self) {
        self.questions.fetch_add(1, Ordering::Relaxed);
    }

    /// What we tell servers that we can do. Only what has somebody to answer is among it.
    pub(super) fn capabilities(&self, era: Era) -> Value {
        let mut capabilities = Map::new();
        if self.has_roots() {
            let roots = match era {
                Era::Legacy => json!({ "listChanged": true }),
                Era::Modern => json!({}),
            };
            capabilities.insert("roots".to_owned(), roots);
        }
        if self.host.offers_elicitation() {
            let mut modes = json!({ "form": {} });
            if self.host.offers_pages() {
                modes["url"] = json!({});
            }
            capabilities.insert("elicitation".to_owned(), modes);
        }
        if self.host.offers_sampling() {
            capabilities.insert("sampling".to_owned(), self.sampling());
        }
        if era == Era::Legacy && self.runs_tasks() {
            let mut requests = Map::new();
            if self.host.offers_elicitation() {
                requests.insert("elicitation".to_owned(), json!({ "create": {} }));
            }
            if self.host.offers_sampling() {
                requests.insert("sampling".to_owned(), json!({ "createMessage": {} }));
            }
            let tasks = json!({ "list": {}, "cancel": {}, "requests": requests });
            capabilities.insert("tasks".to_owned(), tasks);
        }
        if era == Era::Modern {
            // Sessions see tasks through to their end by themselves.
            let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
            capabilities.insert("extensions".to_owned(), extensions);
        }
        Value::Object(capabilities)
    }

    pub(super) fn has_roots(&self) -> bool {
        !self.desired_state.roots().is_empty()
    }

    pub(super) fn visits_pages(&self) -> bool {
        self.host.offers_elicitation() && self.host.offers_pages()
    }

    /// The result of one request of the server, or the error it gets. What is wanted as a task is begun.
    async fn answer_or_begin(&self, method: &str, question: RequestParams) -> Result<Value, Refusal> {
        let params = &question.params;
        match method {
            "elicitation/create" if self.host.offers_elicitation() && is_task(params) => self.begin(method, question),
            "sampling/createMessage" if self.host.offers_sampling() && is_task(params) => self.begin(method, question),
            "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/list" if self.runs_tasks() => {
                self.answer_task_method(method, params).await
            }
            _ => self.answer(method, question).await,
        }
    }

    /// The answer to one question of the server, or the error it gets. A host that panics has no answer.
    pub(super) async fn answer(&self, method: &str, question: RequestParams) -> Result<Value, Refusal> {
        caught(self.answered(method, question)).await?
    }

    async fn answered(&self, method: &str, question: RequestParams) -> Result<Value, Refusal> {
        let RequestParams { params, order } = question;
        let params = self.hidden(params);
        match method {
            "ping" => Ok(json!({})),
            // Whoever had roots may have none by now.
            "roots/list" if self.has_roots() => Ok(json!({ "roots": &*self.desired_state.roots() })),
            "elicitation/create" if self.host.offers_elicitation() => self.elicit(params, &order).await,
            "sampling/createMessage" if self.host.offers_sampling() => self.sample(params).await,
            _ => Err((-32601, "this client does not offer that".to_owned())),
        }
    }

    async fn elicit(&self, params: Value, order: &[String]) -> Result<Value, Refusal> {
        let request = read(params, order, self.host.offers_pages())?;
        let form = request.form.clone();
        self.count_question();
        let answer = self.host.elicit(&self.server, request).await;
        Ok(match (answer, form) {
            (ElicitAnswer::Accept(content), Some(form)) => match form.complete(content) {
                Ok(content) => json!({ "action": "accept", "content": content }),
                Err(problems) => {
                    let problems = problems.join("; ");
                    tracing::warn!(%problems, "the host's answer does not fit the form; the server is told that there is none");
                    json!({ "action": "cancel" })
                }
            },
            (ElicitAnswer::Accept(_) | ElicitAnswer::Finished, None) => json!({ "action": "accept" }),
            // Only a visit can be finished.
            (ElicitAnswer::Finished | ElicitAnswer::Cancel, _) => json!({ "action": "cancel" }),
            (ElicitAnswer::Decline, _) => json!({ "action": "decline" }),
        })
    }

    /// Sends the user to a page that a call cannot go on without.
    pub(super) async fn visit(&self, params: Value) -> Result<(ElicitAnswer, Option<String>), Refusal> {
        let request = read(self.hidden(params), &[], true)?;
        if request.url.is_none() {
            return Err((-32602, "`url` is missing".to_owned()));
        }
        let id = request.id.clone();
        self.count_question();
        let eliciting = async { self.host.elicit(&self.server, request).await };
        Ok((caught(eliciting).await?, id))
    }

    /// What a person or a model is about to see, masked. Of a page's address only what is known to be a secret is hidden, because it must
    /// be visited as it is.
    fn hidden(&self, mut params: Value) -> Value {
        let page = params.get_mut("url").map(Value::take);
        let id = params.get_mut("elicitationId").map(Value::take);
        self.masker.current().value(&mut params);
        if let Some(mut page) = page {
            self.masker.known_masker().value(&mut page);
            params["url"] = page;
        }
        if let Some(id) = id {
            params["elicitationId"] = id;
        }
        params
    }
}

fn is_task(params: &Value) -> bool {
    params.get("task").is_some_and(Value::is_object)
}

/// Reads what a server wants from the user.
fn read(mut params: Value, order: &[String], allows_pages: bool) -> Result<Elicitation, Refusal> {
    let wrong = |text: &str| (-32602, text.to_owned());
    let text = |key: &str| params.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut message = text("message").ok_or_else(|| wrong("`message` is missing"))?;
    message.truncate(message.floor_char_boundary(MAX_MESSAGE));
    let (url, id) = (text("url"), text("elicitationId"));
    let is_visit = match text("mode").as_deref() {
        Some("url") => true,
        Some("form") | None => false,
        Some(_) => return Err(wrong("this client knows the modes `form` and `url`")),
    };
    if is_visit {
        if !allows_pages {
            return Err(wrong("this client offers forms only"));
        }
        let url = url.ok_or_else(|| wrong("`url` is missing"))?;
        let parsed = url::Url::parse(&url).map_err(|_| wrong("`url` is no address"))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(wrong("only pages on http and https can be visited"));
        }
        return Ok(Elicitation {
            message,
            form: None,
            schema: None,
            url: Some(url),
            id,
        });
    }
    let schema = params.get_mut("requestedSchema").map(Value::take);
    let schema = schema.ok_or_else(|| wrong("`requestedSchema` is missing"))?;
    let form = Form::read(&schema, order).map_err(|problem| (-32602, problem))?;
    Ok(Elicitation {
        message,
        form: Some(form),
        schema: Some(schema),
        url: None,
        id: None,
    })
}

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// The task that answers a server's requests for as long as its session lives.
pub(super) struct Answering {
    pub(super) requests: mpsc::Receiver<ServerRequest>,
    pub(super) responder: Arc<Responder>,
}

impl Answering {
    pub(super) async fn run(mut self, wire: Arc<dyn Wire>) {
        // Whoever still thinks about an answer when the session ends is let go with it.
        let mut answering = JoinSet::new();
        let mut quick = JoinSet::new();
        let mut waiting = VecDeque::new();
        loop {
            while answering.len() < AT_ONCE
                && let Some(request) = waiting.pop_front()
            {
                answering.spawn(answer(self.responder.clone(), request, wire.clone()));
            }
            let request = tokio::select! {
                biased;
                Some(_) = answering.join_next() => continue,
                Some(_) = quick.join_next() => continue,
                request = self.requests.recv(), if waiting.len() < WAITING && quick.len() < QUICK_AT_ONCE => request,
            };
            let Some(request) = request else { return };
            let method = self.responder.masker.text(&request.method);
            tracing::debug!(server = %self.responder.server, method = %method.escape_debug(), "the server asks");
            drop(method);
            if takes_thought(&request.method) {
                waiting.push_back(request);
            } else {
                quick.spawn(answer(self.responder.clone(), request, wire.clone()));
            }
        }
    }
}

/// Whether an answer may take its time. All else is answered at once, however many others are thought about.
fn takes_thought(method: &str) -> bool {
    matches!(method, "elicitation/create" | "sampling/createMessage" | "tasks/result")
}

/// Answers one request, unless the server takes it back: then whoever thinks about it is let go, and nothing is said.
async fn answer(responder: Arc<Responder>, request: ServerRequest, wire: Arc<dyn Wire>) {
    let question = RequestParams::read(request.params.as_deref());
    let answering = responder.answer_or_begin(&request.method, question);
    let result = tokio::select! {
        biased;
        () = request.asking.taken_back() => return,
        answered = tokio::time::timeout(ANSWER, answering) => {
            answered.unwrap_or_else(|_| Err((-32603, "nobody answered in time".to_owned())))
        }
    };
    let answer = result.as_ref().map_err(|(code, message)| (*code, message.as_str()));
    let body = json_rpc::answer(&request.id, answer);
    if trace::is_wanted() {
        if takes_thought(&request.method) {
            trace::answered(&responder.server, &request.method, body.len());
        } else {
            trace::sent(&responder.server, &responder.masker, &body);
        }
    }
    let (taken, accepted) = oneshot::channel();
    wire.send(Outgoing {
        body,
        id: None,
        delivery: Arc::new(Delivery::default()),
        envelope: Envelope::default(),
        taken: Some(taken),
    });
    drop(wire);
    let _ = tokio::time::timeout(ACCEPTED, accepted).await;
}

#[cfg(test)]
mod tests;
