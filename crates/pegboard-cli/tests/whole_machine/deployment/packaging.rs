//! The files in `packaging`: that other programs accept them, and that they agree with what the command does.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::Value;

use crate::{
    gateway::Served,
    home::{Home, Ran},
};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join("packaging").join(path)).unwrap()
}

/// A program that `scripts/peers` has installed.
pub(crate) fn peer(path: &str) -> PathBuf {
    let path = root().join("target/peers").join(path);
    assert!(path.exists(), "{} is missing: run scripts/peers", path.display());
    path
}

#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

/// The YAML documents of a file as JSON.
fn documents(yaml: &str) -> Vec<Value> {
    let script = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))";
    let mut command = Command::new(peer("python-packaging/bin/python"));
    command.args(["-c", script]);
    let ran = Ran::fed(command, yaml);
    ran.ends_with(0);
    serde_json::from_value(ran.json()).unwrap()
}

const MANIFESTS: [&str; 6] = [
    "namespace.yaml",
    "serviceaccount.yaml",
    "deployment.yaml",
    "service.yaml",
    "networkpolicy.yaml",
    "poddisruptionbudget.yaml",
];

#[test]
fn the_manifests_follow_the_schemas_of_kubernetes() {
    let folder = root().join("packaging/kubernetes");
    for version in ["1.30", "1.37"] {
        for file in MANIFESTS {
            let mut command = Command::new(peer("python-packaging/bin/kubernetes-validate"));
            succeeds(
                command
                    .args(["--strict", "--quiet", "-k", version])
                    .arg(folder.join(file)),
            );
        }
    }
    let kustomization = &documents(&text("kubernetes/kustomization.yaml"))[0];
    assert_eq!(kustomization["resources"].as_array().unwrap().len(), MANIFESTS.len());
    for file in MANIFESTS {
        assert!(kustomization["resources"].to_string().contains(file), "{file}");
    }
}

/// The overlay for replicas that share their state, whose patches have the names of what they change.
#[test]
fn the_overlay_for_shared_state_follows_the_schemas_and_names_what_is_there() {
    let folder = root().join("packaging/kubernetes/shared-state");
    let of = |file: &str| documents(&text(&format!("kubernetes/{file}"))).remove(0);
    let kustomization = of("shared-state/kustomization.yaml");
    let added = ["networkpolicy-replicas.yaml", "autoscaler.yaml"];
    for file in added {
        assert!(kustomization["resources"].to_string().contains(file), "{file}");
        for version in ["1.30", "1.37"] {
            let mut command = Command::new(peer("python-packaging/bin/kubernetes-validate"));
            succeeds(
                command
                    .args(["--strict", "--quiet", "-k", version])
                    .arg(folder.join(file)),
            );
        }
    }
    for file in ["deployment.yaml", "service.yaml"] {
        let (base, patch) = (of(file), of(&format!("shared-state/{file}")));
        for field in ["apiVersion", "kind"] {
            assert_eq!(base[field], patch[field], "{file}");
        }
        assert_eq!(base["metadata"]["name"], patch["metadata"]["name"], "{file}");
        assert!(kustomization["patches"].to_string().contains(file), "{file}");
    }
    let container = |file: &str| of(file)["spec"]["template"]["spec"]["containers"][0].clone();
    let (base, patch) = (container("deployment.yaml"), container("shared-state/deployment.yaml"));
    assert_eq!(base["name"], patch["name"]);
    let autoscaler = of("shared-state/autoscaler.yaml");
    let replicas = of("shared-state/deployment.yaml")["spec"]["replicas"].clone();
    assert_eq!(autoscaler["spec"]["minReplicas"], replicas);
    let policy = of("shared-state/networkpolicy-replicas.yaml");
    assert_eq!(
        policy["spec"]["ingress"][0]["ports"][0]["port"],
        patch["ports"][0]["name"]
    );
}

