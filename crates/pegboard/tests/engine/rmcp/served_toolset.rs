//! A toolset as an rmcp handler, against an rmcp client.

use std::{collections::HashMap, time::Duration};

use pegboard::{Config, Grants, Pegboard, Toolset, View, rmcp::ToolsetHandler};
use rmcp::{
    ClientHandler, RoleClient, ServiceError, ServiceExt,
    model::{
        CallToolRequestParams, ClientConfig, ClientRequest, CompletionContext, ErrorCode, GetPromptRequestParams,
        Implementation, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams,
        Reference, Request, ResourceUpdatedNotificationParam, ServerNotification, SubscribeRequestParams,
        SubscriptionFilter, UnsubscribeRequestParams,
    },
    service::{ClientLifecycleMode, ClientServiceExt, NotificationContext, PeerRequestOptions, RunningService},
};
use serde_json::json;
use tokio::{sync::mpsc, time::timeout};

use crate::{
    rmcp::{
        handler_in_process::board_with,
        kit::{Kit, object},
        library::Library,
    },
    support::{PATIENCE, name},
};

/// An rmcp client that records notifications.
#[derive(Clone)]
struct Client(mpsc::Sender<String>);

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        ClientConfig::default().with_protocol_version(version)
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        let _ = self.0.try_send(format!("progress {}", progress.progress));
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        let _ = self.0.try_send("tools".to_owned());
    }

    async fn on_resource_updated(
        &self,
        update: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let _ = self.0.try_send(format!("updated {}", update.uri));
    }
}

/// Serves the toolset over a stream. Returns the client's end.
fn serve(tools: Toolset) -> tokio::io::DuplexStream {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        let info = Implementation::new("tests", "1.0");
        let handler = ToolsetHandler::new(tools)
            .server_info(info)
            .instructions("Be brief.")
            .patience(PATIENCE);
        let served = handler.serve(ours).await;
        if let Ok(running) = served {
            let _ = running.waiting().await;
        }
    });
    theirs
}

type Connected = (RunningService<RoleClient, Client>, mpsc::Receiver<String>);

async fn connect(tools: Toolset) -> Connected {
    let (sender, notifications) = mpsc::channel(64);
    let client = Client(sender).serve(serve(tools)).await.unwrap();
    (client, notifications)
}

async fn connect_modern(tools: Toolset) -> Connected {
    let (sender, notifications) = mpsc::channel(64);
    let discover = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    let client = Client(sender)
        .serve_with_lifecycle(serve(tools), discover)
        .await
        .unwrap();
    (client, notifications)
}

async fn expect(notifications: &mut mpsc::Receiver<String>, wanted: &str) {
    let waiting = async { while notifications.recv().await.expect("a connection") != wanted {} };
    timeout(PATIENCE, waiting)
        .await
        .unwrap_or_else(|_| panic!("no `{wanted}`"));
}

fn call(tool: &'static str) -> CallToolRequestParams {
    CallToolRequestParams::new(tool)
}

fn library_board(library: &Library) -> Pegboard {
    Pegboard::builder(Config::default())
        .in_process(name("lib"), pegboard::rmcp::in_process(library.clone()))
        .open()
}

