//! How arguments and structured answers are checked.

use super::Values;
use crate::config::{ArgumentRules, Check, OutputCheck, Reading};

pub(super) fn rules(values: &Values) -> ArgumentRules {
    let mut rules = ArgumentRules::default();
    let table = values.table("call_arguments");
    rules.check = match table.and_then(|table| table.word("check")) {
        Some("off") => Check::Off,
        Some("required") => Check::Required,
        Some("relaxed") => Check::Relaxed,
        Some("coerce") => Check::Coerce,
        Some("strict") => Check::Strict,
        _ => rules.check,
    };
    rules.reading = match table.and_then(|table| table.word("read")) {
        Some("json") => Reading::Json,
        Some("repair") => Reading::Repair,
        Some("cascade") => Reading::Cascade,
        Some("guided") => Reading::Guided,
        _ => rules.reading,
    };
    rules
}

pub(super) fn output_check(values: &Values) -> Option<OutputCheck> {
    match values.word("output_check")? {
        "off" => Some(OutputCheck::Off),
        "error" => Some(OutputCheck::Error),
        _ => Some(OutputCheck::Warn),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Env, Format};

    fn check(settings: &str, name: &str, expected: (Reading, Check, OutputCheck)) {
        let loaded = Config::from_text(settings, Format::Toml, &Env::process());
        assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
        let (_, server) = loaded
            .config
            .servers
            .iter()
            .find(|(known, _)| known.as_str() == name)
            .unwrap();
        let policy = &server.policy;
        assert_eq!(
            (policy.args.reading, policy.args.check, policy.output_check),
            expected,
            "{name}"
        );
    }

    #[test]
    fn a_server_says_more_than_the_top_of_the_file_and_the_rest_is_the_default() {
        let text = "output_check = 'error'\ncall_arguments = { read = 'cascade', check = 'strict' }\n\
            [servers.a]\ncommand = 'x'\n\
            [servers.b]\ncommand = 'x'\ncall_arguments = 'off'\noutput_check = 'off'\n\
            [servers.c]\ncommand = 'x'\ncall_arguments = { read = 'repair' }\n";
        check(text, "a", (Reading::Cascade, Check::Strict, OutputCheck::Error));
        check(text, "b", (Reading::Cascade, Check::Off, OutputCheck::Off));
        check(text, "c", (Reading::Repair, Check::Strict, OutputCheck::Error));
        let plain = "[servers.a]\ncommand = 'x'\n";
        check(plain, "a", (Reading::Json, Check::Coerce, OutputCheck::Warn));
    }
}
