//! One server with a tool for each kind of exchange, for tests that compare the eras.

use std::time::Duration;

use serde_json::json;

use crate::{
    fake::FakeServer,
    script::{Effect, Era, Question, Tool},
};

/// A server that does in each era everything a server can do during a call. The result of a call is the same in both eras.
///
/// | tool | does |
/// |---|---|
/// | `echo` | returns its arguments |
/// | `elicit` | asks for a colour with a form |
/// | `elicit_url` | sends the user to `https://example.com/sign-in` |
/// | `sample` | asks the client's model, with the argument `prompt` |
/// | `roots` | asks for the client's roots |
/// | `interview` | asks for a colour, then for a word of the model: two rounds |
/// | `progress` | reports progress three times, if the request has a token |
/// | `log` | logs at `debug`, `warning` and `error` |
/// | `task` | runs as a task |
/// | `change_tools` | adds the tool `guest`, or removes it |
/// | `change_resource` | sets the text of `note://1` to the argument `text` |
/// | `slow` | takes a minute; `$cancelled` is in the log if the client cancels it |
///
/// The answers to questions are text blocks `{"KEY": ANSWER}` after the first block. The keys are `colour`, `page`, `word` and
/// `roots`; `interview` has `colour` and `word`. The resource `note://1` can be subscribed to.
pub fn everything(name: impl Into<String>, era: Era) -> FakeServer {
    let colour = || {
        let form =
            json!({ "type": "object", "properties": { "colour": { "type": "string" } }, "required": ["colour"] });
        Question::form("colour", "Which colour?", form)
    };
    let word = |prompt: &str| Question::sampling("word", prompt, 10);
    let text =
        |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name] });
    FakeServer::new(name)
        .era(era)
        .tool(Tool::new("echo").echoes())
        .tool(Tool::new("elicit").asks_for([colour()]))
        .tool(Tool::new("elicit_url").asks_for([Question::url(
            "page",
            "Please sign in.",
            "https://example.com/sign-in",
        )]))
        .tool(Tool::new("sample").schema(text("prompt")).asks_for([word("{prompt}")]))
        .tool(Tool::new("roots").asks_for([Question::roots("roots")]))
        .tool(
            Tool::new("interview")
                .asks_for([colour()])
                .asks_for([word("Say one word.")]),
        )
        .tool(Tool::new("progress").progress(3, Duration::from_millis(10)))
        .tool(
            Tool::new("log")
                .logs("debug", &["quiet"], Duration::ZERO)
                .logs("warning", &["loud"], Duration::ZERO)
                .logs("error", &["very loud"], Duration::ZERO),
        )
        .tool(Tool::new("task").runs_as_task())
        .tool(Tool::new("change_tools").causes(Effect::ToggleTool(Box::new(Tool::new("guest")))))
        .tool(
            Tool::new("change_resource")
                .schema(text("text"))
                .causes(Effect::SetResource {
                    uri: "note://1".into(),
                    text: "{text}".into(),
                }),
        )
        .tool(Tool::new("slow").after(Duration::from_secs(60)))
        .resource("note://1", "first")
        .template(json!({ "uriTemplate": "note://{id}/copy", "name": "Copies", "text": "copy of {id}" }))
        .prompts([json!({
            "name": "greet", "description": "Greets.", "arguments": [{ "name": "who", "required": true }],
            "completions": { "who": ["Ada", "Alan", "Grace"] },
            "messages": [{ "role": "user", "content": { "type": "text", "text": "Hello {who}." } }],
        })])
}
