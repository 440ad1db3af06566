//! The ways to run a server of a registry, each as the settings of our config.

mod limits;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::entry::{Input, Package, RegistryEntry, Remote};

/// A way to run a server.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    /// `npm`, `pypi`, `oci`, `streamable-http` and so on.
    pub(crate) kind: String,
    /// The command line or the URL, for people.
    pub(crate) shown: String,
    /// The settings of the server, or why there are none.
    pub(crate) settings: Result<Map<String, Value>, String>,
    /// The values that the user must supply, or may.
    pub(crate) needs: Vec<Need>,
}

/// A value that the user supplies: in an environment variable of this name, or when the server is added unless it is a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) is_required: bool,
    pub(crate) is_secret: bool,
}

/// What the user has supplied, by the names of needs: a value, or `None` for one that will be in the environment variable of that name.
pub(crate) type Given = BTreeMap<String, Option<String>>;

/// The ways to run a server, those that work without more software first.
pub(crate) fn ways(entry: &RegistryEntry, given: &Given) -> Vec<Way> {
    let remotes = entry
        .remotes
        .iter()
        .map(|remote| from_remote(remote, &entry.name, given));
    let packages = entry.packages.iter().map(|package| from_package(package, given));
    let mut ways: Vec<Way> = remotes.chain(packages).collect();
    ways.sort_by_key(|way| (way.settings.is_err(), rank(&way.kind)));
    ways
}

fn rank(kind: &str) -> usize {
    let order = ["streamable-http", "npm", "pypi", "sse", "oci", "nuget", "go"];
    order.iter().position(|known| *known == kind).unwrap_or(order.len())
}

fn from_remote(remote: &Remote, entry: &str, given: &Given) -> Way {
    let mut filling = Filling::new(given);
    filling.remote = Some(entry);
    let url = filling
        .fill(&remote.url, &remote.variables, false, true)
        .unwrap_or_default();
    let mut settings = Map::new();
    settings.insert("url".to_owned(), json!(url));
    let mut headers = Map::new();
    for header in &remote.headers {
        let Some(name) = &header.name else { continue };
        if let Some(value) = filling.input(header, name) {
            headers.insert(name.clone(), json!(value));
        }
    }
    if !headers.is_empty() {
        settings.insert("headers".to_owned(), headers.into());
    }
    let settings = match remote.kind.as_str() {
        "sse" => {
            settings.insert("type".to_owned(), json!("sse"));
            Ok(settings)
        }
        "streamable-http" => Ok(settings),
        other => Err(format!("`{other}` is a transport that this version does not know")),
    };
    let settings = match is_plain(&remote.url) {
        true => settings,
        false => Err("its address has characters that no address has".to_owned()),
    };
    Way {
        kind: remote.kind.clone(),
        shown: remote.url.clone(),
        settings,
        needs: filling.needs,
    }
}

fn from_package(package: &Package, given: &Given) -> Way {
    let mut filling = Filling::new(given);
    let mut env = Map::new();
    for variable in &package.env {
        let Some(name) = &variable.name else { continue };
        if let Some(value) = filling.input(variable, name) {
            env.insert(name.clone(), json!(value));
        }
    }
    let runtime = filling.arguments(&package.runtime_arguments);
    let arguments = filling.arguments(&package.arguments);
    let command = check(package)
        .and_then(|()| limits::check_env(&package.env, &env))
        .and_then(|()| limits::check_runtime(&package.kind, &runtime))
        .and_then(|()| command(package, &env, runtime, arguments));
    let shown = match &command {
        Ok(command) => command.join(" ").replace("$$", "$"),
        Err(_) => package.identifier.clone(),
    };
    let settings = command.map(|command| {
        let mut settings = Map::new();
        let mut words = command.into_iter();
        settings.insert("command".to_owned(), json!(words.next()));
        settings.insert("args".to_owned(), words.collect());
        if !env.is_empty() {
            settings.insert("env".to_owned(), env.into());
        }
        settings
    });
    Way {
        kind: package.kind.clone(),
        shown,
        settings,
        needs: filling.needs,
    }
}

