//! The protocol core: maps a message and the faults that apply to it to the acts of the server. No I/O and no state:
//! cursors and input rounds are carried in the messages themselves.

mod act;
mod context;
mod fill;
mod input;
mod list;
mod request;
mod result;
mod spoil;
mod task;
mod tool;

pub(crate) use act::Act;
pub(crate) use request::{HEADERS, is_modern};
pub(crate) use result::append;

use pegboard_protocol::{
    capability::extension,
    code, meta,
    method::{self, notification},
};
use serde_json::{Value, json};

use request::Request;

use crate::{
    fault::Fault,
    script::{Effect, Era, Refusal, Script},
};

/// The acts in response to a message.
pub(crate) fn answer(script: &Script, faults: &[Fault], message: &Value) -> Vec<Act> {
    let Some(request) = Request::read(script, message) else {
        return Vec::new();
    };
    let acts = if request.id.is_some() {
        reply(script, faults, &request)
    } else {
        Vec::new()
    };
    faults
        .iter()
        .fold(acts, |acts, fault| spoil::spoil(acts, fault, &request))
}

/// The acts before the server reads anything.
pub(crate) fn open(script: &Script) -> Vec<Act> {
    // A fault with a trigger waits for its request.
    let rules = script.faults.iter().filter(|rule| rule.when.method.is_none());
    rules.flat_map(|rule| spoil::at_start(&rule.fault)).collect()
}

fn reply(script: &Script, faults: &[Fault], request: &Request<'_>) -> Vec<Act> {
    match request.method {
        method::INITIALIZE if script.era == Era::Modern => return refuse(script.on_initialize, request),
        method::SERVER_DISCOVER if script.era == Era::Legacy => return refuse(script.on_discover, request),
        _ => {}
    }
    if request.modern
        && let Some(error) = modern_error(script, request)
    {
        return vec![Act::Answer(error)];
    }
    let capabilities = capabilities(script);
    let answer = match (request.method, request.modern) {
        (method::INITIALIZE, false) => initialize(script, request),
        (method::SERVER_DISCOVER, true) => discover(script, request),
        (method::PING, false) => request.result(script, json!({})),
        (method::LOGGING_SET_LEVEL, false) => {
            let level = request.params["level"].as_str().unwrap_or_default().to_owned();
            return vec![Act::SetLevel(level), Act::Answer(request.result(script, json!({})))];
        }
        (method::TOOLS_LIST, _) if capabilities["tools"].is_object() => return list::tools(script, faults, request),
        (method::TOOLS_CALL, _) if capabilities["tools"].is_object() => return tool::call(script, faults, request),
        (method::RESOURCES_LIST | method::RESOURCES_TEMPLATES_LIST | method::RESOURCES_READ, _)
            if capabilities["resources"].is_object() =>
        {
            return context::resources(script, request);
        }
        (method::PROMPTS_LIST | method::PROMPTS_GET, _) if capabilities["prompts"].is_object() => {
            return context::prompts(script, request);
        }
        (method::SUBSCRIPTIONS_LISTEN, true) => return listen(request),
        (method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE, false)
            if capabilities["resources"]["subscribe"] == true =>
        {
            return vec![subscribe(request), Act::Answer(request.result(script, json!({})))];
        }
        (method::COMPLETION_COMPLETE, _) if capabilities["completions"].is_object() => {
            return context::completions(script, request);
        }
        (method::TASKS_GET | method::TASKS_RESULT | method::TASKS_CANCEL, _) if task::are_offered(script) => {
            return task::about(script, request);
        }
        _ => request.unknown_method(),
    };
    vec![Act::Answer(answer)]
}

fn refuse(refusal: Refusal, request: &Request<'_>) -> Vec<Act> {
    match refusal {
        Refusal::Error { code } => {
            vec![Act::Answer(request.error(
                code,
                &format!("cannot serve {}", request.method),
                None,
            ))]
        }
        Refusal::Exit { code } => vec![Act::Die(code)],
        Refusal::Silence => vec![Act::Hang],
    }
}

fn modern_error(script: &Script, request: &Request<'_>) -> Option<Value> {
    let meta = &request.params["_meta"];
    let missing = [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES]
        .into_iter()
        .find(|key| meta.get(key).is_none());
    if let Some(key) = missing {
        return Some(request.error(code::INVALID_PARAMS, &format!("missing _meta key {key}"), None));
    }
    let wanted = meta[meta::PROTOCOL_VERSION].as_str().unwrap_or_default();
    if script.modern_versions.iter().any(|version| version == wanted) {
        return None;
    }
    let data = json!({ "requested": wanted, "supported": script.modern_versions });
    Some(request.error(code::UNSUPPORTED_VERSION, "unsupported protocol version", Some(&data)))
}

