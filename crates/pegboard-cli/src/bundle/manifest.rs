//! The manifest of a bundle: what its server is, how it is started, and what the user decides.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Map, Value};

use super::bundle_error::{BundleError, error};

/// The most characters of a name, a version, an author, a description or a title. The manifest can have a million, which would fill the screen
/// before the question and stay in the config file.
const MAX_TEXT: usize = 500;

/// The manifest, with what concerns this system.
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) author: String,
    pub(crate) description: String,
    /// `node`, `python`, `binary` or `uv`.
    kind: String,
    entry_point: String,
    command: Option<String>,
    args: Option<Vec<String>>,
    env: BTreeMap<String, String>,
    /// What the user decides, by key.
    pub(crate) questions: BTreeMap<String, Question>,
}

/// A value that the user decides.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) title: String,
    kind: String,
    pub(crate) is_required: bool,
    pub(crate) is_secret: bool,
    is_multiple: bool,
    pub(crate) default: Vec<String>,
}

/// What the user has decided, by key. A secret is a reference such as `${NAME}`.
pub(crate) type Given = BTreeMap<String, Vec<String>>;

/// How the server is started: texts for the config.
#[derive(Debug, PartialEq)]
pub(crate) struct Launch {
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
}

impl Manifest {
    pub(super) fn read(text: &[u8]) -> Result<Self, BundleError> {
        let document: Value =
            serde_json::from_slice(text).map_err(|why| error(format!("manifest.json is no JSON: {why}")))?;
        let text = |key: &str| cut(document[key].as_str().unwrap_or_default());
        let server = &document["server"];
        let config = &server["mcp_config"];
        let os = match std::env::consts::OS {
            "macos" => "darwin",
            "windows" => "win32",
            other => other,
        };
        let platforms = &document["compatibility"]["platforms"];
        if platforms
            .as_array()
            .is_some_and(|known| !known.iter().any(|one| one == os))
        {
            return Err(error(format!("it is not made for this system, but for {platforms}")));
        }
        let own = &config["platform_overrides"][os];
        let setting = |key: &str| match &own[key] {
            Value::Null => config[key].clone(),
            own => own.clone(),
        };
        let (command, args, env) = (setting("command"), setting("args"), setting("env"));
        let questions = document["user_config"].as_object().into_iter().flatten();
        let manifest = Self {
            name: text("name"),
            version: text("version"),
            author: cut(document["author"]["name"].as_str().unwrap_or("an unnamed author")),
            description: text("description"),
            kind: server["type"].as_str().unwrap_or_default().to_owned(),
            entry_point: server["entry_point"].as_str().unwrap_or_default().to_owned(),
            command: command.as_str().map(str::to_owned),
            args: args
                .as_array()
                .map(|args| args.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
            env: texts(env.as_object()),
            questions: questions
                .map(|(key, question)| (key.clone(), Question::read(key, question)))
                .collect(),
        };
        if manifest.name.is_empty() || !matches!(manifest.kind.as_str(), "node" | "python" | "binary" | "uv") {
            return Err(error("its manifest has no name, or a server of an unknown type"));
        }
        Ok(manifest)
    }

    /// How the server is started from a folder. `has` says whether the bundle has a file.
    pub(crate) fn launch(
        &self,
        folder: &Path,
        given: &Given,
        has: impl Fn(&str) -> bool,
    ) -> Result<Launch, BundleError> {
        let folder = folder.display().to_string();
        let entry = || format!("${{__dirname}}/{}", self.entry_point);
        let (command, args) = match (&self.command, self.kind.as_str()) {
            (Some(command), _) => (command.clone(), self.args.clone().unwrap_or_default()),
            (None, "uv") => (
                "uv".to_owned(),
                ["run", "--directory", "${__dirname}", self.entry_point.as_str()]
                    .map(str::to_owned)
                    .to_vec(),
            ),
            (None, "node") => ("node".to_owned(), vec![entry()]),
            (None, "python") => ("python".to_owned(), vec![entry()]),
            (None, _) => (entry(), Vec::new()),
        };
        let filling = Filling {
            folder: &folder,
            questions: &self.questions,
            given,
        };
        let mut words = filling.words(&command)?;
        if words.len() != 1 {
            return Err(error("its command is not one program"));
        }
        let mut command = words.remove(0);
        if has(&command) {
            command = format!("{}/{command}", escape(&folder));
        } else if cfg!(unix) && command == "python" {
            // Many systems have no program of that name.
            command = "python3".to_owned();
        }
        let mut expanded = Vec::new();
        for word in &args {
            expanded.extend(filling.words(word)?);
        }
        let mut env = BTreeMap::new();
        for (name, value) in &self.env {
            let values = filling.words(value)?;
            if !values.is_empty() {
                env.insert(name.clone(), values.join(","));
            }
        }
        Ok(Launch {
            command,
            args: expanded,
            env,
        })
    }
}

impl Question {
    fn read(key: &str, question: &Value) -> Self {
        let is = |key: &str| question[key].as_bool().unwrap_or_default();
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Self {
            title: cut(question["title"].as_str().unwrap_or(key)),
            kind: question["type"].as_str().unwrap_or("string").to_owned(),
            is_required: is("required"),
            is_secret: is("sensitive"),
            is_multiple: is("multiple"),
            default: match &question["default"] {
                Value::Null => Vec::new(),
                Value::Array(items) => items.iter().map(text).collect(),
                one => vec![text(one)],
            },
        }
    }

