//! A config file as a user would write it, over several peers.

use pegboard::{Config, Env, Loaded, Pegboard, config::Source, status::Era};
use serde_json::json;
use tempfile::TempDir;

use crate::{peer::*, support::*, talk::*, time_and_git::repository_in};

const FILE: &str = r#"
# Everything an agent needs for a day's work.
[servers.files]
command = "${PEERS}/npm/node_modules/.bin/node"
args = ["${PEERS}/npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js", "."]
cwd = "project"
deny = ["write_*", "edit_file", "move_file", "create_directory"]

[servers.memory]
command = ["${PEERS}/npm/node_modules/.bin/node", "${PEERS}/npm/node_modules/@modelcontextprotocol/server-memory/dist/index.js"]
env = { MEMORY_FILE_PATH = "${workspaceFolder}/memory.jsonl" }
start = "lazy"

[servers.git]
command = "mcp-server-git"
args = ["--repository", "${workspaceFolder}/project"]
env = { PATH = "${PEERS}/python-modern/bin:${PATH}" }
era = "modern"
allow = ["git_log", "git_status"]
required = true

[servers.new]
url = "${PYTHON_URL}"

[servers.old]
url = "${PYTHON_URL}"
era = "legacy"
call_timeout = "20s"

[servers.events]
type = "sse"
url = "${SSE_URL}"

[servers.socket]
url = "${SOCKET_URL:-ws://127.0.0.1:1/}"

[servers.off]
command = "no-such-program"
enabled = false
"#;

fn load(folder: &TempDir, variables: &[(&str, &str)]) -> Loaded {
    let file = folder.path().join("pegboard.toml");
    std::fs::write(&file, FILE).unwrap();
    let peers = home().display().to_string();
    let env = Env::new(|name| match name {
        "PEERS" => Some(peers.clone()),
        "PATH" => std::env::var(name).ok(),
        _ => variables
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| (*value).to_owned()),
    });
    Config::load(&[Source::file(file)], &env)
}

#[tokio::test]
async fn a_file_that_names_several_servers_opens_them_all() {
    let folder = TempDir::new().unwrap();
    let project = folder.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let project = repository_in(&project);
    let (python, sse, socket) = tokio::join!(
        Listening::python_modern(),
        Listening::everything_sse(),
        Listening::python_websocket()
    );
    let variables = [
        ("PYTHON_URL", python.url.as_str()),
        ("SSE_URL", &sse.url),
        ("SOCKET_URL", &socket.url),
    ];
    let loaded = load(&folder, &variables);
    assert!(loaded.problems.is_empty(), "{:#?}", loaded.problems);

    let board = Pegboard::open(loaded.config);
    let tools = board.toolset();
    let names = listed(&tools).await;
    assert!(!names.contains(&"files__write_file".to_owned()), "{names:?}");
    assert_eq!(names.iter().filter(|name| name.starts_with("git__")).count(), 2);
    assert!(board.status().ready && board.status().healthy);
    for (server, transport, era) in [
        ("events", "sse", Era::Legacy),
        ("files", "stdio", Era::Legacy),
        ("git", "stdio", Era::Modern),
        ("new", "http", Era::Modern),
        ("old", "http", Era::Legacy),
        ("socket", "websocket", Era::Legacy),
    ] {
        let status = status(&board, server);
        assert_eq!((status.transport, status.era), (transport, Some(era)), "{server}");
    }

    let read = text(&tools, "read_text_file", json!({"path": project.join("tree.txt")})).await;
    assert_eq!(read, "oak\n");
    let hidden = call(&tools, "files.write_file", json!({"path": "x", "content": ""})).await;
    assert!(hidden.is_error() && !hidden.outcome.may_have_executed());
    let log = text(&tools, "git_log", json!({"repo_path": project})).await;
    assert!(log.contains("Plant a tree"), "{log}");
    text(&tools, "read_graph", json!({})).await;
    for server in ["new", "old", "socket"] {
        assert_eq!(
            text(&tools, &format!("{server}.add"), json!({"a": 2, "b": 3})).await,
            "5"
        );
    }
    assert_eq!(text(&tools, "events.echo", json!({"message": "hi"})).await, "Echo: hi");
    board.shutdown().await;
}

#[test]
fn a_variable_that_is_not_set_costs_only_the_servers_that_need_it() {
    let folder = TempDir::new().unwrap();
    let loaded = load(&folder, &[]);
    let problems: Vec<_> = loaded.errors().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 3, "{problems:#?}");
    let named = |variable: &str| problems.iter().filter(|problem| problem.contains(variable)).count();
    assert_eq!((named("PYTHON_URL"), named("SSE_URL")), (2, 1), "{problems:#?}");
    let left: Vec<_> = loaded.config.servers.keys().map(|name| name.as_str()).collect();
    assert_eq!(left, ["files", "git", "memory", "off", "socket"]);
}