fn initialize(script: &Script, request: &Request<'_>) -> Value {
    let wanted = request.params["protocolVersion"].as_str().unwrap_or_default();
    let spoken = script
        .versions
        .iter()
        .find(|version| *version == wanted)
        .or(script.versions.last());
    let mut result = json!({
        "protocolVersion": spoken,
        "capabilities": capabilities(script),
        "serverInfo": { "name": script.name, "version": script.server_version },
    });
    if let Some(instructions) = &script.instructions {
        result["instructions"] = instructions.clone().into();
    }
    request.result(script, result)
}

fn discover(script: &Script, request: &Request<'_>) -> Value {
    let mut result = json!({ "supportedVersions": script.modern_versions, "capabilities": capabilities(script) });
    if let Some(instructions) = &script.instructions {
        result["instructions"] = instructions.clone().into();
    }
    request.cacheable_result(script, result)
}

fn capabilities(script: &Script) -> Value {
    if let Some(capabilities) = &script.capabilities {
        return capabilities.clone();
    }
    let mut capabilities = json!({ "tools": { "listChanged": true } });
    if !script.resources.is_empty() || !script.templates.is_empty() {
        capabilities["resources"] = json!({ "listChanged": true });
    }
    let tools = || script.tools.iter();
    if tools()
        .flat_map(|tool| &tool.effects)
        .any(|effect| matches!(effect, Effect::SetResource { .. }))
    {
        capabilities["resources"]["subscribe"] = true.into();
    }
    if tools().any(|tool| !tool.logs.is_empty()) {
        capabilities["logging"] = json!({});
    }
    if script.prompts.iter().any(|prompt| prompt["completions"].is_object()) {
        capabilities["completions"] = json!({});
    }
    if !script.prompts.is_empty() {
        capabilities["prompts"] = json!({ "listChanged": true });
    }
    if task::are_offered(script) {
        capabilities["tasks"] = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
        capabilities["extensions"] = json!({ extension::TASKS: {} });
    }
    capabilities
}

fn subscribe(request: &Request<'_>) -> Act {
    Act::Subscribe {
        uri: request.params["uri"].as_str().unwrap_or_default().to_owned(),
        on: request.method == method::RESOURCES_SUBSCRIBE,
    }
}

fn listen(request: &Request<'_>) -> Vec<Act> {
    let filter = request.params["notifications"].clone();
    let acknowledged = json!({
        "jsonrpc": "2.0",
        "method": notification::SUBSCRIPTIONS_ACKNOWLEDGED,
        "params": { "_meta": { meta::SUBSCRIPTION_ID: request.id() }, "notifications": filter },
    });
    vec![
        Act::Send(acknowledged),
        Act::Listen {
            id: request.id(),
            filter,
            limit: None,
        },
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::script::Tool;

    fn acts(fault: Fault) -> Vec<Act> {
        let mut script = Script::new("s");
        script.tools.push(Tool::new("t"));
        let params = json!({ "name": "t", "arguments": { "nonce": "n" } });
        answer(
            &script,
            &[fault],
            &json!({ "id": 1, "method": "tools/call", "params": params }),
        )
    }

    #[test]
    fn a_death_before_the_call_leaves_no_trace_in_the_ledger() {
        assert_eq!(acts(Fault::DiesBeforeExecuting { code: 3 }), [Act::Die(3)]);
        assert_eq!(
            acts(Fault::DiesAfterExecuting { code: 3 }),
            [Act::Record("n".into()), Act::Die(3)]
        );
    }

    #[test]
    fn a_notification_gets_no_answer_but_may_trigger_a_fault() {
        let script = Script::new("s");
        let note = json!({ "method": "notifications/initialized" });
        assert_eq!(answer(&script, &[], &note), []);
        let dies = answer(&script, &[Fault::DiesIdle { after_ms: 5 }], &note);
        assert_eq!(dies, [Act::Wait(Duration::from_millis(5)), Act::Die(0)]);
    }

    #[test]
    fn faults_of_the_start_wait_for_their_trigger_if_they_have_one() {
        let mut script = Script::new("s");
        script.add_fault(Fault::SlowStart { ms: 7 }, crate::fault::When::default());
        script.add_fault(Fault::NoiseAtStart { lines: 1 }, crate::fault::When::method("ping"));
        assert_eq!(open(&script), [Act::Wait(Duration::from_millis(7))]);
    }
}
