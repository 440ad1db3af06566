//! `pegboard mask`, and the masking of servers' output in the other commands.

use pegboard_testkit::{FakeServer, Fault, Tool};

use super::home::{Home, Ran};

const CANARY: &str = "c4nary-7f3a9b1e";

#[test]
fn secrets_on_stdin_are_hidden_and_the_rest_comes_out_as_it_was() {
    let home = Home::new();
    home.config(&format!(
        "[masking]\ngroups = ['basic']\n[servers.a]\nurl = 'https://h/mcp'\nauth = {{ bearer = '{CANARY}' }}\n\
             [servers.b]\nurl = 'https://h/mcp'\nmasking = {{ patterns = ['email'] }}\n"
    ));
    let text = format!("a {CANARY}\n\tpassword=hunter2 of me@example.org\u{7}\n\n");
    let ran = Ran::fed(home.pegboard(&["mask"]), &text);
    ran.ends_with(0);
    assert_eq!(
        ran.out,
        "a [MASKED_SECRET]\n\tpassword=[MASKED_PASSWORD] of me@example.org\u{7}\n\n"
    );
    let ran = Ran::fed(home.pegboard(&["mask", "--server", "b", "-o", "json"]), &text);
    let json = ran.ends_with(0).json();
    assert_eq!(json["masked"], 3);
    assert_eq!(
        json["masked_by"],
        serde_json::json!({"secret": 1, "password": 1, "email": 1})
    );
    let ran = Ran::fed(home.pegboard(&["mask", "--group", "pii"]), "me@example.org");
    assert_eq!(ran.ends_with(0).out, "[MASKED_EMAIL]");
}

#[test]
fn groups_and_patterns_that_nobody_has_are_named() {
    let home = Home::new();
    let ran = Ran::fed(home.pegboard(&["mask", "--group", "nothing"]), "x");
    ran.ends_with(2)
        .says("there is no pattern group `nothing`")
        .says("kubernetes");
    let ran = Ran::fed(home.pegboard(&["mask", "--pattern", "nothing"]), "x");
    ran.ends_with(2).says("there is no pattern `nothing`");
    assert_eq!(ran.out, "");
}

#[test]
fn what_servers_say_of_secrets_is_in_no_output_and_no_log() {
    let home = Home::new();
    let fake = FakeServer::new(CANARY)
        .instructions(CANARY)
        .tool(
            Tool::new("t")
                .description(CANARY)
                .answers_text(format!("it is {CANARY}")),
        )
        .tool(Tool::new("fails").fails_with(CANARY))
        .tool(Tool::new("refuses").refuses(-32000, CANARY));
    let dying = FakeServer::new("fx").fault(Fault::ExitsAtStart {
        code: 1,
        stderr: format!("no {CANARY}\n"),
    });
    let asking = FakeServer::new("fx").fault(Fault::Prompts {
        text: format!("password for {CANARY}? "),
    });
    let secret = format!("env = {{ API_TOKEN = '{CANARY}' }}");
    let config = [
        home.entry("good", fake, &secret),
        home.entry("dying", dying, ""),
        home.entry("asking", asking, "connect_timeout = '1s'"),
    ];
    home.config(&config.concat());
    let commands: [&[&str]; 7] = [
        &["tools"],
        &["tools", "-v"],
        &["status"],
        &["call", "good.t"],
        &["call", "good.fails"],
        &["call", "good.refuses"],
        &["call", "dying.t"],
    ];
    for command in commands {
        for more in [&[][..], &["-o", "json"], &["--log", "trace"]] {
            let ran = home.run(&[command, more].concat());
            for text in [&ran.out, &ran.err] {
                assert!(!text.contains(CANARY), "{command:?} {more:?}: {text}");
            }
        }
    }
    home.run(&["call", "good.t"])
        .ends_with(0)
        .prints("it is [MASKED_SECRET]");
    home.run(&["call", "dying.t"]).says("no [MASKED_SECRET]");
}
