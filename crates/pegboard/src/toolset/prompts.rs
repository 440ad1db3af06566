//! [`Prompts`]: lists the prompts of all servers, and gets one with validated arguments.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{lister::Lister, listing::Unavailable, open_view::OpenView, server_requests::ServerRequests};
use crate::{call::check_text, server::Live};
use pegboard_client::session::Fault;
use pegboard_tools::{
    catalog::Prompt,
    outcome::{Failure, FilledPrompt, Kind},
};

/// The available prompts, and why others are unavailable.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct PromptListing {
    /// The prompts by server, then by name.
    pub prompts: Vec<Prompt>,
    /// The servers whose prompts are missing.
    pub unavailable: Vec<Unavailable>,
    /// Problems of the listings.
    pub warnings: Vec<String>,
}

/// The prompts of a view.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prompts<'a> {
    open: &'a OpenView,
}

impl<'a> Prompts<'a> {
    pub(super) fn new(open: &'a OpenView) -> Self {
        Self { open }
    }

    /// Lists the prompts of all servers, after those that are not ready were started.
    pub(super) fn list(self, patience: Duration) -> BoxFuture<'a, PromptListing> {
        Box::pin(async move {
            let (catalogs, unavailable, warnings) = Lister::new(self.open).list_catalogs(patience).await;
            PromptListing {
                prompts: catalogs.iter().flat_map(|catalog| catalog.prompts.clone()).collect(),
                unavailable,
                warnings,
            }
        })
    }

    /// Gets a prompt of a server with its arguments filled in.
    pub(super) fn get(
        self,
        server: &'a str,
        name: &'a str,
        arguments: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<FilledPrompt, Failure>> {
        Box::pin(async move {
            let requests = ServerRequests::new(self.open);
            let server = &requests.parse_name(server)?;
            let what = format!("getting the prompt {name}");
            let request = requests.begin().await?;
            let (target, live) = requests.connect(server).await?;
            let exposure = target.listing().exposure();
            if exposure.is_some_and(|exposure| exposure.holds_prompt(name)) {
                let message = format!(
                    "the prompt `{}` of server `{server}` is held: it looks like an attack",
                    name.escape_debug()
                );
                return Err(Failure::new(Kind::NotPermitted, message));
            }
            let known = live.catalog().prompts.iter().find(|prompt| prompt.name == name);
            if known.is_none() && !live.catalog().prompts.is_empty() {
                let names: Vec<_> = live
                    .catalog()
                    .prompts
                    .iter()
                    .map(|prompt| prompt.name.as_str())
                    .collect();
                let message = format!("server `{server}` has no prompt `{}`", name.escape_debug());
                let failure =
                    Failure::new(Kind::InvalidArguments, message).hint(format!("it has {}", names.join(", ")));
                return Err(failure.into_masked(&live.session.masker().current()));
            }
            for value in arguments.values().filter_map(Value::as_str) {
                check_text(&target, name, value)?;
            }
            let arguments = &convert_arguments(known, arguments)?;
            let on_behalf = request.on_behalf(self.open);
            let get = |live: Live| async move {
                let filled: Result<FilledPrompt, Fault> = live.session.get_prompt(name, arguments, on_behalf).await;
                filled
            };
            requests.read(server, "prompts", &what, get).await
        })
    }
}

/// Validates the arguments of a prompt and converts them to strings. A prompt that is not listed takes any arguments.
fn convert_arguments(prompt: Option<&Prompt>, arguments: &Map<String, Value>) -> Result<Map<String, Value>, Failure> {
    let wrong = |message: String| Failure::new(Kind::InvalidArguments, message);
    let mut texts = Map::new();
    for (key, value) in arguments {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Null => continue,
            Value::Array(_) | Value::Object(_) => {
                return Err(wrong(format!("the argument `{key}` must be a text")));
            }
        };
        texts.insert(key.clone(), text.into());
    }
    let Some(prompt) = prompt else { return Ok(texts) };
    let name = |argument: &Value| argument.get("name").and_then(Value::as_str).map(str::to_owned);
    let names: Vec<String> = prompt.arguments.iter().filter_map(name).collect();
    let hint = || match names.as_slice() {
        [] => "it takes none".to_owned(),
        names => format!("its arguments are {}", names.join(", ")),
    };
    if let Some(unknown) = texts.keys().find(|key| !names.contains(key)) {
        return Err(wrong(format!("the prompt `{}` has no argument `{unknown}`", prompt.name)).hint(hint()));
    }
    for argument in &prompt.arguments {
        let is_required = argument.get("required") == Some(&Value::Bool(true));
        if let Some(name) = name(argument)
            && is_required
            && !texts.contains_key(&name)
        {
            return Err(wrong(format!("the prompt `{}` needs the argument `{name}`", prompt.name)).hint(hint()));
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pegboard_base::name::ServerName;
    use serde_json::json;

    #[test]
    fn arguments_are_checked_against_what_the_prompt_takes() {
        let prompt = Prompt {
            server: ServerName::parse("fx").unwrap(),
            name: "p".into(),
            title: None,
            description: None,
            arguments: vec![json!({"name": "city", "required": true}), json!({"name": "days"})],
            more: None,
        };
        let check = |arguments: Value, expected: Result<Value, &str>| {
            let got = convert_arguments(Some(&prompt), arguments.as_object().unwrap());
            match (got, expected) {
                (Ok(got), Ok(expected)) => assert_eq!(Value::Object(got), expected),
                (Err(failure), Err(words)) => {
                    assert!(failure.message.contains(words), "{}", failure.message);
                    assert_eq!(failure.kind, Kind::InvalidArguments);
                }
                (got, expected) => panic!("{got:?} instead of {expected:?}"),
            }
        };
        check(
            json!({"city": "Oslo", "days": 3}),
            Ok(json!({"city": "Oslo", "days": "3"})),
        );
        check(json!({"city": "Oslo", "days": null}), Ok(json!({"city": "Oslo"})));
        check(json!({"days": "3"}), Err("needs the argument `city`"));
        check(json!({"city": "Oslo", "x": 1}), Err("has no argument `x`"));
        check(json!({"city": ["Oslo"]}), Err("must be a text"));
        let anything = json!({"x": true});
        assert_eq!(
            Value::Object(convert_arguments(None, anything.as_object().unwrap()).unwrap()),
            json!({"x": "true"})
        );
    }
}
