//! Measures search quality: the share of queries that find their tool.

mod corpus;

use crate::search::Index;
use corpus::{QUESTIONS, tools};

#[test]
fn nine_of_ten_questions_find_their_tool_among_the_first_five_of_500() {
    let tools = tools();
    assert_eq!(tools.len(), 500);
    assert!(QUESTIONS.len() >= 60);
    let index = Index::new(tools.iter().map(|tool| &**tool));
    let mut missed = Vec::new();
    for (question, expected) in QUESTIONS {
        let found: Vec<_> = index
            .find(question, 5)
            .into_iter()
            .map(|(at, _)| tools[at].dotted_name())
            .collect();
        assert!(
            tools.iter().any(|tool| tool.dotted_name() == *expected),
            "{expected} is no tool"
        );
        if !found.iter().any(|name| name == expected) {
            missed.push(format!("{question}: wanted {expected}, found {}", found.join(" ")));
        }
    }
    let (found, all) = (QUESTIONS.len() - missed.len(), QUESTIONS.len());
    assert!(
        found * 100 >= 90 * all,
        "only {found} of {all} were found:\n{}",
        missed.join("\n")
    );
}
