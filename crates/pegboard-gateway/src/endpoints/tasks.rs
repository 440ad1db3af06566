//! Tasks of both eras. A client's id of a task is the server's, sealed with the server and the tool.
//!
//! Requests between a client and a server of the same era are passed on, others are translated. A legacy client starts tasks, and reads their
//! results with `tasks/result`; a modern client gets tasks when the tool of a legacy server requires one, reads results and questions with
//! `tasks/get`, and answers questions with `tasks/update`.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use pegboard::{
    ServerName, Timestamp, ToolCall,
    catalog::Tool,
    forward::{Forwarded, ForwardedResult, Forwarding},
    status::Era,
};
use pegboard_protocol::{meta, method};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::task::AbortOnDropHandle;

use super::{
    client_tools::{ClientTools, PrincipalKey},
    core::Core,
    failures::{answer_failed_call, request_error},
    own_tasks::OwnTask,
    pages::page,
    pass_on::{request_answer, server_error, unknown_outcome},
    related_tasks::replace_related,
    request_state::{KeptKind, KeptText},
    task_forms::{finished_task, inline_result, legacy_task, modern_task, write_result},
    task_inputs::Inputs,
    tool_call::{find, parse, raw, to_text},
};
use crate::protocol::{Answer, Exchange, Params, RawResult, Request, RpcError};

/// How long `tasks/result` waits for the end of a task on a modern server. The client can ask again.
const PATIENCE: Duration = Duration::from_secs(3600);
/// How many tasks are asked after at once for a list.
const CONCURRENT: usize = 8;

impl Core {
    /// Answers `tasks/…`.
    pub(super) async fn task_request(&self, request: &Request, exchange: &Exchange) -> Answer {
        let tools = self.tools(exchange.client())?;
        let is_modern = exchange.client().version().is_modern();
        if &*request.method == method::TASKS_LIST {
            if is_modern {
                return Err(RpcError::method_not_found(&request.method));
            }
            return self.list_tasks(&tools, &request.params, exchange).await;
        }
        let id = request.params.text("taskId");
        let id = id.ok_or_else(|| RpcError::invalid_params("`taskId` is missing or no string"))?;
        let unknown = |_| RpcError::invalid_params("`taskId` is not the id of one of your tasks here");
        let kept = KeptText::unseal(exchange, &id).map_err(unknown)?;
        match kept.kind {
            KeptKind::Task => {}
            KeptKind::Result => return self.answer_finished(&request.method, &id, exchange),
            KeptKind::State => return Err(unknown(RpcError::invalid_params(""))),
        }
        let answer = Box::pin(self.answer_kept(&tools, request, &id, &kept, exchange)).await;
        let server = ServerName::parse(&kept.server).ok();
        Box::pin(self.or_sign_in_link(&tools, server.as_ref(), &request.method, answer, exchange)).await
    }

    /// Answers a request about a task that its server keeps.
    async fn answer_kept(
        &self,
        tools: &Arc<ClientTools>,
        request: &Request,
        id: &str,
        kept: &KeptText,
        exchange: &Exchange,
    ) -> Answer {
        // The toolset that started the task may be gone. The sealed id proves whose task it is.
        let adopted = tools.toolset.adopt_task(&kept.server, &kept.text);
        adopted.map_err(|failure| request_error(&failure))?;
        tools.exchanges.task_ids.note(&kept.server, &kept.text, id);
        let is_modern = exchange.client().version().is_modern();
        match (is_modern, self.era_of(tools, kept).await?) {
            (false, Era::Modern) => self.answer_legacy_client(tools, request, id, kept, exchange).await,
            (true, Era::Legacy) => self.answer_modern_client(tools, request, id, kept, exchange).await,
            _ => {
                let result = self
                    .about_task(tools, &request.method, &request.params, kept, exchange)
                    .await?;
                with_own_id(result, &kept.text, id)
            }
        }
    }

    /// Answers a legacy client's request about a modern server's task.
    async fn answer_legacy_client(
        &self,
        tools: &ClientTools,
        request: &Request,
        id: &str,
        kept: &KeptText,
        exchange: &Exchange,
    ) -> Answer {
        let params = &request.params;
        match &*request.method {
            method::TASKS_RESULT => self.await_result(tools, id, kept, exchange).await,
            method::TASKS_GET => self.translate_status(tools, params, id, kept, exchange).await,
            method::TASKS_CANCEL => {
                self.about_task(tools, method::TASKS_CANCEL, params, kept, exchange)
                    .await?;
                self.translate_status(tools, params, id, kept, exchange).await
            }
            method => Err(RpcError::method_not_found(method)),
        }
    }

