//! Resolves how the arguments of calls are parsed and validated.

use crate::{
    fields::{ServerTable, call_arguments, server},
    policy::{ArgumentRules, Check},
    setting::Found,
};

pub(super) fn rules(values: ServerTable<'_>) -> ArgumentRules {
    let table = values.table(&server::call_arguments);
    table.map_or_else(ArgumentRules::default, |table| ArgumentRules::default().overlay(table))
}

/// The setting that asks for validation against schemas, if one does.
pub(super) fn find_schema_check<'v>(values: ServerTable<'v>) -> Option<&'v Found> {
    let table = values.table(&server::call_arguments)?;
    table.find(&call_arguments::check)?;
    let is_validated = !matches!(table.get(&call_arguments::check), Check::Off | Check::Required);
    values.find(&server::call_arguments).filter(|_| is_validated)
}

#[cfg(test)]
mod tests {
    use crate::{Check, Config, Env, Format, OutputCheck, Reading};

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
            (
                policy.call_arguments.read,
                policy.call_arguments.check,
                policy.output_check
            ),
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
