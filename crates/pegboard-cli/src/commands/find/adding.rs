//! Adds a server of a registry to a config file.

use std::path::Path;

use pegboard::ServerName;
use pegboard_hosts::{ServersFile, document::EditLock, shorten_path};
use serde_json::{Map, Value, json};

use super::{listed::need_json, options::Find};
use crate::{
    cli::Global,
    exit::Exit,
    output::{one_line, path_text},
    registry::{Given, Need, RegistryEntry, Way, ways},
    settings::Complaint,
};

/// A server that is about to be added.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) name: ServerName,
    pub(super) way: Way,
    settings: Map<String, Value>,
    file: ServersFile,
    #[expect(dead_code, reason = "held until the file is saved")]
    lock: Option<EditLock>,
    /// Whether the file has this server already, under this name.
    pub(super) is_known: bool,
}

impl Plan {
    /// Plans to add an entry. Nothing is written yet.
    pub(super) fn new(entry: &RegistryEntry, options: &Find, global: &Global) -> Result<Self, Complaint> {
        let given = parse_given(&options.set)?;
        let way = choose(entry, &given, options.package.as_deref())?;
        for need in &way.needs {
            if need.is_secret && given.get(&need.name).is_some_and(Option::is_some) {
                let hint = format!("set the environment variable {0}, and write `--set {0}`", need.name);
                return Err(usage(
                    format!("{} is a secret, which is not written to a file", need.name),
                    &hint,
                ));
            }
        }
        if let Some(unknown) = given
            .keys()
            .find(|name| !way.needs.iter().any(|need| need.name == **name))
        {
            let known: Vec<&str> = way.needs.iter().map(|need| need.name.as_str()).collect();
            let hint = format!(
                "it takes {}",
                if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                }
            );
            return Err(usage(format!("it takes no value `{unknown}`"), &hint));
        }
        let settings = way
            .settings
            .clone()
            .map_err(|why| usage(why, "choose another way with `--package`"))?;
        // Before anything is made for it.
        options.name.as_deref().map(parse_name).transpose()?;
        // Nobody waits for the answer to a question.
        let lock = match options.yes && !options.dry_run {
            true => Some(ServersFile::lock_to_add(&global.configs, options.project)?),
            false => None,
        };
        let mut file = ServersFile::to_add(&global.configs, options.project)?;
        let taken = file.names();
        let known = taken.iter().find(|name| {
            let known = file.entry(name);
            known.is_some_and(|known| has_all(&known, &settings))
        });
        if let Some(name) = known.and_then(|name| ServerName::parse(name).ok()) {
            return Ok(Self {
                name,
                way,
                settings,
                file,
                lock,
                is_known: true,
            });
        }
        let name = name(entry, options.name.as_deref(), &taken)?;
        file.put(name.as_str(), &Value::Object(settings.clone()))?;
        Ok(Self {
            name,
            way,
            settings,
            file,
            lock,
            is_known: false,
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// What is added, for people.
    pub(super) fn describe(&self, entry: &RegistryEntry) -> String {
        let (publisher, _) = entry.name.split_once('/').unwrap_or((&entry.name, ""));
        let mut text = format!(
            "{} {} of {} as `{}` in {}\n  {}\n",
            one_line(&entry.name),
            one_line(&entry.version),
            one_line(publisher),
            self.name,
            shorten_path(self.path()),
            self.line()
        );
        // Everything that is written and not in the line above.
        for (table, word) in [("env", "variable"), ("headers", "header")] {
            let entries = self.settings.get(table).and_then(Value::as_object);
            for (name, value) in entries.into_iter().flatten() {
                let value = value.as_str().map_or_else(|| value.to_string(), one_line);
                text.push_str(&format!("  {word} {} = {value}\n", one_line(name)));
            }
        }
        for name in self.variables_to_set() {
            text.push_str(&format!(
                "  set the environment variable {} before it is used\n",
                one_line(name)
            ));
        }
        text
    }

    /// The command line or the URL as it is written, each argument as one word.
    fn line(&self) -> String {
        let text = |key: &str| self.settings.get(key).and_then(Value::as_str).map(str::to_owned);
        let args = self.settings.get("args").and_then(Value::as_array);
        let args = args.into_iter().flatten().filter_map(Value::as_str).map(quote);
        let words: Vec<String> = text("command").or(text("url")).into_iter().chain(args).collect();
        one_line(&words.join(" "))
    }

    /// The variables that the settings read.
    fn variables_to_set(&self) -> impl Iterator<Item = &str> {
        let settings = Value::Object(self.settings.clone()).to_string();
        let is_read = move |need: &&Need| settings.contains(&format!("${{{}}}", need.name));
        self.way.needs.iter().filter(is_read).map(|need| need.name.as_str())
    }

    pub(super) fn save(&mut self) -> Result<(), Complaint> {
        Ok(self.file.save()?)
    }

    pub(super) fn json(&self, is_written: bool) -> Value {
        json!({
            "name": self.name,
            "file": path_text(self.path()),
            "written": is_written,
            "kind": self.way.kind,
            "settings": self.settings,
            "needs": self.way.needs.iter().map(need_json).collect::<Vec<_>>(),
        })
    }
}

/// An argument of the config for people, in quotes if it would look like several.
fn quote(argument: &str) -> String {
    let shown = argument.replace("$$", "$");
    match shown.is_empty() || shown.contains(|c: char| c.is_whitespace() || c == '"') {
        true => format!("{shown:?}"),
        false => shown,
    }
}

/// Whether a server of the file has all these settings. It may have more of its own.
fn has_all(known: &Value, settings: &Map<String, Value>) -> bool {
    settings.iter().all(|(key, value)| known.get(key) == Some(value))
}

/// The entry that is meant: the one whose name, or last part of the name, was given, or the only one.
pub(super) fn find_meant<'a>(entries: &'a [RegistryEntry], words: &[String]) -> Option<&'a RegistryEntry> {
    let [word] = words else { return find_only(entries) };
    let last = |entry: &RegistryEntry| entry.name.rsplit('/').next().map(str::to_lowercase);
    let mut exact = entries.iter().filter(|entry| entry.name == *word);
    let mut short = entries
        .iter()
        .filter(|entry| last(entry).as_deref() == Some(&*word.to_lowercase()));
    exact.next().or_else(|| match (short.next(), short.next()) {
        (Some(one), None) => Some(one),
        _ => find_only(entries),
    })
}

