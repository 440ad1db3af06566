//! All cases, in the order of the report.

mod arguments;
mod calls;
mod handshake;
mod http;
mod jsonrpc;
mod lists;
mod process;
mod tools;

use super::case::Case;

/// All cases, in the order of the report.
pub(super) fn all() -> impl Iterator<Item = &'static Case> {
    [
        handshake::CASES,
        jsonrpc::CASES,
        lists::CASES,
        tools::CASES,
        calls::CASES,
        arguments::CASES,
        process::CASES,
        http::CASES,
    ]
    .into_iter()
    .flatten()
}

/// The names of all cases and groups, sorted.
pub fn case_names() -> Vec<&'static str> {
    let mut names: Vec<&str> = all().flat_map(|case| [case.group, case.id]).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own() {
        let mut names: Vec<_> = all().map(|case| case.id).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(
            all().all(|case| !names.contains(&case.group)),
            "a group has the name of a case"
        );
    }
}
