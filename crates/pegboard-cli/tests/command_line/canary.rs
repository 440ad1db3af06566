//! A random canary in every place of a config that can hold a secret. None may leave the process, except to the server that needs it.

use std::{
    collections::HashSet,
    fs,
    hash::{BuildHasher as _, RandomState},
    io::Write as _,
    path::Path,
    process::Stdio,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use pegboard_testkit::{FakeServer, Fault, NetHandle, Tool, refused_address};
use serde_json::json;

use super::home::{Home, Ran};

/// The places in which a canary is planted.
const PLACES: [&str; 22] = [
    "env",
    "env_json",
    "env_connection",
    "env_file",
    "env_pass",
    "env_variable",
    "argument",
    "argument_header",
    "argument_bare",
    "header",
    "header_variable",
    "env_headers",
    "cookie",
    "api_key",
    "bearer",
    "basic",
    "url_user",
    "url_query",
    "url_path",
    "proxy",
    "summary_key",
    "client_secret",
];

/// Variables of the command itself that hold a canary.
const VARIABLES: [(&str, &str); 5] = [
    ("PASSED", "env_pass"),
    ("VARIABLE", "env_variable"),
    ("FOR_HEADER", "header_variable"),
    ("HEADER_VALUE", "env_headers"),
    ("HTTPS_PROXY", "proxy"),
];

/// One canary for each place.
struct Canaries([String; PLACES.len()]);

impl Canaries {
    fn new() -> Self {
        let random = RandomState::new();
        let canary = |index: usize| format!("c4n{index:02}x9y8z{:016x}", random.hash_one(index));
        Self(std::array::from_fn(canary))
    }

    fn of(&self, place: &str) -> &str {
        let index = PLACES.iter().position(|known| *known == place);
        &self.0[index.unwrap()]
    }

    /// All of them, as a server would print them that got hold of all: as they are, and encoded.
    fn all(&self) -> String {
        let all = self.0.iter();
        all.map(|canary| format!("{canary} {} {}\n", STANDARD.encode(format!("me:{canary}")), hex(canary)))
            .collect()
    }

    /// The places whose canaries are in a text, in any encoding.
    fn found_in(&self, text: &[u8]) -> Vec<&'static str> {
        let text = String::from_utf8_lossy(text);
        let holds = |canary: &str| {
            let encoded = STANDARD.encode(canary);
            // The end of an encoding depends on what follows it.
            let encoded = &encoded[..encoded.len() - 4];
            let aligned = STANDARD.encode(format!("me:{canary}"));
            let hex = hex(canary);
            let forms = [canary, encoded, &aligned[4..aligned.len() - 4], hex.as_str()];
            forms.into_iter().any(|form| text.contains(form))
        };
        let places = PLACES.iter().zip(&self.0);
        places
            .filter(|(_, canary)| holds(canary))
            .map(|(place, _)| *place)
            .collect()
    }
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// A server that prints all canaries wherever it can, and its environment.
fn hostile(canaries: &Canaries) -> FakeServer {
    let all = canaries.all();
    FakeServer::new(format!("server of {}", canaries.of("bearer")))
        .instructions(&all)
        .tool(
            Tool::new("text")
                .description(&all)
                .schema(json!({"type": "object", "properties": {"a": {"type": "string", "default": all, "description": all}}}))
                .answers_text(&all),
        )
        .tool(Tool::new("structured").answers_structured(json!({"deep": [{"er": all}]})))
        .tool(Tool::new("fails").fails_with(&all))
        .tool(Tool::new("refuses").refuses(-32000, &all))
        .tool(Tool::new("env").shows_env())
        .resource("db://x", &all)
        .prompt("p", &all)
}

/// Servers that use every place, and a config with them.
async fn planted(home: &Home, canaries: &Canaries) -> (String, Vec<NetHandle>) {
    let of = |place: &str| canaries.of(place);
    home.write(
        ".config/pegboard/secrets.env",
        &format!("FROM_FILE={}\n", of("env_file")),
    );
    let pipe = home.entry(
        "pipe",
        hostile(canaries),
        &format!(
            "env_file = 'secrets.env'\nenv_pass = ['PASSED']\n\
             [servers.pipe.env]\nTHING = '{}'\nSETTINGS = '{{\"level\": \"info\", \"key\": \"{}\"}}'\nDB = 'postgres://me:{}@db/x'\nOTHER = '${{VARIABLE}}'\n",
            of("env"),
            of("env_json"),
            of("env_connection"),
        ),
    );
    let command = home.command_of("args", hostile(canaries));
    let args = format!(
        "[servers.args]\ncommand = '/bin/sh'\nargs = ['-c', 'exec {command}', 'sh', '--token', '{}', '--header', 'Authorization: Bearer {}', '{}']\n",
        of("argument"),
        of("argument_header"),
        of("argument_bare"),
    );
    let dying = FakeServer::new("fx").fault(Fault::ExitsAtStart {
        code: 1,
        stderr: canaries.all(),
    });
    let dying = home.entry("dying", dying, "");
    let web = hostile(canaries).serve_http().await.unwrap();
    let more = hostile(canaries).serve_http().await.unwrap();
    let refused = refused_address().await.unwrap();
    let remote = format!(
        "[servers.web]\nurl = '{}'\nheaders = {{ X-Thing = '{}', X-Other = '${{FOR_HEADER}}', Cookie = 'theme=dark; sid={}' }}\n\
         env_headers = {{ X-Env = 'HEADER_VALUE' }}\nauth = {{ api_key = '{}' }}\noauth = {{ enabled = false, client_secret = '{}' }}\n\
         [servers.web.summarise]\nurl = 'http://{refused}/v1'\nmodel = 'm'\napi_key = '{}'\n\
         [servers.more]\nurl = '{}?thing={}'\nauth = {{ bearer = '{}' }}\n\
         [servers.basic]\nurl = 'http://{refused}/hook/{}/mcp'\nauth = {{ user = 'me', password = '{}' }}\n\
         [servers.lost]\nurl = 'http://me:{}@{refused}/mcp'\n",
        web.url(),
        of("header"),
        of("cookie"),
        of("api_key"),
        of("client_secret"),
        of("summary_key"),
        more.url(),
        of("url_query"),
        of("bearer"),
        of("url_path"),
        of("basic"),
        of("url_user"),
    );
    let config = format!("restart = false\nconnect_timeout = '20s'\n{pipe}{args}{dying}{remote}");
    home.config(&config);
    (config, vec![web, more])
}

fn pegboard(home: &Home, canaries: &Canaries, args: &[&str]) -> std::process::Command {
    let mut command = home.pegboard(args);
    for (name, place) in VARIABLES {
        let canary = canaries.of(place);
        command.env(
            name,
            match place {
                "proxy" => format!("http://me:{canary}@127.0.0.1:9"),
                _ => canary.to_owned(),
            },
        );
    }
    command.env("RUST_LOG", "trace");
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_in_any_place_is_in_no_output_and_no_file() {
    let (home, canaries) = (Home::new(), Canaries::new());
    let (config, _servers) = planted(&home, &canaries).await;
    // Every canary is in the config or in a variable of the command, and the search finds it there.
    let planted = [
        config.as_str(),
        &fs::read_to_string(home.path(".config/pegboard/secrets.env")).unwrap(),
    ]
    .concat();
    let in_variables = VARIABLES.map(|(_, place)| canaries.of(place)).concat();
    let all = canaries.found_in(format!("{planted}{in_variables}").as_bytes());
    assert_eq!(all, PLACES);
    assert_eq!(canaries.found_in(canaries.all().as_bytes()), PLACES);

    let before = files(home.path("").as_path());
    let commands: [&[&str]; 17] = [
        &["status"],
        &["tools"],
        &["tools", "-v"],
        &["tools", "--provider", "mcp"],
        &["tools", "--search", "x"],
        &["call", "pipe.text"],
        &["call", "pipe.structured"],
        &["call", "pipe.fails"],
        &["call", "pipe.env"],
        &["call", "args.refuses"],
        &["call", "web.text"],
        &["call", "lost.text"],
        &["resources"],
        &["resources", "read", "db://x", "--server", "pipe"],
        &["prompts", "get", "p", "--server", "pipe"],
        &["config", "show"],
        &["config", "explain"],
    ];
    let check = |what: &str, ran: &Ran| {
        let found = canaries.found_in(format!("{}{}", ran.out, ran.err).as_bytes());
        assert!(found.is_empty(), "{what} prints {found:?}: {ran:?}");
    };
    for command in commands {
        for more in [&["-o", "json", "--log", "trace"][..], &["-vvv"]] {
            let ran = Ran::of(pegboard(&home, &canaries, &[command, more].concat()));
            check(&format!("{command:?} {more:?}"), &ran);
        }
    }
    let ran = Ran::of(pegboard(&home, &canaries, &["call", "pipe.text"]));
    ran.ends_with(0).prints("[MASKED_SECRET]");
    let ran = Ran::of(pegboard(&home, &canaries, &["call", "pipe.env"]));
    ran.ends_with(0).prints("THING").prints("[MASKED_SECRET]");

    let mut mask = pegboard(&home, &canaries, &["mask"]);
    mask.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut mask = mask.spawn().unwrap();
    mask.stdin.take().unwrap().write_all(canaries.all().as_bytes()).unwrap();
    check("mask", &Ran::end_of(mask));

    for path in files(home.path("").as_path()).difference(&before) {
        // The fakes log what they are sent.
        let is_of_fake = path.ends_with(".log");
        let found = canaries.found_in(&fs::read(path).unwrap_or_default());
        assert!(is_of_fake || found.is_empty(), "{path} holds {found:?}");
    }
}

fn files(folder: &Path) -> HashSet<String> {
    let mut found = HashSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(files(&path)),
            path => {
                found.insert(path.display().to_string());
            }
        }
    }
    found
}

