//! Decides what an import does with each server: names, doubles, and what is refused.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::PathBuf,
};

use pegboard_base::name::ServerName;
use pegboard_config::{Config, Env, Format, Loaded, Source};
use serde_json::{Map, Value, json};

use super::{
    fingerprint::ServerFingerprint,
    sources::{FoundServer, FoundServers},
};
use crate::{
    hosts::{Host, Input},
    secret_references::take_from_secret,
    servers_file::ServersFile,
};

/// What an import will do.
#[derive(Debug)]
pub struct Plan {
    /// The config file of Pegboard that it writes.
    pub file: PathBuf,
    /// The same file, as it was when the plan was made.
    pub target: ServersFile,
    /// One for each server that was found.
    pub rows: Vec<Row>,
    /// The hosts' files that cannot be read, with the reasons.
    pub unreadable: Vec<(PathBuf, String)>,
    /// How many files were read.
    pub files: usize,
    /// The answers to inputs: what replaces each reference.
    pub answers: BTreeMap<String, String>,
}

/// One server that was found.
#[derive(Debug)]
pub struct Row {
    /// The program that has it.
    pub host: &'static Host,
    /// The file that it is in.
    pub from: PathBuf,
    /// What the file is called in a table.
    pub label: String,
    /// Its name there.
    pub original: String,
    /// The keys under which it is there; empty if it is in a list.
    pub(crate) keys: Vec<String>,
    /// The entry as written there.
    pub(crate) entry: Value,
    /// What happens to it.
    pub action: Action,
    /// What it is in our config.
    pub settings: Map<String, Value>,
    /// What a person must know about it, in sentences.
    pub notes: Vec<String>,
    /// What the host asks its user for, and is not answered yet.
    pub inputs: Vec<Input>,
    /// What is started or contacted, with secrets hidden.
    pub target: String,
}

/// What happens to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// It is added under this name.
    Add(String),
    /// It replaces the server of this name.
    Replace(String),
    /// It is there already, under this name.
    Same(String),
    /// It is not imported, for this reason.
    Skip(String),
    /// It cannot be imported, for this reason.
    Refuse(String),
}

impl Row {
    /// Whether this server can be moved out of its host's file into our config.
    pub fn can_move(&self) -> bool {
        matches!(self.action, Action::Add(_) | Action::Replace(_) | Action::Same(_)) && !self.keys.is_empty()
    }

    /// The name under which it will be written.
    pub fn new_name(&self) -> Option<&str> {
        match &self.action {
            Action::Add(name) | Action::Replace(name) => Some(name),
            _ => None,
        }
    }

    /// The settings as they are written with these answers.
    pub(crate) fn settings_with_answers(&self, answers: &BTreeMap<String, String>) -> Map<String, Value> {
        with_answers(&self.settings, &self.inputs, answers)
    }
}

impl Plan {
    /// A plan to write to a file.
    pub(super) fn new(target: ServersFile, found: FoundServers, force: bool) -> Self {
        Self {
            file: target.path().to_owned(),
            rows: rows(target.entries(), found.servers, force),
            target,
            unreadable: found.unreadable,
            files: found.files,
            answers: BTreeMap::new(),
        }
    }

    /// Has the servers that are written take this variable from the user's secret of the same name.
    pub fn take_from_secret(&mut self, variable: &str) {
        for row in self.rows.iter_mut().filter(|row| row.new_name().is_some()) {
            take_from_secret(&mut row.settings, variable);
        }
    }

    /// Whether anything will be written.
    pub fn has_work(&self) -> bool {
        self.rows.iter().any(|row| row.new_name().is_some())
    }

    /// Replaces the inputs in all settings: by their answers, or by a variable where there is none.
    pub fn settle_inputs(&mut self) {
        for row in self.rows.iter_mut().filter(|row| row.new_name().is_some()) {
            for input in &row.inputs {
                let value = match self.answers.get(&input.id) {
                    Some(answer) => answer.clone(),
                    None => {
                        let variable = input.variable();
                        row.notes.push(match default(input) {
                            Some(default) => format!(
                                "the variable {variable} replaces the default `{default}`: {}",
                                input.description
                            ),
                            None => format!("set the variable {variable}: {}", input.description),
                        });
                        stand_in(input)
                    }
                };
                for setting in row.settings.values_mut() {
                    replace(setting, &input.reference(), &value);
                }
            }
            row.inputs.clear();
        }
    }
}

