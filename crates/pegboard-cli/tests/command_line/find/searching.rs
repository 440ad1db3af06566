//! What is found, and how it is shown.

use serde_json::{Value, json};

use crate::{
    find::registry::{FakeRegistry, entry, published},
    home::{Home, Ran},
};

fn find(registry: &FakeRegistry, more: &[&str]) -> Ran {
    let args = [&["find", "--registry", registry.address()], more].concat();
    Home::new().run(&args)
}

#[test]
fn servers_are_shown_with_their_commands_and_what_they_need() {
    let registry = FakeRegistry::with(published(), 100);
    let ran = find(&registry, &["github"]);
    ran.ends_with(0);
    insta::assert_snapshot!(ran.out, @"
    ai.smithery/smithery-ai-github 1.0.0
      Access the GitHub API.
      streamable-http  https://server.smithery.ai/@smithery-ai/github/mcp
                       needs SMITHERY_API_KEY, a secret

    io.github.github/github-mcp-server 1.12.1
      Connect AI assistants to GitHub
      npm   npx -y @example/github-mcp@1.12.1 stdio
            needs GITHUB_TOKEN, a secret: Token
      oci   docker run -i --rm -p 127.0.0.1:8085:8085 ghcr.io/github/github-mcp-server:1.12.1
      mcpb  https://github.com/example/github.mcpb (bundles are not downloaded; add the file with `pegboard add`)
    ");
    assert_eq!(ran.err, "");
    assert_eq!(
        registry.requests(),
        ["/v0.1/servers?search=github&version=latest&limit=100"]
    );
}

#[test]
fn further_words_narrow_the_search_and_deprecated_servers_are_shown_on_request() {
    let registry = FakeRegistry::with(published(), 100);
    let names = |more: &[&str]| -> Vec<Value> {
        let ran = find(&registry, &[more, &["-o", "json"]].concat());
        let servers = ran.ends_with(0).json()["servers"].as_array().unwrap().clone();
        servers.into_iter().map(|server| server["name"].clone()).collect()
    };
    assert_eq!(names(&["github", "ASSISTANTS"]), ["io.github.github/github-mcp-server"]);
    assert_eq!(names(&["github"]).len(), 2);
    assert_eq!(names(&["github", "--all", "--limit", "50"]).len(), 3);
    assert_eq!(names(&["nothing"]), [""; 0]);
}

#[test]
fn pages_are_read_until_enough_servers_were_found() {
    let entries =
        (0..7).map(|n| entry(&json!({"name": format!("com.example/s{n}"), "description": "x", "version": "1"})));
    let registry = FakeRegistry::with(entries.collect(), 2);
    let ran = find(&registry, &["example", "-o", "json"]);
    let document = ran.ends_with(0).json();
    assert_eq!(document["servers"].as_array().unwrap().len(), 7);
    assert_eq!((document["more"].clone(), registry.requests().len()), (json!(false), 4));
    let ran = find(&registry, &["example", "--limit", "3"]);
    ran.ends_with(0).says("there are more");
    assert_eq!(registry.requests().len(), 6);
}

#[test]
fn a_bad_entry_does_not_cost_the_others() {
    let mut entries = published();
    entries.insert(0, json!({"server": {"description": "nameless"}}));
    entries.insert(1, json!("nonsense"));
    let ran = find(&FakeRegistry::with(entries, 100), &["github"]);
    ran.ends_with(0)
        .prints("github-mcp-server")
        .says("2 entries could not be read");
}

#[test]
fn a_registry_that_fails_says_why_and_what_to_do() {
    let problem = json!({"title": "Bad Request", "status": 400, "detail": "Invalid cursor"}).to_string();
    let refusing = FakeRegistry::answering(move |_| (400, problem.clone()));
    find(&refusing, &["x"])
        .ends_with(3)
        .says("HTTP 400")
        .says("Invalid cursor")
        .says("--registry URL");
    let other = FakeRegistry::answering(|_| (200, "<html>".to_owned()));
    find(&other, &["x"]).ends_with(3).says("does not answer as a registry");
    let home = Home::new();
    home.run(&["find", "x", "--registry", "http://127.0.0.1:9"])
        .ends_with(3)
        .says("cannot be reached");
    home.run(&["find", "x", "--registry", "http://example.com"])
        .ends_with(2)
        .says("not encrypted");
    let ran = home.run(&["find", "x", "--registry", "http://example.com", "-o", "json"]);
    assert_eq!(ran.ends_with(2).json()["servers"], json!([]));
}

#[test]
fn a_terminal_acts_on_nothing_that_a_publisher_wrote() {
    let entries = vec![entry(
        &json!({"name": "com.example/x", "version": "1", "description": "a\u{1b}[2J\nhint: run `evil`",
        "packages": [{"registryType": "npm", "identifier": "x", "version": "1",
                      "environmentVariables": [{"name": "A\u{1b}[1m", "isRequired": true}]}]}),
    )];
    let ran = find(&FakeRegistry::with(entries, 100), &["x"]);
    assert!(
        !ran.ends_with(0).out.contains('\u{1b}') && !ran.out.contains("\nhint"),
        "{ran:?}"
    );
}
