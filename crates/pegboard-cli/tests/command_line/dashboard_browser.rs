//! The dashboard in a browser: every page, with servers that work, die, flood, need a sign-in and mean harm.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use pegboard_testkit::{FakeServer, Fault, Tool, oauth::AuthorizationServer};
use serde_json::{Value, json};

use super::{
    gateway::Served,
    home::{Home, until},
};

/// Where Debian installs the browser.
const BROWSER: &str = "/usr/bin/chromium";

/// What a hostile server writes wherever it can.
const HARM: &str =
    "</pre><script>window.owned = 1</script>\"><img src=x onerror=\"window.owned = 1\">\u{202e}<b>bold</b>";

fn servers(home: &Home) -> String {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "The words to look for"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10, "description": "How many at most"},
            "order": {"enum": ["newest", "oldest", "best"], "description": "Which come first"},
            "archived": {"type": "boolean", "description": "Whether old ones are looked at too"},
            "filter": {"type": "object", "properties": {"kind": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}}},
        },
        "required": ["query"],
    });
    let search = Tool::new("search")
        .description("Finds documents by their words, the best match first. Each result has a title, a link and the passage that fits.")
        .read_only()
        .schema(schema)
        .echoes();
    let good = FakeServer::new("good")
        .tool(search)
        .tool(
            Tool::new("delete")
                .description("Deletes a document for good.")
                .destructive()
                .answers_text("deleted"),
        )
        .tool(
            Tool::new("fail")
                .description("Always fails.")
                .fails_with("the index is being rebuilt"),
        );
    let hostile = FakeServer::new("hostile").instructions(HARM).tool(
        Tool::new("hostile")
            .with("title", HARM)
            .description(HARM)
            .answers_text(HARM),
    );
    let dies = FakeServer::new("dies").fault(Fault::ExitsAtStart {
        code: 3,
        stderr: format!("cannot open the database: {HARM}"),
    });
    let floods = FakeServer::new("floods")
        .tool(Tool::new("quiet").answers_text("ok"))
        .fault(Fault::FloodsStderr { bytes: 4 << 20 });
    [
        home.entry("good", good, "start = 'eager'\ndescription = 'Documents of the team'"),
        home.entry("hostile", hostile, "start = 'eager'"),
        home.entry("dies", dies, "start = 'eager'"),
        home.entry("floods", floods, "start = 'eager'"),
    ]
    .join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_works_in_a_browser_and_what_servers_say_is_only_text() {
    if !Path::new(BROWSER).exists() {
        eprintln!("not tried: there is no {BROWSER}; scripts/peers installs it if it may");
        return;
    }
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let packages = target.join("peers/npm/node_modules");
    assert!(packages.join("axe-core").exists(), "run scripts/peers first");
    let issuer = AuthorizationServer::new().start().await.unwrap();
    let locked = FakeServer::new("locked").tool(Tool::new("hello").read_only().answers_text("hi"));
    let locked = issuer.protect(&locked).await.unwrap();
    let home = Home::new();
    home.config(&format!(
        "{}\n[servers.locked]\nurl = {:?}\nstart = 'eager'\n[views.reading]\ndescription = 'What an agent reads.'\nservers = ['good']\ntools = ['search']\n",
        servers(&home),
        locked.url()
    ));
    let served = Served::start(&home, &[]);
    let owner = served.owner.clone().unwrap();
    until("the servers are what they are", || {
        let document = served.send("GET", "/api/v1/mcp/servers", &[], "").message();
        let rows = document["servers"].as_array().unwrap().clone();
        let is = |name: &str, states: &[&str]| {
            rows.iter()
                .any(|row| row["name"] == name && states.contains(&row["state"].as_str().unwrap()))
        };
        is("good", &["ready"])
            && is("floods", &["ready"])
            && is("locked", &["needs_auth"])
            && is("dies", &["down", "crash_looping"])
    });
    let opened = home.run(&["open", "--print", "-o", "json"]).ends_with(0).json();
    let link = opened["url"].as_str().unwrap();
    let origin = format!("http://{}", served.address);
    assert!(link.starts_with(&format!("{origin}/ui/open/")), "{link}");
    let plan = json!({
        "packages": packages, "chromium": BROWSER, "link": link, "origin": origin, "folder": target.join("dashboard"),
        "tool": "/ui/tools/good/search", "callUrl": format!("{origin}/api/v1/mcp/call"),
        "callHeaders": {"content-type": "application/json", "authorization": owner},
    });
    let script = target.join("../tests/peers/dashboard/drive.mjs");
    let run = Command::new(packages.join(".bin/node"))
        .arg(script)
        .arg(plan.to_string())
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&run.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&run.stderr)));
    assert_eq!(report["faults"], json!([]), "{report:#}");
    let seen = |name: &str| report["seen"][name].clone();
    assert_eq!((seen("reader"), seen("readerButtons")), (json!("read only"), json!(0)));
    assert_eq!(
        (seen("owner"), seen("landed"), seen("secondUse")),
        (json!("owner"), json!("/"), json!(410))
    );
    assert_eq!(
        (seen("after"), seen("focused"), seen("forged")),
        (json!("read only"), json!(true), json!(403))
    );
    let has = |name: &str, words: &str| {
        let text = seen(name);
        assert!(text.as_str().is_some_and(|text| text.contains(words)), "{name}: {text}");
    };
    has("waterfall", "Wire and server");
    has("arguments", "oak");
    has("result", "elm");
    has("hostile", "<script>window.owned = 1</script>");
    has("hostile", "\\u{202e}");
    has("dead", "cannot open the database");
    has("signIn", "locked");
    has("definition", "Found in it");
    has("definition", "<script>window.owned = 1</script>");
    assert_eq!(seen("leftDefinitions"), json!(0));
}
