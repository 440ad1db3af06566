//! The resolved config as a TOML file, with a comment on each line that says where its value comes from.

use std::{collections::BTreeMap, fmt::Write as _};

use pegboard::{Loaded, ServerName, config::Explained};
use serde_json::Value;

/// Where comments start, unless a value is longer.
const COLUMN: usize = 44;

/// The top of the config, and the servers that are to be shown.
pub(super) fn render(loaded: &Loaded, is_shown: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    let explained = loaded.explain();
    let mut of: BTreeMap<Option<&ServerName>, Vec<&Explained>> = BTreeMap::new();
    for one in &explained {
        of.entry(one.server.as_ref()).or_default().push(one);
    }
    for one in of.remove(&None).into_iter().flatten() {
        line(&mut text, one);
    }
    let misconfigured = loaded.config.misconfigured.iter();
    for (name, misconfigured) in misconfigured.filter(|(name, _)| is_shown(name.as_str())) {
        let _ = writeln!(text, "\n# [servers.{name}] cannot be used: {}", misconfigured.why);
    }
    for name in loaded.config.servers.keys().filter(|name| is_shown(name.as_str())) {
        server(&mut text, name, loaded, &of.remove(&Some(name)).unwrap_or_default());
    }
    text
}

fn server(text: &mut String, name: &ServerName, loaded: &Loaded, explained: &[&Explained]) {
    let head = format!("[servers.{name}]");
    let at = match loaded.origins.get(name) {
        Some(origin) => format!("{}:{}", origin.file, origin.line),
        None => "added by the program".to_owned(),
    };
    let _ = writeln!(text, "\n{head:COLUMN$} # {at}");
    for one in explained {
        line(text, one);
    }
}

fn line(text: &mut String, one: &Explained) {
    let setting = format!("{} = {}", one.field, value(&one.value));
    let _ = writeln!(text, "{setting:COLUMN$} # {}", one.from);
}

/// A value as TOML writes it on one line.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(self::value).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{} = {}", self::key(key), self::value(value)))
                .collect();
            match entries.as_slice() {
                [] => "{}".to_owned(),
                entries => format!("{{ {} }}", entries.join(", ")),
            }
        }
        // TOML has no null. No shown value is null.
        Value::Null => "\"\"".to_owned(),
        // Strings, numbers and booleans are written alike in JSON and TOML.
        plain => plain.to_string(),
    }
}

fn key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match !key.is_empty() && key.chars().all(is_bare) {
        true => key.to_owned(),
        false => Value::from(key).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use pegboard::{Config, Env, Format};

    use super::*;

    #[test]
    fn what_is_shown_is_a_config_of_the_same_meaning() {
        let text = "preset = 'tarsy'\ncall_timeout = '20s'\n[servers.x]\ncommand = 'a'\nargs = ['b \"c\"', '\\\\']\n\
                    tools = { 'a b' = { retry = 'safe' } }\n";
        let env = Env::new(|_| None);
        let loaded = Config::from_text(text, Format::Toml, &env);
        let shown = render(&loaded, |_| true);
        let again = Config::from_text(&shown, Format::Toml, &env);
        assert_eq!(again.problems, [], "{shown}");
        assert_eq!(again.config, loaded.config, "{shown}");
        assert!(shown.contains("call_timeout = \"20s\""), "{shown}");
        assert!(shown.contains("# config:2, for all servers\n"), "{shown}");
        assert!(shown.contains("# preset tarsy\n"), "{shown}");
    }
}
