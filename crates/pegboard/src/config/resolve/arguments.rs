//! How arguments and structured answers are checked, as one server or the top of the file says it.

use super::Values;
use crate::config::{ArgumentRules, Check, Config, OutputCheck, Reading, load::Loaded};

/// Lets what the top of the file says hold for every server that does not say otherwise.
pub(in crate::config) fn defaults(loaded: &mut Loaded) {
    let Loaded {
        config: Config { servers, .. },
        written,
        top,
        ..
    } = loaded;
    let rules_of_all = rules(top, ArgumentRules::default());
    for (name, server) in servers {
        let Some(values) = written.get(name) else { continue };
        server.policy.args = rules(values, rules_of_all);
        server.policy.output_check = output_check(values).or(output_check(top)).unwrap_or_default();
    }
}

/// The rules that `values` change.
pub(super) fn rules(values: &Values, mut rules: ArgumentRules) -> ArgumentRules {
    let table = values.table("call_arguments");
    let check = values
        .word("call_arguments")
        .or_else(|| table.and_then(|table| table.word("check")));
    rules.check = match check {
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
    use crate::config::{Env, Format};

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
