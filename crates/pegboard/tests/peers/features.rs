//! All features of the reference server, on each of its wires, each with an observable effect.

use std::{pin::Pin, sync::Arc, time::Duration};

use pegboard::{
    Arguments, Config, Content, Host, Pegboard, ServerConfig, ToolCall, Toolset, View,
    host::{ElicitAnswer, Elicitation, FieldKind, HostContext, Root},
    outcome::Role,
    task::TaskStatus,
    toolset::CompletionOf,
    watch::{LogLevel, ServerEvent, ServerEvents},
};
use pegboard_base::sync::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::{peer::*, support::*, talk::*};

/// The number of tools for clients with every capability.
const ALL_TOOLS: usize = 19;

/// A user and a model that answer every request, and record them.
#[derive(Debug, Clone, Default)]
pub(crate) struct FullHost {
    elicited: Arc<Mutex<Vec<Elicitation>>>,
    sampled: Arc<Mutex<Vec<Value>>>,
}

impl FullHost {
    /// The user's requests since the last call.
    pub(crate) fn elicited(&self) -> Vec<Elicitation> {
        std::mem::take(&mut self.elicited.lock())
    }
}

impl Host for FullHost {
    fn offers_elicitation(&self) -> bool {
        true
    }

    fn elicit<'a>(
        &'a self,
        _context: HostContext<'a>,
        request: Elicitation,
    ) -> Pin<Box<dyn Future<Output = ElicitAnswer> + Send + 'a>> {
        let answer = match &request.form {
            None => ElicitAnswer::Finished,
            Some(form) => {
                let required = form.fields.iter().filter(|field| field.required);
                let filled = required.map(|field| match &field.kind {
                    FieldKind::Choice(options) => (field.name.clone(), json!(options[0].value)),
                    _ => (field.name.clone(), json!("Ada")),
                });
                ElicitAnswer::Accept(filled.collect())
            }
        };
        self.elicited.lock().push(request);
        Box::pin(std::future::ready(answer))
    }

    fn offers_sampling(&self) -> bool {
        true
    }

    fn sample<'a>(
        &'a self,
        _context: HostContext<'a>,
        params: Value,
    ) -> Pin<Box<dyn Future<Output = Result<Value, String>> + Send + 'a>> {
        self.sampled.lock().push(params);
        let content = json!({"type": "text", "text": "forty-two"});
        Box::pin(std::future::ready(Ok(
            json!({"role": "assistant", "model": "m", "content": content}),
        )))
    }
}

fn open(mut config: ServerConfig, host: &FullHost) -> Pegboard {
    config.roots = vec!["file:///srv/one".to_owned()];
    let mut servers = Config::default();
    servers.servers.insert(name("fx"), config);
    Pegboard::builder(servers).host(host.clone()).open()
}

#[tokio::test]
async fn every_feature_of_the_reference_server_is_used_on_stdio() {
    check(stdio(&everything())).await;
}

#[tokio::test]
async fn every_feature_of_the_reference_server_is_used_on_streamable_http() {
    let server = Listening::everything_http().await;
    check(server.config()).await;
}

#[tokio::test]
async fn every_feature_of_the_reference_server_is_used_on_http_with_sse() {
    let server = Listening::everything_sse().await;
    check(server.config()).await;
}

async fn check(config: ServerConfig) {
    let host = FullHost::default();
    let board = open(config, &host);
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    // The server adds some tools after it has seen the client's capabilities.
    until("all tools are there", || status(&board, "fx").tools == ALL_TOOLS).await;
    Box::pin(check_resource_tools(&board)).await;
    tokio::join!(
        Box::pin(check_resources(&tools)),
        Box::pin(check_prompts(&tools)),
        Box::pin(check_completions(&tools)),
        Box::pin(check_tools(&tools)),
    );
    Box::pin(check_sampling(&tools, &host)).await;
    Box::pin(check_elicitation(&tools, &host)).await;
    Box::pin(check_roots(&board, &tools)).await;
    Box::pin(check_tasks(&tools, &host)).await;
    Box::pin(check_logging(&tools)).await;
    Box::pin(check_subscriptions(&tools)).await;
    board.shutdown().await;
}