#[tokio::test(start_paused = true)]
async fn tools_are_listed_under_the_names_of_the_view_and_called_in_both_eras() {
    let (_board, tools) = board_with(&Kit::default());
    for is_modern in [false, true] {
        let (client, _) = match is_modern {
            true => connect_modern(tools.clone()).await,
            false => connect(tools.clone()).await,
        };
        let listed = client.list_all_tools().await.unwrap();
        let names: Vec<_> = listed.iter().map(|tool| &*tool.name).collect();
        assert!(names.len() == 8 && names.contains(&"kit__echo"), "{names:?}");
        let arguments = object(json!({"text": "through two servers"}));
        let result = client
            .call_tool(call("kit__echo").with_arguments(arguments))
            .await
            .unwrap();
        assert_eq!(result.is_error, Some(false));
        assert_eq!(result.content[0].as_text().unwrap().text, "through two servers");
        let structured = client.call_tool(call("kit__structured")).await.unwrap();
        assert_eq!(structured.structured_content, Some(json!({"pages": 3})));
        assert_eq!(structured.meta.unwrap().0["tray"], "upper");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_sees_the_name_and_the_instructions_of_the_program() {
    let (_board, tools) = board_with(&Kit::default());
    let (client, _) = connect(tools).await;
    let info = client.peer_info().unwrap();
    assert_eq!(info.server_info.as_ref().unwrap().name, "tests");
    assert_eq!(info.instructions.as_deref(), Some("Be brief."));
}

#[tokio::test(start_paused = true)]
async fn failures_are_results_that_the_model_reads_and_an_unknown_tool_is_an_error() {
    let (board, tools) = board_with(&Kit::default());
    let (client, _) = connect(tools).await;
    let failed = client.call_tool(call("kit__fails")).await.unwrap();
    assert_eq!(failed.is_error, Some(true));
    assert_eq!(failed.content[0].as_text().unwrap().text, "out of paper");
    let unknown = client.call_tool(call("kit__nothing")).await.unwrap_err();
    let ServiceError::McpError(error) = unknown else {
        panic!("{unknown:?}")
    };
    assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
    assert!(error.message.contains("kit__nothing"), "{}", error.message);
    board.shutdown().await;
    let refused = client.call_tool(call("kit__echo")).await.unwrap();
    assert_eq!(refused.is_error, Some(true));
    assert!(
        refused.content[0].as_text().unwrap().text.contains("closing"),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_the_view_may_not_use_is_neither_listed_nor_called() {
    let (board, _) = board_with(&Kit::default());
    let view = View::new().grants(Grants::new());
    let (client, _) = connect(board.toolset_with(view)).await;
    assert_eq!(client.list_all_tools().await.unwrap(), []);
    let called = client.call_tool(call("kit__echo")).await;
    let is_refused = match &called {
        Ok(result) => result.is_error == Some(true),
        Err(_) => true,
    };
    assert!(is_refused, "{called:?}");
}

#[tokio::test(start_paused = true)]
async fn progress_reaches_the_client_that_asked_for_it() {
    let (_board, tools) = board_with(&Kit::default());
    let (client, mut notifications) = connect(tools).await;
    client.call_tool(call("kit__counts")).await.unwrap();
    for step in ["progress 1", "progress 2", "progress 3"] {
        expect(&mut notifications, step).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_drops_the_call() {
    let kit = Kit::default();
    let (_board, tools) = board_with(&kit);
    let (client, _) = connect(tools).await;
    let request = ClientRequest::CallToolRequest(Request::new(call("kit__hangs")));
    let options = PeerRequestOptions::no_options();
    let pending = client.send_cancellable_request(request, options).await.unwrap();
    timeout(PATIENCE, kit.hanging()).await.expect("the call arrives");
    pending.cancel(Some("no longer needed".to_owned())).await.unwrap();
    timeout(PATIENCE, kit.dropped())
        .await
        .expect("the call is cancelled at its server");
}

#[tokio::test(start_paused = true)]
async fn calls_end_when_their_client_leaves() {
    let kit = Kit::default();
    let (_board, tools) = board_with(&kit);
    let (client, _) = connect(tools).await;
    let peer = client.peer().clone();
    let calling = tokio::spawn(async move { peer.call_tool(call("kit__hangs")).await });
    timeout(PATIENCE, kit.hanging()).await.expect("the call arrives");
    client.cancel().await.unwrap();
    timeout(PATIENCE, kit.dropped())
        .await
        .expect("the call is cancelled at its server");
    assert!(calling.await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_changed_list_of_tools_is_announced() {
    let (_board, tools) = board_with(&Kit::default());
    let (client, mut notifications) = connect(tools).await;
    client.list_all_tools().await.unwrap();
    client.call_tool(call("kit__grows")).await.unwrap();
    let grown = async {
        loop {
            expect(&mut notifications, "tools").await;
            let listed = client.list_all_tools().await.unwrap();
            if listed.iter().any(|tool| tool.name == "kit__grown") {
                return;
            }
        }
    };
    timeout(PATIENCE, grown).await.expect("the new tool is listed");
}

#[tokio::test(start_paused = true)]
async fn a_listener_of_the_modern_era_gets_what_it_asked_for() {
    let library = Library::default();
    let board = Pegboard::builder(Config::default())
        .in_process(name("lib"), pegboard::rmcp::in_process(library.clone()))
        .in_process(name("kit"), pegboard::rmcp::in_process(Kit::default()))
        .open();
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let (client, _) = connect_modern(tools).await;
    let filter = SubscriptionFilter::builder()
        .tools_list_changed()
        .resource_subscriptions(["book:dune"]);
    let mut listening = client.listen(filter.build()).await.unwrap();
    let next = async |listening: &mut rmcp::service::Subscription| {
        timeout(PATIENCE, listening.next())
            .await
            .expect("a notification")
            .unwrap()
            .unwrap()
    };
    // The handler subscribes after the acknowledgement, so the first update may be too early.
    let updated = async {
        loop {
            library.update("book:dune").await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    let update = tokio::select! {
        update = next(&mut listening) => update,
        () = updated => unreachable!("it never ends"),
    };
    assert!(
        matches!(update, ServerNotification::ResourceUpdatedNotification(_)),
        "{update:?}"
    );
    client.call_tool(call("kit__grows")).await.unwrap();
    loop {
        if let ServerNotification::ToolListChangedNotification(_) = next(&mut listening).await {
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn resources_prompts_and_completions_are_those_of_the_servers() {
    let board = library_board(&Library::default());
    let (client, _) = connect(board.toolset()).await;
    let resources = client.list_all_resources().await.unwrap();
    assert_eq!((resources[0].uri.as_str(), resources[0].size), ("book:dune", Some(5)));
    let templates = client.list_all_resource_templates().await.unwrap();
    assert_eq!(templates[0].uri_template, "page:{book}/{number}");
    for uri in ["book:dune", "page:dune/7"] {
        let read = client.read_resource(ReadResourceRequestParams::new(uri)).await.unwrap();
        let shown = serde_json::to_value(&read.contents[0]).unwrap();
        assert_eq!(shown["text"], format!("the text of {uri}"));
    }
    let missing = client
        .read_resource(ReadResourceRequestParams::new("film:dune"))
        .await
        .unwrap_err();
    assert!(missing.to_string().contains("film:dune"), "{missing}");

    let prompts = client.list_all_prompts().await.unwrap();
    assert_eq!(prompts[0].name, "lib__review");
    assert_eq!(prompts[0].arguments.as_ref().unwrap()[0].required, Some(true));
    let dune = object(json!({"book": "Dune"}));
    let params = GetPromptRequestParams::new("lib__review").with_arguments(dune);
    let filled = client.get_prompt(params).await.unwrap();
    assert_eq!(filled.messages[0].content.as_text().unwrap().text, "Review Dune.");
    let unnamed = client
        .get_prompt(GetPromptRequestParams::new("lib__review"))
        .await
        .unwrap_err();
    let ServiceError::McpError(error) = unnamed else {
        panic!("{unnamed:?}")
    };
    assert_eq!(error.code, ErrorCode::INVALID_PARAMS);

    let completed = client.complete_prompt_simple("lib__review", "book", "D").await.unwrap();
    assert_eq!(completed, ["Dune"]);
    let known = CompletionContext::with_arguments(HashMap::from([("book".to_owned(), "Dune".to_owned())]));
    let page = client.complete_resource_argument("page:{book}/{number}", "number", "1", Some(known));
    assert_eq!(page.await.unwrap().values, ["11 of Dune"]);
    let nowhere = Reference::for_resource("film:{x}");
    assert!(
        client
            .complete_resource_simple(nowhere.as_resource_uri().unwrap(), "x", "")
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
#[expect(deprecated, reason = "servers with sessions are still subscribed to like this")]
async fn a_subscribed_resource_is_announced_until_the_client_unsubscribes() {
    let library = Library::default();
    let board = library_board(&library);
    let (client, mut notifications) = connect(board.toolset()).await;
    client
        .subscribe(SubscribeRequestParams::new("book:dune"))
        .await
        .unwrap();
    library.update("book:dune").await;
    expect(&mut notifications, "updated book:dune").await;
    client
        .unsubscribe(UnsubscribeRequestParams::new("book:dune"))
        .await
        .unwrap();
    timeout(PATIENCE, library.unsubscribed())
        .await
        .expect("the server is told");
}

#[tokio::test(start_paused = true)]
async fn a_cursor_of_another_server_is_an_error() {
    let (_board, tools) = board_with(&Kit::default());
    let (client, _) = connect(tools).await;
    let page = PaginatedRequestParams::default().with_cursor(Some("abc".to_owned()));
    let wrong = client.list_tools(Some(page)).await.unwrap_err();
    let ServiceError::McpError(error) = wrong else {
        panic!("{wrong:?}")
    };
    assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
}
