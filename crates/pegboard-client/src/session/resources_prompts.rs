//! Reads resources, gets prompts and completes arguments.

use pegboard_protocol::method;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    calls_in_flight::CallInFlight,
    fault::Fault,
    host::OnBehalf,
    input_rounds::{RoundsRequest, RoundsResult},
    json_rpc::Params,
    mcp_session::Session,
    pass_on::PassOn,
    request::Request,
    response::parse_result,
};
use pegboard_tools::outcome::{Completion, FilledPrompt, PromptMessage, ResourceContents};

/// The most values of a completion that are kept. The protocol allows a hundred.
const MAX_VALUES: usize = 100;

/// The prompt or template whose argument is completed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompletionOf {
    /// An argument of the prompt of this name.
    Prompt(String),
    /// A variable of this URI template.
    Template(String),
}

/// The result of `resources/read`.
#[derive(Debug, Deserialize)]
struct ReadResult {
    #[serde(default)]
    contents: Option<Vec<ResourceContents>>,
}

impl RoundsResult for ReadResult {}

/// The result of `prompts/get`.
#[derive(Debug, Deserialize)]
struct PromptResult {
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    messages: Option<Vec<PromptMessage>>,
}

impl RoundsResult for PromptResult {}

/// The result of `completion/complete`.
#[derive(Deserialize)]
struct CompleteResult {
    completion: Completion,
}

impl Session {
    /// Reads a resource.
    pub async fn read_resource(&self, uri: &str, on_behalf: OnBehalf<'_>) -> Result<Vec<ResourceContents>, Fault> {
        let params = || Params::default().with("uri", uri);
        let request = self.rounds_request(method::RESOURCES_READ, uri, on_behalf);
        let result: ReadResult = self.mask_fault(self.send_for_result(request, params).await)?;
        let contents = result.contents;
        let mut contents = contents.ok_or_else(|| Fault::unreadable("`contents` is missing"))?;
        self.mask_blocking(move |masker| {
            contents.iter_mut().for_each(|contents| contents.mask(masker));
            contents
        })
        .await
    }

    /// Gets a prompt with its arguments filled in.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        on_behalf: OnBehalf<'_>,
    ) -> Result<FilledPrompt, Fault> {
        let params = || Params::default().with("name", name).with("arguments", arguments);
        let request = self.rounds_request(method::PROMPTS_GET, name, on_behalf);
        let result: PromptResult = self.mask_fault(self.send_for_result(request, params).await)?;
        let Some(messages) = result.messages else {
            return Err(Fault::unreadable("`messages` is missing"));
        };
        let mut prompt = FilledPrompt {
            description: result.description,
            messages,
        };
        self.mask_blocking(move |masker| {
            prompt.mask(masker);
            prompt
        })
        .await
    }

    /// Completes the value of an argument. `context` holds the arguments that are already set.
    pub async fn complete(
        &self,
        of: &CompletionOf,
        argument: &str,
        value: &str,
        context: &Map<String, Value>,
        on_behalf: OnBehalf<'_>,
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
        let mut in_flight = self.register(on_behalf);
        let owner = in_flight.as_ref().map(CallInFlight::owner);
        let request = Request {
            offers: on_behalf.offers(),
            owner,
            ..Request::new(method::COMPLETION_COMPLETE, params)
        };
        let registered = |id| owner.into_iter().for_each(|owner| owner.set_request(id));
        let mut sent = self.connection.send_request(&request, registered)?;
        let result = sent.response(self.patience()).await?.result()?;
        in_flight.iter_mut().for_each(CallInFlight::complete);
        let mut completion = self.mask_fault(parse_result::<CompleteResult>(&result))?.completion;
        if completion.values.len() > MAX_VALUES {
            completion.values.truncate(MAX_VALUES);
            completion.has_more = Some(true);
        }
        completion.values.iter_mut().for_each(|value| self.masker().hide(value));
        Ok(completion)
    }

    /// Masks the secrets in a fault.
    fn mask_fault<T>(&self, result: Result<T, Fault>) -> Result<T, Fault> {
        result.map_err(|fault| fault.into_masked(self.masker()))
    }

    fn rounds_request<'a>(&self, method: &'static str, about: &'a str, on_behalf: OnBehalf<'a>) -> RoundsRequest<'a> {
        RoundsRequest {
            method: method.into(),
            about: Some(about),
            mirrored: Vec::new(),
            patience: self.patience(),
            on_behalf,
            in_flight: self.register(on_behalf),
            progress: None,
            meta: String::new(),
            as_task: false,
            pass_on: PassOn::default(),
        }
    }
}