#[test]
fn the_config_of_pods_that_share_their_state_is_served() {
    let (home, folder) = (Home::new(), tempfile::tempdir().unwrap());
    let digest = pegboard::config::TokenDigest::compute("pgb_agents").to_string();
    let config = text("kubernetes/shared-state/pegboard.toml")
        .replace("0.0.0.0:7337", "127.0.0.1:0")
        .replace("0.0.0.0:7338", "127.0.0.1:0")
        .replace("${POD_IP}", "127.0.0.1")
        .replace(
            "${PEGBOARD_STORE}",
            &format!("file:{}", folder.path().join("store").display()),
        )
        .replace("${PEGBOARD_STATE_KEY}", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8=")
        .replace("${PEGBOARD_AGENTS_SHA256}", &digest);
    home.config(&config);
    let served = Served::start(&home, &["--no-listen"]);
    let health = served.send("GET", "/health", &[("Authorization", "Bearer pgb_agents")], "");
    assert_eq!(health.message()["replicas"]["count"], 1, "{health:?}");
    assert_eq!(health.message()["replicas"]["store_answers"], true, "{health:?}");
}

#[test]
fn the_pods_are_restricted_and_have_the_time_that_a_stop_takes() {
    let deployment = &documents(&text("kubernetes/deployment.yaml"))[0];
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    // What the pod security standard `restricted` demands.
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(container["securityContext"]["capabilities"]["drop"][0], "ALL");
    assert_eq!(pod["automountServiceAccountToken"], false);
    // The pause before the stop, 5 s for requests in flight and 10 s for servers.
    let pause = container["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64().unwrap();
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() >= pause + 5 + 10);
    for (probe, path) in [
        ("startupProbe", "/livez"),
        ("livenessProbe", "/livez"),
        ("readinessProbe", "/readyz"),
    ] {
        assert_eq!(container[probe]["httpGet"]["path"], path);
        assert_eq!(container[probe]["httpGet"]["port"], "http");
    }
    let service = &documents(&text("kubernetes/service.yaml"))[0];
    assert_eq!(
        service["spec"]["selector"],
        deployment["spec"]["template"]["metadata"]["labels"]
    );
}

/// The probes of the deployment, as a kubelet sends them: with the address of the pod as `Host`, and without a token.
#[test]
fn the_config_of_the_pods_is_served_and_answers_the_probes() {
    let home = Home::new();
    let digest = pegboard::config::TokenDigest::compute("pgb_agents").to_string();
    let config = text("kubernetes/pegboard.toml")
        .replace("0.0.0.0:7337", "0.0.0.0:0")
        .replace("${PEGBOARD_STATE_KEY}", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8=")
        .replace("${PEGBOARD_AGENTS_SHA256}", &digest);
    home.config(&config);
    let served = Served::start(&home, &["--no-listen"]);
    let port = served.address.rsplit_once(':').unwrap().1;
    let deployment = &documents(&text("kubernetes/deployment.yaml"))[0];
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        let path = container[probe]["httpGet"]["path"].as_str().unwrap();
        let status = get(port, path, &format!("10.1.2.3:{port}"));
        assert_eq!(status, 200, "{path}");
    }
    assert_eq!(get(port, "/mcp", "pegboard.pegboard.svc"), 401, "clients need a token");
    assert_eq!(get(port, "/mcp", "elsewhere.example"), 403, "and a name of the service");
    let url = format!("http://127.0.0.1:{port}");
    home.run(&["health", "--url", &url, "--ready"])
        .ends_with(0)
        .prints("ready");
}

fn get(port: &str, path: &str, host: &str) -> u16 {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn hadolint_finds_no_fault_with_the_container_file() {
    let file = root().join("packaging/container/Containerfile");
    let mut command = Command::new(peer("python-packaging/bin/hadolint"));
    let found = succeeds(command.args(["--no-color", "--failure-threshold", "style"]).arg(file));
    assert_eq!(found.trim(), "");
}

/// The words of an instruction of the last stage.
fn last_stage(instruction: &str) -> String {
    let file = text("container/Containerfile").replace("\\\n", " ");
    let stage = file.rsplit("\nFROM ").next().unwrap().to_owned();
    let line = stage
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{instruction} ")));
    line.unwrap_or_else(|| panic!("no {instruction}")).trim().to_owned()
}

#[test]
fn the_image_needs_no_shell_and_no_root() {
    let user = last_stage("USER");
    assert!(
        user.split(':').all(|id| id.parse::<u32>().is_ok_and(|id| id > 0)),
        "{user}"
    );
    for instruction in ["ENTRYPOINT", "CMD"] {
        let words: Vec<String> = serde_json::from_str(&last_stage(instruction)).unwrap();
        assert!(!words.is_empty());
    }
    let check = last_stage("HEALTHCHECK");
    let words: Vec<String> = serde_json::from_str(check.split_once("CMD ").unwrap().1).unwrap();
    assert_eq!(words, ["/usr/bin/pegboard", "health"]);
}

/// An image without a shell has few libraries, and the command must not need others.
#[test]
fn the_command_needs_only_the_libraries_of_the_image() {
    let listed = succeeds(Command::new("ldd").arg(env!("CARGO_BIN_EXE_pegboard")));
    for line in listed.lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or_default();
        let is_there = [
            "linux-vdso",
            "libc.so",
            "libm.so",
            "libgcc_s.so",
            "libdl.so",
            "libpthread.so",
            "ld-linux",
        ];
        assert!(is_there.iter().any(|known| name.starts_with(known)), "{line}");
    }
}

/// A container with a read-only root and no volume: nothing can be written.
#[test]
fn it_serves_where_nothing_can_be_written() {
    let home = Home::new();
    let nowhere = |args: &[&str]| {
        let mut command = home.pegboard(args);
        // Not even root can make a file here.
        for name in ["HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "TMPDIR"] {
            command.env(name, "/proc/self/nowhere");
        }
        command
    };
    let ran = Ran::of(nowhere(&["call", "demo.calculate", "expression=6 * 7", "-o", "json"]));
    ran.ends_with(0);
    assert_eq!(ran.json()["structured"]["value"], 42);
    for more in [&[][..], &["--no-socket"]] {
        let mut command = nowhere(&[&["serve", "-o", "json", "--listen", "127.0.0.1:0"], more].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let document: Value = serde_json::from_str(&line).unwrap();
        let address = document["addresses"][0].as_str().unwrap();
        let status = get(address.rsplit_once(':').unwrap().1, "/livez", "localhost");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(status, 200);
    }
}

#[test]
fn the_property_list_of_launchd_is_well_formed_and_starts_serve() {
    let script = "import json, plistlib, sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))";
    let mut command = Command::new("python3");
    command.args(["-c", script]);
    let ran = Ran::fed(command, &text("launchd/dev.pegboard.plist"));
    let list = ran.ends_with(0).json();
    assert_eq!(list["Label"], "dev.pegboard");
    assert_eq!(
        list["ProgramArguments"],
        serde_json::json!(["/usr/local/bin/pegboard", "serve"])
    );
    assert_eq!(list["KeepAlive"]["SuccessfulExit"], false);
    assert!(
        list["ExitTimeOut"].as_u64().unwrap() >= 15,
        "requests and servers end before it is killed"
    );
    assert_eq!(list["Umask"], 0o077);
}