/// The same resources for a model that knows only tools.
async fn check_resource_tools(board: &Pegboard) {
    let tools = board.toolset_with(View::new().resource_tools());
    let read = async |tool: &str, arguments: Value| {
        let arguments = Arguments::try_from(arguments).unwrap();
        tools.call(ToolCall::new(tool).arguments(arguments)).await.text()
    };
    let listed: Value = serde_json::from_str(&read("list_resources", json!({})).await).unwrap();
    assert_eq!(listed["resources"].as_array().unwrap().len(), 7, "{listed}");
    let templates: Value = serde_json::from_str(&read("list_resource_templates", json!({})).await).unwrap();
    assert_eq!(templates["templates"].as_array().unwrap().len(), 2, "{templates}");
    let text = read("read_resource", json!({"uri": "demo://resource/dynamic/text/7"})).await;
    assert!(text.contains("plaintext resource"), "{text}");
    let blob = read(
        "read_resource",
        json!({"uri": "demo://resource/dynamic/blob/7", "server": "fx"}),
    )
    .await;
    assert!(blob.contains(", handle out_"), "{blob}");
}

async fn check_resources(tools: &Toolset) {
    let (fx, listing) = (name("fx"), tools.resources(PATIENCE).await);
    assert_eq!(
        (listing.resources.len(), listing.templates.len()),
        (7, 2),
        "{listing:#?}"
    );
    for resource in &listing.resources {
        let read = tools.read_resource(&fx, &resource.uri).await.unwrap();
        assert_eq!(read[0].uri, resource.uri);
        assert_eq!(read[0].mime_type, resource.mime_type);
        assert!(!read[0].text().unwrap().is_empty());
    }
    for (template, expected) in [("text", "plaintext resource"), ("blob", "base64 blob")] {
        let template = format!("demo://resource/dynamic/{template}/{{resourceId}}");
        let values = Map::from_iter([("resourceId".to_owned(), json!(7))]);
        let uri = tools.expand_template(&fx, &template, &values).await.unwrap();
        let read = tools.read_resource(&fx, &uri).await.unwrap();
        let text = String::from_utf8(read[0].bytes().unwrap()).unwrap();
        assert_contains(&text, &["Resource 7", expected]);
    }
}

async fn check_prompts(tools: &Toolset) {
    let prompts = tools.prompts(PATIENCE).await.prompts;
    let names: Vec<_> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
    assert_eq!(
        names,
        ["args-prompt", "completable-prompt", "resource-prompt", "simple-prompt"]
    );
    let get = async |prompt: &str, arguments: Value| {
        let arguments = arguments.as_object().cloned().unwrap();
        tools.get_prompt(&name("fx"), prompt, &arguments).await
    };
    let simple = get("simple-prompt", json!({})).await.unwrap();
    assert_eq!(
        simple.messages[0].content.to_text(),
        "This is a simple prompt without arguments."
    );
    let asked = get("args-prompt", json!({"city": "Oslo", "state": "Norway"}))
        .await
        .unwrap();
    assert_eq!(asked.messages[0].content.to_text(), "What's weather in Oslo, Norway?");
    let missing = get("args-prompt", json!({})).await.unwrap_err();
    assert_contains(&missing.message, &["needs the argument `city`"]);
    let promoted = get("completable-prompt", json!({"department": "Sales", "name": "Eve"}))
        .await
        .unwrap();
    assert_contains(&promoted.messages[0].content.to_text(), &["promote Eve", "Sales"]);
    for (kind, body) in [("Text", "text"), ("Blob", "blob")] {
        let held = get("resource-prompt", json!({"resourceType": kind, "resourceId": "3"}));
        let held = held.await.unwrap();
        assert_eq!(held.messages[1].role, Role::User);
        let Content::Resource { resource, .. } = &held.messages[1].content else {
            panic!("{held:?}");
        };
        assert_eq!(resource["uri"], format!("demo://resource/dynamic/{body}/3"));
        assert!(resource[body].is_string(), "{resource:?}");
    }
}

