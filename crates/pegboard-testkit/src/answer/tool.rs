//! The acts of a `tools/call`: waits, progress, requests to the client, and the response.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    act::Act,
    request::Request,
    result::{final_answer, nonce},
    task,
};
use crate::{
    fault::Fault,
    script::{Answer, Ask, Script, Tool},
};

pub(super) fn call(script: &Script, faults: &[Fault], request: &Request<'_>) -> Vec<Act> {
    let name = request.params["name"].as_str().unwrap_or_default();
    let Some(tool) = script.tools.iter().find(|tool| tool.name() == name) else {
        return vec![Act::Answer(request.error(
            -32602,
            &format!("unknown tool: {name}"),
            None,
        ))];
    };
    if request.modern
        && let Some(question) = input_required(tool, faults, request)
    {
        return vec![Act::Answer(request.result(script, question))];
    }
    let mut acts = Vec::new();
    if let Some(nonce) = nonce(request)
        && !matches!(tool.answer, Answer::RpcError { .. })
    {
        acts.push(Act::Record(nonce));
    }
    if let Some(gate) = &tool.gate {
        acts.push(Act::Gate(gate.clone()));
    }
    if let Some(token) = request.progress_token()
        && tool.progress > 0
    {
        let every = Duration::from_millis(tool.progress_every_ms);
        acts.push(Act::Progress {
            token: token.clone(),
            count: Some(tool.progress),
            every,
        });
    }
    if !request.modern {
        acts.extend(tool.asks.iter().map(|ask| Act::Ask(question(tool, *ask, request))));
    }
    let delay = tool.delay_ms + request.params["arguments"]["delay_ms"].as_u64().unwrap_or(0);
    if delay > 0 {
        acts.push(Act::Wait(Duration::from_millis(delay)));
    }
    acts.push(Act::Answer(if task::is_wanted(tool, request) {
        task::made(script, tool, request)
    } else {
        final_answer(script, tool, request)
    }));
    acts
}

/// The `input_required` result of the next round, or `None` after the last. The round number is in the request state; a
/// state that is not exactly ours starts again.
fn input_required(tool: &Tool, faults: &[Fault], request: &Request<'_>) -> Option<Value> {
    let state = request.params["requestState"].as_str();
    let answered = request.params["inputResponses"].is_object();
    let round = state
        .filter(|_| answered)
        .and_then(|state| state.strip_prefix("round \u{1f980} ")?.parse().ok());
    let round: u32 = round.unwrap_or(0);
    let mut rounds = tool.input_rounds;
    let mut padding = 0;
    for fault in faults {
        match fault {
            Fault::InputForEver => rounds = u32::MAX,
            Fault::HugeRequestState { bytes } => (rounds, padding) = (u32::MAX, *bytes),
            _ => {}
        }
    }
    if round >= rounds {
        return None;
    }
    let state = if padding > 0 {
        "s".repeat(padding)
    } else {
        format!("round \u{1f980} {}", round + 1)
    };
    Some(json!({
        "resultType": "input_required",
        "inputRequests": { "question": {
            "method": "elicitation/create",
            "params": elicitation(tool),
        } },
        "requestState": state,
    }))
}

fn elicitation(tool: &Tool) -> Value {
    let colour = || json!({ "type": "object", "properties": { "colour": { "type": "string" } } });
    let form = tool.form.clone().unwrap_or_else(colour);
    json!({ "mode": "form", "message": "Which colour?", "requestedSchema": form })
}

/// A request to the client, with an id of its own unless the script wants a clash of ids.
fn question(tool: &Tool, ask: Ask, request: &Request<'_>) -> Value {
    let (method, params) = match ask {
        Ask::Roots => ("roots/list", json!({})),
        Ask::Elicitation => ("elicitation/create", elicitation(tool)),
        Ask::Sampling => (
            "sampling/createMessage",
            json!({
                "messages": [{ "role": "user", "content": { "type": "text", "text": "Say one word." } }],
                "maxTokens": 5,
            }),
        ),
        Ask::Ping | Ask::PingWithTheSameId => ("ping", json!({})),
        Ask::Unknown => ("vendor/unheard_of", json!({})),
    };
    let id = match ask {
        Ask::PingWithTheSameId => request.id(),
        _ => format!("ask-{method}-{}", request.id()).into(),
    };
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}