/// The places whose canaries the environment or the command line of a process holds.
#[cfg(target_os = "linux")]
fn found_in_process(canaries: &Canaries, pid: &str) -> Vec<&'static str> {
    let parts = ["environ", "cmdline"].map(|part| fs::read(format!("/proc/{pid}/{part}")).unwrap_or_default());
    canaries.found_in(&parts.concat())
}

/// The ids and command lines of all processes.
#[cfg(target_os = "linux")]
fn processes() -> Vec<(String, String)> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let cmdline = |pid: &String| fs::read_to_string(format!("/proc/{pid}/cmdline")).ok();
    pids.filter_map(|pid| cmdline(&pid).map(|cmdline| (pid, cmdline)))
        .collect()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_canary_is_in_no_process_but_the_server_that_needs_it() {
    let (home, canaries) = (Home::new(), Canaries::new());
    let of = |place: &str| canaries.of(place);
    let waiting = || FakeServer::new("fx").tool(Tool::new("t").after(std::time::Duration::from_secs(60)));
    let first = home.entry(
        "first",
        waiting(),
        &format!("env = {{ THING = '{}', OTHER = '${{VARIABLE}}' }}", of("env")),
    );
    let second = home.entry("second", waiting(), "env_pass = ['PASSED']");
    let remote = format!(
        "[servers.remote]\nurl = 'http://127.0.0.1:9/mcp?x={}'\nheaders = {{ X-Thing = '{}' }}\nauth = {{ bearer = '{}' }}\n",
        of("url_query"),
        of("header"),
        of("bearer")
    );
    home.config(&format!("{first}{second}{remote}"));
    let mut running = ["first.t", "second.t"].map(|tool| {
        let mut call = pegboard(&home, &canaries, &["call", tool, "--timeout", "60s"]);
        call.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    });
    let runs = |name: &str| processes().iter().any(|(_, cmdline)| cmdline.contains(name));
    super::home::until("both servers run", || runs("first.script") && runs("second.script"));
    let ours = running.each_ref().map(|child| child.id().to_string());
    let mut problems = Vec::new();
    let mut served = Vec::new();
    for (pid, cmdline) in processes() {
        let allowed: &[&str] = match &cmdline {
            // The command got these from its user; its guard process gets none of them.
            _ if ours.contains(&pid) => &["env_pass", "env_variable", "header_variable", "env_headers", "proxy"],
            line if line.contains("first.script") => &["env", "env_variable", "proxy"],
            line if line.contains("second.script") => &["env_pass", "proxy"],
            _ => &[],
        };
        let mut found = found_in_process(&canaries, &pid);
        if !ours.contains(&pid) {
            served.extend(found.clone());
        }
        found.retain(|place| !allowed.contains(place));
        if !found.is_empty() {
            problems.push(format!("{cmdline:?} holds {found:?}"));
        }
    }
    for child in &mut running {
        let _ = child.kill();
        let _ = child.wait();
    }
    assert!(served.contains(&"env") && served.contains(&"env_pass"), "{served:?}");
    assert!(problems.is_empty(), "{problems:#?}");
}
