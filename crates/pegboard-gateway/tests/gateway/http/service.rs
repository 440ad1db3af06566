//! A service whose tools show what the wires do, and a gateway in front of it.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture, stream::BoxStream};
use pegboard_gateway::{
    Answer, Client, Description, Event, Exchange, Filter, Gateway, GatewayBuilder, RawResult, Request, RpcError,
    Service,
};
use pegboard_protocol::code;
use serde_json::{Map, Value, json};
use tokio::{
    net::TcpListener,
    sync::{Notify, broadcast, oneshot},
    task::JoinHandle,
};

/// What the tests see of the service.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    /// The calls of `wait` that run.
    pub(crate) waiting: Arc<AtomicUsize>,
    /// Lets all calls of `wait` finish.
    pub(crate) release: Arc<Notify>,
    /// Sends events that belong to no request.
    pub(crate) events: broadcast::Sender<Event>,
}

impl Probe {
    /// Waits until `count` calls of `wait` run; panics after 10 s, which is before the first keep-alive notices a client that is gone.
    pub(crate) async fn until_waiting(&self, count: usize) {
        let reached = async {
            while self.waiting.load(Ordering::SeqCst) != count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), reached)
            .await
            .unwrap_or_else(|_| panic!("{} calls run, not {count}", self.waiting.load(Ordering::SeqCst)));
    }
}

struct Tools(Probe);

struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Service for Tools {
    fn describe<'a>(&'a self, _: &'a Arc<Client>) -> BoxFuture<'a, Result<Description, RpcError>> {
        async {
            let Value::Object(capabilities) = json!({"tools": {"listChanged": true}}) else {
                unreachable!()
            };
            let Value::Object(server_info) = json!({"name": "test", "version": "1"}) else {
                unreachable!()
            };
            Ok(Description {
                capabilities,
                server_info,
                ..Description::default()
            })
        }
        .boxed()
    }

    fn handle(self: Arc<Self>, request: Request, exchange: Exchange) -> BoxFuture<'static, Answer> {
        async move {
            if &*request.method != "tools/call" {
                return Err(RpcError::method_not_found(&request.method));
            }
            let name = request.params.text("name").unwrap_or_default().into_owned();
            let text = match &*name {
                "echo" => "hello".to_owned(),
                "who" => match exchange.client().principal() {
                    Some(principal) => principal.as_str().to_owned(),
                    None => "nobody in particular".to_owned(),
                },
                "big" => "x".repeat(8 * 1024 * 1024),
                "steps" => {
                    for step in 1..=3 {
                        exchange.notify("test/step", steps(step)).await;
                    }
                    "stepped".to_owned()
                }
                "step_and_wait" => {
                    exchange.notify("test/step", steps(1)).await;
                    self.wait().await;
                    exchange.notify("test/step", steps(2)).await;
                    "released".to_owned()
                }
                "wait" => {
                    self.wait().await;
                    "released".to_owned()
                }
                "ask" => {
                    let schema = json!({"type": "object", "properties": {}});
                    let params = json!({"message": "well?", "requestedSchema": schema});
                    exchange.ask("elicitation/create", params).await?.to_string()
                }
                "ask_and_wait" => {
                    let schema = json!({"type": "object", "properties": {}});
                    let params = json!({"message": "well?", "requestedSchema": schema});
                    let asked = exchange.ask("elicitation/create", params);
                    let ((), answer) = tokio::join!(self.wait(), asked);
                    answer?.to_string()
                }
                "busy" => return Err(RpcError::new(code::BUSY, "later").data(json!({"retry_after": 7}))),
                _ => return Err(RpcError::invalid_params("no such tool")),
            };
            RawResult::new(&json!({"content": [{"type": "text", "text": text}]}))
        }
        .boxed()
    }

    fn listen(&self, _: &Arc<Client>, _: Filter) -> BoxStream<'static, Event> {
        let events = self.0.events.subscribe();
        let next = |mut events: broadcast::Receiver<Event>| async move {
            let event = events.recv().await.ok()?;
            Some((event, events))
        };
        Box::pin(futures_util::stream::unfold(events, next))
    }
}

impl Tools {
    async fn wait(&self) {
        let released = self.0.release.notified();
        self.0.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(self.0.waiting.clone());
        released.await;
    }
}

fn steps(step: usize) -> Map<String, Value> {
    Map::from_iter([("step".to_owned(), step.into())])
}

/// A gateway that serves on a loopback address of its own.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) gateway: Gateway,
    pub(crate) probe: Probe,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl Running {
    /// Stops the gateway and waits for its end.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        self.serving.await.unwrap();
    }
}

/// Starts a gateway with default settings.
pub(crate) async fn start() -> Running {
    start_with(|builder| builder).await
}

/// Starts a gateway with these settings.
pub(crate) async fn start_with(configure: impl FnOnce(GatewayBuilder) -> GatewayBuilder) -> Running {
    let probe = Probe {
        waiting: Arc::default(),
        release: Arc::default(),
        events: broadcast::channel(16).0,
    };
    let gateway = configure(Gateway::for_service(Arc::new(Tools(probe.clone()))).unwrap()).build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = gateway.clone();
    let serving = tokio::spawn(async move {
        let stopped = async move { drop(stopped.await) };
        serving.serve(vec![listener], stopped).await.unwrap();
    });
    Running {
        address,
        gateway,
        probe,
        stop: Some(stop),
        serving,
    }
}
