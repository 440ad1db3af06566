//! Explains the settings of a loaded config: their values and origins.

use std::fmt;

use serde::Serialize;
use serde_json::Value as Json;

use super::{
    field::{Applies, DefaultValue, Effect, Field, Section},
    fields::{SERVER, ServerTable, TOP, restart, server as of, top as top_fields},
    layers,
    loaded::Loaded,
    merge,
    preset::Preset,
    redact,
    server::ServerConfig,
    setting::{Found, Rank, Values},
    transport::Transport,
    units,
};
use pegboard_base::name::ServerName;

/// A setting in effect and its origin.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explained {
    /// The server; `None` for the top of the file.
    pub server: Option<ServerName>,
    /// The setting, such as `call_timeout` or `retry.attempts`.
    pub field: String,
    /// The value as written, with secrets redacted.
    pub value: Json,
    /// The origin of the value.
    pub from: ValueOrigin,
    /// The values that it overrides, the strongest first.
    pub over: Vec<Overridden>,
    /// The variables that the value refers to.
    pub variables: Vec<String>,
    /// The description of the setting.
    pub doc: &'static str,
}

/// A value that another one overrides.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Overridden {
    /// The value.
    pub value: Json,
    /// Its origin.
    pub from: ValueOrigin,
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ValueOrigin {
    /// A server's table in a file, or a server on the command line.
    File {
        /// The file.
        file: String,
        /// The line.
        line: u32,
        /// The key as written.
        key: String,
    },
    /// The top of a file, for all servers.
    Top {
        /// The file.
        file: String,
        /// The line.
        line: u32,
        /// The key as written.
        key: String,
    },
    /// A preset.
    Preset {
        /// The preset's name.
        preset: String,
    },
    /// Another setting determines the value.
    Follows {
        /// The other setting.
        field: String,
    },
    /// The default.
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
    fn new(found: &Found, is_server: bool) -> Self {
        let (file, line, key) = (found.file.to_string(), found.at.line, found.key.clone());
        match found.rank {
            Rank::Preset => Self::Preset { preset: file },
            Rank::Top if is_server => Self::Top { file, line, key },
            Rank::Top | Rank::Server => Self::File { file, line, key },
        }
    }
}

impl Loaded {
    /// All settings in effect with their origins: those of the top of the file first, then server by server.
    pub fn explain(&self) -> Vec<Explained> {
        explain_all(self)
    }

    /// The servers for which a source or a preset sets a setting, by its full name, such as `connect_timeout` or `retry.attempts`. Costs a
    /// fraction of [`Self::explain`].
    pub fn servers_that_set(&self, name: &str) -> Vec<ServerName> {
        let (own, part) = match name.split_once('.') {
            Some((own, part)) => (own, Some(part)),
            None => (name, None),
        };
        let Some(field) = find_field(SERVER, own) else {
            return Vec::new();
        };
        let part = part.map(|part| field.kind.section().and_then(|parts| find_field(parts, part)));
        let is_set = |values: &Values| match part {
            None => values.find(field).is_some(),
            Some(Some(part)) => values.table(field).is_some_and(|table| table.find(part).is_some()),
            Some(None) => false,
        };
        let servers = self.written.iter().filter(|(_, values)| is_set(values));
        servers.map(|(name, _)| name.clone()).collect()
    }

    /// The value in effect for a setting that no source sets, by its full name: of a server, or for all servers. Null means no value.
    pub fn explain_unset(&self, name: &str, server: Option<&ServerName>) -> Vec<Explained> {
        explain_unset(self, name, server)
    }

    /// The full name and the description of a setting of servers, or of the top of the file: `callTimeout` is `call_timeout`.
    pub fn setting(name: &str, is_server: bool) -> Option<(String, &'static str)> {
        doc(name, is_server)
    }

    /// The names and descriptions of all settings of servers, or of the top of the file.
    pub fn settings(is_server: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
        let section: &'static Section = if is_server { SERVER } else { TOP };
        let ours = section.fields().filter(|field| field.effect != Effect::Foreign);
        ours.map(|field| (field.name, field.doc))
    }
}

