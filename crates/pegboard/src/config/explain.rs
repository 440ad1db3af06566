//! Every setting of a loaded config with where it comes from.

use std::fmt;

use serde::Serialize;
use serde_json::Value as Json;

use super::{
    fields::{Effect, Field, Kind, SERVER, Section, TOP},
    layers,
    loaded::Loaded,
    merge,
    preset::Preset,
    redact,
    resolve::{REMOTE_ONLY, STDIO_ONLY},
    server::ServerConfig,
    setting::{Found, Rank, Values},
    transport::Transport,
    units,
};
use crate::name::ServerName;

/// A setting as it is in effect, and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explained {
    /// The server; `None` for the top of the file.
    pub server: Option<ServerName>,
    /// The setting, such as `call_timeout` or `retry.attempts`.
    pub field: String,
    /// Its value as it was written, with secrets hidden.
    pub value: Json,
    /// Where the value comes from.
    pub from: ValueOrigin,
    /// What it would be without that, the strongest first.
    pub over: Vec<Overridden>,
    /// The variables in it.
    pub variables: Vec<String>,
    /// What the setting means.
    pub doc: &'static str,
}

/// A value that another one is in effect instead of.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Overridden {
    /// The value.
    pub value: Json,
    /// Where it comes from.
    pub from: ValueOrigin,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ValueOrigin {
    /// It is written in a file, or in a text of the command line.
    File {
        /// The file.
        file: String,
        /// The line.
        line: u32,
        /// The key as it is written there.
        key: String,
    },
    /// It is written at the top of a file, for all servers.
    Top {
        /// The file.
        file: String,
        /// The line.
        line: u32,
        /// The key as it is written there.
        key: String,
    },
    /// The preset says it.
    Preset {
        /// The preset's name.
        preset: String,
    },
    /// It follows from another setting.
    Follows {
        /// The other setting.
        field: String,
    },
    /// It is the default.
    Default,
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line, .. } => write!(f, "{file}:{line}"),
            Self::Top { file, line, .. } => write!(f, "{file}:{line}, for all servers"),
            Self::Preset { preset } => write!(f, "preset {preset}"),
            Self::Follows { field } => write!(f, "follows from {field}"),
            Self::Default => f.write_str("default"),
        }
    }
}

impl ValueOrigin {
    fn of(found: &Found, is_server: bool) -> Self {
        let (file, line, key) = (found.file.to_string(), found.at.line, found.key.clone());
        match found.rank {
            Rank::Preset => Self::Preset { preset: file },
            Rank::Top if is_server => Self::Top { file, line, key },
            Rank::Top | Rank::Server => Self::File { file, line, key },
        }
    }
}

impl Loaded {
    /// Every setting that is in effect, with where it comes from: the top of the file first, then server by server.
    pub fn explain(&self) -> Vec<Explained> {
        loaded(self)
    }

    /// What is in force for a setting that no source sets, by its full name: of a server, or for all servers. A value of null is none at all.
    pub fn explain_unset(&self, name: &str, server: Option<&ServerName>) -> Vec<Explained> {
        unset(self, name, server)
    }

    /// The full name and the meaning of a setting of servers, or of the top of the file: `callTimeout` is `call_timeout`.
    pub fn setting(name: &str, is_server: bool) -> Option<(String, &'static str)> {
        doc(name, is_server)
    }
}

/// All settings that are set or have a default: those of the top first, then server by server.
fn loaded(loaded: &Loaded) -> Vec<Explained> {
    let mut explained = top(loaded);
    for (name, config) in &loaded.config.servers {
        if let Some(values) = loaded.written.get(name) {
            explained.extend(server(loaded, name, config, values));
        }
    }
    explained
}

fn top(loaded: &Loaded) -> Vec<Explained> {
    let values = merge::plain(loaded.top.clone());
    let mut each = Layers {
        server: None,
        values: &values,
        weaker: &[],
        explained: Vec::new(),
    };
    each.section(&TOP, |_| true);
    let preset = loaded.config.preset;
    each.amend("naming", |naming| {
        if naming.from == ValueOrigin::Default && preset != Preset::Pegboard {
            let preset = preset.as_str().to_owned();
            naming.from = ValueOrigin::Preset { preset };
        }
        naming.value = loaded.config.naming.to_string().into();
    });
    each.explained
}

