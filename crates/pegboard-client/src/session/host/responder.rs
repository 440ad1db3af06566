//! [`Responder`]: computes the responses to the server's requests, and the capabilities that the server is offered.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use pegboard_protocol::{code, meta, method};
use serde_json::{Map, Value, json};

use super::{
    call_owner::{CallOwner, OnBehalf},
    callback::{ErrorResponse, catch_panic},
    elicitation::{self, ElicitAnswer},
    host_context::HostContext,
    host_trait::Host,
    offers::{HostHandle, Offers},
    request_params::RequestParams,
    sampling,
    tasks::HostTasks,
};
use crate::session::Era;
use crate::session::{calls_in_flight::Attribution, desired_state::DesiredState};
use pegboard_base::{caller::Caller, name::ServerName};
use pegboard_mask::ServerMasker;

/// The host that answers a question of the server, and the call that it belongs to.
#[derive(Debug, Clone, Copy)]
pub(in crate::session) struct Asked<'a> {
    host: &'a HostHandle,
    caller: Option<Caller<'a>>,
    /// The calls that the question may belong to, if it belongs to one of several.
    candidates: &'a [String],
    /// The server's name for the question.
    name: Option<&'a str>,
}

impl Asked<'_> {
    fn offers(self, offers: Offers) -> bool {
        self.host.offers.has(offers)
    }
}

/// Responds to the requests of one server.
pub(in crate::session) struct Responder {
    pub(in crate::session) server: ServerName,
    /// The host of the connection. It answers unless the view of the call has a host of its own.
    host: HostHandle,
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
            host: HostHandle::new(host),
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

    /// What the host of the connection offers, which is all that a handshake declares.
    pub(in crate::session) fn offers(&self) -> Offers {
        self.host.offers
    }

    /// Returns the client capabilities: only those that the host or the config provides.
    pub(in crate::session) fn capabilities(&self, era: Era) -> Value {
        self.offers().capabilities(era, self.has_roots())
    }

    pub(in crate::session) fn has_roots(&self) -> bool {
        !self.desired_state.roots().is_empty()
    }

    /// Whether the handshake declares roots: those of the config, or of callers.
    pub(in crate::session) fn offers_roots(&self) -> bool {
        self.has_roots() || self.offers().has(Offers::ROOTS)
    }

    /// The host that answers for a caller.
    pub(in crate::session) fn select_host<'a>(&'a self, on_behalf: OnBehalf<'a>) -> Asked<'a> {
        Asked {
            host: on_behalf.host.unwrap_or(&self.host),
            caller: Some(on_behalf.caller),
            candidates: &[],
            name: None,
        }
    }

    pub(in crate::session) fn offers_url_elicitation(&self, on_behalf: OnBehalf<'_>) -> bool {
        self.offers().has(Offers::PAGES) && self.select_host(on_behalf).offers(Offers::PAGES)
    }

    /// Responds to a request that the server sends by itself. Starts a task if the request asks for one.
    pub(super) async fn respond(
        &self,
        method: &str,
        request: RequestParams,
        attribution: &Attribution,
    ) -> Result<Value, ErrorResponse> {
        let needed = match method {
            method::ELICITATION_CREATE => Offers::ELICITATION,
            method::SAMPLING_CREATE_MESSAGE => Offers::SAMPLING,
            method::ROOTS_LIST if self.offers().has(Offers::ROOTS) => Offers::ROOTS,
            method::TASKS_GET | method::TASKS_RESULT | method::TASKS_CANCEL | method::TASKS_LIST
                if self.offers().allow_tasks() =>
            {
                return self.tasks.respond(method, &request.params).await;
            }
            _ => Offers::default(),
        };
        let asked = match attribution {
            // The handshake did not declare it, whatever the host of a view offers.
            _ if !self.offers().has(needed) => return Err(not_offered_error()),
            // The roots of the config are the same for all callers.
            Attribution::Rejected(why) if needed.are_any() && !(needed == Offers::ROOTS && self.has_roots()) => {
                tracing::warn!(server = %self.server, why, "a question of the server is rejected");
                return Err((code::INTERNAL_ERROR, (*why).to_owned()));
            }
            Attribution::Call(owner) => self.select_host_of_call(owner),
            Attribution::Connection | Attribution::Rejected(_) => self.select_own_host(),
        };
        if needed.allow_tasks() && asked.offers(needed) && is_task(&request.params) {
            return self.start_task(method, request, attribution.clone());
        }
        self.respond_directly(method, request, asked).await
    }