    /// Fails if a value is none that the manifest allows.
    pub(crate) fn check(&self, key: &str, values: &[String]) -> Result<(), String> {
        let fits = |value: &String| match self.kind.as_str() {
            "number" => value.parse::<f64>().is_ok_and(f64::is_finite),
            "boolean" => matches!(value.as_str(), "true" | "false"),
            _ => !value.is_empty(),
        };
        if self.is_secret && !values.iter().all(|value| is_reference(value)) {
            return Err(format!("`{key}` is a secret, which is not written to the file"));
        }
        if values.len() > 1 && !self.is_multiple {
            return Err(format!("`{key}` takes one value"));
        }
        match self.is_secret || values.iter().all(fits) {
            true => Ok(()),
            false => Err(format!("`{key}` takes a {}", self.kind)),
        }
    }
}

/// Whether a text is one reference to a variable or a secret.
fn is_reference(text: &str) -> bool {
    let inner = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(|inner| !inner.is_empty() && !inner.contains(['$', '{', '}', '-']))
}

/// Fills in the variables of the manifest.
struct Filling<'a> {
    folder: &'a str,
    questions: &'a BTreeMap<String, Question>,
    given: &'a Given,
}

impl Filling<'_> {
    /// The words that one becomes: several if it is a list that the user gave, none if it needs a value that the user did not give.
    fn words(&self, text: &str) -> Result<Vec<String>, BundleError> {
        let only = text
            .strip_prefix("${user_config.")
            .and_then(|rest| rest.strip_suffix('}'));
        if let Some(key) = only.filter(|key| !key.contains(['$', '}'])) {
            return self.values(key);
        }
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| error(format!("`{text}` ends within a variable")))?;
            filled.push_str(&escape(before));
            match name.strip_prefix("user_config.") {
                Some(key) => match self.values(key)?.as_slice() {
                    [] => return Ok(Vec::new()),
                    values => filled.push_str(&values.join(",")),
                },
                None => filled.push_str(&self.variable(name)?),
            }
            rest = after;
        }
        Ok(vec![filled + &escape(rest)])
    }

    fn values(&self, key: &str) -> Result<Vec<String>, BundleError> {
        let Some(question) = self.questions.get(key) else {
            return Err(error(format!("its manifest uses `{key}`, which it does not declare")));
        };
        if let Some(given) = self.given.get(key) {
            let text = |value: &String| {
                if question.is_secret {
                    value.clone()
                } else {
                    escape(value)
                }
            };
            return Ok(given.iter().map(text).collect());
        }
        question
            .default
            .iter()
            .map(|value| self.words_of_default(value))
            .collect()
    }

    fn words_of_default(&self, value: &str) -> Result<String, BundleError> {
        let mut filled = String::new();
        let mut rest = value;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            filled.push_str(&escape(before));
            filled.push_str(&self.variable(name)?);
            rest = after;
        }
        Ok(filled + &escape(rest))
    }

    /// A variable of the format. It can name no variable of the user's environment.
    fn variable(&self, name: &str) -> Result<String, BundleError> {
        let home = || {
            let home = crate::settings::set("HOME").or_else(|| crate::settings::set("USERPROFILE"));
            home.ok_or_else(|| error("there is no home folder"))
        };
        let of_home =
            |folder: &str| -> Result<String, BundleError> { Ok(escape(&home()?.join(folder).display().to_string())) };
        match name {
            "__dirname" => Ok(escape(self.folder)),
            "HOME" => Ok(escape(&home()?.display().to_string())),
            "DESKTOP" => of_home("Desktop"),
            "DOCUMENTS" => of_home("Documents"),
            "DOWNLOADS" => of_home("Downloads"),
            "pathSeparator" | "/" => Ok(std::path::MAIN_SEPARATOR.to_string()),
            _ => Err(error(format!(
                "its manifest uses `{}`, which bundles do not have",
                name.escape_debug()
            ))),
        }
    }
}

/// A text, cut where it is too long to be shown.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A text for the config, which expands no variable in it.
fn escape(text: &str) -> String {
    text.replace('$', "$$")
}

fn texts(of: Option<&Map<String, Value>>) -> BTreeMap<String, String> {
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    of.into_iter().flatten().filter_map(text).collect()
}