async fn check_completions(tools: &Toolset) {
    let complete = async |of: CompletionOf, argument: &str, value: &str, context: Value| {
        let context = context.as_object().cloned().unwrap();
        let completion = tools.complete(&name("fx"), &of, argument, value, &context).await;
        completion.unwrap().values
    };
    let prompt = || CompletionOf::Prompt("completable-prompt".into());
    assert_eq!(
        complete(prompt(), "department", "S", json!({})).await,
        ["Sales", "Support"]
    );
    let named = complete(prompt(), "name", "", json!({"department": "Sales"})).await;
    assert_eq!(named, ["David", "Eve", "Frank"]);
    let prompt = || CompletionOf::Prompt("resource-prompt".into());
    assert_eq!(
        complete(prompt(), "resourceType", "", json!({})).await,
        ["Text", "Blob"]
    );
    assert_eq!(complete(prompt(), "resourceType", "B", json!({})).await, ["Blob"]);
    assert_eq!(complete(prompt(), "resourceId", "12", json!({})).await, ["12"]);
    assert_eq!(complete(prompt(), "resourceId", "x", json!({})).await, [] as [&str; 0]);
    for kind in ["text", "blob"] {
        let template = || CompletionOf::Template(format!("demo://resource/dynamic/{kind}/{{resourceId}}"));
        assert_eq!(complete(template(), "resourceId", "7", json!({})).await, ["7"]);
        assert_eq!(
            complete(template(), "resourceId", "-1", json!({})).await,
            [] as [&str; 0]
        );
    }
}

/// The tools that the other tests of this server leave out.
async fn check_tools(tools: &Toolset) {
    let env: Value = serde_json::from_str(&text(tools, "get-env", json!({})).await).unwrap();
    assert!(env["PATH"].is_string());
    let gzip = json!({"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resourceLink"});
    let link = answer(tools, "gzip-file-as-resource", gzip).await;
    let [Content::Link { uri, .. }] = &link.content[..] else {
        panic!("{link:?}");
    };
    let read = tools.read_resource(&name("fx"), uri).await.unwrap();
    assert!(read[0].bytes().unwrap().starts_with(&[0x1f, 0x8b]));
    let whole = json!({"name": "b.gz", "data": "data:text/plain,hello", "outputType": "resource"});
    let whole = answer(tools, "gzip-file-as-resource", whole).await;
    assert!(
        matches!(&whole.content[..], [Content::Resource { resource, .. }] if resource["mimeType"] == "application/gzip")
    );
}

async fn check_sampling(tools: &Toolset, host: &FullHost) {
    for (tool, words) in [
        ("trigger-sampling-request", "LLM sampling result"),
        ("trigger-sampling-request-async", "[COMPLETED]"),
    ] {
        let told = text(tools, tool, json!({"prompt": "six by seven?", "maxTokens": 100_000})).await;
        assert_contains(&told, &[words, "forty-two"]);
        let asked = host.sampled.lock().pop().unwrap();
        // The server requested more than the client's default.
        assert_eq!(asked["maxTokens"], 4096);
        assert_contains(&asked["messages"].to_string(), &["six by seven?"]);
    }
}

async fn check_elicitation(tools: &Toolset, host: &FullHost) {
    let told = text(tools, "trigger-elicitation-request", json!({})).await;
    assert_contains(&told, &["- Name: Ada", "It was a dark and stormy night."]);
    let asked = host.elicited().remove(0).form.unwrap();
    let kinds = |wanted: fn(&FieldKind) -> bool| asked.fields.iter().filter(|field| wanted(&field.kind)).count();
    assert!(kinds(|kind| matches!(kind, FieldKind::Choice(_))) >= 3, "{asked:#?}");
    assert!(
        kinds(|kind| matches!(kind, FieldKind::Choices { .. })) >= 2,
        "{asked:#?}"
    );
    assert!(
        kinds(|kind| matches!(kind, FieldKind::Number { .. })) >= 2,
        "{asked:#?}"
    );
    assert_eq!(kinds(|kind| matches!(kind, FieldKind::Other)), 0, "{asked:#?}");

    let told = text(tools, "trigger-elicitation-request-async", json!({})).await;
    assert_contains(&told, &["[COMPLETED]", "- Name: Ada", "Task created"]);
    assert_eq!(host.elicited().len(), 1);

    let visit = json!({"url": "https://example.org/here", "elicitationId": "e-1"});
    let told = text(tools, "trigger-url-elicitation", visit).await;
    assert_contains(&told, &["completed the URL elicitation", "e-1"]);
    assert_eq!(host.elicited()[0].url.as_deref(), Some("https://example.org/here"));
    // The server rejects the call until its user has visited a page, and accepts it then.
    let visit = json!({"url": "https://example.org/there", "errorPath": true});
    let told = text(tools, "trigger-url-elicitation", visit).await;
    assert_contains(&told, &["completed the URL elicitation", "https://example.org/there"]);
    let pages: Vec<_> = host.elicited().into_iter().filter_map(|asked| asked.url).collect();
    assert_eq!(pages, ["https://modelcontextprotocol.io/", "https://example.org/there"]);
}

