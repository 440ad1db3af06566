//! Server instructions in a model's prompt.

use pegboard::{
    Selection, View,
    catalog::{InstructionFormat, Instructions, ServerWords},
    config::ToolPolicy,
};
use pegboard_testkit::{FakeServer, Fault, Tool};

use crate::{
    policy::board::{Fake, board, fake},
    support::*,
};

fn fakes() -> [Fake; 3] {
    let github = FakeServer::new("github")
        .tool(Tool::new("create_issue"))
        .tool(Tool::new("hidden"))
        .prompt("triage", "Sort them.")
        .instructions("Page through\u{200b} lists.");
    let note = |words: &str| {
        let mut said = ToolPolicy::default();
        said.instructions = Some(words.into());
        said
    };
    [
        fake("github", &github).with(|config| {
            config.instructions = Some("For issues only.".into());
            config.deny = vec!["hidden".into()];
            config.policy.tools.insert("create_*".into(), note("Ask first."));
            config.policy.tools.insert("hidden".into(), note("Nobody sees this."));
        }),
        fake(
            "broken",
            &FakeServer::new("broken").fault(Fault::AnswersError {
                code: -1,
                message: "no\nway".into(),
                data: None,
            }),
        ),
        fake("off", &FakeServer::new("off")).with(|config| config.enabled = false),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_model_is_told_about_the_servers_that_are_there_and_those_that_are_not() {
    let (board, _handles) = board(fakes());
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let text = tools.instructions(&Instructions::default());
    assert_contains(
        &text,
        &["## github\n\nFor issues only.\n\nNotes on its tools:\n\n- `github__create_issue`: Ask first."],
    );
    assert!(!text.contains("Page through"), "its words are not trusted: {text}");
    assert!(!text.contains("Nobody") && !text.contains("off"), "{text}");

    let all = Instructions::default().words(ServerWords::All);
    assert_contains(&tools.instructions(&all), &["> Page through lists.", "> - triage"]);
    let ai_agent = tools.instructions(&Instructions::new(InstructionFormat::AiAgent));
    assert_contains(
        &ai_agent,
        &[
            "#### MCP Server: github\nFor issues only.\nPage through lists.\n",
            "##### Tool: github__create_issue\nAsk first.",
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_is_named_with_the_reason() {
    let (board, [github, ..]) = board(fakes());
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    github.change(|script| {
        script.faults.push(pegboard_testkit::Rule {
            fault: Fault::SilentHandshake,
            when: pegboard_testkit::When::default(),
        })
    });
    github.kill();
    // Lets the board notice the end of the connection.
    tokio::time::sleep(secs(1)).await;
    tools.list(secs(1)).await;
    let text = tools.instructions(&Instructions::new(InstructionFormat::Tarsy));
    assert_contains(
        &text,
        &[
            "## Unavailable MCP Servers\n\n",
            "\n- **github**: ",
            "\n\nDo not attempt to use tools from these servers.",
        ],
    );
    let without = Instructions::new(InstructionFormat::Tarsy).without_unavailable();
    assert_eq!(tools.instructions(&without), "");
}

#[tokio::test(start_paused = true)]
async fn a_view_is_told_only_about_what_it_selected() {
    let (board, _handles) = board(fakes());
    board.settle(PATIENCE).await;
    let tools = board.toolset_with(View::new().selection(Selection::new().server("off")));
    assert_eq!(tools.instructions(&Instructions::default()), "");
}