fn find_only(entries: &[RegistryEntry]) -> Option<&RegistryEntry> {
    match entries {
        [one] => Some(one),
        _ => None,
    }
}

fn choose(entry: &RegistryEntry, given: &Given, kind: Option<&str>) -> Result<Way, Complaint> {
    let ways = ways(entry, given);
    let kinds: Vec<String> = ways.iter().map(|way| one_line(&way.kind)).collect();
    let mut fitting = ways.into_iter().filter(|way| kind.is_none_or(|kind| way.kind == kind));
    fitting.next().ok_or_else(|| match kinds.as_slice() {
        [] => usage(
            format!("{} has nothing that can be run", one_line(&entry.name)),
            entry.website.as_deref().unwrap_or("ask its publisher"),
        ),
        kinds => usage(
            format!("there is no package of the kind `{}`", kind.unwrap_or_default()),
            &format!("there are {}", kinds.join(", ")),
        ),
    })
}

/// The values of `--set`.
fn parse_given(pairs: &[String]) -> Result<Given, Complaint> {
    let one = |pair: &String| match pair.split_once('=') {
        Some(("", _)) => Err(usage(format!("`--set {pair}` names no value"), "write NAME=VALUE")),
        Some((name, value)) => Ok((name.to_owned(), Some(value.to_owned()))),
        None => Ok((pair.clone(), None)),
    };
    pairs.iter().map(one).collect()
}

/// The name of the server in the config: the last part of the entry's name, before it the publisher's if it is taken.
fn name(entry: &RegistryEntry, wish: Option<&str>, taken: &[String]) -> Result<ServerName, Complaint> {
    let is_taken = |name: &str| taken.iter().any(|known| known == name);
    if let Some(wish) = wish {
        let name = parse_name(wish)?;
        return match is_taken(wish) {
            true => Err(usage(
                format!("there is a server `{wish}` already"),
                "choose another `--name`",
            )),
            false => Ok(name),
        };
    }
    let (namespace, last) = entry.name.rsplit_once('/').unwrap_or(("", &entry.name));
    let publisher = namespace.rsplit('.').next().unwrap_or_default();
    let candidates = [to_allowed_name(last), to_allowed_name(&format!("{publisher}-{last}"))];
    let numbered = (2..100).map(|number| format!("{}-{number}", candidates[0]));
    let mut candidates = candidates.iter().cloned().chain(numbered);
    candidates
        .find_map(|name| ServerName::parse(&name).ok().filter(|_| !is_taken(&name)))
        .ok_or_else(|| usage("no name is free for it".to_owned(), "choose one with `--name`"))
}

fn parse_name(name: &str) -> Result<ServerName, Complaint> {
    ServerName::parse(name).map_err(|error| usage(error.to_string(), "choose another `--name`"))
}

/// A text with only the characters of server names.
fn to_allowed_name(text: &str) -> String {
    let one = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = text.chars().map(one).collect();
    name.trim_matches(['-', '_']).chars().take(60).collect()
}

fn usage(message: String, hint: &str) -> Complaint {
    Complaint {
        message,
        hint: Some(hint.to_owned()),
        exit: Exit::Usage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> RegistryEntry {
        RegistryEntry::read(&json!({"server": {"name": name}})).unwrap()
    }

    #[test]
    fn a_name_that_is_taken_or_not_allowed_gets_another_one() {
        for (full, taken, expected) in [
            ("io.github.acme/git", &[][..], "git"),
            ("io.github.acme/git", &["git"], "acme-git"),
            ("io.github.acme/git", &["git", "acme-git"], "git-2"),
            ("com.example/a.b c", &[], "a-b-c"),
        ] {
            let taken: Vec<String> = taken.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(name(&entry(full), None, &taken).unwrap(), expected, "{full}");
        }
    }

    #[test]
    fn the_server_that_was_named_is_meant_even_if_others_were_found() {
        let entries = ["com.a/git", "com.a/git-lfs", "com.b/github"].map(entry);
        for (word, expected) in [
            ("git", Some("com.a/git")),
            ("com.a/git-lfs", Some("com.a/git-lfs")),
            ("gi", None),
        ] {
            let found = find_meant(&entries, &[word.to_owned()]).map(|entry| entry.name.as_str());
            assert_eq!(found, expected, "{word}");
        }
    }
}
