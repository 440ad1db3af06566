//! [`Responder`]: computes the responses to the server's requests, and the capabilities that the server is offered.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::{Map, Value, json};

use super::{
    callback::{ErrorResponse, catch_panic},
    elicitation::{self, ElicitAnswer},
    host_trait::Host,
    request_params::RequestParams,
    sampling,
    tasks::HostTasks,
};
use crate::{mask::ServerMasker, name::ServerName, session::desired_state::DesiredState, status::Era};

/// Responds to the requests of one server.
pub(in crate::session) struct Responder {
    pub(in crate::session) server: ServerName,
    pub(in crate::session) host: Arc<dyn Host>,
    pub(in crate::session) desired_state: Arc<DesiredState>,
    pub(super) masker: ServerMasker,
    tasks: HostTasks,
    /// How many requests reached the user or the model.
    interactions: Arc<AtomicU64>,
}

impl Responder {
    pub(in crate::session) fn new(
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
            interactions: Arc::default(),
        }
    }

    /// Returns how many requests have reached the user or the model in this session.
    pub(in crate::session) fn interactions(&self) -> u64 {
        self.interactions.load(Ordering::Relaxed)
    }

    fn count_interaction(&self) {
        self.interactions.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the client capabilities: only those that the host or the config provides.
    pub(in crate::session) fn capabilities(&self, era: Era) -> Value {
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
            capabilities.insert("sampling".to_owned(), sampling::capability(&*self.host));
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
            // Declares that sessions can poll the server's tasks.
            let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
            capabilities.insert("extensions".to_owned(), extensions);
        }
        Value::Object(capabilities)
    }

    pub(in crate::session) fn has_roots(&self) -> bool {
        !self.desired_state.roots().is_empty()
    }

    pub(in crate::session) fn offers_url_elicitation(&self) -> bool {
        self.host.offers_elicitation() && self.host.offers_pages()
    }

    /// Responds to a request of the server. Starts a task if the request asks for one.
    pub(super) async fn respond(&self, method: &str, request: RequestParams) -> Result<Value, ErrorResponse> {
        let params = &request.params;
        match method {
            "elicitation/create" if self.host.offers_elicitation() && is_task(params) => {
                self.start_task(method, request)
            }
            "sampling/createMessage" if self.host.offers_sampling() && is_task(params) => {
                self.start_task(method, request)
            }
            "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/list" if self.runs_tasks() => {
                self.tasks.respond(method, params).await
            }
            _ => self.respond_directly(method, request).await,
        }
    }

    /// Responds to a request without a task. A panic of the host becomes an error response.
    pub(in crate::session) async fn respond_directly(
        &self,
        method: &str,
        request: RequestParams,
    ) -> Result<Value, ErrorResponse> {
        catch_panic(self.call_host(method, request)).await?
    }

    async fn call_host(&self, method: &str, request: RequestParams) -> Result<Value, ErrorResponse> {
        let RequestParams { params, order } = request;
        let params = self.masked(params);
        match method {
            "ping" => Ok(json!({})),
            // All roots may have been removed since the handshake.
            "roots/list" if self.has_roots() => Ok(json!({ "roots": &*self.desired_state.roots() })),
            "elicitation/create" if self.host.offers_elicitation() => self.elicit(params, &order).await,
            "sampling/createMessage" if self.host.offers_sampling() => self.sample(params).await,
            _ => Err((-32601, "this client does not offer that".to_owned())),
        }
    }

    async fn elicit(&self, params: Value, order: &[String]) -> Result<Value, ErrorResponse> {
        let request = elicitation::parse(params, order, self.host.offers_pages())?;
        let form = request.form.clone();
        self.count_interaction();
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
            // `Finished` is valid for a page only.
            (ElicitAnswer::Finished | ElicitAnswer::Cancel, _) => json!({ "action": "cancel" }),
            (ElicitAnswer::Decline, _) => json!({ "action": "decline" }),
        })
    }

    async fn sample(&self, mut params: Value) -> Result<Value, ErrorResponse> {
        let limits = self.host.sampling_limits();
        sampling::prepare_params(&*self.host, &mut params)?;
        if !self.desired_state.admit_sampling(limits.per_minute) {
            let text = format!("only {} requests per minute are answered", limits.per_minute);
            return Err((-32603, text));
        }
        sampling::limit_tokens(&mut params, limits.tokens);
        if !self.host.approve_sampling(&self.server, &params).await {
            return Err((-1, "the user rejected the request".to_owned()));
        }
        self.count_interaction();
        let result = self.host.sample(&self.server, params).await;
        sampling::check_result(result.map_err(|problem| (-32603, problem))?)
    }

    /// Responds to a request in the background, and returns the handle of the task.
    fn start_task(&self, method: &str, request: RequestParams) -> Result<Value, ErrorResponse> {
        let (worker, method) = (self.without_tasks(), method.to_owned());
        self.tasks
            .start(async move { Box::pin(worker.respond_directly(&method, request)).await })
    }

    /// Whether servers may have their requests answered as tasks.
    fn runs_tasks(&self) -> bool {
        self.host.offers_elicitation() || self.host.offers_sampling()
    }

    fn without_tasks(&self) -> Self {
        Self {
            server: self.server.clone(),
            host: self.host.clone(),
            desired_state: self.desired_state.clone(),
            masker: self.masker.clone(),
            tasks: HostTasks::default(),
            interactions: self.interactions.clone(),
        }
    }

    /// Sends the user to a page that a call requires. Returns the answer and the id of the elicitation.
    pub(in crate::session) async fn elicit_url(
        &self,
        params: Value,
    ) -> Result<(ElicitAnswer, Option<String>), ErrorResponse> {
        let request = elicitation::parse(self.masked(params), &[], true)?;
        if request.url.is_none() {
            return Err((-32602, "`url` is missing".to_owned()));
        }
        let id = request.id.clone();
        self.count_interaction();
        let eliciting = async { self.host.elicit(&self.server, request).await };
        Ok((catch_panic(eliciting).await?, id))
    }

    /// Masks the secrets in what a user or a model is about to see. In a URL only known secrets are masked, because a pattern match would
    /// break it.
    fn masked(&self, mut params: Value) -> Value {
        let url = params.get_mut("url").map(Value::take);
        let id = params.get_mut("elicitationId").map(Value::take);
        self.masker.current().value(&mut params);
        if let Some(mut url) = url {
            self.masker.known_masker().value(&mut url);
            params["url"] = url;
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

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