/// What an import does with the servers that were found, beside those that are in the config.
pub(super) fn rows(known: Map<String, Value>, found: Vec<FoundServer>, force: bool) -> Vec<Row> {
    let mut names = TakenNames::new(known, force, &found);
    found.into_iter().map(|one| names.row(one)).collect()
}

/// The default of an input, if it can be that of a variable.
fn default(input: &Input) -> Option<&str> {
    let default = input.default.as_deref().filter(|_| !input.is_secret);
    default.filter(|text| !text.is_empty() && !text.contains(['$', '{', '}', '\n', '\r']))
}

/// What takes the place of an input without an answer: a variable.
fn stand_in(input: &Input) -> String {
    let variable = input.variable();
    match default(input) {
        Some(default) => format!("${{{variable}:-{default}}}"),
        None => format!("${{{variable}}}"),
    }
}

/// The settings with a variable for each input, as they are written where no question is asked.
fn with_variables(settings: &Map<String, Value>, inputs: &[Input]) -> Map<String, Value> {
    with_answers(settings, inputs, &BTreeMap::new())
}

/// The settings with the answer to each input, or a variable where there is none.
fn with_answers(
    settings: &Map<String, Value>,
    inputs: &[Input],
    answers: &BTreeMap<String, String>,
) -> Map<String, Value> {
    let mut settings = settings.clone();
    for input in inputs {
        let value = answers.get(&input.id).cloned().unwrap_or_else(|| stand_in(input));
        for setting in settings.values_mut() {
            replace(setting, &input.reference(), &value);
        }
    }
    settings
}

/// Replaces a text in all texts of a value.
fn replace(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) if text.contains(from) => *text = text.replace(from, to),
        Value::Array(list) => list.iter_mut().for_each(|value| replace(value, from, to)),
        Value::Object(table) => table.values_mut().for_each(|value| replace(value, from, to)),
        _ => {}
    }
}

