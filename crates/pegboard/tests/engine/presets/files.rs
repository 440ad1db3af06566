//! Rows about names and transports: naming, environment, transports, primitives.

use pegboard::{
    NameStyle, Pegboard, Provider, Secret, View,
    catalog::{InstructionFormat, Instructions},
    config::{EnvPolicy, Start, Transport},
};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::{presets::fixtures::*, support::*};

/// Row `naming.style`: the preset of the file names the tools, also if two servers have tools of the same name.
#[tokio::test(start_paused = true)]
async fn naming() {
    let expected = row([
        (NameStyle::Dunder, "fx__hello"),
        (NameStyle::Dot, "fx.hello"),
        (NameStyle::Dunder, "fx__hello"),
        (NameStyle::Bare, "hello"),
        (NameStyle::McpDunder, "mcp__fx__hello"),
        (NameStyle::McpSingle, "mcp_fx_hello"),
    ]);
    for (preset, (style, listed)) in expected {
        let stage = Stage::new(preset, "", &good()).await;
        assert_eq!(file(preset, "").1.naming, style, "{preset}");
        let names = async |view: View| {
            let tools = stage.board.toolset_with(view);
            let listing = tools.list(PATIENCE).await.tools;
            let names: Vec<String> = listing.into_iter().map(|tool| tool.name).collect();
            let reply = call(&tools, &names[0], json!({})).await;
            assert_eq!(unfenced(&reply.text()), "hi", "{preset}");
            names
        };
        assert_eq!(names(View::new()).await, [listed], "{preset}");
        // For an API that rejects dots, tarsy's names have none.
        let wire = names(View::new().provider(Provider::OpenAi)).await;
        assert_eq!(wire, [listed.replace('.', "__")], "{preset}");
    }
    let (server, rest) = file("antwort", "");
    let (_unused, handle) = good().connect();
    let board = Pegboard::builder(rest)
        .in_process_with(name("fx"), dialer(&handle), server)
        .in_process(name("other"), dialer(&handle))
        .open();
    let listing = board.toolset().list(PATIENCE).await.tools;
    let names: Vec<&str> = listing.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(
        names,
        ["fx__hello", "other__hello"],
        "bare names that clash have a prefix"
    );
}

/// Row `env`: whether a process inherits a variable that was not configured for it.
#[tokio::test]
async fn environment() {
    use EnvPolicy::{Allowlist, Inherit};
    let ours = "CARGO_MANIFEST_DIR";
    assert!(std::env::var(ours).is_ok(), "cargo sets it for tests");
    for (preset, policy) in row([Allowlist, Inherit, Allowlist, Allowlist, Inherit, Inherit]) {
        let settings = "env = { FROM_CONFIG = 'yes', LANG = 'from-config' }";
        let mut server = file(preset, settings).0;
        let (program, args) = FakeServer::new("fx").tool(Tool::new("env").shows_env()).command();
        let Transport::Stdio(command) = &mut server.transport else {
            panic!("{preset}: a process")
        };
        assert_eq!(command.env_policy, policy, "{preset}");
        command.program = program.to_str().unwrap().to_owned();
        command.args = args.into_iter().map(Secret::new).collect();
        server.start = Start::Lazy;
        let board = board(server);
        let reply = call(&board.toolset(), "fx.env", json!({})).await;
        let seen = reply.into_result().unwrap().structured.unwrap();
        assert_eq!(seen.get(ours).is_some(), policy == Inherit, "{preset}");
        assert_eq!(seen["FROM_CONFIG"], "yes", "{preset}");
        assert_eq!(seen["LANG"], "from-config", "{preset}: the config's value wins");
        board.shutdown().await;
    }
}

/// Row `transports`: which of four servers a file may have, and that one server may override it.
#[test]
fn transports() {
    let expected = row([
        &["stdio", "http", "sse", "websocket"][..],
        &["stdio", "http", "sse"],
        &["stdio", "http", "sse", "websocket"],
        &["stdio", "http", "sse"],
        &["stdio", "http"],
        &["stdio", "http"],
    ]);
    let servers = "[servers.stdio]\ncommand = 'x'\n\
        [servers.http]\nurl = 'https://h.test/mcp'\ntype = 'http'\n\
        [servers.sse]\nurl = 'https://h.test/sse'\ntype = 'sse'\n\
        [servers.websocket]\nurl = 'wss://h.test/mcp'\n";
    for (preset, allowed) in expected {
        let loaded = load(&format!("preset = '{preset}'\n{servers}"));
        for kind in ["stdio", "http", "sse", "websocket"] {
            let is_there = loaded.config.servers.contains_key(&name(kind));
            assert_eq!(is_there, allowed.contains(&kind), "{preset}: {kind}");
        }
        let errors: Vec<String> = loaded.errors().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 4 - allowed.len(), "{preset}: {errors:?}");
        for error in errors {
            assert_contains(
                &error,
                &[
                    &format!("and `transports` of preset `{preset}` allows"),
                    "in the server's table",
                ],
            );
        }
        let opted = format!("preset = '{preset}'\ntransports = ['stdio', 'http', 'sse', 'websocket']\n{servers}");
        assert_eq!(load(&opted).config.servers.len(), 4, "{preset}");
    }
}

/// Row `primitives`: which lists are requested from a server that has everything.
#[tokio::test(start_paused = true)]
async fn primitives() {
    let everything = good().resource("note://a", "text").prompt("greet", "hello");
    let expected = row([(1, 1), (0, 0), (0, 1), (0, 0), (1, 0), (0, 0)]);
    for (preset, (resources, prompts)) in expected {
        let stage = Stage::new(preset, "", &everything).await;
        assert_eq!(stage.tools.list(PATIENCE).await.tools.len(), 1, "{preset}");
        let asked = ["tools/list", "resources/list", "prompts/list"].map(|method| stage.handle.count(method));
        assert_eq!(asked, [1, resources, prompts], "{preset}");
        assert_eq!(
            stage.tools.resources(PATIENCE).await.resources.len(),
            resources,
            "{preset}"
        );
        assert_eq!(stage.tools.prompts(PATIENCE).await.prompts.len(), prompts, "{preset}");
        // A `list_changed` notification causes the same requests and no others.
        stage.handle.tools_changed().await;
        tokio::time::sleep(secs(10)).await;
        assert_eq!(stage.handle.count("resources/list") > 0, resources > 0, "{preset}");
        assert_eq!(stage.handle.count("prompts/list") > 0, prompts > 0, "{preset}");
        // Undeclared capabilities are never requested.
        let stage = Stage::new(preset, "", &good()).await;
        stage.tools.list(PATIENCE).await;
        let asked = ["resources/list", "prompts/list"].map(|method| stage.handle.count(method));
        assert_eq!(asked, [0, 0], "{preset}");
    }
    // ai-agent describes prompts to the model.
    let stage = Stage::new("ai-agent", "", &everything).await;
    stage.tools.list(PATIENCE).await;
    let format = InstructionFormat::from(load("preset = 'ai-agent'").config.preset);
    assert_eq!(format, InstructionFormat::AiAgent);
    let told = stage.tools.instructions(&Instructions::new(format));
    assert_contains(&told, &["#### MCP Server: fx", "greet"]);
}