fn server(loaded: &Loaded, name: &ServerName, config: &ServerConfig, values: &Values) -> Vec<Explained> {
    let useless = match config.transport {
        Transport::Stdio(_) => REMOTE_ONLY,
        Transport::Auto(_) | Transport::Http(_) | Transport::Sse(_) | Transport::WebSocket(_) => STDIO_ONLY,
    };
    let preset = Preset::named(values.word("preset"));
    let weaker = [
        merge::plain(loaded.top.clone()),
        merge::plain(layers::of_preset(preset)),
    ];
    let mut each = Layers {
        server: Some(name),
        values,
        weaker: &weaker,
        explained: Vec::new(),
    };
    each.section(&SERVER, |field| !useless.contains(&field));
    let kind = config.transport.kind();
    if each.explained.iter().all(|one| one.field != "type") {
        let field = if config.transport.endpoint().is_some() {
            "url"
        } else {
            "command"
        };
        each.explained.insert(0, each.follows("type", kind.into(), field));
    }
    for (limit, name, other) in [
        (config.limits.call_idle, "call_timeout", "call_total_timeout"),
        (config.limits.call_total, "call_total_timeout", "call_timeout"),
    ] {
        let value: Json = units::duration_text(limit).into();
        each.amend(name, |one| one.move_to(value, other));
    }
    if let Some(endpoint) = config.transport.endpoint() {
        let insecure = endpoint.tls.insecure.into();
        each.amend("insecure", |one| one.move_to(insecure, "tls"));
    }
    each.explained
}

impl Explained {
    /// Sets a value that another setting decided.
    fn move_to(&mut self, value: Json, by: &str) {
        if self.value != value {
            let from = ValueOrigin::Follows { field: by.to_owned() };
            let (value, from) = (
                std::mem::replace(&mut self.value, value),
                std::mem::replace(&mut self.from, from),
            );
            self.over.insert(0, Overridden { value, from });
        }
    }
}

/// Settings, and weaker ones that they were merged with.
struct Layers<'a> {
    server: Option<&'a ServerName>,
    values: &'a Values,
    weaker: &'a [Values],
    explained: Vec<Explained>,
}

impl Layers<'_> {
    fn section(&mut self, section: &'static Section, wanted: impl Fn(&str) -> bool) {
        for field in section.fields.iter().filter(|field| field.effect != Effect::Foreign) {
            match table_of(&field.kind).filter(|_| merge::is_merged(field.name)) {
                Some(parts) => self.table(field, parts),
                None => {
                    let weaker: Vec<_> = self
                        .weaker
                        .iter()
                        .filter_map(|values| values.find(field.name))
                        .collect();
                    let default = field.default.filter(|_| wanted(field.name));
                    let one = self.one(
                        field.name.to_owned(),
                        field,
                        self.values.find(field.name),
                        &weaker,
                        default,
                    );
                    self.explained.extend(one);
                }
            }
        }
    }

    /// The keys of a table that is merged key by key.
    fn table(&mut self, field: &'static Field, parts: &'static Section) {
        let table = self.values.table(field.name);
        // At the top of a file, and where the whole is off or the program's unless it is written, the parts have no defaults.
        let has_defaults = table.is_some() || (self.server.is_some() && !matches!(field.name, "summarise" | "breaker"));
        for part in parts.fields {
            let weaker: Vec<_> = self
                .weaker
                .iter()
                .filter_map(|values| values.table(field.name)?.find(part.name))
                .collect();
            let default = part.default.filter(|_| has_defaults);
            let found = table.and_then(|table| table.find(part.name));
            let one = self.one(format!("{}.{}", field.name, part.name), part, found, &weaker, default);
            self.explained.extend(one);
        }
    }

    fn one(
        &self,
        name: String,
        field: &'static Field,
        found: Option<&Found>,
        weaker: &[&Found],
        default: Option<&'static str>,
    ) -> Option<Explained> {
        let is_server = self.server.is_some();
        let mut values = Vec::new();
        let rank = found.map(|found| found.rank);
        for found in found
            .into_iter()
            .chain(weaker.iter().copied().filter(|weaker| Some(weaker.rank) < rank))
        {
            values.push(Overridden {
                value: redact::setting(field.name, &found.setting),
                from: ValueOrigin::of(found, is_server),
            });
        }
        values.extend(default.and_then(|default| {
            Some(Overridden {
                value: serde_json::from_str(default).ok()?,
                from: ValueOrigin::Default,
            })
        }));
        let mut values = values.into_iter();
        let Overridden { value, from } = values.next()?;
        Some(Explained {
            server: self.server.cloned(),
            field: name,
            value,
            from,
            over: values.collect(),
            variables: found.map(|found| found.variables.clone()).unwrap_or_default(),
            doc: field.doc,
        })
    }

    fn follows(&self, name: &str, value: Json, by: &str) -> Explained {
        Explained {
            server: self.server.cloned(),
            field: name.to_owned(),
            value,
            from: ValueOrigin::Follows { field: by.to_owned() },
            over: Vec::new(),
            variables: Vec::new(),
            doc: SERVER.find(name).map_or("", |found| found.field.doc),
        }
    }

    fn amend(&mut self, name: &str, change: impl FnOnce(&mut Explained)) {
        if let Some(one) = self.explained.iter_mut().find(|one| one.field == name) {
            change(one);
        }
    }
}

