//! Resources as tools for the model.

use pegboard::{
    Grants, Kind, NameStyle, Outcome, Pegboard, Secret, Selection, ServerConfig, Toolset, View,
    catalog::{Risk, ToolKind},
    config::Approval,
};
use pegboard_testkit::{FakeServer, MemoryHandle, Tool};
use serde_json::{Value, json};

use crate::support::*;

fn notes() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("t"))
        .resource("note:b", "the note b")
        .resource("note:a", "the note a")
        .blob("note:zip", "application/zip", "aGVsbG8=")
        .blob("note:png", "image/png", "aGVsbG8=")
}

fn open<const N: usize>(servers: [(&str, &FakeServer, ServerConfig); N]) -> (Pegboard, Vec<MemoryHandle>) {
    let mut builder = Pegboard::builder(pegboard::Config::default());
    let mut handles = Vec::new();
    for (server, fake, settings) in servers {
        let (_first, handle) = fake.connect();
        builder = builder.in_process_with(name(server), dialer(&handle), settings);
        handles.push(handle);
    }
    (builder.open(), handles)
}

async fn listed(tools: &Toolset, arguments: Value) -> Value {
    let reply = call(tools, "list_resources", arguments).await;
    assert_eq!(reply.outcome.kind(), Kind::Ok, "{}", reply.text());
    serde_json::from_str(&reply.text()).unwrap()
}

fn addresses(listed: &Value) -> Vec<String> {
    let items = listed["resources"].as_array().unwrap();
    let address = |item: &Value| format!("{} {}", item["server"].as_str().unwrap(), item["uri"].as_str().unwrap());
    items.iter().map(address).collect()
}

#[tokio::test(start_paused = true)]
async fn a_view_that_wants_them_shows_three_tools_and_others_do_not() {
    let (board, _handle) = in_memory(&notes());
    let names = async |view: View| {
        let listing = board.toolset_with(view).list(PATIENCE).await;
        listing.tools.into_iter().map(|tool| tool.name).collect::<Vec<_>>()
    };
    assert_eq!(names(View::new()).await, ["fx__t"]);
    let ours = ["list_resources", "list_resource_templates", "read_resource"].map(|name| format!("pegboard__{name}"));
    let shown = names(View::new().resource_tools().naming(NameStyle::Bare)).await;
    assert_eq!(shown[0], "t");
    assert_eq!(shown[1..], ours);
    let listing = board.toolset_with(View::new().resource_tools()).list(PATIENCE).await;
    let said: Vec<_> = listing.tools.iter().map(|tool| (tool.kind, tool.risk)).collect();
    let (mcp, own) = ((ToolKind::Mcp, Risk::High), (ToolKind::BuiltIn, Risk::OF_RESOURCES));
    assert_eq!(said, [mcp, own, own, own]);
    let off = call(&board.toolset(), "pegboard__list_resources", json!({})).await;
    assert_outcome(&off, Kind::UnknownTool, false);
}

