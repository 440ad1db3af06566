//! The environment of a child process: variables by policy, arguments unchanged, a working directory.

use std::collections::BTreeMap;

use pegboard::{
    Reply, ServerConfig,
    config::{Command, EnvPolicy, Transport},
};
use pegboard_testkit::{Answer, Tool};
use serde_json::{Value, json};

use crate::{
    stdio::{fixtures::TestDir, own_process::in_own_process},
    support::*,
};

/// Variables that a shell or a loader may set by itself in any process.
const BY_ITSELF: &[&str] = &["_", "PWD", "SHLVL", "OLDPWD", "PEGBOARD_FAMILY"];

const MASKED: &str = "[MASKED_SECRET]";

fn structured(reply: Reply) -> Value {
    reply.into_result().unwrap().structured.unwrap()
}

async fn variables(policy: EnvPolicy) -> BTreeMap<String, String> {
    let dir = TestDir::new();
    let (program, args) = dir.fake().tool(Tool::new("env").shows_env()).command();
    let mut command = Command::new(program.to_str().unwrap())
        .args(args)
        .env("FROM_CONFIG", "yes")
        .env("TZ", "Asia/Tokyo");
    command.env_policy = policy;
    let board = board(ServerConfig::new(Transport::Stdio(command)));
    let shown = structured(call(&board.toolset(), "fx.env", json!({})).await);
    board.shutdown().await;
    dir.assert_no_process_left().await;
    let mut variables: BTreeMap<String, String> = serde_json::from_value(shown).unwrap();
    variables.retain(|name, _| !BY_ITSELF.contains(&name.as_str()));
    variables
}

