mod quality;

use serde_json::json;

use super::*;
use crate::catalog::{Catalog, HeaderRule};
use pegboard_base::name::ServerName;

fn index(tools: &[(&str, &str)]) -> (Index, Vec<String>) {
    let mut catalog = Catalog::default();
    let items = tools
        .iter()
        .map(|(name, description)| json!({"name": name, "description": description}))
        .collect();
    catalog.read_tools(&ServerName::parse("fx").unwrap(), items, HeaderRule::Ignored);
    let names = catalog.tools.iter().map(|tool| tool.name.clone()).collect();
    (Index::new(catalog.tools.iter().map(|tool| &**tool)), names)
}

const TOOLS: &[(&str, &str)] = &[
    ("create_issue", "Opens an issue in a repository."),
    ("list_issues", "Lists the issues of a repository, newest first."),
    ("delete_branch", "Removes a branch of a repository."),
    ("get_pod_logs", "Prints the logs of a pod."),
    ("send_message", "Posts a text to a channel."),
    ("query", "Runs a read-only SQL statement."),
];

fn first(question: &str) -> Option<String> {
    let (index, names) = index(TOOLS);
    index.find(question, 5).first().map(|(at, _)| names[*at].clone())
}

#[test]
fn the_tool_that_is_meant_comes_first() {
    for (question, expected) in [
        ("create issue", "create_issue"),
        ("open a new bug", "create_issue"),
        ("show all issues", "list_issues"),
        ("remove a branch", "delete_branch"),
        ("what does the container print? I need its logs", "get_pod_logs"),
        ("write to a chat channel", "send_message"),
        ("ask the database", "query"),
        ("mesage", "send_message"),
        ("bran", "delete_branch"),
    ] {
        assert_eq!(first(question).as_deref(), Some(expected), "{question}");
    }
}

#[test]
fn a_question_that_shares_no_word_finds_nothing() {
    for question in ["", "the of and", "xylophone", "日本語"] {
        assert_eq!(first(question), None, "{question}");
    }
}

#[test]
fn the_order_is_the_same_each_time_and_bounded() {
    let (index, _) = index(TOOLS);
    let found = index.find("repository", 2);
    assert_eq!(found.len(), 2);
    assert_eq!(found, index.find("repository", 2));
}

proptest::proptest! {
    #[test]
    fn no_question_makes_the_search_fail(question in ".{0,200}") {
        let (index, _) = index(TOOLS);
        let found = index.find(&question, 3);
        proptest::prop_assert!(found.len() <= 3);
        proptest::prop_assert!(found.iter().all(|(_, score)| score.is_finite()));
    }
}
