//! The server that the official conformance suite tests: the tools, resources and prompts that its scenarios call.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    fake::FakeServer,
    script::{Block, Effect, Era, HttpStyle, Question, Tool},
};

/// A PNG of one red pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
/// A WAV without samples.
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
/// The pause between two notifications of a call.
const PAUSE: Duration = Duration::from_millis(50);

/// A server with everything that the required scenarios of the official conformance suite call. Over HTTP it refuses requests
/// with a `Host` or `Origin` other than this computer.
#[must_use]
pub fn conformance(era: Era) -> FakeServer {
    FakeServer::new("conformance-fixture")
        .era(era)
        .instructions("Answers the scenarios of the official conformance suite.")
        .http(HttpStyle {
            local_only: true,
            ..HttpStyle::default()
        })
        .tools(contents())
        .tools(notifications())
        .tools(legacy_questions())
        .tools(input_required())
        .tools(changes())
        .resources(resources())
        .template(json!({
            "uriTemplate": "test://template/{id}/data", "name": "Template", "description": "Data by id.",
            "mimeType": "application/json",
            "text": "{\"id\":\"{id}\",\"templateTest\":true,\"data\":\"Data for ID: {id}\"}",
        }))
        .prompts(prompts())
}

fn contents() -> Vec<Tool> {
    let data = Block::resource("test://mixed-content-resource", "{\"test\":\"data\",\"value\":123}");
    let mixed = [Block::text("Multiple content types test:"), pixel(), data];
    let embedded = Block::resource("test://embedded-resource", "This is an embedded resource content.");
    let audio = json!({ "type": "audio", "data": SILENCE, "mimeType": "audio/wav" });
    let dialect = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
        } },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    });
    vec![
        tool("test_simple_text", "Returns a text.").answers_text("This is a simple text response for testing."),
        tool("test_image_content", "Returns an image.").answers_blocks([pixel()]),
        tool("test_audio_content", "Returns a sound.").answers_blocks([audio]),
        tool("test_embedded_resource", "Returns a resource.").answers_blocks([embedded]),
        tool("test_multiple_content_types", "Returns several kinds of content.").answers_blocks(mixed),
        tool("test_error_handling", "Fails.").fails_with("This tool intentionally returns an error for testing"),
        tool("json_schema_2020_12_tool", "Has a schema of JSON Schema 2020-12.")
            .schema(dialect)
            .echoes(),
    ]
}

fn notifications() -> Vec<Tool> {
    let lines = [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ];
    vec![
        tool("test_tool_with_logging", "Logs three times.").logs("info", &lines, PAUSE),
        tool("test_logging_tool", "Logs once.").logs("info", &["Logged"], Duration::ZERO),
        tool("test_tool_with_progress", "Reports progress three times.").progress(3, PAUSE),
    ]
}

/// The tools of the legacy scenarios that ask the client.
fn legacy_questions() -> Vec<Tool> {
    let user = form(&[("username", "User's response"), ("email", "User's email address")]);
    let defaults = json!({ "type": "object", "properties": {
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    } });
    vec![
        with_argument("test_sampling", "prompt").asks_for([Question::sampling("sample", "{prompt}", 100)]),
        with_argument("test_elicitation", "message").asks_for([Question::form("user", "{message}", user)]),
        tool("test_elicitation_sep1034_defaults", "Asks with defaults.").asks_for([Question::form(
            "defaults",
            "Please review the defaults.",
            defaults,
        )]),
        tool("test_elicitation_sep1330_enums", "Asks for choices.").asks_for([Question::form(
            "choices",
            "Please choose.",
            choices(),
        )]),
    ]
}

/// A form with each kind of choice.
fn choices() -> Value {
    let names = ["option1", "option2", "option3"];
    let titled = |kind: &str| {
        json!([
            { "const": "value1", "title": format!("First {kind}") },
            { "const": "value2", "title": format!("Second {kind}") },
            { "const": "value3", "title": format!("Third {kind}") },
        ])
    };
    json!({ "type": "object", "properties": {
        "untitledSingle": { "type": "string", "enum": names },
        "titledSingle": { "type": "string", "oneOf": titled("Option") },
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": names } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
    } })
}

