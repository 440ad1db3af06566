//! A client on rmcp, the official Rust SDK, which carries out a plan like the programs in `tests/peers/clients`.

use std::{path::Path, process::Stdio, sync::Arc, time::Duration};

use pegboard_base::sync::Mutex;
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationCapability, FormElicitationCapability, GetPromptRequestParams, ProgressNotificationParam,
        ProtocolVersion, ReadResourceRequestParams,
    },
    service::{ClientLifecycleMode, ClientServiceExt, NotificationContext, RequestContext, RunningService},
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::gateway_clients::{
    client::{Era, Target},
    plan::{NAME, Plan},
    report::{Called, Report},
    scratch::Scratch,
};

/// How long the SDK may take to hand over a notification that came before a response.
const HANDING_OVER: Duration = Duration::from_secs(10);

/// Records questions and progress, and answers every question.
#[derive(Clone, Debug, Default)]
struct Handler {
    asked: Arc<Mutex<Vec<String>>>,
    progress: watch::Sender<u64>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let form = ElicitationCapability::new().with_form(FormElicitationCapability::default());
        capabilities.elicitation = Some(form);
        let mut config = ClientConfig::default().with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE);
        config.capabilities = capabilities;
        config
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        self.asked.lock().push(message);
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"name": NAME})))
    }

    async fn on_progress(&self, _progress: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.progress.send_modify(|count| *count += 1);
    }
}

type Connected = RunningService<RoleClient, Handler>;

/// Carries out the plan. Returns what the client was given, or why it failed.
pub(crate) async fn run(era: Era, target: &Target, plan: &Plan, scratch: &Scratch) -> Result<Report, String> {
    let handler = Handler::default();
    let mut child = None;
    let lifecycle = match era {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        },
    };
    let connecting = match target {
        Target::Url(url) => {
            // The HTTP client wants a TLS provider, also for plain HTTP. Another run may have set it.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let transport = StreamableHttpClientTransport::from_uri(url.as_str());
            handler.clone().serve_with_lifecycle(transport, lifecycle).await
        }
        Target::Command(words) => {
            let mut command = scratch.command(Path::new(&words[0]));
            command.args(&words[1..]).stderr(Stdio::null());
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut command = tokio::process::Command::from(command);
            let spawned = child.insert(command.kill_on_drop(true).spawn().unwrap());
            let pipes = (spawned.stdout.take().unwrap(), spawned.stdin.take().unwrap());
            handler.clone().serve_with_lifecycle(pipes, lifecycle).await
        }
    };
    let client = connecting.map_err(|error| format!("cannot connect: {error:?}"))?;
    let report = carry_out(&client, &handler, plan).await;
    client
        .cancel()
        .await
        .map_err(|error| format!("cannot close: {error:?}"))?;
    if let Some(mut child) = child {
        // Its input is closed, which ends it.
        let status = child.wait().await.unwrap();
        if !status.success() {
            return Err(format!("the server ends with {status}"));
        }
    }
    report
}

async fn carry_out(client: &Connected, handler: &Handler, plan: &Plan) -> Result<Report, String> {
    let version = client.peer_info().map(|info| info.protocol_version.to_string());
    let mut report = Report {
        protocol: version.unwrap_or_default(),
        ..Report::default()
    };
    report.tools = list_until_complete(client, plan).await?;
    for (tool, call) in plan.calls() {
        let before = *handler.progress.borrow();
        let mut params = CallToolRequestParams::new(tool.clone());
        params.arguments = call.arguments.as_object().cloned();
        let result = client
            .call_tool(params)
            .await
            .map_err(|error| format!("{tool}: {error:?}"))?;
        if call.progress {
            // The SDK runs each handler in a task of its own, and the response may overtake it.
            let mut told = handler.progress.subscribe();
            let _ = tokio::time::timeout(HANDING_OVER, told.wait_for(|count| *count > before)).await;
        }
        let progress = *handler.progress.borrow() - before;
        report.progress.insert(tool.clone(), progress);
        report.calls.push(Called {
            tool,
            text: text(&serde_json::to_value(&result.content).unwrap()),
            failed: result.is_error == Some(true),
        });
    }
    if let Some(uri) = plan.resource() {
        let read = client.read_resource(ReadResourceRequestParams::new(uri)).await;
        let read = read.map_err(|error| format!("resources/read: {error:?}"))?;
        let contents = serde_json::to_value(&read.contents).unwrap();
        report.resource = contents[0]["text"].as_str().map(str::to_owned);
    }
    if let Some(name) = plan.prompt() {
        let got = client.get_prompt(GetPromptRequestParams::new(name)).await;
        let got = got.map_err(|error| format!("prompts/get: {error:?}"))?;
        report.prompt = Some(text(&serde_json::to_value(vec![&got.messages[0].content]).unwrap()));
    }
    report.asked = handler.asked.lock().clone();
    Ok(report)
}

/// Lists tools until those of the plan are there, or for as long as servers may take to start.
async fn list_until_complete(client: &Connected, plan: &Plan) -> Result<Vec<String>, String> {
    let expected = plan.tools();
    let mut left = 300;
    loop {
        let tools = client.list_all_tools().await;
        let tools = tools.map_err(|error| format!("tools/list: {error:?}"))?;
        let names: Vec<String> = tools.into_iter().map(|tool| tool.name.into_owned()).collect();
        left -= 1;
        if left == 0 || expected.iter().all(|tool| names.contains(tool)) {
            return Ok(names);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The text of content blocks, or what identifies a block without text.
fn text(blocks: &Value) -> String {
    let text = |block: &Value| {
        let parts = [
            &block["text"],
            &block["uri"],
            &block["resource"]["text"],
            &block["resource"]["uri"],
            &block["mimeType"],
        ];
        parts
            .iter()
            .find_map(|part| part.as_str())
            .unwrap_or_default()
            .to_owned()
    };
    let texts: Vec<String> = blocks.as_array().unwrap().iter().map(text).collect();
    texts.join("\n")
}