/// What a setting means, by any of its names, such as `retry.attempts` or `callTimeout`.
fn doc(name: &str, is_server: bool) -> Option<(String, &'static str)> {
    let section: &'static Section = if is_server { &SERVER } else { &TOP };
    let mut names = name.splitn(2, '.');
    let field = section.find(names.next()?)?.field;
    match (names.next(), table_of(&field.kind)) {
        (None, _) => Some((field.name.to_owned(), field.doc)),
        (Some(part), Some(parts)) => {
            let part = parts.find(part)?.field;
            Some((format!("{}.{}", field.name, part.name), part.doc))
        }
        // The entry of a map, such as `env.TZ`.
        (Some(_), None) => Some((field.name.to_owned(), field.doc)),
    }
}

/// What is in force for a setting that is written nowhere, by its full name. The top of a file has no defaults of its own for what servers
/// can say, so that the defaults of servers are shown there. A value of null is none at all.
fn unset(loaded: &Loaded, name: &str, server: Option<&ServerName>) -> Vec<Explained> {
    let section: &'static Section = if server.is_some() { &SERVER } else { &TOP };
    let (field_name, part) = match name.split_once('.') {
        Some((field, part)) => (field, Some(part)),
        None => (name, None),
    };
    let Some(field) = section.find(field_name).map(|found| found.field) else {
        return Vec::new();
    };
    let field = match SERVER.find(field_name) {
        Some(of_server) if field.default.is_none() => of_server.field,
        _ => field,
    };
    let preset = merge::plain(layers::of_preset(loaded.config.preset));
    let one = |name: String, field: &'static Field, found: Option<&Found>| Explained {
        server: server.cloned(),
        field: name,
        value: match (found, field.default) {
            (Some(found), _) => redact::setting(field.name, &found.setting),
            (None, Some(default)) => serde_json::from_str(default).unwrap_or_default(),
            (None, None) => Json::Null,
        },
        from: found.map_or(ValueOrigin::Default, |found| ValueOrigin::of(found, true)),
        over: Vec::new(),
        variables: Vec::new(),
        doc: field.doc,
    };
    let parts = table_of(&field.kind);
    // Where the whole is off unless it is written, its parts have no defaults, nor have those of tables that are taken as a whole.
    let has_defaults = merge::is_merged(field.name) && !matches!(field.name, "summarise" | "breaker");
    match (parts, part) {
        (Some(parts), None) if has_defaults => {
            let parts = parts.fields.iter().filter(|part| part.default.is_some());
            let named = |part: &'static Field| {
                let found = preset.table(field.name).and_then(|table| table.find(part.name));
                one(format!("{}.{}", field.name, part.name), part, found)
            };
            parts.map(named).collect()
        }
        (Some(parts), Some(part)) => {
            let found = preset.table(field.name).and_then(|table| table.find(part));
            let part = parts.find(part).map(|found| found.field);
            part.map(|part| one(name.to_owned(), part, found)).into_iter().collect()
        }
        _ => vec![one(name.to_owned(), field, preset.find(field.name))],
    }
}

fn table_of(kind: &Kind) -> Option<&'static Section> {
    match kind {
        Kind::Table(section) => Some(section),
        Kind::Either(kinds) => kinds.iter().find_map(table_of),
        _ => None,
    }
}
