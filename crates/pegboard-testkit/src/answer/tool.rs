//! The acts of a `tools/call`: waits, progress, requests to the client, and the response.

use std::time::Duration;

use pegboard_protocol::{code, meta, method};
use serde_json::{Value, json};

use super::{
    act::Act,
    fill::{fill, fill_text},
    input,
    request::Request,
    result::{append, final_answer, nonce},
    task,
};
use crate::{
    fault::Fault,
    script::{Answer, Ask, Effect, Question, Script, Tool},
};

pub(super) fn call(script: &Script, faults: &[Fault], request: &Request<'_>) -> Vec<Act> {
    let name = request.params["name"].as_str().unwrap_or_default();
    let Some(tool) = script.tools.iter().find(|tool| tool.name() == name) else {
        return vec![Act::Answer(request.error(
            code::INVALID_PARAMS,
            &format!("unknown tool: {name}"),
            None,
        ))];
    };
    if request.modern
        && let Some(question) = next_input_round(tool, faults, request)
    {
        return vec![Act::Answer(request.result(script, question))];
    }
    let answers = match modern_answers(script, tool, request) {
        Ok(answers) => answers,
        Err(response) => return vec![Act::Answer(response)],
    };
    let mut acts = Vec::new();
    if let Some(nonce) = nonce(request)
        && !matches!(tool.answer, Answer::RpcError { .. })
    {
        acts.push(Act::Record(nonce));
    }
    if let Some(gate) = &tool.gate {
        acts.push(Act::Gate(gate.clone()));
    }
    acts.extend(progress(tool, request));
    acts.extend(logs(tool, request));
    if !request.modern {
        acts.extend(tool.asks.iter().map(|ask| Act::Ask(question(tool, *ask, request))));
        // A task asks later.
        if !task::is_wanted(tool, request) {
            acts.extend(legacy_questions(&tool.questions, request));
        }
    }
    let delay = tool.delay_ms + request.params["arguments"]["delay_ms"].as_u64().unwrap_or(0);
    if delay > 0 {
        acts.push(Act::Wait(Duration::from_millis(delay)));
    }
    acts.extend(
        tool.effects
            .iter()
            .map(|effect| Act::Apply(fill_effect(effect, request))),
    );
    acts.push(Act::Answer(if task::is_wanted(tool, request) {
        task::created_task(script, tool, request)
    } else {
        let mut answer = final_answer(script, tool, request);
        append(&mut answer, &answers);
        answer
    }));
    acts
}

/// The answers to the tool's questions in the modern era; none in the legacy era, in which they come during the call.
fn modern_answers(script: &Script, tool: &Tool, request: &Request<'_>) -> Result<Vec<Value>, Value> {
    if request.modern {
        input::collect_answers(script, tool.name(), &tool.questions, request)
    } else {
        Ok(Vec::new())
    }
}

fn progress(tool: &Tool, request: &Request<'_>) -> Option<Act> {
    let token = request.progress_token().filter(|_| tool.progress > 0)?;
    Some(Act::Progress {
        token: token.clone(),
        count: Some(tool.progress),
        every: Duration::from_millis(tool.progress_every_ms),
    })
}

/// The log messages of a call. A modern request names the level from which on it wants them.
fn logs(tool: &Tool, request: &Request<'_>) -> Vec<Act> {
    let threshold = request.params["_meta"][meta::LOG_LEVEL].as_str();
    let mut acts = Vec::new();
    for line in &tool.logs {
        if line.delay_ms > 0 {
            acts.push(Act::Wait(Duration::from_millis(line.delay_ms)));
        }
        if !request.modern {
            acts.push(Act::Log(line.clone()));
        } else if threshold.is_some_and(|threshold| line.reaches(threshold)) {
            acts.push(Act::Send(line.notice()));
        }
    }
    acts
}

/// The questions of the legacy era: requests to the client, those of a round together.
pub(super) fn legacy_questions(rounds: &[Vec<Question>], request: &Request<'_>) -> Vec<Act> {
    let filled = |question: &Question| Question {
        params: fill(&question.params, &request.params["arguments"]),
        ..question.clone()
    };
    let rounds = rounds.iter().map(|round| round.iter().map(filled).collect());
    rounds.map(Act::Questions).collect()
}

fn fill_effect(effect: &Effect, request: &Request<'_>) -> Effect {
    match effect {
        Effect::SetResource { uri, text } => Effect::SetResource {
            uri: uri.clone(),
            text: fill_text(text, &request.params["arguments"]),
        },
        other => other.clone(),
    }
}

/// The `input_required` result of the next round, or `None` after the last. The round number is in the request state; a
/// state that is not exactly ours starts again.
fn next_input_round(tool: &Tool, faults: &[Fault], request: &Request<'_>) -> Option<Value> {
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
            "method": method::ELICITATION_CREATE,
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
        Ask::Roots => (method::ROOTS_LIST, json!({})),
        Ask::Elicitation => (method::ELICITATION_CREATE, elicitation(tool)),
        Ask::Sampling => (
            method::SAMPLING_CREATE_MESSAGE,
            json!({
                "messages": [{ "role": "user", "content": { "type": "text", "text": "Say one word." } }],
                "maxTokens": 5,
            }),
        ),
        Ask::Ping | Ask::PingWithTheSameId => (method::PING, json!({})),
        Ask::Unknown => ("vendor/unheard_of", json!({})),
    };
    let id = match ask {
        Ask::PingWithTheSameId => request.id(),
        _ => format!("ask-{method}-{}", request.id()).into(),
    };
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}
