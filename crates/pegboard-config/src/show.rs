//! Renders the resolved config for display: complete, variables not expanded, secrets redacted.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::{
    field::{Applies, Effect, Field, Section},
    fields::{SERVER, TOP, server as of, top},
    loaded::Loaded,
    redact,
    server::ServerConfig,
    setting::Values,
    transport::Transport,
    units,
};
use pegboard_base::name::ServerName;

impl Loaded {
    /// The resolved config for display: every setting of every server, variables not expanded, secrets redacted.
    pub fn show(&self) -> serde_json::Value {
        render(self)
    }
}

fn render(loaded: &Loaded) -> Json {
    let mut shown = section(TOP, &loaded.top, |_| true);
    let queues = loaded.config.queues.iter();
    let queues: Map<String, Json> = queues
        .map(|(name, queue)| (name.clone(), json!({"concurrent": queue.concurrent})))
        .collect();
    shown.insert(top::queues.name.into(), queues.into());
    // The preset may determine the naming.
    shown.insert(top::naming.name.into(), loaded.config.naming.to_string().into());
    let mut origins: BTreeMap<Option<&ServerName>, Map<String, Json>> = BTreeMap::new();
    let explained = loaded.explain();
    for one in &explained {
        let of = origins.entry(one.server.as_ref()).or_default();
        of.insert(one.field.clone(), one.from.to_string().into());
    }
    shown.insert("origins".into(), origins.remove(&None).unwrap_or_default().into());
    let mut servers = Map::new();
    for (name, config) in &loaded.config.servers {
        let mut entry = match loaded.written.get(name) {
            Some(values) => server(config, values),
            None => by_hand(config),
        };
        if let Some(origin) = loaded.origins.get(name) {
            entry.insert("origin".into(), json!({"file": origin.file, "line": origin.line}));
        }
        if let Some(origins) = origins.remove(&Some(name)) {
            entry.insert("origins".into(), origins.into());
        }
        servers.insert(name.to_string(), entry.into());
    }
    shown.insert("servers".into(), servers.into());
    let misconfigured = loaded.config.misconfigured.iter().map(|(name, why)| {
        let shown = json!({"why": why.why, "problems": why.problems});
        (name.to_string(), shown)
    });
    shown.insert("misconfigured".into(), Json::Object(misconfigured.collect()));
    shown.insert("sources".into(), json!(loaded.sources));
    shown.into()
}

fn server(config: &ServerConfig, values: &Values) -> Map<String, Json> {
    let other = match config.transport {
        Transport::Stdio(_) => Applies::Remote,
        Transport::Remote { .. } => Applies::Stdio,
    };
    let mut shown = section(SERVER, values, |field| field.applies != other);
    shown.insert("type".into(), config.transport.kind().into());
    // The values in effect may differ from those written: one timeout can raise the other, and `tls` can set `insecure`.
    let (idle, total) = (config.limits.call_timeout, config.limits.call_total_timeout);
    shown.insert(of::call_timeout.name.into(), units::duration_text(idle).into());
    shown.insert(of::call_total_timeout.name.into(), units::duration_text(total).into());
    if let Some(endpoint) = config.transport.endpoint() {
        shown.insert(of::insecure.name.into(), endpoint.tls.insecure.into());
    }
    shown
}

/// A server that the embedding program added: only settings that cannot contain a secret.
fn by_hand(config: &ServerConfig) -> Map<String, Json> {
    let mut shown = Map::new();
    shown.insert("type".into(), config.transport.kind().into());
    match &config.transport {
        Transport::Stdio(command) => {
            shown.insert("command".into(), command.program.clone().into());
            shown.insert("args".into(), json!(command.args));
        }
        Transport::Remote { endpoint, .. } => {
            shown.insert("url".into(), endpoint.url.to_string().into());
        }
    }
    shown.insert("enabled".into(), config.enabled.into());
    shown.insert("required".into(), config.required.into());
    shown
}

/// The fields of a section that are set, and the defaults of the others.
fn section(section: &'static Section, values: &Values, wanted: impl Fn(&Field) -> bool) -> Map<String, Json> {
    let mut shown = Map::new();
    for field in section.fields().filter(|field| field.effect != Effect::Foreign) {
        let value = match (values.find(field), redact::render_default(field.default)) {
            (Some(found), _) => redact::render_setting(field.name, &found.setting),
            (None, Some(default)) if wanted(field) => default,
            (None, _) => continue,
        };
        shown.insert(field.name.to_owned(), value);
    }
    shown
}
