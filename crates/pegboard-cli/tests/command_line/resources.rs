//! `pegboard resources` and `pegboard prompts`.

use pegboard_testkit::{Era, FakeServer, Fault, When};
use serde_json::{Value, json};

use super::home::Home;

fn fake() -> FakeServer {
    FakeServer::new("fx")
        .resource("note://b", "the second\nnote")
        .resource("note://a", "\u{1b}[2Jthe first")
        .prompt("greet", "Say hello.")
}

#[test]
fn the_resources_of_the_demo_server_are_listed_with_its_patterns() {
    let ran = Home::new().run(&["resources", "-q"]);
    insta::assert_snapshot!(ran.ends_with(0).out, @r"
    demo (3 resources)
      demo://about      What this server is and what it offers
      demo://logo.png   A pegboard with one peg, 32 x 32 pixels
      demo://count/{n}  The numbers from 1 to n, one a line; n is 1 to 100
    ");
    assert_eq!(Home::new().run(&["resources", "list", "-q"]).out, ran.out);
}

#[test]
fn a_resource_is_read_from_the_server_that_has_it() {
    let home = Home::new();
    for era in [Era::Legacy, Era::Modern] {
        let (fx, other) = (
            home.server("fx", fake().era(era)),
            home.server("other", FakeServer::new("other")),
        );
        let ran = home.run(&["resources", "read", "note://b", &fx, &other]);
        assert_eq!(ran.ends_with(0).out, "the second\nnote\n");
        let ran = home.run(&["resources", "read", "note://a", &fx]);
        assert_eq!(ran.ends_with(0).out, "\u{1b}[2Jthe first\n");
    }
    let ran = home.run(&["resources", "read", "demo://count/3", "-q"]);
    assert_eq!(ran.ends_with(0).out, "1\n2\n3\n");
    home.assert_gone("fx");
}

#[test]
fn what_is_read_is_printed_as_the_promised_document() {
    let home = Home::new();
    let fx = home.server("fx", fake());
    let ran = home.run(&["resources", "read", "note://b", "-o", "json", &fx]);
    assert_eq!(
        ran.ends_with(0).json(),
        json!({
            "server": "fx", "uri": "note://b", "error": null,
            "contents": [{"uri": "note://b", "mimeType": "text/plain", "text": "the second\nnote"}],
        })
    );
    let ran = home.run(&["resources", "read", "note://x", "-o", "json", &fx]);
    let json = ran.ends_with(1).json();
    assert_eq!(
        (&json["contents"], &json["error"]["kind"]),
        (&json!(null), &json!("tool_error"))
    );
    let json = home.run(&["resources", "-o", "json", &fx]).ends_with(0).json();
    assert_eq!(json["resources"][1]["uri"], "note://b");
    assert_eq!((&json["templates"], &json["unavailable"]), (&json!([]), &json!([])));
}

#[test]
fn an_address_that_several_servers_may_have_is_not_guessed() {
    let home = Home::new();
    let (one, two) = (home.server("one", fake()), home.server("two", fake()));
    let ran = home.run(&["resources", "read", "note://b", &one, &two]);
    ran.ends_with(2)
        .says("several servers may have note://b: one, two")
        .says("`--server NAME`");
    let ran = home.run(&["resources", "read", "note://b", &one, &two, "--server", "two"]);
    assert_eq!(ran.ends_with(0).out, "the second\nnote\n");
    assert!(home.log("one").count("resources/read") == 0);
}

#[test]
fn prompts_are_listed_and_filled_in() {
    let home = Home::new();
    let ran = home.run(&["prompts", "-q"]);
    insta::assert_snapshot!(ran.ends_with(0).out, @r"
    demo (2 prompts)
      demo.greet   name=…  Asks for a short greeting
      demo.review  text=…  Asks for a review of a text
    ");
    let fx = home.server("fx", fake());
    let ran = home.run(&["prompts", "get", "greet", &fx]);
    assert_eq!(ran.ends_with(0).out, "user: Say hello.\n");
    let ran = home.run(&["prompts", "get", "fx.greet", "-o", "json", &fx]);
    assert_eq!(
        ran.ends_with(0).json(),
        json!({
            "server": "fx", "name": "greet", "error": null,
            "prompt": {"messages": [{"role": "user", "content": {"type": "text", "text": "Say hello."}}]},
        })
    );
    let ran = home.run(&["prompts", "get", "fx.greet", "who=me", &fx]);
    ran.ends_with(2).says("has no argument `who`").says("it takes none");
    home.run(&["prompts", "get", "nobody", &fx])
        .ends_with(2)
        .says("there is no prompt `nobody`");
    home.run(&["prompts", "get", "greet", "oops", &fx])
        .ends_with(2)
        .says("write KEY=VALUE");
}

#[test]
fn a_server_that_is_down_costs_only_its_own() {
    let home = Home::new();
    let down = FakeServer::new("down").fault(Fault::ExitsAtStart {
        code: 3,
        stderr: "no luck".into(),
    });
    let (fx, down) = (home.server("fx", fake()), home.server("down", down));
    for command in ["resources", "prompts"] {
        let ran = home.run(&[command, &fx, &down]);
        ran.ends_with(0).prints("fx (").says("server `down` is").says("no luck");
        home.run(&[command, &down]).ends_with(3);
    }
    home.run(&["resources", "read", "note://b", &down])
        .ends_with(3)
        .says("no luck");
    home.run(&["prompts", "get", "greet", &down])
        .ends_with(3)
        .says("no luck");
}

/// The empty document of each command.
fn documents() -> [(&'static [&'static str], Value); 9] {
    let read = |about: Value, key: &str, error: &str| {
        let mut document = about;
        document["server"] = Value::Null;
        document[key] = Value::Null;
        document["error"] = json!({ "kind": error });
        document
    };
    [
        (&["tools"], json!({"tools": [], "unavailable": []})),
        (&["tools", "--cost"], json!({"servers": [], "tokens": 0})),
        (&["tools", "--provider", "openai"], json!([])),
        (&["status"], json!({"servers": [], "healthy": false, "ready": false})),
        (
            &["resources"],
            json!({"resources": [], "templates": [], "unavailable": []}),
        ),
        (&["prompts"], json!({"prompts": [], "unavailable": []})),
        (
            &["resources", "read", "note://b"],
            read(json!({"uri": "note://b"}), "contents", "unavailable"),
        ),
        (
            &["prompts", "get", "greet"],
            read(json!({"name": "greet"}), "prompt", "unavailable"),
        ),
        (&["mask"], json!({"text": null, "masked": 0, "masked_by": {}})),
    ]
}

/// Asserts that a document contains everything in `expected`.
#[track_caller]
fn has(document: &Value, expected: &Value) {
    match expected {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            assert!(document.get(key).is_some(), "{key} of {document}");
            has(&document[key], value);
        }),
        other => assert_eq!(document, other),
    }
}