/// Refuses a package that is not exactly one version of one package of the usual index, or that must be started by other means.
fn check(package: &Package) -> Result<(), String> {
    if package.transport != "stdio" {
        return Err(format!(
            "it is a {} server that has to be started first; start it, and add its URL",
            package.transport
        ));
    }
    let is_word = |text: &str| is_plain(text) && !text.starts_with('-');
    let version = package.version.as_deref();
    if !is_word(&package.identifier) || !version.is_none_or(is_word) {
        return Err("its name or version has characters that no package has".to_owned());
    }
    limits::check_package(package)?;
    let usual = match package.kind.as_str() {
        "npm" => Some("https://registry.npmjs.org"),
        "pypi" => Some("https://pypi.org"),
        "nuget" => Some("https://api.nuget.org/v3/index.json"),
        _ => None,
    };
    match (&package.index, usual) {
        (Some(index), Some(usual)) if index.trim_end_matches('/') != usual => {
            Err(format!("it is in another package index, {index}"))
        }
        _ => Ok(()),
    }
}

/// The command line, with the version pinned. Its words are escaped for the config.
fn command(
    package: &Package,
    env: &Map<String, Value>,
    runtime: Vec<String>,
    arguments: Vec<String>,
) -> Result<Vec<String>, String> {
    let identifier = escape(&package.identifier);
    let version = || match package.version.as_deref() {
        Some(version) if version != "latest" => Ok(escape(version)),
        _ => Err("it names no version, so what runs could change at any time".to_owned()),
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut command = match package.kind.as_str() {
        "npm" => {
            let pinned = format!("{identifier}@{}", version()?);
            [words(&["npx", "-y"]), runtime, vec![pinned]].concat()
        }
        "pypi" => {
            let pinned = format!("{identifier}=={}", version()?);
            [words(&["uvx"]), runtime, vec![pinned]].concat()
        }
        "oci" => {
            let name = package.identifier.rsplit('/').next().unwrap_or_default();
            if !name.contains([':', '@']) || name.ends_with(":latest") {
                return Err("its image has no fixed tag, so what runs could change at any time".to_owned());
            }
            let passed = env.keys().flat_map(|name| ["-e".to_owned(), name.clone()]).collect();
            let run = words(&["docker", "run", "-i", "--rm"]);
            [run, runtime, passed, vec![identifier]].concat()
        }
        "nuget" => {
            let pinned = format!("{identifier}@{}", version()?);
            let separator = words(if arguments.is_empty() { &[] } else { &["--"] });
            [words(&["dnx"]), vec![pinned], words(&["--yes"]), separator].concat()
        }
        "go" => [words(&["go", "run"]), vec![format!("{identifier}@{}", version()?)]].concat(),
        "mcpb" => return Err("bundles are not downloaded; add the file with `pegboard add`".to_owned()),
        "cargo" => {
            return Err(format!(
                "run `cargo install {identifier}@{}`, and add its command",
                version()?
            ));
        }
        other => {
            return Err(format!(
                "`{other}` is a kind of package that this version does not know"
            ));
        }
    };
    command.extend(arguments);
    Ok(command)
}

/// Fills in the values of inputs, and notes what the user must supply.
struct Filling<'a> {
    given: &'a Given,
    needs: Vec<Need>,
    /// The name of the entry of a remote server. Variables that the user has for others get its name as a prefix: its publisher would get their
    /// values.
    remote: Option<&'a str>,
}

impl<'a> Filling<'a> {
    fn new(given: &'a Given) -> Self {
        Self {
            given,
            needs: Vec::new(),
            remote: None,
        }
    }

