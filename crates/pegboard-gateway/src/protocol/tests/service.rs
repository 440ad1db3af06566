//! A service with tools for every behaviour.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future::BoxFuture, future::join, stream::BoxStream};
use pegboard_protocol::code;
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;

use crate::protocol::{
    Answer, Client, Description, Event, Exchange, Filter, LogLevel, Notification, RawResult, Request, RpcError, Service,
};

pub(super) struct TestService {
    pub(super) events: broadcast::Sender<Event>,
    /// Calls that are being answered. Dropping one counts it out.
    pub(super) running: Arc<AtomicUsize>,
    pub(super) notified: pegboard_base::sync::Mutex<Vec<String>>,
    /// The capabilities that it declares.
    pub(super) capabilities: pegboard_base::sync::Mutex<Value>,
}

impl Default for TestService {
    fn default() -> Self {
        let capabilities = json!({
            "tools": {"listChanged": true}, "resources": {"listChanged": true, "subscribe": true}, "logging": {},
        });
        Self {
            events: broadcast::channel(16).0,
            running: Arc::default(),
            notified: pegboard_base::sync::Mutex::default(),
            capabilities: pegboard_base::sync::Mutex::new(capabilities),
        }
    }
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

impl TestService {
    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    async fn call(&self, request: &Request, exchange: &Exchange) -> Result<Value, RpcError> {
        let params: Value = request.params.parse()?;
        let arguments = &params["arguments"];
        let elicit = |text: &str| json!({"message": text, "requestedSchema": {"type": "object", "properties": {}}});
        match params["name"].as_str().unwrap_or_default() {
            "echo" => Ok(arguments.clone()),
            "endless" => std::future::pending().await,
            "panics" => panic!("as the test wants"),
            "reports" => {
                for step in 1..=arguments["n"].as_u64().unwrap() {
                    exchange.progress(object(json!({"progress": step}))).await;
                }
                Ok(json!({"wanted": exchange.wants_progress()}))
            }
            "logs" => {
                exchange.log(LogLevel::Debug, object(json!({"data": "d"}))).await;
                exchange.log(LogLevel::Error, object(json!({"data": "e"}))).await;
                Ok(json!({}))
            }
            "asks" => Ok(json!({"answer": exchange.ask("elicitation/create", elicit("who?")).await?})),
            "asks_late" => {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                Ok(json!({"answer": exchange.ask("elicitation/create", elicit("who?")).await?}))
            }
            "asks_twice" => {
                let first = exchange.ask("elicitation/create", elicit("first?")).await?;
                exchange.progress(object(json!({"progress": 1}))).await;
                let second = exchange.ask("sampling/createMessage", json!({"messages": []})).await?;
                Ok(json!({"answers": [first, second]}))
            }
            "asks_two_at_once" => {
                let first = exchange.ask("elicitation/create", elicit("first?"));
                let second = exchange.ask("roots/list", json!({}));
                let (first, second) = join(first, second).await;
                Ok(json!({"answers": [first?, second?]}))
            }
            "asks_by_name" => {
                let first = exchange.ask_named(Some("user"), "elicitation/create", elicit("first?"));
                let second = async {
                    // A server's questions arrive one after the other.
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                    exchange.ask_named(Some("places"), "roots/list", json!({})).await
                };
                let (first, second) = join(first, second).await;
                Ok(json!({"answers": [first?, second?]}))
            }
            "asks_and_gives_up" => {
                let asked = exchange.ask("elicitation/create", elicit("who?"));
                let limit = std::time::Duration::from_secs(10);
                let gave_up = tokio::time::timeout(limit, asked).await.is_err();
                Ok(json!({"gave_up": gave_up}))
            }
            "asks_and_panics" => {
                exchange.ask("elicitation/create", elicit("who?")).await?;
                panic!("as the test wants")
            }
            "keeps_state" => match request.params.text("requestState") {
                None => {
                    let state = exchange.seal(b"the server's own")?;
                    Ok(json!({"resultType": "input_required", "requestState": state}))
                }
                Some(sealed) => {
                    let state = String::from_utf8(exchange.unseal(&sealed)?).unwrap();
                    Ok(json!({"resultType": "complete", "state": state, "responses": params["inputResponses"]}))
                }
            },
            other => Err(RpcError::invalid_params(format!("unknown tool `{other}`"))),
        }
    }
}

impl Service for TestService {
    fn describe<'a>(&'a self, client: &'a Arc<Client>) -> BoxFuture<'a, Result<Description, RpcError>> {
        let description = Description {
            capabilities: object(self.capabilities.lock().clone()),
            server_info: object(json!({"name": "test", "version": client.version().as_str()})),
            instructions: Some("use it".into()),
            ..Description::default()
        };
        async { Ok(description) }.boxed()
    }

    fn handle(self: Arc<Self>, request: Request, exchange: Exchange) -> BoxFuture<'static, Answer> {
        self.running.fetch_add(1, Ordering::SeqCst);
        let counted = Counted(self.running.clone());
        async move {
            let _counted = counted;
            match &*request.method {
                "tools/call" => {
                    let result = self.call(&request, &exchange).await?;
                    let has_type = result.get("resultType").is_some();
                    Ok(RawResult::from_text(Bytes::from(result.to_string()), has_type))
                }
                "tools/list" => RawResult::new(&json!({"tools": []})),
                "resources/subscribe" | "resources/unsubscribe"
                    if request.params.text("uri").as_deref() == Some("a:b") =>
                {
                    RawResult::new(&json!({}))
                }
                "resources/subscribe" => Err(RpcError::new(code::RESOURCE_NOT_FOUND, "unknown resource")),
                other => Err(RpcError::method_not_found(other)),
            }
        }
        .boxed()
    }

    fn on_notification(&self, _client: &Arc<Client>, notification: Notification) {
        self.notified.lock().push(notification.method.into());
    }

    fn listen(&self, _client: &Arc<Client>, filter: Filter) -> BoxStream<'static, Event> {
        let events = self.events.subscribe();
        let all = futures_util::stream::unfold(events, |mut events| async {
            let event = events.recv().await.ok()?;
            Some((event, events))
        });
        // Only resources are filtered here. That the rest is filtered too is what the tests look at.
        all.filter(move |event| {
            let wanted = match event {
                Event::ResourceUpdated { uri } => filter.uris.contains(uri),
                _ => filter.uris.is_empty() || filter.tools,
            };
            std::future::ready(wanted)
        })
        .boxed()
    }
}