fn find_field(section: &'static Section, name: &str) -> Option<&'static Field> {
    section.fields().find(|field| field.name == name)
}

/// All settings that are set or have a default: those of the top first, then server by server.
fn explain_all(loaded: &Loaded) -> Vec<Explained> {
    let mut explained = top(loaded);
    for (name, config) in &loaded.config.servers {
        if let Some(values) = loaded.written.get(name) {
            explained.extend(server(loaded, name, config, values));
        }
    }
    explained
}

fn top(loaded: &Loaded) -> Vec<Explained> {
    let values = merge::expand(loaded.top.clone());
    let mut each = Layers {
        server: None,
        values: &values,
        weaker: &[],
        explained: Vec::new(),
    };
    each.section(TOP, |_| true);
    let preset = loaded.config.preset;
    each.amend(&top_fields::naming, |naming| {
        if naming.from == ValueOrigin::Default && preset != Preset::Pegboard {
            let preset = preset.as_str().to_owned();
            naming.from = ValueOrigin::Preset { preset };
        }
        naming.value = loaded.config.naming.to_string().into();
    });
    each.explained
}

fn server(loaded: &Loaded, name: &ServerName, config: &ServerConfig, values: &Values) -> Vec<Explained> {
    let other = match config.transport {
        Transport::Stdio(_) => Applies::Remote,
        Transport::Remote { .. } => Applies::Stdio,
    };
    let preset = ServerTable::new(values).get(&of::preset);
    let weaker = [
        merge::expand(loaded.top.clone()),
        merge::expand(layers::from_preset(preset)),
    ];
    let mut each = Layers {
        server: Some(name),
        values,
        weaker: &weaker,
        explained: Vec::new(),
    };
    each.section(SERVER, |field| field.applies != other);
    let kind = config.transport.kind();
    if each.explained.iter().all(|one| one.field != of::kind.name) {
        let by: &Field = if config.transport.endpoint().is_some() {
            &of::url
        } else {
            &of::command
        };
        each.explained.insert(0, each.follows(&of::kind, kind.into(), by));
    }
    for (limit, field, other) in [
        (config.limits.call_timeout, &of::call_timeout, &of::call_total_timeout),
        (
            config.limits.call_total_timeout,
            &of::call_total_timeout,
            &of::call_timeout,
        ),
    ] {
        let value: Json = units::duration_text(limit).into();
        each.amend(field, |one| one.move_to(value, other));
    }
    if let Some(endpoint) = config.transport.endpoint() {
        let insecure = endpoint.tls.insecure.into();
        each.amend(&of::insecure, |one| one.move_to(insecure, &of::tls));
    }
    each.explained
}

impl Explained {
    /// Sets a value that another setting determines.
    fn move_to(&mut self, value: Json, by: &Field) {
        if self.value != value {
            let from = ValueOrigin::Follows {
                field: by.name.to_owned(),
            };
            let (value, from) = (
                std::mem::replace(&mut self.value, value),
                std::mem::replace(&mut self.from, from),
            );
            self.over.insert(0, Overridden { value, from });
        }
    }
}

/// Settings and the weaker layers that they were merged with.
struct Layers<'a> {
    server: Option<&'a ServerName>,
    values: &'a Values,
    weaker: &'a [Values],
    explained: Vec<Explained>,
}