    /// The words of arguments. A named one is two words, as `docker -e` needs it.
    fn arguments(&mut self, inputs: &[Input]) -> Vec<String> {
        let mut words = Vec::new();
        for input in inputs {
            let name = match (&input.name, &input.hint) {
                (Some(name), _) => name.trim_start_matches('-'),
                (None, Some(hint)) => hint,
                (None, None) => "argument",
            };
            let value = self.input(input, name);
            let is_flag = input.value.is_none() && input.default.is_none() && !input.is_required;
            match (&input.name, value) {
                (Some(flag), Some(value)) => words.extend([escape(flag), value]),
                // A flag without a value, such as `--yes`.
                (Some(flag), None) if is_flag && input.hint.is_none() && input.description.is_none() => {
                    words.push(escape(flag));
                }
                (None, Some(value)) => words.push(value),
                (_, None) => {}
            }
        }
        words
    }

    /// The value of an input; `None` if it is left out.
    fn input(&mut self, input: &Input, name: &str) -> Option<String> {
        if let Some(value) = &input.value {
            return self.fill(value, &input.variables, input.is_secret, input.is_required);
        }
        self.value(input, name)
    }

    /// The value of an input that the publisher has not fixed.
    fn value(&mut self, input: &Input, name: &str) -> Option<String> {
        let name = match (variable_name(name), self.remote) {
            (name, Some(entry)) if limits::is_of_others(&name, entry) => {
                let last = entry.rsplit('/').next().unwrap_or_default();
                format!("{}_{name}", variable_name(last))
            }
            (name, _) => name,
        };
        let need = Need {
            name: name.clone(),
            description: input.description.clone(),
            is_required: input.is_required && input.default.is_none(),
            is_secret: input.is_secret,
        };
        let is_new = !self.needs.iter().any(|known| known.name == name);
        if is_new {
            self.needs.push(need);
        }
        match (self.given.get(&name), &input.default) {
            (Some(Some(given)), _) if !input.is_secret => Some(escape(given)),
            // A secret is not stored in the file.
            (Some(_), _) => Some(format!("${{{name}}}")),
            (None, Some(default)) if input.is_required && !input.is_secret => Some(escape(default)),
            (None, _) => input.is_required.then(|| format!("${{{name}}}")),
        }
    }

    /// A text with its `{variables}` filled in; `None` if it is optional and the user has not supplied one of them.
    fn fill(&mut self, text: &str, variables: &[Input], is_secret: bool, is_required: bool) -> Option<String> {
        let mut is_complete = true;
        let mut filled = String::new();
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            let name = rest[start + 1..].split('}').next().unwrap_or_default();
            let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
            let end = start + 1 + name.len();
            if !is_name || !rest[end..].starts_with('}') || rest[..start].ends_with('$') {
                filled.push_str(&escape(&rest[..=start]));
                rest = &rest[start + 1..];
                continue;
            }
            filled.push_str(&escape(&rest[..start]));
            let known = variables.iter().find(|known| known.name.as_deref() == Some(name));
            // Publishers forget to describe variables.
            let mut variable = known.cloned().unwrap_or_default();
            variable.is_secret |= is_secret;
            variable.is_required |= is_required;
            match self
                .value(&variable, name)
                .or_else(|| variable.default.as_deref().map(escape))
            {
                Some(value) => filled.push_str(&value),
                None => is_complete = false,
            }
            rest = &rest[end + 1..];
        }
        is_complete.then(|| filled + &escape(rest))
    }
}

/// The environment variable for an input: `smithery-api.key` becomes `SMITHERY_API_KEY`.
fn variable_name(name: &str) -> String {
    let as_variable = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let name: String = name
        .trim_matches(['<', '>', '-', ' '])
        .chars()
        .map(as_variable)
        .collect();
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("_{name}"),
        false => name,
    }
}

/// A text of the registry for the config, which expands no variable in it: an entry must not read the user's environment.
fn escape(text: &str) -> String {
    text.replace('$', "$$")
}

/// Whether a text has no blanks and nothing that a terminal acts on.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests;