/// The tools of the modern scenarios that ask the client.
fn input_required() -> Vec<Tool> {
    let asking = |name: &str| tool(&format!("test_input_required_result_{name}"), "Asks the client.");
    let name = || Question::form("user_name", "What is your name?", form(&[("name", "Your name")]));
    let confirm = || {
        let ok = json!({ "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] });
        Question::form("confirm", "Please confirm", ok)
    };
    let sample = |key: &str, prompt: &str| Question::sampling(key, prompt, 100);
    let roots = || Question::roots("client_roots");
    let colour = Question::form(
        "step2",
        "Step 2: What is your favorite color?",
        form(&[("color", "A color")]),
    );
    let first = Question::form("step1", "Step 1: What is your name?", form(&[("name", "Your name")]));
    vec![
        asking("elicitation").answers_text("Hello!").asks_for([name()]),
        asking("sampling").asks_for([sample("capital_question", "What is the capital of France?")]),
        asking("list_roots").asks_for([roots()]),
        asking("request_state").answers_text("state-ok").asks_for([confirm()]),
        asking("multiple_inputs").asks_for([name(), sample("greeting", "Generate a greeting"), roots()]),
        asking("multi_round").asks_for([first]).asks_for([colour]),
        asking("tampered_state").asks_for([confirm()]),
        asking("capabilities").asks_for([name(), sample("greeting", "Generate a greeting")]),
        tool("test_missing_capability", "Needs sampling.").asks_for([sample("needed", "Say one word.")]),
        tool("test_streaming_elicitation", "Asks after progress.").asks_for([name()]),
    ]
}

fn changes() -> Vec<Tool> {
    let guest_tool = tool("test_guest_tool", "Comes and goes.");
    let guest_prompt = json!({ "name": "test_guest_prompt", "description": "Comes and goes.", "text": "Hello." });
    let updated = Effect::SetResource {
        uri: "test://watched-resource".into(),
        text: "Changed.".into(),
    };
    vec![
        tool("test_trigger_tool_change", "Adds or removes a tool.").causes(Effect::ToggleTool(Box::new(guest_tool))),
        tool("test_trigger_prompt_change", "Adds or removes a prompt.").causes(Effect::TogglePrompt(guest_prompt)),
        tool("test_trigger_resource_change", "Changes the watched resource.").causes(updated),
    ]
}

fn resources() -> Vec<Value> {
    let text = |uri: &str, name: &str, text: &str| json!({ "uri": uri, "name": name, "description": "A resource of the suite.", "mimeType": "text/plain", "text": text });
    vec![
        text(
            "test://static-text",
            "Text",
            "This is the content of the static text resource.",
        ),
        json!({
            "uri": "test://static-binary", "name": "Image", "description": "A resource of the suite.",
            "mimeType": "image/png", "blob": PIXEL,
        }),
        text("test://watched-resource", "Watched", "Not changed yet."),
    ]
}

fn prompts() -> Vec<Value> {
    let said = |content: Value| json!({ "role": "user", "content": content });
    let argument = |name: &str| json!({ "name": name, "description": "A test argument.", "required": true });
    let embedded = Block::resource("{resourceUri}", "Embedded resource content for testing.");
    let context = Question::form(
        "user_context",
        "What context should the prompt use?",
        form(&[("context", "The context")]),
    );
    vec![
        json!({
            "name": "test_simple_prompt", "description": "A prompt without arguments.",
            "text": "This is a simple prompt for testing.",
        }),
        json!({
            "name": "test_prompt_with_arguments", "description": "A prompt with arguments.",
            "arguments": [argument("arg1"), argument("arg2")],
            "completions": { "arg1": ["paris", "park", "party", "test"] },
            "messages": [said(Block::text("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))],
        }),
        json!({
            "name": "test_prompt_with_embedded_resource", "description": "A prompt with a resource.",
            "arguments": [argument("resourceUri")],
            "messages": [said(embedded), said(Block::text("Please process the embedded resource above."))],
        }),
        json!({
            "name": "test_prompt_with_image", "description": "A prompt with an image.",
            "messages": [said(pixel()), said(Block::text("Please analyze the image above."))],
        }),
        json!({
            "name": "test_input_required_result_prompt", "description": "A prompt that asks the client.",
            "questions": [[context]],
            "messages": [said(Block::text("Use this context:"))],
        }),
    ]
}

fn tool(name: &str, description: &str) -> Tool {
    let schema = json!({ "type": "object", "properties": {} });
    Tool::new(name).description(description).schema(schema)
}

/// A tool with one required text argument.
fn with_argument(name: &str, argument: &str) -> Tool {
    tool(name, "Asks the client.").schema(form(&[(argument, "What to ask")]))
}

/// The schema of an object of required texts.
fn form(fields: &[(&str, &str)]) -> Value {
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<String, Value> = fields
        .iter()
        .map(|(name, description)| {
            (
                (*name).to_owned(),
                json!({ "type": "string", "description": description }),
            )
        })
        .collect();
    json!({ "type": "object", "properties": properties, "required": names })
}

fn pixel() -> Value {
    json!({ "type": "image", "data": PIXEL, "mimeType": "image/png" })
}