/// A table of servers in a host's file: the host, the file and the keys of the table. Two names in it are two servers.
type Origin = (&'static str, PathBuf, Vec<String>);

fn source(found: &FoundServer) -> Origin {
    let keys = found.server.keys.split_last().map(|(_, table)| table.to_vec());
    (found.host.id, found.path.clone(), keys.unwrap_or_default())
}

/// The names that are taken, in the file and by this import.
struct TakenNames {
    taken: Map<String, Value>,
    force: bool,
    imported: BTreeSet<String>,
    /// The names of the servers that are taken, by what they are.
    known: HashMap<ServerFingerprint, Vec<String>>,
    /// One name for each server without its rules for tools.
    bases: HashMap<ServerFingerprint, String>,
    /// What each source has under its own names.
    wishes: HashMap<Origin, HashSet<(String, ServerFingerprint)>>,
    /// The names that servers of each source have got.
    given: HashMap<Origin, HashSet<String>>,
}

impl TakenNames {
    fn new(taken: Map<String, Value>, force: bool, found: &[FoundServer]) -> Self {
        let mut known: HashMap<ServerFingerprint, Vec<String>> = HashMap::new();
        let mut bases = HashMap::new();
        for (name, server) in &taken {
            if let Some(server) = server.as_object() {
                let identity = ServerFingerprint::new(server);
                bases.insert(identity.without_policy(), name.clone());
                known.entry(identity).or_default().push(name.clone());
            }
        }
        let mut wishes: HashMap<Origin, HashSet<(String, ServerFingerprint)>> = HashMap::new();
        for one in found {
            if let Ok(imported) = &one.server.imported {
                let identity = ServerFingerprint::new(&with_variables(&imported.settings, &one.server.inputs));
                let wish = (alias(&one.server.name), identity);
                wishes.entry(source(one)).or_default().insert(wish);
            }
        }
        Self {
            taken,
            force,
            imported: BTreeSet::new(),
            known,
            bases,
            wishes,
            given: HashMap::new(),
        }
    }

    /// The name under which a server is there already.
    fn find_same(
        &self,
        source: &Origin,
        wish: &str,
        settings: &Map<String, Value>,
        fingerprint: &ServerFingerprint,
    ) -> Option<String> {
        let is_free = |name: &str| !self.given.get(source).is_some_and(|given| given.contains(name));
        let is_of_another = |name: &String| {
            let wishes = self.wishes.get(source);
            name != wish && wishes.is_some_and(|wishes| wishes.contains(&(name.clone(), fingerprint.clone())))
        };
        let known = self.known.get(fingerprint).map_or(&[][..], Vec::as_slice);
        let own = known.iter().find(|name| *name == wish && is_free(name));
        let any = || known.iter().find(|name| is_free(name) && !is_of_another(name));
        if let Some(name) = own.or_else(any) {
            return Some(name.clone());
        }
        // What was written before may have changed since, also under the number that it got.
        let is_wished = |name: &String| {
            let mut wishes = self.wishes.get(source).into_iter().flatten();
            wishes.any(|(other, _)| other == name)
        };
        let numbers = (2_u32..).map(|number| append_number(wish, number));
        let numbers = numbers.take_while(|name| self.taken.contains_key(name));
        let mut names = std::iter::once(wish.to_owned()).chain(numbers.filter(|name| !is_wished(name)));
        let found = ServerFingerprint::new(settings);
        names.find(|name| {
            let ours = self.taken.get(name).and_then(Value::as_object);
            let is_it = |ours| ServerFingerprint::new(ours).may_come_from(&found);
            !self.imported.contains(name) && is_free(name) && ours.is_some_and(is_it)
        })
    }

    fn row(&mut self, found: FoundServer) -> Row {
        let source = source(&found);
        let server = found.server;
        let mut row = Row {
            host: found.host,
            from: found.path,
            label: found.label,
            original: server.name,
            keys: server.keys,
            entry: server.entry,
            action: Action::Skip(String::new()),
            settings: Map::new(),
            notes: Vec::new(),
            inputs: server.inputs,
            target: String::new(),
        };
        match server.imported {
            Err(reason) => row.action = Action::Refuse(reason),
            Ok(_) if server.is_pegboard => row.action = Action::Skip("Pegboard itself".to_owned()),
            Ok(imported) => {
                row.settings = imported.settings;
                row.notes = imported.notes;
                let action = match server.project.filter(|_| found.is_elsewhere) {
                    Some(project) => Action::Skip(format!("only for {project}; `pegboard import --all` imports it")),
                    None => self.action(&source, &mut row),
                };
                row.action = action;
                let (target, problem) = describe_target(&row.settings);
                row.target = target;
                row.notes.extend(problem.filter(|_| row.inputs.is_empty()));
            }
        }
        if let Some(name) = row.new_name().map(str::to_owned) {
            let settings = with_variables(&row.settings, &row.inputs);
            let identity = ServerFingerprint::new(&settings);
            if let Some(old) = self.taken.get(&name).and_then(Value::as_object)
                && let Some(names) = self.known.get_mut(&ServerFingerprint::new(old))
            {
                names.retain(|known| *known != name);
            }
            self.bases.insert(identity.without_policy(), name.clone());
            self.known.entry(identity).or_default().push(name.clone());
            self.imported.insert(name.clone());
            self.taken.insert(name, Value::Object(settings));
        }
        if let Action::Add(name) | Action::Replace(name) | Action::Same(name) = &row.action {
            self.given.entry(source).or_default().insert(name.clone());
        }
        row
    }

    fn action(&self, source: &Origin, row: &mut Row) -> Action {
        let Row {
            original,
            settings,
            notes,
            inputs,
            ..
        } = row;
        let wish = alias(original);
        let identity = ServerFingerprint::new(&with_variables(settings, inputs));
        if let Some(name) = self.find_same(source, &wish, settings, &identity) {
            return Action::Same(name);
        }
        let other = self.bases.get(&identity.without_policy());
        if let Some(other) = other.filter(|_| !self.known.contains_key(&identity)) {
            notes.push(format!(
                "`{other}` is the same with other rules for tools, and hosts that use Pegboard have both; a view shows one"
            ));
        }
        if wish != *original {
            settings
                .entry("description")
                .or_insert_with(|| original.as_str().into());
            notes.push(format!("is called `{original}` there, which cannot be a name here"));
        }
        if !self.taken.contains_key(&wish) {
            return Action::Add(wish);
        }
        if self.force && !self.imported.contains(&wish) {
            return Action::Replace(wish);
        }
        notes.push(format!("`{wish}` is another server already"));
        Action::Add(choose_free(&wish, &self.taken))
    }
}

/// A name that is allowed here: other characters become `-`.
fn alias(name: &str) -> String {
    if ServerName::parse(name).is_ok() {
        return name.to_owned();
    }
    let mut alias = String::new();
    for c in name.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '_' => alias.push(c),
            _ if alias.is_empty() || alias.ends_with('-') => {}
            _ => alias.push('-'),
        }
    }
    let alias = alias.trim_matches(['-', '_']);
    let alias: String = alias.chars().take(60).collect();
    match alias.is_empty() {
        true => "server".to_owned(),
        false => alias,
    }
}