    /// Answers a modern client's request about a legacy server's task.
    async fn answer_modern_client(
        &self,
        tools: &Arc<ClientTools>,
        request: &Request,
        id: &str,
        kept: &KeptText,
        exchange: &Exchange,
    ) -> Answer {
        match &*request.method {
            method::TASKS_GET => self.detailed_status(tools, &request.params, id, kept, exchange).await,
            method::TASKS_CANCEL => {
                self.about_task(tools, method::TASKS_CANCEL, &request.params, kept, exchange)
                    .await?;
                RawResult::new(&json!({}))
            }
            method::TASKS_UPDATE => {
                let UpdateTask { answers } = request.params.parse()?;
                self.task_inputs.answer(id, answers);
                RawResult::new(&json!({}))
            }
            method => Err(RpcError::method_not_found(method)),
        }
    }

    /// The status of a legacy server's task as a modern client reads it: with its result, its error or its questions.
    async fn detailed_status(
        &self,
        tools: &Arc<ClientTools>,
        params: &Params,
        id: &str,
        kept: &KeptText,
        exchange: &Exchange,
    ) -> Answer {
        let status = self
            .about_task(tools, method::TASKS_GET, params, kept, exchange)
            .await?;
        let mut task: Value = parse(&status)?;
        task["taskId"] = id.into();
        let mut detailed = modern_task(&task);
        match task["status"].as_str() {
            // Only an error response is a failure; a result that says `isError` is a result.
            Some("completed" | "failed") => match self.result_of(tools, kept, exchange).await? {
                Ok(result) => {
                    detailed["status"] = "completed".into();
                    detailed["result"] = inline_result(result);
                }
                Err(error) => {
                    detailed["status"] = "failed".into();
                    detailed["error"] = error;
                }
            },
            Some("input_required") => {
                let capabilities = exchange.client().capabilities();
                let fetch = |inputs| fetch_in_background(tools, kept, inputs);
                let questions = self.task_inputs.questions(id, capabilities, fetch).await?;
                if questions.is_empty() {
                    // It has been answered, or the server has not asked yet.
                    detailed["status"] = "working".into();
                } else {
                    detailed["inputRequests"] = questions.into();
                }
            }
            _ => {}
        }
        RawResult::new(&detailed)
    }

    /// The result of a legacy server's task that has ended, or the server's error.
    async fn result_of(
        &self,
        tools: &ClientTools,
        kept: &KeptText,
        exchange: &Exchange,
    ) -> Result<Result<Value, Value>, RpcError> {
        let params = raw(&json!({ "taskId": kept.text }))?;
        let result = self.pass_on_request(tools, &kept.server, method::TASKS_RESULT, &params, exchange);
        match result.await {
            Forwarded::Result(result) => Ok(Ok(parse(&result)?)),
            Forwarded::Error { code, message, data } => {
                let mut error = json!({"code": code, "message": message.replace(&kept.text, "…")});
                if let Some(data) = data {
                    error["data"] = data;
                }
                Ok(Err(error))
            }
            Forwarded::Failed(failure) => Err(request_error(&failure)),
            _ => Err(unknown_outcome()),
        }
    }

    /// Starts a call as a task for a legacy client.
    pub(super) async fn start_task(
        &self,
        tools: &ClientTools,
        call: ToolCall,
        params: &Params,
        exchange: &Exchange,
    ) -> Answer {
        let known = find(&tools.toolset, &call.name).await?;
        let capabilities = tools.capabilities.convert(exchange.client());
        let mut forwarding = Forwarding::new().capabilities(capabilities.json).returns_tasks();
        if known.era != Some(Era::Modern) {
            let task = params.field("task").unwrap_or_default();
            let task: &serde_json::value::RawValue =
                serde_json::from_slice(&task).map_err(|error| RpcError::invalid_params(error.to_string()))?;
            forwarding = forwarding.params(raw(&json!({ "task": task }))?);
        }
        let _registered = capabilities
            .can_answer
            .then(|| tools.exchanges.register(&call.id, exchange));
        let server = known.tool.server.as_str();
        match self
            .pass_on_call(tools, call, &forwarding, exchange, Some(server))
            .await
        {
            Forwarded::Result(result) => self.seal_task(tools, &result, &known.tool, exchange),
            Forwarded::Error { code, message, data } => Err(server_error(code, message, data)),
            Forwarded::Failed(failure) if self.can_offer_sign_in(&failure) => Err(request_error(&failure)),
            Forwarded::Failed(failure) => answer_failed_call(&failure, || false),
            _ => Err(unknown_outcome()),
        }
    }

