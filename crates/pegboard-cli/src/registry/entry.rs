//! An entry of a registry. It is read leniently, because published entries are less tidy than their schema.

use serde_json::{Map, Value};

/// The field with what the registry itself says about an entry.
const OFFICIAL_META: &str = "io.modelcontextprotocol.registry/official";

/// The newest version of a server.
#[derive(Debug, Clone)]
pub(crate) struct RegistryEntry {
    /// `namespace/name`; the namespace is the reverse DNS name of the publisher.
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    pub(crate) version: String,
    pub(crate) website: Option<String>,
    pub(crate) status: Status,
    pub(crate) status_message: Option<String>,
    pub(crate) published_at: Option<String>,
    pub(crate) packages: Vec<Package>,
    pub(crate) remotes: Vec<Remote>,
}

/// Whether a server should be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Status {
    Active,
    /// `deprecated`, `deleted`, or a word that a later version of the API adds.
    Other(String),
}

/// A package that runs as a server.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    /// `npm`, `pypi`, `oci` and so on.
    pub(crate) kind: String,
    pub(crate) identifier: String,
    pub(crate) version: Option<String>,
    /// The package index, if it is named.
    pub(crate) index: Option<String>,
    pub(crate) transport: String,
    pub(crate) runtime_arguments: Vec<Input>,
    pub(crate) arguments: Vec<Input>,
    pub(crate) env: Vec<Input>,
}

/// A server that its publisher runs.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    /// `streamable-http` or `sse`.
    pub(crate) kind: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<Input>,
    pub(crate) variables: Vec<Input>,
}

/// An argument, a header, an environment variable, or a variable in one of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Input {
    /// The flag of a named argument, or the name of the header or variable. `None` for a positional argument.
    pub(crate) name: Option<String>,
    /// What a positional argument is for.
    pub(crate) hint: Option<String>,
    pub(crate) description: Option<String>,
    /// Fixed by the publisher, except for `{variables}` in it.
    pub(crate) value: Option<String>,
    pub(crate) default: Option<String>,
    pub(crate) is_required: bool,
    pub(crate) is_secret: bool,
    pub(crate) variables: Vec<Self>,
}

impl RegistryEntry {
    /// Reads an entry; `None` if it lacks what every entry has.
    pub(crate) fn read(response: &Value) -> Option<Self> {
        let server = response.get("server")?;
        let official = response.get("_meta").and_then(|meta| meta.get(OFFICIAL_META));
        let official = |field: &str| official.and_then(|official| text(official, field));
        Some(Self {
            name: text(server, "name")?,
            title: text(server, "title"),
            description: text(server, "description").unwrap_or_default(),
            version: text(server, "version").unwrap_or_default(),
            website: text(server, "websiteUrl"),
            status: match official("status") {
                Some(status) if status != "active" => Status::Other(status),
                _ => Status::Active,
            },
            status_message: official("statusMessage"),
            published_at: official("publishedAt"),
            packages: list(server, "packages").filter_map(Package::read).collect(),
            remotes: list(server, "remotes").filter_map(Remote::read).collect(),
        })
    }

    /// Whether the name, title or description has this word, whatever its case. `word` is in lower case.
    pub(crate) fn mentions(&self, word: &str) -> bool {
        let texts = [Some(&self.name), self.title.as_ref(), Some(&self.description)];
        texts
            .into_iter()
            .flatten()
            .any(|text| text.to_lowercase().contains(word))
    }
}

impl Package {
    fn read(package: &Value) -> Option<Self> {
        let inputs = |field: &str| list(package, field).map(Input::read).collect();
        Some(Self {
            kind: text(package, "registryType")?,
            identifier: text(package, "identifier")?,
            version: text(package, "version"),
            index: text(package, "registryBaseUrl"),
            transport: package
                .get("transport")
                .and_then(|transport| text(transport, "type"))
                .unwrap_or_else(|| "stdio".to_owned()),
            runtime_arguments: inputs("runtimeArguments"),
            arguments: inputs("packageArguments"),
            env: inputs("environmentVariables"),
        })
    }
}

impl Remote {
    fn read(remote: &Value) -> Option<Self> {
        Some(Self {
            kind: text(remote, "type")?,
            url: text(remote, "url")?,
            headers: list(remote, "headers").map(Input::read).collect(),
            variables: variables(remote),
        })
    }
}

impl Input {
    fn read(input: &Value) -> Self {
        let is = |field: &str| input.get(field).and_then(Value::as_bool).unwrap_or_default();
        Self {
            name: text(input, "name"),
            hint: text(input, "valueHint"),
            description: text(input, "description"),
            value: text(input, "value"),
            default: text(input, "default"),
            is_required: is("isRequired"),
            is_secret: is("isSecret"),
            variables: variables(input),
        }
    }
}

/// The `variables` of an input or a remote: an object by name.
fn variables(of: &Value) -> Vec<Input> {
    let named = of.get("variables").and_then(Value::as_object);
    let read = |(name, input): (&String, &Value)| Input {
        name: Some(name.clone()),
        ..Input::read(input)
    };
    named.into_iter().flat_map(Map::iter).map(read).collect()
}

/// A text that is not empty. Numbers and booleans are texts too: publishers write `"default": 8080`.
fn text(of: &Value, field: &str) -> Option<String> {
    match of.get(field)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(bool) => Some(bool.to_string()),
        _ => None,
    }
}

fn list<'a>(of: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    of.get(field).and_then(Value::as_array).into_iter().flatten()
}
