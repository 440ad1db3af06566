//! The command, the environment and the limits of a child process.

use pegboard::{Config, Env, Format, Pegboard};
use pegboard_testkit::{Answer, Era, FakeServer, Fault, Refusal, Tool};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{settings::fixtures::good, support::*};

/// The config of a process `fx` with these settings besides its command. The variable `GIVEN` is set.
fn file(fake: &FakeServer, settings: &Value) -> Value {
    let (program, args) = fake.command();
    let mut server = json!({"command": program, "args": args});
    let settings = settings.as_object().expect("an object").clone();
    server.as_object_mut().expect("an object").extend(settings);
    json!({"servers": {"fx": server}})
}

fn load(config: &Value) -> (Config, usize) {
    let env = Env::new(|name| (name == "GIVEN").then(|| "given".to_owned()));
    let loaded = Config::from_text(&config.to_string(), Format::Json, &env);
    let errors = loaded.errors().count();
    (loaded.config, errors)
}

/// A board with the process of such a config.
fn open(fake: &FakeServer, settings: &Value) -> Pegboard {
    let (config, errors) = load(&file(fake, settings));
    assert_eq!(errors, 0, "{settings}");
    Pegboard::open(config)
}

/// The variables of a process with these settings.
async fn variables(settings: &Value) -> Value {
    let board = open(&good().tool(Tool::new("env").shows_env()), settings);
    let reply = call(&board.toolset(), "fx.env", json!({})).await;
    board.shutdown().await;
    reply.into_result().unwrap().structured.unwrap()
}

#[tokio::test]
async fn a_process_has_the_variables_of_its_config() {
    let folder = tempfile::tempdir().unwrap();
    let env_file = folder.path().join("x.env");
    std::fs::write(&env_file, "FROM_FILE=file\nBOTH=file\n").unwrap();
    let settings = json!({
        "env_policy": "explicit", "env_file": env_file, "env": {"BOTH": "table"}, "env_pass": ["GIVEN", "MISSING"],
    });
    let seen = variables(&settings).await;
    let shown = ["FROM_FILE", "BOTH", "GIVEN", "MISSING", "PATH"].map(|name| seen[name].as_str());
    assert_eq!(shown, [Some("file"), Some("table"), Some("given"), None, None]);
    let seen = variables(&json!({"env_policy": "allowlist"})).await;
    assert_eq!((seen["GIVEN"].as_str(), seen["PATH"].is_string()), (None, true));
}

#[tokio::test]
async fn a_variable_that_loads_code_must_be_allowed() {
    let settings = json!({"env": {"LD_BIND_NOW": "1"}, "allow_loader_env": true});
    assert_eq!(variables(&settings).await["LD_BIND_NOW"], "1");
    let refused = json!({"env": {"LD_BIND_NOW": "1"}, "allow_loader_env": false});
    let (config, errors) = load(&file(&good(), &refused));
    assert_eq!(errors, 1);
    let board = Pegboard::open(config);
    assert!(call(&board.toolset(), "fx.hello", json!({})).await.is_error());
    board.shutdown().await;
}

#[tokio::test]
async fn a_process_has_the_command_the_arguments_and_the_folder_of_its_config() {
    let folder = tempfile::tempdir().unwrap();
    let cwd = std::fs::canonicalize(folder.path()).unwrap();
    let fake = FakeServer::new("fx")
        .tool(Tool::new("args").answers(Answer::CommandLine))
        .tool(Tool::new("cwd").shows_cwd());
    let config = file(&fake, &json!({"cwd": cwd}));
    let (command, args) = (&config["servers"]["fx"]["command"], &config["servers"]["fx"]["args"]);
    let board = Pegboard::open(load(&config).0);
    let tools = board.toolset();
    assert_eq!(call(&tools, "fx.cwd", json!({})).await.text(), cwd.to_str().unwrap());
    let seen = call(&tools, "fx.args", json!({})).await;
    let seen = seen.into_result().unwrap().structured.unwrap();
    let seen = seen.as_array().unwrap();
    assert_eq!((&seen[0], &seen[1..]), (command, args.as_array().unwrap().as_slice()));
    board.shutdown().await;
}

/// The process writes its limits to stderr and exits.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_has_the_limits_of_its_config() {
    let rlimits = json!({"open_files": 64, "memory": "512MiB", "processes": 4000, "file_size": "1MiB"});
    let script = "read line; exec cat /proc/self/limits >&2";
    let settings = json!({"command": ["/bin/sh", "-c", script], "args": [], "rlimits": rlimits, "restart": false});
    let board = open(&good(), &settings);
    board.settle(PATIENCE).await;
    let error = board.status().servers[0].last_error.clone().unwrap();
    let shown = error.stderr.unwrap();
    let limit = |name: &str| {
        let line = shown.lines().find(|line| line.starts_with(name)).expect(name);
        line[name.len()..].split_whitespace().next().unwrap().to_owned()
    };
    let limits = ["Max open files", "Max data size", "Max processes", "Max file size"].map(limit);
    assert_eq!(limits, ["64", "536870912", "4000", "1048576"]);
    board.shutdown().await;
}

/// The defaults are two seconds each, four together.
#[tokio::test]
async fn a_process_that_does_not_end_is_killed_after_the_stop_timeout() {
    let stubborn = good().fault(Fault::IgnoresEof).fault(Fault::IgnoresTerm);
    let board = open(&stubborn, &json!({"stop_timeout": "100ms"}));
    assert_eq!(call(&board.toolset(), "fx.hello", json!({})).await.text(), "hi");
    let closing = Instant::now();
    board.shutdown().await;
    assert!(closing.elapsed() < secs(4), "{:?}", closing.elapsed());
}

/// By default the other era is tried after 25 seconds.
#[tokio::test]
async fn a_silent_process_is_tried_in_the_other_era_after_the_era_silence() {
    let fake = good().era(Era::Modern).on_initialize(Refusal::Silence);
    for (era_silence, connect_timeout, is_error) in [("100ms", "30s", false), ("1h", "5s", true)] {
        let settings = json!({"era_silence": era_silence, "connect_timeout": connect_timeout, "restart": false});
        let board = open(&fake, &settings);
        let reply = call(&board.toolset(), "fx.hello", json!({})).await;
        assert_eq!(reply.is_error(), is_error, "{settings}: {}", reply.text());
        board.shutdown().await;
    }
}