    /// Replaces the id in the result that created a task, and remembers the task. A legacy client that got a result at once gets a task that
    /// has ended.
    pub(super) fn seal_task(
        &self,
        tools: &ClientTools,
        result: &ForwardedResult,
        tool: &Tool,
        exchange: &Exchange,
    ) -> Answer {
        let is_modern = exchange.client().version().is_modern();
        let mut created: Value = parse(result)?;
        // A modern server's task is the result itself, a legacy one's a field of it.
        let is_legacy_task = created.get("task").is_some_and(Value::is_object);
        let task = if is_legacy_task {
            &mut created["task"]
        } else {
            &mut created
        };
        let text = task.get("taskId").and_then(Value::as_str).map(str::to_owned);
        if text.is_some() {
            let ttl = task.get("ttlMs").or(task.get("ttl")).and_then(Value::as_u64);
            tools.keep_for_task(ttl.map(Duration::from_millis));
        }
        let kind = if text.is_some() {
            KeptKind::Task
        } else {
            KeptKind::Result
        };
        let kept = KeptText {
            kind,
            server: tool.server.to_string(),
            tool: tool.name.clone(),
            text: text.unwrap_or_else(|| Timestamp::now().to_string()),
        };
        let id = kept.seal(exchange)?;
        let at_once = (kind == KeptKind::Result).then(|| (result.clone().into_bytes(), kept.text.clone()));
        if kind == KeptKind::Result {
            created = json!({ "task": finished_task(&id, &kept.text, result.is_error()) });
        } else {
            tools.exchanges.task_ids.note(&kept.server, &kept.text, &id);
            task["taskId"] = id.as_str().into();
            match (is_modern, is_legacy_task) {
                (false, false) => created = json!({ "task": legacy_task(&created) }),
                (true, true) => {
                    created = modern_task(&created["task"]);
                    created["resultType"] = "task".into();
                }
                _ => {}
            }
        }
        let own = OwnTask {
            id,
            kept,
            result: at_once,
        };
        self.tasks.add(&PrincipalKey::from_client(exchange.client()), own);
        Ok(RawResult::from_text(to_text(&created)?.into(), is_modern))
    }

    /// Sends a request about a task to its server, with the server's own id.
    async fn about_task(
        &self,
        tools: &ClientTools,
        method: &str,
        params: &Params,
        kept: &KeptText,
        exchange: &Exchange,
    ) -> Result<ForwardedResult, RpcError> {
        let mut params: Map<String, Value> = params.parse()?;
        params.insert("taskId".into(), kept.text.as_str().into());
        for answer in each(params.get_mut("inputResponses")) {
            replace_related(answer, |_| Some(kept.text.clone()));
        }
        // What the task was started with; some clients repeat it in every request about it.
        params.remove("task");
        let params = raw(&params)?;
        match self
            .pass_on_request(tools, &kept.server, method, &params, exchange)
            .await
        {
            Forwarded::Result(result) => Ok(result),
            Forwarded::Error { code, message, data } => {
                // The server's own id means nothing to the client.
                Err(server_error(code, message.replace(&kept.text, "…"), data))
            }
            Forwarded::Failed(failure) => Err(request_error(&failure)),
            _ => Err(unknown_outcome()),
        }
    }

    /// The status of a modern server's task as a legacy client reads it.
    async fn translate_status(
        &self,
        tools: &ClientTools,
        params: &Params,
        id: &str,
        kept: &KeptText,
        exchange: &Exchange,
    ) -> Answer {
        let result = self
            .about_task(tools, method::TASKS_GET, params, kept, exchange)
            .await?;
        let mut task: Value = parse(&result)?;
        task["taskId"] = id.into();
        RawResult::new(&legacy_task(&task))
    }

    /// The result of a modern server's task for a legacy client. What the server asks meanwhile reaches the client.
    async fn await_result(&self, tools: &ClientTools, id: &str, kept: &KeptText, exchange: &Exchange) -> Answer {
        let name = format!("{}.{}", kept.server, kept.tool);
        let _registered = tools.exchanges.register(&tools.exchanges.request_id(), exchange);
        let mut task = tools
            .toolset
            .task(&name, &kept.text)
            .await
            .map_err(|failure| request_error(&failure))?;
        write_result(&task.result(PATIENCE).await, id)
    }

    /// Answers a request about a call that was answered at once.
    fn answer_finished(&self, method: &str, id: &str, exchange: &Exchange) -> Answer {
        let owner = PrincipalKey::from_client(exchange.client());
        let found = self.tasks.find(&owner, id).and_then(|task| task.result);
        let Some((result, at)) = found else {
            return Err(RpcError::invalid_params(
                "the result of this task is not kept any longer",
            ));
        };
        let is_error = serde_json::from_slice::<Value>(&result).is_ok_and(|result| result["isError"] == true);
        match method {
            method::TASKS_GET => RawResult::new(&finished_task(id, &at, is_error)),
            method::TASKS_RESULT => Ok(RawResult::from_text(result, false)),
            method::TASKS_CANCEL => Err(RpcError::invalid_params("the task has ended and cannot be cancelled")),
            method => Err(RpcError::method_not_found(method)),
        }
    }