#[tokio::test(start_paused = true)]
async fn a_model_lists_and_reads_resources() {
    let (board, _handle) = in_memory(&notes());
    let tools = board.toolset_with(View::new().resource_tools());
    let all = listed(&tools, json!({})).await;
    assert_eq!(
        addresses(&all),
        ["fx note:a", "fx note:b", "fx note:png", "fx note:zip"]
    );
    assert_eq!(all["resources"][3]["mime_type"], "application/zip");
    for (arguments, expected) in [
        (json!({"uri": "note:a"}), "the note a"),
        (json!({"uri": "note:b", "server": "fx"}), "the note b"),
        (json!({"uri": "note:a", "server": null}), "the note a"),
    ] {
        let reply = call(&tools, "pegboard__read_resource", arguments).await;
        assert_eq!(reply.text(), expected);
        assert_eq!((reply.name.as_str(), reply.untrusted), ("fx.read_resource", true));
    }
    let templates = call(&tools, "list_resource_templates", json!({})).await;
    assert_eq!(templates.text(), r#"{"templates":[]}"#);
}

#[tokio::test(start_paused = true)]
async fn a_page_with_resources_of_an_untrusted_server_is_untrusted() {
    let templated = || notes().template(json!({"uriTemplate": "note:{name}", "name": "a note"}));
    for trust in [false, true] {
        let mut settings = in_process_settings();
        settings.policy.trust = trust;
        let (board, _handles) = open([("fx", &templated(), settings)]);
        let tools = board.toolset_with(View::new().resource_tools());
        for tool in ["list_resources", "list_resource_templates"] {
            let page = call(&tools, tool, json!({})).await;
            assert_eq!(page.untrusted, !trust, "{tool}: {}", page.text());
            let behind = call(&tools, tool, json!({"cursor": "zzz"})).await;
            assert!(!behind.untrusted, "nothing of a server is in it: {}", behind.text());
        }
        board.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn built_in_tools_say_what_they_reach() {
    let (board, _handle) = in_memory(&notes());
    for (view, expected) in [
        (
            View::new().tool_budget(1),
            [
                ("call_tool", false, true),
                ("describe_tool", true, false),
                ("find_tools", true, false),
            ],
        ),
        (
            View::new().resource_tools(),
            [
                ("list_resource_templates", true, false),
                ("list_resources", true, false),
                ("read_resource", true, false),
            ],
        ),
    ] {
        let listing = board.toolset_with(view).list(PATIENCE).await;
        let built_in = listing.tools.iter().filter(|tool| tool.kind == ToolKind::BuiltIn);
        let mut hints: Vec<_> = built_in
            .map(|tool| {
                let hint = |name: &str| tool.tool.annotations.as_ref().unwrap()[name].as_bool().unwrap();
                (tool.tool.name.as_str(), hint("readOnlyHint"), hint("openWorldHint"))
            })
            .collect();
        hints.sort_unstable();
        assert_eq!(hints, expected);
    }
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_names_step_aside_for_servers() {
    let own = FakeServer::new("pegboard")
        .tool(Tool::new("read_resource").answers_text("the server's"))
        .resource("note:a", "the note a");
    let (board, _handles) = open([("pegboard", &own, in_process_settings())]);
    let tools = board.toolset_with(View::new().resource_tools());
    let names: Vec<_> = tools
        .list(PATIENCE)
        .await
        .tools
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(names[0], "pegboard__read_resource");
    assert_eq!(names[3], "pegboard-2__read_resource");
    for (tool, text) in [
        ("pegboard__read_resource", "the server's"),
        ("read_resource", "the server's"),
        ("pegboard-2__read_resource", "the note a"),
    ] {
        assert_eq!(call(&tools, tool, json!({"uri": "note:a"})).await.text(), text);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_wrongly_is_explained() {
    let (board, _handles) = open([
        ("a", &notes(), in_process_settings()),
        ("b", &notes(), in_process_settings()),
    ]);
    let tools = board.toolset_with(View::new().resource_tools());
    for (tool, arguments, kind, words) in [
        ("read_resource", json!({}), Kind::InvalidArguments, "`uri` is missing"),
        (
            "read_resource",
            json!({"uri": ["x"]}),
            Kind::InvalidArguments,
            "`uri` must be a text",
        ),
        (
            "read_resource",
            json!({"uri": "x:y"}),
            Kind::InvalidArguments,
            "none lists this address. Available servers: a, b.",
        ),
        (
            "read_resource",
            json!({"uri": "x:y", "server": "a"}),
            Kind::ToolError,
            "resource not found",
        ),
        (
            "read_resource",
            json!({"uri": "x:y", "server": "c"}),
            Kind::Unavailable,
            "there is no server `c`. Available servers: a, b.",
        ),
        (
            "list_resources",
            json!({"server": "no name"}),
            Kind::InvalidArguments,
            "cannot be a server name",
        ),
    ] {
        let reply = call(&tools, tool, arguments).await;
        assert_outcome(&reply, kind, false);
        assert_contains(&reply.text(), &[words]);
    }
}

#[tokio::test(start_paused = true)]
async fn long_listings_come_in_pages() {
    let mut fake = FakeServer::new("fx");
    for n in 0..500 {
        fake = fake.resource(&format!("note:{n:03}"), "x");
    }
    let (board, _handle) = in_memory(&fake);
    let tools = board.toolset_with(View::new().resource_tools());
    let (mut seen, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let page = listed(&tools, json!({"limit": 1000, "cursor": cursor})).await;
        assert!(page.to_string().len() < 20 << 10);
        seen.extend(addresses(&page));
        pages += 1;
        match &page["next_cursor"] {
            Value::Null => break,
            next => cursor = next.clone(),
        }
    }
    assert_eq!((seen.len(), pages), (500, 3));
    assert!(seen.is_sorted());
    assert_eq!(addresses(&listed(&tools, json!({})).await).len(), 50);
}

#[tokio::test(start_paused = true)]
async fn long_texts_and_bytes_are_put_aside_and_secrets_are_masked() {
    let long = "hunter2hunter2 and more of it\n".repeat(5000);
    let (board, _handle) = in_memory(&notes().resource("note:long", &long));
    board.hide([Secret::new("hunter2hunter2")]);
    let tools = board.toolset_with(View::new().resource_tools());
    let reply = call(&tools, "read_resource", json!({"uri": "note:long"})).await;
    assert!(reply.truncated && !reply.text().contains("hunter2hunter2"));
    let rest = json!({"handle": reply.handle.unwrap(), "range": "4990-5000"});
    assert_contains(&call(&tools, "read_output", rest).await.text(), &["and more of it"]);

    let zip = call(&tools, "read_resource", json!({"uri": "note:zip"})).await.text();
    assert_contains(&zip, &["[resource note:zip, application/zip, 5 bytes, handle out_"]);
    let png = call(&tools, "read_resource", json!({"uri": "note:png"})).await;
    let Outcome::Done(answer) = &png.outcome else {
        panic!("{}", png.text())
    };
    assert!(
        matches!(&answer.content[..], [pegboard::Content::Image { .. }]),
        "{answer:?}"
    );
    // A program gets the whole result.
    let whole = board.toolset_with(View::new().resource_tools().whole_results());
    let zip = call(&whole, "read_resource", json!({"uri": "note:zip"})).await;
    assert_eq!(zip.text(), "[resource note:zip, application/zip, 5 bytes]");
}

/// Every view below may use server `a` only.
#[tokio::test(start_paused = true)]
async fn an_agent_sees_only_resources_of_servers_that_it_may_use() {
    let without = set_to(|server| server.policy.capabilities.resources = false);
    let (board, handles) = open([
        ("a", &notes(), in_process_settings()),
        ("b", &notes(), in_process_settings()),
        ("c", &notes(), without),
    ]);
    let tools = board.toolset_with(View::new().resource_tools());
    let servers = |listed: &Value| {
        let mut servers: Vec<_> = addresses(listed)
            .iter()
            .map(|address| address[..1].to_owned())
            .collect();
        servers.dedup();
        servers
    };
    assert_eq!(servers(&listed(&tools, json!({})).await), ["a", "b"]);
    let off = call(&tools, "read_resource", json!({"uri": "note:a", "server": "c"})).await;
    assert_outcome(&off, Kind::NotPermitted, false);

    let view = || View::new().resource_tools();
    for view in [
        view().allow(["a.*"]),
        view().allow(["a.t"]),
        view().deny(["b.*"]),
        view().selection(Selection::new().tools("a", ["t"])),
        view().grants(Grants::from_words(["mcp_a"])),
    ] {
        let tools = board.toolset_with(view);
        assert_eq!(servers(&listed(&tools, json!({})).await), ["a"]);
        for tool in ["read_resource", "list_resources"] {
            let refused = call(&tools, tool, json!({"uri": "note:a", "server": "b"})).await;
            assert_outcome(&refused, Kind::NotPermitted, false);
        }
    }
    assert_eq!(
        handles[1].count("resources/read") + handles[2].count("resources/read"),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn reading_is_checked_asked_about_and_counted_as_a_call_is() {
    let asks = set_to(|server| server.policy.approval = Approval::Always);
    let (board, handle) = in_memory_with(&notes(), asks);
    let view = View::new().resource_tools();
    let refused = call(
        &board.toolset_with(view.clone()),
        "read_resource",
        json!({"uri": "note:a"}),
    )
    .await;
    assert_outcome(&refused, Kind::NotPermitted, false);
    let forbids = view
        .clone()
        .check(|proposed| Err(format!("{} {}", proposed.server, proposed.arguments["uri"])));
    let forbidden = call(&board.toolset_with(forbids), "read_resource", json!({"uri": "note:a"})).await;
    assert_contains(&forbidden.text(), &["fx \"note:a\""]);
    assert_eq!(handle.count("resources/read"), 0);
    let agrees = view.approver(|_: &pegboard::approval::Question<'_>| pegboard::approval::Decision::Once);
    assert_eq!(
        call(&board.toolset_with(agrees), "read_resource", json!({"uri": "note:a"}))
            .await
            .text(),
        "the note a"
    );
    assert_eq!(board.status().servers[0].calls.total, 3);
}
