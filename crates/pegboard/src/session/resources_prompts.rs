//! What is read from a server besides the results of tools: resources, prompts and completions.

use arc_swap::Guard;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{
    Fault, Patience, Request, Session,
    input_rounds::{Asked, InputRequests, Round, Rounds, read},
    json_rpc::Params,
};
use crate::{
    deadline::Deadline,
    mask::Masker,
    outcome::{Completion, FilledPrompt, PromptMessage, ResourceContents},
};

/// The most values of a completion that are kept. The protocol allows a hundred.
const MAX_VALUES: usize = 100;

/// What a completion is for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompletionOf {
    /// An argument of the prompt of this name.
    Prompt(String),
    /// A variable of this pattern of addresses.
    Template(String),
}

/// What a resource holds, as it came.
#[derive(Debug, Deserialize)]
struct ReadResult {
    #[serde(default)]
    contents: Option<Vec<ResourceContents>>,
    #[serde(default, rename = "resultType")]
    result_type: Option<String>,
    #[serde(default, rename = "inputRequests")]
    input_requests: Option<InputRequests>,
    #[serde(default, rename = "requestState")]
    request_state: Option<String>,
}

impl Rounds for ReadResult {
    fn result_type(&self) -> Option<&str> {
        self.result_type.as_deref()
    }

    fn take_round(&mut self) -> Round {
        Round {
            requests: self.input_requests.take().unwrap_or_default(),
            state: self.request_state.take(),
        }
    }
}

/// A prompt, as it came.
#[derive(Debug, Deserialize)]
struct PromptResult {
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    messages: Option<Vec<PromptMessage>>,
    #[serde(default, rename = "resultType")]
    result_type: Option<String>,
    #[serde(default, rename = "inputRequests")]
    input_requests: Option<InputRequests>,
    #[serde(default, rename = "requestState")]
    request_state: Option<String>,
}

impl Rounds for PromptResult {
    fn result_type(&self) -> Option<&str> {
        self.result_type.as_deref()
    }

    fn take_round(&mut self) -> Round {
        Round {
            requests: self.input_requests.take().unwrap_or_default(),
            state: self.request_state.take(),
        }
    }
}

#[derive(Deserialize)]
struct CompleteResult {
    completion: Completion,
}

impl Session {
    /// Reads a resource.
    pub(crate) async fn read_resource(&self, uri: &str) -> Result<Vec<ResourceContents>, Fault> {
        let params = || Params::default().with("uri", uri);
        let asking = self.rounds_to_result(self.plain("resources/read", uri), params);
        let result: ReadResult = self.shown(asking.await)?;
        let contents = result.contents;
        let mut contents = contents.ok_or_else(|| Fault::unreadable("`contents` is missing"))?;
        self.hidden_apart(move |masker| {
            contents.iter_mut().for_each(|contents| contents.mask(masker));
            contents
        })
        .await
    }

    /// Gets a prompt with its arguments filled in.
    pub(crate) async fn get_prompt(&self, name: &str, arguments: &Map<String, Value>) -> Result<FilledPrompt, Fault> {
        let params = || Params::default().with("name", name).with("arguments", arguments);
        let asking = self.rounds_to_result(self.plain("prompts/get", name), params);
        let result: PromptResult = self.shown(asking.await)?;
        let Some(messages) = result.messages else {
            return Err(Fault::unreadable("`messages` is missing"));
        };
        let mut prompt = FilledPrompt {
            description: result.description,
            messages,
        };
        self.hidden_apart(move |masker| {
            prompt.mask(masker);
            prompt
        })
        .await
    }

    /// What the server suggests for the value of an argument; `context` are the arguments that are set already.
    pub(crate) async fn complete(
        &self,
        of: &CompletionOf,
        argument: &str,
        value: &str,
        context: &Map<String, Value>,
    ) -> Result<Completion, Fault> {
        let reference = match of {
            CompletionOf::Prompt(name) => serde_json::json!({ "type": "ref/prompt", "name": name }),
            CompletionOf::Template(uri) => serde_json::json!({ "type": "ref/resource", "uri": uri }),
        };
        let argument = serde_json::json!({ "name": argument, "value": value });
        let mut params = Params::default().with("ref", &reference).with("argument", &argument);
        if !context.is_empty() {
            params = params.with("context", &serde_json::json!({ "arguments": context }));
        }
        let request = Request::new("completion/complete", params);
        let answer = self.connection.request(request, self.patience()).await?;
        let mut completion = self.shown(read::<CompleteResult>(&answer))?.completion;
        if completion.values.len() > MAX_VALUES {
            completion.values.truncate(MAX_VALUES);
            completion.has_more = Some(true);
        }
        completion.values.iter_mut().for_each(|value| self.masker().hide(value));
        Ok(completion)
    }

    /// Masks off the async threads: resources, prompts and catalogs may be megabytes long. What is not masked in time is withheld.
    pub(super) async fn hidden_apart<T: Send + 'static>(
        &self,
        hide: impl FnOnce(&Masker) -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let masker = Guard::into_inner(self.masker().current());
        let (started, deadline) = (Instant::now(), self.patience().total);
        match deadline.run(tokio::task::spawn_blocking(move || hide(&masker))).await {
            Ok(Ok(hidden)) => Ok(hidden),
            Ok(Err(_)) => Err(Fault::unreadable("hiding the secrets in it failed, so it is withheld")),
            Err(_) => Err(Fault::late(started)),
        }
    }

    /// What was read, or the words of the server in what went wrong masked.
    fn shown<T>(&self, read: Result<T, Fault>) -> Result<T, Fault> {
        read.map_err(|fault| fault.hidden(self.masker()))
    }

    fn plain<'a>(&self, method: &'static str, about: &'a str) -> Asked<'a> {
        Asked {
            method,
            about,
            mirrored: Vec::new(),
            patience: self.patience(),
            steps: None,
            meta: String::new(),
            as_task: false,
        }
    }

    pub(super) fn patience(&self) -> Patience {
        Patience {
            idle: self.limits.call_idle,
            total: Deadline::within(self.limits.call_total),
        }
    }
}