impl Layers<'_> {
    fn section(&mut self, section: &'static Section, wanted: impl Fn(&Field) -> bool) {
        for field in section.fields().filter(|field| field.effect != Effect::Foreign) {
            match field.kind.section().filter(|_| is_by_part(field)) {
                Some(parts) => self.table(field, parts),
                None => {
                    let weaker: Vec<_> = self.weaker.iter().filter_map(|values| values.find(field)).collect();
                    let default = Some(field.default).filter(|_| wanted(field));
                    let one = self.one(field.name.to_owned(), field, self.values.find(field), &weaker, default);
                    self.explained.extend(one);
                }
            }
        }
    }

    /// The fields of a table that is explained field by field.
    fn table(&mut self, field: &'static Field, parts: &'static Section) {
        let table = self.values.table(field);
        let has_defaults = match self.server {
            Some(_) => table.is_some() || has_own_defaults(field),
            // At the top of a file, settings of servers have no defaults.
            None => table.is_some() || field.name == top_fields::masking.name,
        };
        for part in parts.fields() {
            let weaker: Vec<_> = self
                .weaker
                .iter()
                .filter_map(|values| values.table(field)?.find(part))
                .collect();
            let default = Some(part.default).filter(|_| has_defaults && !is_programs(field, part));
            let found = table.and_then(|table| table.find(part));
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
        default: Option<DefaultValue>,
    ) -> Option<Explained> {
        let is_server = self.server.is_some();
        let mut values = Vec::new();
        let rank = found.map(|found| found.rank);
        for found in found
            .into_iter()
            .chain(weaker.iter().copied().filter(|weaker| Some(weaker.rank) < rank))
        {
            values.push(Overridden {
                value: redact::render_setting(field.name, &found.setting),
                from: ValueOrigin::new(found, is_server),
            });
        }
        values.extend(default.and_then(|default| {
            Some(Overridden {
                value: redact::render_default(default)?,
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

    fn follows(&self, field: &Field, value: Json, by: &Field) -> Explained {
        Explained {
            server: self.server.cloned(),
            field: field.name.to_owned(),
            value,
            from: ValueOrigin::Follows {
                field: by.name.to_owned(),
            },
            over: Vec::new(),
            variables: Vec::new(),
            doc: field.doc,
        }
    }

    fn amend(&mut self, field: &Field, change: impl FnOnce(&mut Explained)) {
        if let Some(one) = self.explained.iter_mut().find(|one| one.field == field.name) {
            change(one);
        }
    }
}

/// The full name and the description of a setting, by any of its names, such as `retry.attempts` or `callTimeout`.
fn doc(name: &str, is_server: bool) -> Option<(String, &'static str)> {
    let section: &'static Section = if is_server { SERVER } else { TOP };
    let mut names = name.splitn(2, '.');
    let field = section.find(names.next()?)?.field;
    match (names.next(), field.kind.section()) {
        (None, _) => Some((field.name.to_owned(), field.doc)),
        (Some(part), Some(parts)) => {
            let part = parts.find(part)?.field;
            Some((format!("{}.{}", field.name, part.name), part.doc))
        }
        // The entry of a map, such as `env.TZ`.
        (Some(_), None) => Some((field.name.to_owned(), field.doc)),
    }
}

/// The value in effect for a setting that no source sets, by its full name. The top of a file has no defaults of its own for settings of
/// servers, so the defaults of servers are shown there. Null means no value.
fn explain_unset(loaded: &Loaded, name: &str, server: Option<&ServerName>) -> Vec<Explained> {
    let section: &'static Section = if server.is_some() { SERVER } else { TOP };
    let (field_name, part) = match name.split_once('.') {
        Some((field, part)) => (field, Some(part)),
        None => (name, None),
    };
    let Some(field) = section.find(field_name).map(|found| found.field) else {
        return Vec::new();
    };
    let field = match SERVER.find(field_name) {
        Some(of_server) if !field.default.is_some() => of_server.field,
        _ => field,
    };
    let preset = merge::expand(layers::from_preset(loaded.config.preset));
    let one = |name: String, field: &'static Field, found: Option<&Found>| Explained {
        server: server.cloned(),
        field: name,
        value: match found {
            Some(found) => redact::render_setting(field.name, &found.setting),
            None => redact::render_default(field.default).unwrap_or_default(),
        },
        from: found.map_or(ValueOrigin::Default, |found| ValueOrigin::new(found, true)),
        over: Vec::new(),
        variables: Vec::new(),
        doc: field.doc,
    };
    let found_in = |part: &Field| preset.table(field).and_then(|table| table.find(part));
    match (field.kind.section(), part) {
        // A feature that is off unless its table is written has no values until then.
        (Some(parts), None) if is_by_part(field) && field.name != of::summarise.name => {
            let parts = parts.fields().filter(|part| part.default.is_some());
            parts
                .map(|part| one(format!("{}.{}", field.name, part.name), part, found_in(part)))
                .collect()
        }
        (Some(parts), Some(part)) => {
            let part = parts.find(part).map(|found| found.field);
            part.map(|part| one(name.to_owned(), part, found_in(part)))
                .into_iter()
                .collect()
        }
        _ => vec![one(name.to_owned(), field, preset.find(field))],
    }
}

/// Whether a table is explained field by field, because its layers are merged field by field.
fn is_by_part(field: &Field) -> bool {
    field.merged.is_some() || field.name == of::masking.name
}

/// Whether the fields of a table have defaults even if the table is not written. Otherwise summaries and the sandbox are off, the breaker
/// is the board's, and masking is that of all servers.
fn has_own_defaults(field: &Field) -> bool {
    let others: [&Field; 4] = [&of::summarise, &of::breaker, &of::masking, &of::sandbox];
    others.iter().all(|other| other.name != field.name)
}

/// Whether the embedding program sets the default of a field, so that writing it down would override the program.
fn is_programs(field: &Field, part: &Field) -> bool {
    field.name == of::restart.name && part.name == restart::backoff.name
}
