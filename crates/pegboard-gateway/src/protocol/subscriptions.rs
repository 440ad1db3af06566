//! `subscriptions/listen`: the stream on which a modern client gets the events that it asked for.

use std::sync::Arc;

use futures_util::StreamExt;
use pegboard_protocol::{
    RpcError,
    method::{self, notification},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    events::{for_subscription, subscription_meta},
    exchange::Exchange,
    message::Request,
    outgoing::to_text,
    raw_result::RawResult,
    service::{Answer, Filter, Service},
};

/// The limit on the resources of one subscription.
const MAX_URIS: usize = 1024;

#[derive(Deserialize)]
struct Listen {
    notifications: Notifications,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Notifications {
    tools_list_changed: bool,
    resources_list_changed: bool,
    prompts_list_changed: bool,
    resource_subscriptions: Vec<String>,
}

/// Sends the events that the client asked for and the service has, until one of the two ends it.
pub(super) async fn listen(
    service: Arc<dyn Service>,
    request: Request,
    exchange: Exchange,
    stop: CancellationToken,
) -> Answer {
    let description = service.describe(exchange.client()).await?;
    let offered = parse_offered(&description.capabilities);
    if offered == Offered::default() {
        return Err(RpcError::method_not_found(method::SUBSCRIPTIONS_LISTEN));
    }
    let filter = honour(&request, &offered)?;
    let acknowledged = json!({"notifications": notifications(&filter), "_meta": subscription_meta(&request.id)});
    // From here on nothing is missed, and it is sent after the acknowledgement.
    let mut events = service.listen(exchange.client(), filter.clone());
    exchange
        .notify_raw(notification::SUBSCRIPTIONS_ACKNOWLEDGED, to_text(&acknowledged))
        .await;
    while let Some(Some(event)) = stop.run_until_cancelled(events.next()).await {
        if let Some((method, params)) = for_subscription(event, &filter, &request.id) {
            exchange.notify_raw(&method, params).await;
        }
    }
    RawResult::new(&json!({"_meta": subscription_meta(&request.id)}))
}

/// Which events a service has, as its capabilities say.
#[derive(Debug, Default, PartialEq, Eq)]
struct Offered(Filter, bool);

fn parse_offered(capabilities: &Map<String, Value>) -> Offered {
    let has = |list: &str, key: &str| capabilities.get(list).is_some_and(|list| list[key] == true);
    let filter = Filter {
        tools: has("tools", "listChanged"),
        resources: has("resources", "listChanged"),
        prompts: has("prompts", "listChanged"),
        ..Filter::default()
    };
    Offered(filter, has("resources", "subscribe"))
}

/// What the client asked for, without what the service does not have.
fn honour(request: &Request, Offered(offered, has_updates): &Offered) -> Result<Filter, RpcError> {
    let wanted = request.params.parse::<Listen>()?.notifications;
    if wanted.resource_subscriptions.len() > MAX_URIS {
        let message = format!("`resourceSubscriptions` has more than {MAX_URIS} URIs");
        return Err(RpcError::invalid_params(message));
    }
    Ok(Filter {
        tools: wanted.tools_list_changed && offered.tools,
        resources: wanted.resources_list_changed && offered.resources,
        prompts: wanted.prompts_list_changed && offered.prompts,
        uris: if *has_updates {
            wanted.resource_subscriptions
        } else {
            Vec::new()
        },
        others: false,
    })
}

fn notifications(filter: &Filter) -> Value {
    let mut notifications = Map::new();
    for (key, is_wanted) in [
        ("toolsListChanged", filter.tools),
        ("resourcesListChanged", filter.resources),
        ("promptsListChanged", filter.prompts),
    ] {
        if is_wanted {
            notifications.insert(key.into(), true.into());
        }
    }
    if !filter.uris.is_empty() {
        notifications.insert("resourceSubscriptions".into(), json!(filter.uris));
    }
    Value::Object(notifications)
}