/// The child gets exactly the variables of its policy, and none of our secrets unless the policy names them.
#[tokio::test]
async fn a_child_gets_exactly_what_its_policy_says() {
    let ours = [
        ("AWS_SECRET_ACCESS_KEY", "a secret of ours"),
        ("ANTHROPIC_API_KEY", "another"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a third"),
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
        ("SSL_CERT_FILE", "/etc/ssl/cert.pem"),
        ("https_proxy", "http://proxy.invalid:3128"),
        ("npm_config_registry", "https://npm.invalid/"),
        ("UV_PUBLISH_TOKEN", "a fourth"),
        ("AWS_PROFILE", "work"),
    ];
    if !in_own_process("stdio::environment::a_child_gets_exactly_what_its_policy_says", &ours) {
        return;
    }
    let mut golden: BTreeMap<String, String> = BTreeMap::new();
    golden.insert("FROM_CONFIG".into(), "yes".into());
    golden.insert("TZ".into(), "Asia/Tokyo".into());
    assert_eq!(variables(EnvPolicy::Explicit).await, golden);

    let allowed = "PATH HOME USER LOGNAME SHELL TERM LANG LANGUAGE LC_ALL LC_CTYPE TMPDIR SSL_CERT_FILE SSL_CERT_DIR \
                   NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE AWS_CA_BUNDLE";
    for name in allowed.split(' ') {
        if let Ok(value) = std::env::var(name) {
            golden.insert(name.into(), value);
        }
    }
    assert_eq!(golden["LANG"], "C.UTF-8");
    let mut listed = variables(EnvPolicy::Allowlist).await;
    for (name, value) in [
        ("https_proxy", "http://proxy.invalid:3128"),
        ("npm_config_registry", "https://npm.invalid/"),
        ("AWS_PROFILE", "work"),
    ] {
        assert_eq!(listed.remove(name).as_deref(), Some(value), "{name}");
    }
    // Variables of this machine's package managers, desktop and accounts.
    let of_machine = [
        "NPM_CONFIG_",
        "npm_config_",
        "PIP_",
        "PIPX_",
        "UV_",
        "XDG_",
        "YARN_",
        "AWS_",
        "AZURE_",
        "CLOUDSDK_",
        "DOCKER_",
        "GOOGLE_CLOUD_",
    ];
    let named = "CARGO_HOME RUSTUP_HOME PYENV_ROOT NVM_DIR BUN_INSTALL DENO_DIR PNPM_HOME VOLTA_HOME KUBECONFIG SSH_AUTH_SOCK DISPLAY \
                 WAYLAND_DISPLAY DBUS_SESSION_BUS_ADDRESS";
    listed.retain(|name, _| {
        let is_proxy = name.to_ascii_uppercase().ends_with("_PROXY");
        let is_secret = name.contains("SECRET") || name.contains("TOKEN");
        let is_of_machine = of_machine
            .iter()
            .any(|family| name.starts_with(family) && !golden.contains_key(name));
        is_secret || !(is_proxy || is_of_machine || named.split(' ').any(|named| named == name))
    });
    assert_eq!(listed, golden);

    let mut all: BTreeMap<String, String> = std::env::vars().collect();
    all.extend(golden);
    let inherited = variables(EnvPolicy::Inherit).await;
    // The child has it, and its result is masked.
    assert_eq!(inherited["AWS_SECRET_ACCESS_KEY"], MASKED);
    for (name, value) in &inherited {
        let is_masked = value == MASKED && all.contains_key(name);
        assert!(is_masked || all.get(name) == Some(value), "{name}");
    }
    // Variables that load code into programs, and keys of model providers and telemetry, pass only if the config names them.
    for name in ["ANTHROPIC_API_KEY", "OTEL_EXPORTER_OTLP_HEADERS", "LD_LIBRARY_PATH"] {
        assert!(!inherited.contains_key(name), "{name}");
    }
}

/// No shell parses the arguments.
#[tokio::test]
async fn arguments_arrive_as_they_are() {
    let dir = TestDir::new();
    let marker = dir.file("pwned");
    let tool = Tool::new("args").answers(Answer::CommandLine);
    let odd = [
        "; touch MARKER",
        "$(touch MARKER)",
        "`touch MARKER`",
        "| cat",
        "two words",
        "it's \"quoted\"",
        "a\\b",
        "*",
        "",
        "new\nline",
        "ünï 🦀",
        "--",
        "-x",
    ]
    .map(|arg| arg.replace("MARKER", marker.to_str().unwrap()));
    // Inside the script, the only argument that the fake takes; and as further arguments of a shell that passes them on.
    let (program, args) = dir.fake().tool(tool.description(&odd.join(" "))).command();
    let command = Command::new(program.to_str().unwrap()).args(args.clone());
    let board = board(ServerConfig::new(Transport::Stdio(command)));
    let shown = structured(call(&board.toolset(), "fx.args", json!({})).await);
    let expected: Vec<Value> = args.into_iter().map(Value::String).collect();
    assert_eq!(shown.as_array().unwrap()[1..], expected);
    board.shutdown().await;

    let arguments = dir.file("arguments");
    let script = format!(
        "for arg in \"$@\"; do printf '%s\\0' \"$arg\"; done > {}",
        arguments.display()
    );
    let command = Command::new("sh").args(["-c", &script, "sh"]).args(odd.clone());
    let board = crate::support::board(ServerConfig::new(Transport::Stdio(command)));
    board.settle(PATIENCE).await;
    board.shutdown().await;
    let written = std::fs::read_to_string(arguments).unwrap();
    assert_eq!(written.split_terminator('\0').collect::<Vec<_>>(), odd);
    assert!(!marker.exists());
    dir.assert_no_process_left().await;
}

/// A server runs in the working directory of its config.
#[tokio::test]
async fn a_server_runs_in_its_folder() {
    let dir = TestDir::new();
    let folder = dir.file("work here");
    std::fs::create_dir(&folder).unwrap();
    let (program, args) = dir.fake().tool(Tool::new("cwd").shows_cwd()).command();
    let mut command = Command::new(program.to_str().unwrap()).args(args);
    command.cwd = Some(folder.clone());
    let board = board(ServerConfig::new(Transport::Stdio(command)));
    let shown = call(&board.toolset(), "fx.cwd", json!({})).await.text();
    assert_eq!(
        std::fs::canonicalize(shown).unwrap(),
        std::fs::canonicalize(folder).unwrap()
    );
    board.shutdown().await;
    dir.assert_no_process_left().await;
}
