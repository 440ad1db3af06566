//! Questions to the client in the modern era: `input_required` results, and the check of what the client sends back.
//!
//! The request state carries the round and the answers so far, with a checksum: a state that was changed on the way, or is of
//! another tool, is refused. The checksum is no secret. It finds mistakes of clients, not attacks.

use std::hash::{DefaultHasher, Hash, Hasher};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use pegboard_protocol::{code, meta};
use serde_json::{Map, Value, json};

use super::{fill::fill, request::Request};
use crate::script::{Question, Script};

/// The answers to all rounds, each as `{"KEY": ANSWER}`. `Err` is the response to send instead: the next round, or an error.
/// `owner` is the tool or prompt that asks.
pub(super) fn collect_answers(
    script: &Script,
    owner: &str,
    rounds: &[Vec<Question>],
    request: &Request<'_>,
) -> Result<Vec<Value>, Value> {
    if rounds.is_empty() {
        return Ok(Vec::new());
    }
    let invalid = |text: &str| request.error(code::INVALID_PARAMS, text, None);
    let (done, mut answers) = match request.params.get("requestState") {
        None => (0, Vec::new()),
        Some(state) => {
            let opened = state.as_str().and_then(|state| open(owner, state));
            opened.ok_or_else(|| invalid("requestState is not what this server sent"))?
        }
    };
    let none = Map::new();
    let responses = match request.params.get("inputResponses") {
        None => &none,
        Some(Value::Object(responses)) => responses,
        Some(_) => return Err(invalid("inputResponses is not an object")),
    };
    for (number, round) in rounds.iter().enumerate().skip(done) {
        let asked = answerable(round, request)?;
        let mut given = Vec::new();
        for question in &asked {
            match responses.get(&question.key) {
                Some(response) if is_answer(question, response) => given.push(json!({ &question.key: response })),
                Some(_) => {
                    return Err(invalid(&format!(
                        "inputResponses.{} is not a valid answer",
                        question.key
                    )));
                }
                None => {}
            }
        }
        if given.len() < asked.len() {
            let state = seal(owner, number, &answers);
            return Err(request.result(script, input_required_result(&asked, &state, request)));
        }
        answers.extend(given);
    }
    Ok(answers)
}

/// The questions that the client can answer. If it can answer none of them, `Err` is the error about it.
fn answerable<'a>(round: &'a [Question], request: &Request<'_>) -> Result<Vec<&'a Question>, Value> {
    let capabilities = &request.params["_meta"][meta::CLIENT_CAPABILITIES];
    let asked: Vec<&Question> = round
        .iter()
        .filter(|question| capabilities[question.capability()].is_object())
        .collect();
    if !asked.is_empty() || round.is_empty() {
        return Ok(asked);
    }
    let required: Map<String, Value> = round
        .iter()
        .map(|question| (question.capability().to_owned(), json!({})))
        .collect();
    let data = json!({ "requiredCapabilities": required });
    Err(request.error(
        code::MISSING_CAPABILITY,
        "the client lacks a required capability",
        Some(&data),
    ))
}

fn input_required_result(asked: &[&Question], state: &str, request: &Request<'_>) -> Value {
    let arguments = &request.params["arguments"];
    let requests: Map<String, Value> = asked
        .iter()
        .map(|question| {
            let mut params = fill(&question.params, arguments);
            if let Some(params) = params.as_object_mut() {
                // The modern era has no such id: the key says which answer it is.
                params.remove("elicitationId");
            }
            (
                question.key.clone(),
                json!({ "method": question.method, "params": params }),
            )
        })
        .collect();
    json!({ "resultType": "input_required", "inputRequests": requests, "requestState": state })
}

fn is_answer(question: &Question, response: &Value) -> bool {
    match question.capability() {
        "sampling" => response["role"].is_string() && !response["content"].is_null(),
        "roots" => response["roots"].is_array(),
        _ => matches!(response["action"].as_str(), Some("accept" | "decline" | "cancel")),
    }
}

fn seal(owner: &str, round: usize, answers: &[Value]) -> String {
    let state = BASE64_URL_SAFE_NO_PAD.encode(json!({ "round": round, "answers": answers }).to_string());
    format!("{state}.{:016x}", checksum(owner, &state))
}

fn open(owner: &str, sealed: &str) -> Option<(usize, Vec<Value>)> {
    let (state, sum) = sealed.split_once('.')?;
    if sum != format!("{:016x}", checksum(owner, state)) {
        return None;
    }
    let state: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(state).ok()?).ok()?;
    let round = usize::try_from(state["round"].as_u64()?).ok()?;
    Some((round, state["answers"].as_array()?.clone()))
}

fn checksum(owner: &str, state: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (owner, state).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_opens_only_unchanged_and_for_its_own_tool() {
        let state = seal("t", 2, &[json!({ "a": 1 })]);
        assert_eq!(open("t", &state), Some((2, vec![json!({ "a": 1 })])));
        assert_eq!(open("other", &state), None);
        assert_eq!(open("t", &format!("{state}-TAMPERED")), None);
        assert_eq!(open("t", &state.replacen('e', "f", 1)), None);
        assert_eq!(open("t", ""), None);
    }
}
