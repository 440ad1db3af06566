//! Resources, their templates, prompts and completions.

use pegboard_protocol::{code, method};
use serde_json::{Map, Value, json};

use super::{
    act::Act,
    fill::{fill, match_template},
    input,
    request::Request,
    result::append,
    tool::legacy_questions,
};
use crate::script::{Question, Script};

pub(super) fn resources(script: &Script, request: &Request<'_>) -> Vec<Act> {
    let answer = match request.method {
        method::RESOURCES_LIST => {
            let shown: Vec<Value> = script.resources.iter().map(listed_members).collect();
            request.cacheable_result(script, json!({ "resources": shown }))
        }
        method::RESOURCES_TEMPLATES_LIST => {
            let shown: Vec<Value> = script.templates.iter().map(listed_members).collect();
            request.cacheable_result(script, json!({ "resourceTemplates": shown }))
        }
        _ => match contents(script, &request.params["uri"]) {
            Some(contents) => {
                let uri = &request.params["uri"];
                let resource = script.resources.iter().find(|resource| resource["uri"] == *uri);
                let questions = resource.map_or(&Value::Null, |resource| &resource["questions"]);
                let response = request.cacheable_result(script, json!({ "contents": [contents] }));
                return respond_after_questions(script, uri, questions, request, response);
            }
            None => {
                let code = if request.modern {
                    code::INVALID_PARAMS
                } else {
                    code::RESOURCE_NOT_FOUND
                };
                let data = json!({ "uri": request.params["uri"] });
                request.error(code, "resource not found", Some(&data))
            }
        },
    };
    vec![Act::Answer(answer)]
}

/// Responds after the client has answered these questions of `owner`, with its answers appended.
fn respond_after_questions(
    script: &Script,
    owner: &Value,
    questions: &Value,
    request: &Request<'_>,
    mut response: Value,
) -> Vec<Act> {
    // A script whose questions do not parse asks none, which its test notices.
    let questions: Vec<Vec<Question>> = serde_json::from_value(questions.clone()).unwrap_or_default();
    let (mut acts, answers) = if request.modern {
        match input::collect_answers(script, owner.as_str().unwrap_or_default(), &questions, request) {
            Ok(answers) => (Vec::new(), answers),
            Err(response) => return vec![Act::Answer(response)],
        }
    } else {
        (legacy_questions(&questions, request), Vec::new())
    };
    append(&mut response, &answers);
    acts.push(Act::Answer(response));
    acts
}

fn contents(script: &Script, uri: &Value) -> Option<Value> {
    if let Some(resource) = script.resources.iter().find(|resource| resource["uri"] == *uri) {
        return Some(match resource.get("blob") {
            Some(blob) => json!({ "uri": uri, "mimeType": resource["mimeType"], "blob": blob }),
            None => text_contents(uri, resource, &resource["text"].as_str().unwrap_or_default().into()),
        });
    }
    script.templates.iter().find_map(|template| {
        let variables = match_template(template["uriTemplate"].as_str()?, uri.as_str()?)?;
        Some(text_contents(uri, template, &fill(&template["text"], &variables)))
    })
}

fn text_contents(uri: &Value, source: &Value, text: &Value) -> Value {
    let kind = source["mimeType"].as_str().unwrap_or("text/plain");
    json!({ "uri": uri, "mimeType": kind, "text": text })
}

pub(super) fn prompts(script: &Script, request: &Request<'_>) -> Vec<Act> {
    if request.method == method::PROMPTS_LIST {
        let shown: Vec<Value> = script.prompts.iter().map(listed_members).collect();
        return vec![Act::Answer(
            request.cacheable_result(script, json!({ "prompts": shown })),
        )];
    }
    let name = &request.params["name"];
    let Some(prompt) = script.prompts.iter().find(|prompt| prompt["name"] == *name) else {
        return vec![Act::Answer(request.error(code::INVALID_PARAMS, "unknown prompt", None))];
    };
    let messages = match prompt.get("messages") {
        Some(messages) => fill(messages, &request.params["arguments"]),
        None => {
            let text = prompt["text"].as_str().unwrap_or_default();
            json!([{ "role": "user", "content": { "type": "text", "text": text } }])
        }
    };
    let response = request.result(script, json!({ "messages": messages }));
    respond_after_questions(script, name, &prompt["questions"], request, response)
}

/// The values that begin with what was typed, for an argument of a prompt.
pub(super) fn completions(script: &Script, request: &Request<'_>) -> Vec<Act> {
    let (argument, name) = (&request.params["argument"], &request.params["ref"]["name"]);
    let prompt = script.prompts.iter().find(|prompt| prompt["name"] == *name);
    let known = prompt.and_then(|prompt| prompt["completions"].get(argument["name"].as_str()?)?.as_array());
    let typed = argument["value"].as_str().unwrap_or_default();
    let values: Vec<&Value> = known
        .into_iter()
        .flatten()
        .filter(|value| value.as_str().is_some_and(|value| value.starts_with(typed)))
        .collect();
    let response = request.result(script, json!({ "completion": { "values": values } }));
    let questions = prompt.map_or(&Value::Null, |prompt| &prompt["completionQuestions"]);
    respond_after_questions(script, name, questions, request, response)
}

/// The members that a listing shows.
fn listed_members(value: &Value) -> Value {
    const HIDDEN: [&str; 6] = [
        "text",
        "blob",
        "messages",
        "questions",
        "completions",
        "completionQuestions",
    ];
    let members = value.as_object().into_iter().flatten();
    let shown = members.filter(|(key, _)| !HIDDEN.contains(&key.as_str()));
    Value::Object(
        shown
            .map(|(key, member)| (key.clone(), member.clone()))
            .collect::<Map<_, _>>(),
    )
}