async fn check_roots(board: &Pegboard, tools: &Toolset) {
    assert_contains(&text(tools, "get-roots-list", json!({})).await, &["file:///srv/one"]);
    assert!(board.set_roots(name("fx"), &[Root::new("file:///srv/two").name("Two")]));
    let changed = async {
        while !text(tools, "get-roots-list", json!({}))
            .await
            .contains("file:///srv/two")
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, changed).await.unwrap();
    assert_contains(&text(tools, "get-roots-list", json!({})).await, &["1. Two"]);
}

async fn check_tasks(tools: &Toolset, host: &FullHost) {
    let research = |topic: &str, ambiguous: bool| {
        let arguments = Arguments::try_from(json!({"topic": topic, "ambiguous": ambiguous})).unwrap();
        ToolCall::new("simulate-research-query").arguments(arguments)
    };
    let (sink, mut steps) = mpsc::channel(16);
    let background = async {
        let mut handle = tools.start(research("tea", false)).await.unwrap();
        assert_eq!(handle.status().await.unwrap().status, TaskStatus::Working);
        assert_contains(&handle.result(PATIENCE).await.text(), &["# Research Report: tea"]);
        assert_eq!(handle.status().await.unwrap().status, TaskStatus::Completed);
        let given_up = tools.start(research("coffee", false)).await.unwrap();
        given_up.cancel().await.unwrap();
        assert_eq!(given_up.status().await.unwrap().status, TaskStatus::Cancelled);
    };
    let (reply, ()) = tokio::join!(tools.call(research("python", true).progress(sink)), background);
    assert_contains(&done(reply).text(), &["# Research Report: python (programming)"]);
    assert_eq!(host.elicited().len(), 1);
    let mut told = Vec::new();
    while let Ok(step) = steps.try_recv() {
        told.push(step.message.unwrap());
    }
    assert!(
        told.iter().any(|words| words.contains("Requesting clarification")),
        "{told:?}"
    );
}

async fn check_logging(tools: &Toolset) {
    let fx = name("fx");
    let mut events = tools.events(&fx).unwrap();
    tools.set_log_level(&fx, LogLevel::Emergency).await.unwrap();
    // Each start logs a message of a random level out of eight, so that one of many is surely below the highest.
    for _ in 0..40 {
        assert_contains(&text(tools, "toggle-simulated-logging", json!({})).await, &["Started"]);
        assert_contains(&text(tools, "toggle-simulated-logging", json!({})).await, &["Stopped"]);
    }
    while let Ok(event) = tokio::time::timeout(Duration::from_millis(500), events.next()).await {
        if let ServerEvent::Log(message) = &*event.unwrap() {
            assert_eq!(message.level, LogLevel::Emergency, "{message:?}");
        }
    }
    tools.set_log_level(&fx, LogLevel::Debug).await.unwrap();
    assert_contains(&text(tools, "toggle-simulated-logging", json!({})).await, &["Started"]);
    next_log(&mut events, "evel").await;
    assert_contains(&text(tools, "toggle-simulated-logging", json!({})).await, &["Stopped"]);
}

/// The first log message that contains `words`.
async fn next_log(events: &mut ServerEvents, words: &str) -> String {
    let waiting = async {
        loop {
            let event = events.next().await.unwrap();
            if let ServerEvent::Log(message) = &*event
                && let Some(text) = message.data.as_str()
                && text.contains(words)
            {
                return text.to_owned();
            }
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap()
}

async fn check_subscriptions(tools: &Toolset) {
    let fx = name("fx");
    let mut events = tools.events(&fx).unwrap();
    let uri = "demo://resource/dynamic/text/1";
    let mut subscription = tools.subscribe(&fx, uri).await.unwrap();
    next_log(
        &mut events,
        &format!("Received Subscribe Resource request for URI: {uri}"),
    )
    .await;
    assert_contains(&text(tools, "toggle-subscriber-updates", json!({})).await, &["Started"]);
    assert!(tokio::time::timeout(PATIENCE, subscription.changed()).await.unwrap());
    assert_contains(&text(tools, "toggle-subscriber-updates", json!({})).await, &["Stopped"]);
    drop(subscription);
    next_log(&mut events, "Received Unsubscribe Resource request").await;
}