fn append_number(wish: &str, number: u32) -> String {
    let short: String = wish.chars().take(60).collect();
    format!("{short}-{number}")
}

/// The name with the first number that makes it free.
fn choose_free(wish: &str, taken: &Map<String, Value>) -> String {
    let mut number = 2_u32;
    loop {
        let name = append_number(wish, number);
        if !taken.contains_key(&name) {
            return name;
        }
        number = number.saturating_add(1);
    }
}

/// What a server starts or contacts, with secrets hidden, and why it cannot be used as it is.
fn describe_target(settings: &Map<String, Value>) -> (String, Option<String>) {
    // Whether variables are set does not matter here; this value fits wherever one may stand.
    let env = Env::new(|name| match name {
        "HOME" => Some("/home/x".to_owned()),
        "USERPROFILE" => None,
        _ => Some("https://x.example".to_owned()),
    });
    let mut settings = settings.clone();
    for setting in settings.values_mut() {
        without_inputs(setting);
    }
    for key in ["enabled", "env_file"] {
        settings.remove(key);
    }
    let text = json!({"servers": {"it": settings}}).to_string();
    let loaded: Loaded = Config::load(&[Source::text("import", text, Some(Format::Json))], &env);
    let shown = loaded.show();
    let server = shown.pointer("/servers/it");
    let text = |key: &str| server.and_then(|server| server.get(key)?.as_str()).map(str::to_owned);
    let args = server.and_then(|server| server.get("args")?.as_array());
    let mut words: Vec<String> = text("url").or_else(|| text("command")).into_iter().collect();
    words.extend(args.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
    let problem = loaded.config.misconfigured.values().next();
    let problem = problem.map(|problem| format!("cannot be used as it is: {}", problem.why));
    (words.join(" "), problem)
}

/// Replaces every `${input:…}` by a variable.
fn without_inputs(value: &mut Value) {
    match value {
        Value::String(text) if text.contains("${input:") => *text = text.replace("${input:", "${X_").replace("-", "_"),
        Value::Array(list) => list.iter_mut().for_each(without_inputs),
        Value::Object(table) => table.values_mut().for_each(without_inputs),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_gets_an_alias_that_is_allowed() {
        for (name, want) in [
            ("github", "github"),
            ("awslabs.core-mcp-server", "awslabs-core-mcp-server"),
            ("Figma Desktop", "Figma-Desktop"),
            ("@scope/x", "scope-x"),
            ("...", "server"),
            ("日本", "server"),
        ] {
            assert_eq!(alias(name), want);
        }
        assert!(ServerName::parse(&alias(&"a.".repeat(100))).is_ok());
        let taken = Map::from_iter([("a".to_owned(), json!({})), ("a-2".to_owned(), json!({}))]);
        assert_eq!(choose_free("a", &taken), "a-3");
    }

    #[test]
    fn a_target_is_shown_without_its_secrets() {
        let settings = json!({"command": "npx", "args": ["x", "--token", "ghp_0123456789abcdefghijABCDEFGHIJ012345"]});
        let (target, problem) = describe_target(settings.as_object().unwrap());
        assert!(
            target.starts_with("npx x --token") && !target.contains("ghp_0123"),
            "{target}"
        );
        assert_eq!(problem, None);
        let settings = json!({"url": "https://${HOST}/mcp", "bearer_token_env_var": "NOPE"});
        assert_eq!(
            describe_target(settings.as_object().unwrap()),
            ("https://${HOST}/mcp".to_owned(), None)
        );
    }
}
