//! The queues that servers name: the one called `default` holds those that name none, and an unknown name is a warning.

use super::{
    board::Config,
    fields::{ServerTable, server, tool},
    loaded::Loaded,
    problem::{Problem, Severity},
    setting::{Found, Values},
};
use pegboard_base::{diagnosis::Code, name::ServerName};

/// The queue that every board has.
const DEFAULT: &str = "default";

/// Puts servers without a queue into the queue `default`, if the config has one, and warns of queues that it does not have.
pub(super) fn bind(loaded: &mut Loaded) {
    let unknown = loaded
        .written
        .iter()
        .flat_map(|(name, values)| find_unknown(name, values, &loaded.config));
    let unknown: Vec<Problem> = unknown.collect();
    loaded.problems.extend(unknown);
    if !loaded.config.queues.contains_key(DEFAULT) {
        return;
    }
    for server in loaded.config.servers.values_mut() {
        server.policy.queue.get_or_insert_with(|| DEFAULT.to_owned());
    }
}

/// The warnings about the queues of a server and its tools.
fn find_unknown(name: &ServerName, values: &Values, config: &Config) -> Vec<Problem> {
    let values = ServerTable::new(values);
    let mut named: Vec<(String, String, Option<&Found>)> = Vec::new();
    if let Some(queue) = values.get(&server::queue) {
        named.push((server::queue.name.to_owned(), queue, values.find(&server::queue)));
    }
    for (tool, table) in values.tables(&server::tools) {
        if let Some(queue) = table.get(&tool::queue) {
            named.push((format!("tools.{tool}.queue"), queue, table.find(&tool::queue)));
        }
    }
    let is_known = |queue: &str| queue == DEFAULT || config.queues.contains_key(queue);
    let unknown = named.into_iter().filter(|(_, queue, _)| !is_known(queue));
    unknown
        .filter_map(|(field, queue, found)| Some(problem(name, &field, &queue, found?, config)))
        .collect()
}

fn problem(name: &ServerName, field: &str, queue: &str, found: &Found, config: &Config) -> Problem {
    let known: Vec<&str> = config.queues.keys().map(String::as_str).collect();
    let hint = match known.as_slice() {
        [] => "`queues` of the config defines none".to_owned(),
        known => format!("the queues are {}", known.join(", ")),
    };
    // The value of a variable may be secret.
    let queue = if found.variables.is_empty() {
        format!("queue `{}`", queue.escape_debug())
    } else {
        "such queue".to_owned()
    };
    Problem {
        severity: Severity::Warning,
        code: Code::ConfigWarning,
        edit: None,
        variable: None,
        file: found.file.to_string(),
        line: Some(found.at.line),
        field: format!("servers.{name}.{field}"),
        message: format!("there is no {queue}, so its calls wait in the queue `default`"),
        hint: Some(hint),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Env, Format, Loaded};

    fn load(text: &str) -> Loaded {
        Config::from_text(text, Format::Toml, &Env::new(|_| None))
    }

    #[test]
    fn the_queue_default_holds_the_servers_that_name_none() {
        let servers = "[servers.a]\ncommand = 'a'\n[servers.b]\ncommand = 'b'\nqueue = 'heavy'\n";
        for (queues, of_a) in [
            ("[queues]\ndefault = 4\nheavy = 1\n", Some("default")),
            ("[queues]\nheavy = 1\n", None),
        ] {
            for preset in ["pegboard", "ai-agent"] {
                let loaded = load(&format!("preset = '{preset}'\n{servers}{queues}"));
                assert_eq!(loaded.problems, [], "{queues}");
                let queue = |name: &str| {
                    let (_, server) = loaded
                        .config
                        .servers
                        .iter()
                        .find(|(known, _)| known.as_str() == name)
                        .unwrap();
                    server.policy.queue.clone()
                };
                assert_eq!(
                    (queue("a").as_deref(), queue("b").as_deref()),
                    (of_a, Some("heavy")),
                    "{queues}"
                );
            }
        }
    }

    #[test]
    fn a_queue_that_does_not_exist_is_a_warning_that_names_those_that_do() {
        let text = "[queues]\nslow = 1\nheavy = 2\n[servers.a]\ncommand = 'a'\nqueue = 'hevy'\ntools.t.queue = 'default'\ntools.u.queue = 'slw'\n";
        let told: Vec<String> = load(text).problems.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        config:6: servers.a.queue: there is no queue `hevy`, so its calls wait in the queue `default` (the queues are heavy, slow)
        config:8: servers.a.tools.u.queue: there is no queue `slw`, so its calls wait in the queue `default` (the queues are heavy, slow)
        ");
        let none = load("[servers.a]\ncommand = 'a'\nqueue = 'slow'\n").problems;
        assert!(
            !none[0].is_error() && none[0].to_string().ends_with("(`queues` of the config defines none)"),
            "{none:?}"
        );
    }
}
