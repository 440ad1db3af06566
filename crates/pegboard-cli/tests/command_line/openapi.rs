//! The OpenAPI document of `pegboard serve` in the hands of other people's programs: a validator, a fuzzer and a client generator.
//! `scripts/peers` installs them.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Value, json};

use super::{gateway::Served, home::Home};

/// How many requests the fuzzer makes for each operation and phase.
const EXAMPLES: &str = "5";

/// A program for OpenAPI documents.
fn program(name: &str) -> Command {
    let peers = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/python-openapi");
    assert!(peers.join(".stamp").exists(), "run scripts/peers first");
    Command::new(peers.join("bin").join(name))
}

/// Tools whose schemas are hard to embed.
fn odd() -> FakeServer {
    let tree = json!({"$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://x.example/tree", "type": "object",
        "properties": {"root": {"$ref": "#/definitions/node"}},
        "definitions": {"node": {"type": "object", "properties": {
            "name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/definitions/node"}}}}}});
    let elsewhere = json!({"type": "object", "properties": {"x": {"$ref": "https://x.example/other.json"}}});
    let wrong_default = json!({"type": "object", "properties": {"x": {"type": "string", "default": null}}});
    let defined = json!({"type": "object", "properties": {"at": {"$ref": "#/$defs/place"}}, "required": ["at"],
        "$defs": {"place": {"type": "object", "properties": {"x": {"type": "number"}}}}});
    FakeServer::new("odd")
        .tool(Tool::new("tree").schema(tree).answers_text("a tree"))
        .tool(Tool::new("elsewhere").schema(elsewhere).answers_text("elsewhere"))
        .tool(Tool::new("wrong_default").schema(wrong_default).answers_text("x"))
        .tool(Tool::new("defined").schema(defined).answers_text("there"))
        .tool(Tool::new("odd/name {x}").answers_text("odd"))
        .tool(Tool::new("fail").fails_with("no"))
}

/// A daemon with the demo server and odd tools, and its document in a file.
fn start() -> (Home, Served, PathBuf) {
    let home = Home::new();
    let demo = format!(
        "[servers.demo]\ncommand = {:?}\nargs = ['demo-server']\n",
        env!("CARGO_BIN_EXE_pegboard")
    );
    home.config(&format!("{demo}{}", home.entry("odd", odd(), "")));
    let served = Served::start(&home, &[]);
    served.has_tool("demo__calculate");
    served.has_tool("odd__tree");
    let response = served.send("GET", "/openapi.json", &[], "");
    assert_eq!(response.status, 200, "{response:?}");
    let file = home.write("openapi.json", &response.body);
    (home, served, file)
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{out}\n{err}");
    out.into_owned()
}

#[test]
fn a_validator_accepts_the_document_whatever_schemas_servers_send() {
    let (_home, served, file) = start();
    let document: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    for path in [
        "odd/tree",
        "odd/elsewhere",
        "odd/odd%2Fname%20%7Bx%7D",
        "demo/calculate",
    ] {
        let operation = &document["paths"][format!("/api/v1/mcp/tools/{path}")]["post"];
        assert!(operation["operationId"].is_string(), "{path}");
    }
    succeeded(&program("openapi-spec-validator").arg(&file).output().unwrap());
    let again = served.send("GET", "/openapi.json", &[], "");
    let again: Value = serde_json::from_str(&again.body).unwrap();
    assert_eq!(again, document, "it is the same each time");
}

/// Lets a fuzzer make requests as the document describes them, for the operations that `which` selects.
fn fuzz(home: &Home, served: &Served, document: &Path, which: &[&str]) {
    let checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,unsupported_method";
    let mut fuzzer = program("schemathesis");
    fuzzer
        .args(["run", "--url", &format!("http://{}", served.address)])
        .arg(document)
        .args([
            "--checks",
            checks,
            "--max-examples",
            EXAMPLES,
            "--seed",
            "1",
            "--no-color",
        ])
        .args(["--phases", "examples,coverage,fuzzing", "--generation-database", "none"])
        // Requests that change what runs need the token of the user.
        .args(
            served
                .owner
                .iter()
                .map(|token| format!("--header=Authorization: {token}")),
        )
        .args(which)
        .current_dir(home.path("."));
    let said = succeeded(&fuzzer.output().unwrap());
    assert!(said.contains(" passed") && !said.contains("❌"), "{said}");
    assert_eq!(served.send("GET", "/livez", &[], "").status, 200);
}

#[test]
fn a_fuzzer_finds_no_server_error_and_no_response_that_the_document_does_not_describe() {
    let (home, served, file) = start();
    // A stream does not end, and a tool that waits as long as it is told outlasts the fuzzer. Servers that are removed or disabled leave nothing to
    // test, so that comes last.
    let last = "deleteServer|disableServer|reload";
    let which = [
        "--exclude-path",
        "/api/v1/mcp/events",
        "--exclude-path",
        "/api/v1/mcp/tools/demo/count_slowly",
        "--exclude-operation-id-regex",
        last,
    ];
    fuzz(&home, &served, &file, &which);
    // With names that exist.
    let mut document: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    for (path, methods) in document["paths"].as_object_mut().unwrap() {
        if path.starts_with("/api/v1/mcp/servers/{name}") {
            methods["parameters"][0]["schema"] = json!({"enum": ["demo", "odd", "nobody", "no.body"]});
        }
    }
    let file = home.write("named.json", &document.to_string());
    fuzz(&home, &served, &file, &["--include-operation-id-regex", last]);
    let status = served.send("GET", "/api/v1/mcp/servers/odd", &[], "");
    assert!(
        status.status == 404 || status.body.contains("disabled"),
        "it was reached: {status:?}"
    );
}

#[test]
fn a_generated_client_makes_a_call() {
    let (home, served, file) = start();
    let output = home.path("generated");
    let generated = program("openapi-python-client")
        .args(["generate", "--meta", "none", "--path"])
        .arg(&file)
        .arg("--output-path")
        .arg(&output)
        .current_dir(home.path("."))
        .output();
    succeeded(&generated.unwrap());
    let script = format!(
        "from generated import Client\n\
         from generated.api.tools import call\n\
         from generated.api.demo import tool_demo_calculate\n\
         from generated.models import CallRequest\n\
         client = Client(base_url='http://{}')\n\
         request = CallRequest.from_dict({{'name': 'demo.calculate', 'arguments': {{'expression': '6 * 7'}}}})\n\
         reply = call.sync(client=client, body=request)\n\
         print(reply.status, reply.structured)\n\
         arguments = tool_demo_calculate.ToolDemoCalculateInput.from_dict({{'expression': '1 + 1'}})\n\
         print(tool_demo_calculate.sync_detailed(client=client, body=arguments).content.decode())\n",
        served.address
    );
    let ran = program("python")
        .args(["-c", &script])
        .current_dir(home.path("."))
        .output();
    let said = succeeded(&ran.unwrap());
    assert!(said.contains("done {'value': 42}"), "{said}");
    assert!(said.contains(r#"{"value":2}"#), "{said}");
}
