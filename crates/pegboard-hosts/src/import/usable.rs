//! The variables that a server needs in this environment.

use std::collections::BTreeMap;

use pegboard_config::{Config, Env, Format, Source};
use serde_json::{Map, Value, json};

use super::plan::{Action, Plan};

/// The variables that a server needs and that are not set here. No keyring is asked.
pub fn find_unset(settings: &Map<String, Value>) -> Vec<String> {
    let mut settings = settings.clone();
    let passed = settings.get("env_pass").and_then(Value::as_array).cloned();
    // A server that is not used now needs its variables later.
    for key in ["enabled", "env_file"] {
        settings.remove(key);
    }
    let text = json!({"servers": {"it": settings}}).to_string();
    let env = Env::process().keyring(|_, _| Ok("x".to_owned()));
    let loaded = Config::load(&[Source::text("import", text, Some(Format::Json))], &env);
    let variable = |message: &str| {
        let name = message.strip_prefix("variable `")?.strip_suffix("` is not set")?;
        Some(name.to_owned())
    };
    let mut names: Vec<String> = loaded
        .errors()
        .filter_map(|problem| variable(&problem.message))
        .collect();
    // The folder of the config file, which is not known here, and no variable of the environment.
    names.retain(|name| name != "workspaceFolder");
    let passed = passed.iter().flatten().filter_map(Value::as_str);
    names.extend(
        passed
            .filter(|name| std::env::var_os(name).is_none())
            .map(str::to_owned),
    );
    names.sort();
    names.dedup();
    names
}

impl Plan {
    /// The variables that the servers of a plan need and that are not set here, with the names of the servers. Servers that are disabled or not
    /// imported do not count, except those that stay in their host for the lack of a variable.
    pub fn unset_variables(&self) -> BTreeMap<String, Vec<String>> {
        let known = self.target.entries();
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in &self.rows {
            let here = match &row.action {
                Action::Skip(_) => continue,
                Action::Same(name) => known.get(name).and_then(Value::as_object).cloned(),
                _ => None,
            };
            let settings = here.unwrap_or_else(|| row.settings_with_answers(&self.answers));
            if settings.get("enabled") == Some(&Value::Bool(false)) {
                continue;
            }
            let name = row.new_name().unwrap_or(&row.original);
            for variable in find_unset(&settings) {
                let names = all.entry(variable).or_default();
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
        }
        all
    }
}
