use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

type Board = BTreeMap<ServerName, Option<Vec<String>>>;

fn name(text: &str) -> ServerName {
    ServerName::parse(text).unwrap()
}

fn board(servers: &[(&str, &[&str])]) -> Board {
    let own = |tools: &[&str]| tools.iter().map(|tool| (*tool).to_owned()).collect();
    servers
        .iter()
        .map(|(server, tools)| (name(server), Some(own(tools))))
        .collect()
}

fn granted(grants: &Grants, board: &Board) -> Granted {
    let offers: Vec<_> = board
        .iter()
        .map(|(server, tools)| Offer {
            server,
            tools: tools.as_deref(),
        })
        .collect();
    grants.among(&offers)
}

/// `server.tool` of everything that is granted.
fn covered(words: &[&str], board: &Board) -> Vec<String> {
    let granted = granted(&Grants::from_words(words.iter().copied()), board);
    let mut covered = Vec::new();
    for (server, tools) in board {
        let tools = tools.iter().flatten().filter(|tool| granted.covers(server, tool));
        covered.extend(tools.map(|tool| format!("{server}.{tool}")));
    }
    covered
}

/// The layers of the Minion design and its two example agents, and everything in between.
#[test]
fn each_layer_of_minion_grants_what_its_row_says() {
    let board = board(&[
        ("git", &["hub", "log"]),
        ("git_hub", &["create_issue", "list_issues"]),
        ("github", &["create_issue", "list_issues"]),
        ("slack", &["post"]),
    ]);
    let all = [
        "git.hub",
        "git.log",
        "git_hub.create_issue",
        "git_hub.list_issues",
        "github.create_issue",
        "github.list_issues",
        "slack.post",
    ];
    for (row, words, expected) in [
        ("no capability", &[][..], &[][..]),
        ("global: mcp_integration allows any tool", &["mcp_integration"], &all),
        ("server: mcp_github allows all its tools", &["mcp_github"], &all[4..6]),
        (
            "tool: mcp_github_create_issue allows one",
            &["mcp_github_create_issue"],
            &all[4..5],
        ),
        ("the GitHub bot", &["mcp_github"], &all[4..6]),
        ("the limited bot", &["mcp_github_list_issues"], &all[5..6]),
        (
            "two grants add up",
            &["mcp_slack", "mcp_git_log"],
            &["git.log", "slack.post"],
        ),
        (
            "a grant on one server gives nothing on another",
            &["mcp_git_hub"],
            &all[2..4],
        ),
        (
            "no prefix of a name grants",
            &["mcp_git_", "mcp_", "mcp", "mcp_gi", "mcp_github_create"],
            &[],
        ),
        (
            "no other word grants",
            &["integration", "github", "MCP_GITHUB", "mcp__github", "*", "mcp_*"],
            &[],
        ),
        ("an unknown tool", &["mcp_github_delete_repo"], &[]),
    ] {
        assert_eq!(covered(words, &board), expected, "{row}");
    }
}

#[test]
fn a_word_that_could_mean_tools_of_two_servers_grants_neither() {
    let board = board(&[("git", &["hub_x"]), ("git_hub", &["x", "y"])]);
    let granted = granted(&Grants::from_words(["mcp_git_hub_x", "mcp_git_hub_y"]), &board);
    assert!(!granted.covers(&name("git"), "hub_x") && !granted.covers(&name("git_hub"), "x"));
    assert!(granted.covers(&name("git_hub"), "y"), "nobody else has that one");
    assert_eq!(
        granted.warnings,
        ["the grant `mcp_git_hub_x` could mean `git.hub_x` or `git_hub.x`, so it grants none of them"]
    );
    let exact = Grants::new().tool(name("git"), "hub_x");
    let exact = self::granted(&exact, &board);
    assert!(exact.covers(&name("git"), "hub_x") && !exact.covers(&name("git_hub"), "x"));
}

#[test]
fn a_server_that_was_never_listed_may_have_the_tool_that_is_meant() {
    let mut board = board(&[("git", &["hub_x"])]);
    assert_eq!(covered(&["mcp_git_hub_x"], &board), ["git.hub_x"]);
    board.insert(name("git_hub"), None);
    assert_eq!(covered(&["mcp_git_hub_x"], &board), [""; 0]);
}

#[test]
fn a_tool_with_a_star_in_its_name_is_granted_alone() {
    let board = board(&[("a", &["x*", "xy"])]);
    assert_eq!(covered(&["mcp_a_x*"], &board), ["a.x*"]);
}

proptest! {
    /// Against a model of sets: each word means the pairs that are spelled like it, a server before its tools, and nothing if in doubt.
    #[test]
    fn words_grant_what_a_model_of_sets_says(
        servers in proptest::collection::btree_map("[ab](_[ab])?", proptest::collection::btree_set("[ab](_[ab])?", 0..4), 1..4),
        words in proptest::collection::vec("mcp_[ab](_[ab]){0,3}", 0..4),
    ) {
        let board: Board = servers
            .iter()
            .map(|(server, tools)| (name(server), Some(tools.iter().cloned().collect())))
            .collect();
        let mut expected: BTreeSet<String> = BTreeSet::new();
        for word in &words {
            let whole: Vec<_> = servers.keys().filter(|server| *word == format!("mcp_{server}")).collect();
            let single: Vec<_> = servers
                .iter()
                .flat_map(|(server, tools)| tools.iter().map(move |tool| (server, tool)))
                .filter(|(server, tool)| *word == format!("mcp_{server}_{tool}"))
                .collect();
            if let [server] = whole[..] {
                expected.extend(servers[server].iter().map(|tool| format!("{server}.{tool}")));
            } else if let [(server, tool)] = single[..] {
                expected.insert(format!("{server}.{tool}"));
            }
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        prop_assert_eq!(covered(&words, &board).into_iter().collect::<BTreeSet<_>>(), expected);
    }
}