    fn select_host_of_call<'a>(&'a self, owner: &'a CallOwner) -> Asked<'a> {
        Asked {
            host: owner.host().unwrap_or(&self.host),
            caller: Some(owner.caller()),
            candidates: owner.candidates(),
            name: None,
        }
    }

    fn select_own_host(&self) -> Asked<'_> {
        Asked {
            host: &self.host,
            caller: None,
            candidates: &[],
            name: None,
        }
    }

    /// Responds to a request without a task. A panic of the host becomes an error response.
    pub(in crate::session) async fn respond_directly(
        &self,
        method: &str,
        request: RequestParams,
        asked: Asked<'_>,
    ) -> Result<Value, ErrorResponse> {
        catch_panic(self.call_host(method, request, asked)).await?
    }

    async fn call_host(&self, method: &str, request: RequestParams, asked: Asked<'_>) -> Result<Value, ErrorResponse> {
        let RequestParams { params, order, name } = request;
        let params = self.mask_params(params);
        let name = name.map(|name| self.masker.text(&name).into_owned());
        let asked = Asked {
            name: name.as_deref(),
            ..asked
        };
        match method {
            method::PING => Ok(json!({})),
            method::ROOTS_LIST if asked.offers(Offers::ROOTS) => self.pass_on(asked, method, params).await,
            // All roots may have been removed since the handshake.
            method::ROOTS_LIST if self.has_roots() => Ok(json!({ "roots": &*self.desired_state.roots() })),
            method::ELICITATION_CREATE if asked.offers(Offers::ELICITATION) => self.elicit(asked, params, &order).await,
            method::SAMPLING_CREATE_MESSAGE if asked.offers(Offers::SAMPLING) => self.sample(asked, params).await,
            _ => Err(not_offered_error()),
        }
    }

    fn context<'a>(&'a self, asked: Asked<'a>) -> HostContext<'a> {
        HostContext {
            caller: asked.caller,
            candidates: asked.candidates,
            request: asked.name,
            ..HostContext::new(&self.server)
        }
    }

    async fn elicit(&self, asked: Asked<'_>, params: Value, order: &[String]) -> Result<Value, ErrorResponse> {
        if asked.host.takes_requests {
            elicitation::parse(params.clone(), order, asked.offers(Offers::PAGES))?;
            self.count_interaction();
            return self.pass_on(asked, method::ELICITATION_CREATE, params).await;
        }
        let request = elicitation::parse(params, order, asked.offers(Offers::PAGES))?;
        let form = request.form.clone();
        self.count_interaction();
        let answer = asked.host.host.elicit(self.context(asked), request).await;
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

    async fn sample(&self, asked: Asked<'_>, mut params: Value) -> Result<Value, ErrorResponse> {
        let (host, context) = (&asked.host.host, self.context(asked));
        let limits = host.sampling_limits();
        sampling::prepare_params(asked.host.offers, &mut params)?;
        if !self.desired_state.admit_sampling(limits.per_minute) {
            let text = format!("only {} requests per minute are answered", limits.per_minute);
            return Err((code::INTERNAL_ERROR, text));
        }
        sampling::limit_tokens(&mut params, limits.tokens);
        if !host.approve_sampling(context, &params).await {
            return Err((-1, "the user rejected the request".to_owned()));
        }
        self.count_interaction();
        if asked.host.takes_requests {
            let result = self.pass_on(asked, method::SAMPLING_CREATE_MESSAGE, params).await;
            return sampling::check_result(result?);
        }
        let result = host.sample(context, params).await;
        sampling::check_result(result.map_err(|problem| (code::INTERNAL_ERROR, problem))?)
    }

    /// Has the host answer a request that was checked and masked.
    async fn pass_on(&self, asked: Asked<'_>, method: &str, mut params: Value) -> Result<Value, ErrorResponse> {
        if let Some(fields) = params.as_object_mut() {
            // The task is run here, and progress of the answer reaches no server.
            fields.remove("task");
            if let Some(Value::Object(meta)) = fields.get_mut("_meta") {
                meta.remove(meta::PROGRESS_TOKEN);
            }
        } else {
            params = json!({});
        }
        match asked.host.host.request(self.context(asked), method, params).await {
            Ok(result) if !result.is_object() => Err((code::INTERNAL_ERROR, "the answer is no object".to_owned())),
            answer => answer,
        }
    }

    /// Returns `true` if a user, a model or a client answers the request. All other requests bypass the queue.
    pub(super) fn is_slow(&self, method: &str) -> bool {
        match method {
            method::ELICITATION_CREATE | method::SAMPLING_CREATE_MESSAGE | method::TASKS_RESULT => true,
            method::ROOTS_LIST => self.offers().has(Offers::ROOTS),
            _ => false,
        }
    }

    /// Responds to a request in the background, and returns the handle of the task.
    fn start_task(
        &self,
        method: &str,
        request: RequestParams,
        attribution: Attribution,
    ) -> Result<Value, ErrorResponse> {
        let (worker, method) = (self.without_tasks(), method.to_owned());
        self.tasks.start(async move {
            let asked = match &attribution {
                Attribution::Call(owner) => worker.select_host_of_call(owner),
                Attribution::Connection | Attribution::Rejected(_) => worker.select_own_host(),
            };
            let responding = Box::pin(worker.respond_directly(&method, request, asked));
            until_ended(&attribution, responding).await
        })
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
        asked: Asked<'_>,
    ) -> Result<(ElicitAnswer, Option<String>), ErrorResponse> {
        let params = self.mask_params(params);
        let request = elicitation::parse(params.clone(), &[], true)?;
        if request.url.is_none() {
            return Err((code::INVALID_PARAMS, "`url` is missing".to_owned()));
        }
        let id = request.id.clone();
        self.count_interaction();
        if asked.host.takes_requests {
            let result = catch_panic(self.pass_on(asked, method::ELICITATION_CREATE, params)).await??;
            let answer = match result.get("action").and_then(Value::as_str) {
                Some("accept") => ElicitAnswer::Accept(Map::new()),
                Some("decline") => ElicitAnswer::Decline,
                _ => ElicitAnswer::Cancel,
            };
            return Ok((answer, id));
        }
        let eliciting = async { asked.host.host.elicit(self.context(asked), request).await };
        Ok((catch_panic(eliciting).await?, id))
    }

    /// Masks the secrets in what a user or a model is about to see. In a URL only known secrets are masked, because a pattern match would
    /// break it.
    fn mask_params(&self, mut params: Value) -> Value {
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

fn not_offered_error() -> ErrorResponse {
    (code::METHOD_NOT_FOUND, "this client does not offer that".to_owned())
}

/// Responds to a question, unless the call that it belongs to ends before. The host's future is dropped then.
pub(super) async fn until_ended<T>(
    attribution: &Attribution,
    responding: impl Future<Output = Result<T, ErrorResponse>>,
) -> Result<T, ErrorResponse> {
    tokio::select! {
        biased;
        () = attribution.ended() => Err((code::REQUEST_CANCELLED, "the call that the request belongs to has ended".to_owned())),
        response = responding => response,
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
