//! The agent's environment: servers of every kind, some of them failing, and a scripted model.

use std::path::{Path, PathBuf};

use pegboard::{
    Answer, Config, NativeTool, NativeTools, Pegboard, ServerConfig, ServerName,
    config::{Command, Endpoint, RetryClass, SafeUrl, Transport},
};
use pegboard_testkit::{FakeServer, NetHandle, ScriptedModel, Tool};
use serde_json::{Value, json};

/// A URL that refuses connections.
const UNREACHABLE: &str = "http://127.0.0.1:9/mcp";
const PODS: &str = "api-7f9 CrashLoopBackOff\nweb-1 Running";

/// A board, and the handles that must live as long as it.
pub(crate) struct World {
    pub(crate) board: Pegboard,
    _people: NetHandle,
    _folder: tempfile::TempDir,
}

impl World {
    pub(crate) async fn open() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let log = folder.path().join("k8s.log");
        let people = people().serve_http().await?;

        let mut config = Config::default();
        let mut add = |name: &str, transport| -> anyhow::Result<()> {
            let mut server = ServerConfig::new(transport);
            // Reading twice is harmless, so a call that is lost with its server is retried.
            server.policy.tool_retry.insert("get_*".to_owned(), RetryClass::Safe);
            config.servers.insert(ServerName::parse(name)?, server);
            Ok(())
        };
        add("k8s", Transport::Stdio(k8s(&log)?))?;
        add("people", at(&people.url())?)?;
        add("wiki", at(UNREACHABLE)?)?;
        let board = Pegboard::builder(config)
            .in_process(ServerName::parse("local")?, NativeTools::new([first_word(), kill(log)]))
            .open();
        Ok(Self {
            board,
            _people: people,
            _folder: folder,
        })
    }
}

fn at(url: &str) -> anyhow::Result<Transport> {
    Ok(Transport::auto(Endpoint::from(SafeUrl::parse(url)?)))
}

/// The schema of an object with one string.
fn takes(argument: &str) -> Value {
    json!({"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]})
}

/// A process on stdio: this program once more.
fn k8s(log: &Path) -> anyhow::Result<Command> {
    let pods = Tool::new("get_pods").description("Lists pods.").read_only();
    let server = FakeServer::new("k8s").log(log).tool(pods.answers_text(PODS));
    Ok(Command::new(std::env::current_exe()?.to_string_lossy()).args(server.arguments()))
}

/// A server on the network.
fn people() -> FakeServer {
    let on_call = Tool::new("on_call")
        .description("Tells who is on call.")
        .schema(takes("service"));
    FakeServer::new("people").tool(on_call.read_only().answers_text("Mara"))
}

/// A tool in this program.
fn first_word() -> NativeTool {
    let about = "Gives the first word of a text.";
    NativeTool::new("first_word", about, takes("text"), |arguments| async move {
        let word = arguments["text"]
            .as_str()
            .and_then(|text| text.split_whitespace().next());
        Ok(Answer::from_text(word.ok_or("there is no word")?))
    })
    .read_only()
}

/// The crash: kills the process of `k8s`.
fn kill(log: PathBuf) -> NativeTool {
    let schema = json!({"type": "object"});
    NativeTool::new("kill_k8s", "Kills the k8s server.", schema, move |_| {
        let log = log.clone();
        async move {
            let log = pegboard_testkit::read_log(&log).map_err(|error| error.to_string())?;
            pegboard_testkit::kill(*log.spawned.last().ok_or("it was not started")?);
            Ok(Answer::from_text("killed"))
        }
    })
}

/// The script of a model that calls functions. Its answer is computed from the results, so a wrong result gives a wrong answer.
pub(crate) fn calls_functions() -> ScriptedModel {
    ScriptedModel::new()
        .calls_all(&[("k8s__get_pods", "{}"), ("wiki__search", r#"{"text": "crash"}"#)])
        .calls("local__kill_k8s", "")
        .calls("k8s__get_pods", "{}")
        .calls("local__first_word", &json!({ "text": PODS }).to_string())
        .calls("people__on_call", r#"{"service": "api-7f9"}"#)
        .answers(|request| conclusion(request, "tool", ""))
}

/// The same script as text, with arguments in the various forms that models write.
pub(crate) fn writes_text() -> ScriptedModel {
    let act = |name: &str, input: &str| format!("Thought: I need {name}.\nAction: {name}\nAction Input: {input}");
    ScriptedModel::new()
        .says(&act("wiki__search", "crash"))
        .says(&act("local__kill_k8s", ""))
        .says(&act("k8s__get_pods", "{}\nObservation: all pods are well"))
        .says(&act("local__first_word", &json!({ "text": PODS }).to_string()))
        .says(&act("people__on_call", "service: api-7f9"))
        .answers(|request| format!("Final Answer: {}", conclusion(request, "user", "Observation: ")))
}

/// Combines the last three results: the pods, the first word of them, and the person.
fn conclusion(request: &Value, role: &str, before: &str) -> String {
    let messages = request["messages"].as_array().into_iter().flatten();
    let results = messages.filter(|message| message["role"] == role);
    let results = results.filter_map(|message| message["content"].as_str()?.strip_prefix(before));
    match results.collect::<Vec<_>>().as_slice() {
        [.., pods, pod, person] if pods.contains(&format!("{pod} CrashLoopBackOff")) => {
            format!("{pod} crashes; {person} is on call.")
        }
        results => format!("I cannot tell from {results:?}."),
    }
}
