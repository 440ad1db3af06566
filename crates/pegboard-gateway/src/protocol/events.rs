//! Events of a service as notifications of both eras.

use bytes::Bytes;
use pegboard_protocol::{meta, method::notification};
use serde_json::{Map, Value, json};

use super::{
    log_level::LogLevel,
    outgoing::{Outgoing, to_text},
    service::{Event, Filter},
};

/// The notification for a legacy client; `None` if it wants no log messages of this level.
pub(super) fn for_legacy(event: Event, lowest: Option<LogLevel>) -> Option<Outgoing> {
    let (method, params) = match event {
        Event::Log { level, .. } if lowest.is_none_or(|lowest| level < lowest) => return None,
        Event::Log { level, mut params } => {
            params.insert("level".into(), level.as_str().into());
            (notification::MESSAGE.into(), params)
        }
        Event::Other { method, params } => (method, params),
        event => change(event)?,
    };
    Some(Outgoing::notification(&method, to_text(&params)))
}

/// The notification on the stream of a subscription, as method and params; `None` if the client did not ask for it.
pub(super) fn for_subscription(event: Event, filter: &Filter, id: &str) -> Option<(String, Bytes)> {
    let is_wanted = match &event {
        Event::ToolsChanged => filter.tools,
        Event::ResourcesChanged => filter.resources,
        Event::PromptsChanged => filter.prompts,
        Event::ResourceUpdated { uri } => filter.uris.contains(uri),
        Event::Log { .. } | Event::Other { .. } => false,
    };
    let (method, mut params) = change(event).filter(|_| is_wanted)?;
    params.insert("_meta".into(), subscription_meta(id));
    Some((method, to_text(&params)))
}

/// The `_meta` that names the subscription: the id of the request that opened it.
pub(super) fn subscription_meta(id: &str) -> Value {
    let id: Value = serde_json::from_str(id).unwrap_or_default();
    json!({meta::SUBSCRIPTION_ID: id})
}

fn change(event: Event) -> Option<(String, Map<String, Value>)> {
    let mut params = Map::new();
    let method = match event {
        Event::ToolsChanged => notification::TOOLS_LIST_CHANGED,
        Event::ResourcesChanged => notification::RESOURCES_LIST_CHANGED,
        Event::PromptsChanged => notification::PROMPTS_LIST_CHANGED,
        Event::ResourceUpdated { uri } => {
            params.insert("uri".into(), uri.into());
            notification::RESOURCES_UPDATED
        }
        Event::Log { .. } | Event::Other { .. } => return None,
    };
    Some((method.to_owned(), params))
}