/// `-o json` promises exactly one document, however the command ends.
#[test]
fn programs_get_a_document_also_when_the_config_cannot_be_used() {
    let home = Home::new();
    home.config("[servers.a\n");
    for (command, expected) in documents() {
        let ran = home.run(&[command, &["-o", "json"]].concat());
        has(&ran.ends_with(2).json(), &expected);
        let ran = home.run(command);
        assert_eq!(ran.ends_with(2).out, "", "{command:?}");
        ran.says("pegboard.toml cannot be read as a config");
    }
}

/// `-o json` promises a document also after a timeout.
#[test]
fn programs_get_a_document_also_when_the_time_is_up() {
    let home = Home::new();
    let silent = |method: &str| home.server("fx", fake().fault_on(When::method(method), Fault::NeverAnswers));
    for (command, method, key) in [
        (["resources", "read", "note://b"], "resources/read", "contents"),
        (["prompts", "get", "greet"], "prompts/get", "prompt"),
    ] {
        let fx = silent(method);
        let ran = home.run(&[&command[..], &["-o", "json", "--timeout", "2s", &fx]].concat());
        let json = ran.ends_with(124).json();
        assert_eq!((&json[key], &json["error"]["kind"]), (&Value::Null, &json!("timeout")));
        let ran = home.run(&[&command[..], &["--timeout", "2s", &fx]].concat());
        ran.ends_with(124)
            .says("the timeout passed")
            .says("`--timeout` sets the limit");
        assert_eq!(ran.out, "");
    }
    home.assert_gone("fx");
}

#[test]
fn a_server_is_not_told_that_it_may_ask_about_a_resource_when_nobody_sits_there() {
    let home = Home::new();
    home.run(&["resources", "read", "note://b", &home.server("fx", fake())])
        .ends_with(0);
    let requests = home.log("fx").requests;
    let hello = requests.iter().find(|message| message.method == "initialize").unwrap();
    assert_eq!(hello.params["capabilities"], json!({}));
}