    /// Lists the client's own tasks. Those that their servers no longer know are left out.
    async fn list_tasks(&self, tools: &ClientTools, params: &Params, exchange: &Exchange) -> Answer {
        let own = self.tasks.list(&PrincipalKey::from_client(exchange.client()));
        let (own, next) = page(&own, params)?;
        let asked = stream::iter(own.to_vec()).map(|task| self.listed_task(tools, task, exchange));
        let tasks: Vec<Option<Value>> = asked.buffered(CONCURRENT).collect().await;
        let mut list = json!({ "tasks": tasks.into_iter().flatten().collect::<Vec<_>>() });
        if let Some(next) = next {
            list["nextCursor"] = next.into();
        }
        RawResult::new(&list)
    }

    async fn listed_task(&self, tools: &ClientTools, task: OwnTask, exchange: &Exchange) -> Option<Value> {
        let OwnTask { id, kept, result } = task;
        if let Some((_, at)) = result {
            return Some(finished_task(&id, &at, false));
        }
        tools.toolset.adopt_task(&kept.server, &kept.text).ok()?;
        let era = self.era_of(tools, &kept).await.ok()?;
        let params = raw(&json!({ "taskId": kept.text })).ok()?;
        let asked = self.pass_on_request(tools, &kept.server, method::TASKS_GET, &params, exchange);
        let Forwarded::Result(result) = asked.await else {
            return None;
        };
        let mut status: Value = parse(&result).ok()?;
        status["taskId"] = id.into();
        Some(if era == Era::Modern {
            legacy_task(&status)
        } else {
            status
        })
    }

    /// The era of the server that runs a task.
    async fn era_of(&self, tools: &ClientTools, kept: &KeptText) -> Result<Era, RpcError> {
        let described = tools.toolset.server_info(&kept.server).await;
        described
            .map(|server| server.era)
            .map_err(|failure| request_error(&failure))
    }
}

/// The params of `tasks/update`.
#[derive(Deserialize)]
struct UpdateTask {
    #[serde(rename = "inputResponses")]
    answers: Map<String, Value>,
}

/// Waits for the result of a legacy server's task, so that the server asks what it needs. The client reads the result later, with `tasks/get`.
fn fetch_in_background(tools: &Arc<ClientTools>, kept: &KeptText, inputs: Arc<Inputs>) -> AbortOnDropHandle<()> {
    let (tools, server) = (tools.clone(), kept.server.clone());
    let params = raw(&json!({ "taskId": kept.text }));
    AbortOnDropHandle::new(tokio::spawn(async move {
        let Ok(params) = params else { return };
        let id = tools.exchanges.request_id();
        let _registered = tools.exchanges.register_task(&id, inputs);
        let forwarding = Forwarding::new().id(&*id);
        let fetched = tools
            .toolset
            .forward(&server, method::TASKS_RESULT, &params, &forwarding, None);
        if let Forwarded::Failed(failure) = fetched.await {
            tracing::debug!(server, %failure, "the questions of a task were not fetched");
        }
    }))
}

/// Replaces the server's id of a task by the client's, in the places where the protocol has it.
fn with_own_id(result: ForwardedResult, theirs: &str, ours: &str) -> Answer {
    let has_type = result.has_result_type();
    let is_there = || memchr::memmem::find(result.json(), theirs.as_bytes()).is_some();
    if !is_there() {
        return request_answer(Forwarded::Result(result));
    }
    let mut fields: Map<String, Value> = parse(&result)?;
    replace(fields.get_mut("taskId"), theirs, ours);
    let related = fields
        .get_mut("_meta")
        .and_then(|meta| meta.get_mut(meta::RELATED_TASK));
    replace(related.and_then(|related| related.get_mut("taskId")), theirs, ours);
    for question in each(fields.get_mut("inputRequests")) {
        if let Some(params) = question.get_mut("params") {
            replace_related(params, |named| (named == theirs).then(|| ours.to_owned()));
        }
    }
    Ok(RawResult::from_text(to_text(&fields)?.into(), has_type))
}

/// The values of an object.
fn each(field: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    field
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(Map::values_mut)
}

fn replace(field: Option<&mut Value>, theirs: &str, ours: &str) {
    if let Some(field) = field
        && *field == theirs
    {
        *field = ours.into();
    }
}
