use futures_util::{FutureExt, future::BoxFuture};
use pegboard::Principal;
use serde_json::{Value, json};
use tokio::time::advance;

use super::*;
use crate::{
    protocol::{
        Answer, Client, Description, Exchange, Incoming, Limits, Message, RawResult, Request, RpcError, RunStep,
        Sealer, Service, Wire, parse,
    },
    wire::{event_body::EventSource as _, event_frame::EventId},
};

const LINGER: Duration = Duration::from_secs(60);

struct Silent;

impl Service for Silent {
    fn describe<'a>(&'a self, _: &'a Arc<Client>) -> BoxFuture<'a, Result<Description, RpcError>> {
        async { Ok(Description::default()) }.boxed()
    }

    fn handle(self: Arc<Self>, request: Request, _: Exchange) -> BoxFuture<'static, Answer> {
        async move { Err(RpcError::method_not_found(&request.method)) }.boxed()
    }
}

fn endpoint() -> Arc<Endpoint> {
    let sealer = Sealer::random().unwrap();
    Endpoint::new("/mcp", Arc::new(Silent), Arc::new(sealer), Limits::default())
}

fn caller(name: &str) -> Caller {
    Caller {
        principal: Some(Principal::new(name)),
        ..Caller::default()
    }
}

fn open(sessions: &Arc<Sessions>, endpoint: &Arc<Endpoint>, caller: &Caller) -> Option<SecretId> {
    let opened = endpoint.open(caller);
    sessions.open(endpoint, caller, opened).ok()
}

#[tokio::test(start_paused = true)]
async fn a_full_house_makes_room_only_for_the_long_idle() {
    let (sessions, endpoint, alice) = (Sessions::new(2, 10 * EVICTABLE, LINGER), endpoint(), caller("alice"));
    let first = open(&sessions, &endpoint, &alice).unwrap();
    advance(Duration::from_secs(1)).await;
    let second = open(&sessions, &endpoint, &alice).unwrap();
    assert!(open(&sessions, &endpoint, &alice).is_none());
    advance(EVICTABLE - Duration::from_secs(1)).await;
    let third = open(&sessions, &endpoint, &alice).unwrap();
    assert!(open(&sessions, &endpoint, &alice).is_none());
    let is_open = |id| sessions.enter(id, &alice, &endpoint).is_some();
    assert_eq!([first, second, third].map(is_open), [false, true, true]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_evicts_its_own_sessions_first() {
    let (sessions, endpoint) = (Sessions::new(2, 10 * EVICTABLE, LINGER), endpoint());
    let (alice, bob) = (caller("alice"), caller("bob"));
    let of_bob = open(&sessions, &endpoint, &bob).unwrap();
    advance(EVICTABLE).await;
    let of_alice = open(&sessions, &endpoint, &alice).unwrap();
    advance(EVICTABLE).await;
    open(&sessions, &endpoint, &alice).unwrap();
    assert!(sessions.enter(of_bob, &bob, &endpoint).is_some());
    assert!(sessions.enter(of_alice, &alice, &endpoint).is_none());
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_ends_by_itself_and_one_in_use_does_not() {
    let (sessions, endpoint, alice) = (Sessions::new(8, EVICTABLE, LINGER), endpoint(), caller("alice"));
    let idle = open(&sessions, &endpoint, &alice).unwrap();
    let used = open(&sessions, &endpoint, &alice).unwrap();
    let in_use = sessions.enter(used, &alice, &endpoint).unwrap();
    tokio::time::sleep(EVICTABLE + 2 * SWEEP).await;
    assert_eq!(sessions.len(), 1);
    assert!(sessions.enter(idle, &alice, &endpoint).is_none());
    drop(in_use);
    tokio::time::sleep(EVICTABLE + 2 * SWEEP).await;
    assert_eq!(sessions.len(), 0);
}

#[tokio::test]
async fn a_session_belongs_to_one_caller_at_one_endpoint() {
    let (sessions, here, there) = (Sessions::new(8, EVICTABLE, LINGER), endpoint(), endpoint());
    let alice = caller("alice");
    let id = open(&sessions, &here, &alice).unwrap();
    let narrowed = Caller {
        view: Some("coding".into()),
        ..alice.clone()
    };
    for (caller, endpoint) in [
        (&caller("bob"), &here),
        (&Caller::default(), &here),
        (&narrowed, &here),
        (&alice, &there),
    ] {
        assert!(sessions.enter(id, caller, endpoint).is_none(), "{caller:?}");
        assert!(!sessions.end(id, caller, endpoint), "{caller:?}");
    }
    assert!(sessions.end(id, &alice, &here));
    assert!(!sessions.end(id, &alice, &here));
}

#[tokio::test(start_paused = true)]
async fn one_principal_cannot_keep_others_from_opening_sessions() {
    let (sessions, endpoint) = (Sessions::new(8, 10 * EVICTABLE, LINGER), endpoint());
    let alice = caller("alice");
    let mut of_alice = Vec::new();
    for _ in 0..8 {
        let id = open(&sessions, &endpoint, &alice).unwrap();
        // All of them have a stream.
        of_alice.push((id, sessions.enter(id, &alice, &endpoint).unwrap()));
        advance(Duration::from_secs(1)).await;
    }
    assert!(open(&sessions, &endpoint, &alice).is_none());
    for name in ["bob", "carol", "dave"] {
        assert!(open(&sessions, &endpoint, &caller(name)).is_some(), "{name}");
    }
    assert_eq!(sessions.len(), 8);
    let left = of_alice
        .iter()
        .filter(|(id, _)| sessions.enter(*id, &alice, &endpoint).is_some());
    assert_eq!(left.count(), 5);
}

#[tokio::test(start_paused = true)]
async fn principals_share_sessions_evenly_and_idle_ones_go_first() {
    let (sessions, endpoint) = (Sessions::new(4, 10 * EVICTABLE, LINGER), endpoint());
    let (alice, bob) = (caller("alice"), caller("bob"));
    let of_alice: Vec<_> = (0..4).map(|_| open(&sessions, &endpoint, &alice).unwrap()).collect();
    let in_use: Vec<_> = of_alice[..3]
        .iter()
        .map(|id| sessions.enter(*id, &alice, &endpoint))
        .collect();
    let of_bob = open(&sessions, &endpoint, &bob).unwrap();
    assert!(sessions.enter(of_alice[3], &alice, &endpoint).is_none(), "it was idle");
    open(&sessions, &endpoint, &bob).unwrap();
    assert!(open(&sessions, &endpoint, &bob).is_none(), "each has two");
    assert!(open(&sessions, &endpoint, &alice).is_none(), "each has two");
    assert!(sessions.enter(of_bob, &bob, &endpoint).is_some());
    drop(in_use);
}

/// Never answers a call of `wait`, and any other at once.
struct Waiting;

impl Service for Waiting {
    fn describe<'a>(&'a self, _: &'a Arc<Client>) -> BoxFuture<'a, Result<Description, RpcError>> {
        async { Ok(Description::default()) }.boxed()
    }

    fn handle(self: Arc<Self>, request: Request, _: Exchange) -> BoxFuture<'static, Answer> {
        async move {
            if request.params.text("name").as_deref() == Some("wait") {
                std::future::pending::<()>().await;
            }
            RawResult::new(&json!({"content": []}))
        }
        .boxed()
    }
}

fn request(id: u64, method: &str, params: &Value) -> Request {
    let text = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
    match parse(&text.into()) {
        Ok(Incoming::One(Message::Request(request))) => request,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_too_late_is_told_that_its_call_may_have_run() {
    for (tool, reason) in [("wait", "stream_lost"), ("echo", "response_dropped")] {
        let (sessions, alice) = (Sessions::new(8, 10 * EVICTABLE, LINGER), caller("alice"));
        let sealer = Sealer::random().unwrap();
        let endpoint = Endpoint::new("/mcp", Arc::new(Waiting), Arc::new(sealer), Limits::default());
        let id = open(&sessions, &endpoint, &alice).unwrap();
        let session = sessions.enter(id, &alice, &endpoint).unwrap().0.clone();
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let mut hello = endpoint
            .start(&session.peer, request(0, "initialize", &hello), Wire::Pipe)
            .unwrap();
        assert!(matches!(hello.next().await, RunStep::Done(Some(_))));
        let call = request(7, "tools/call", &json!({"name": tool, "arguments": {}}));
        let stream = session.add_stream(vec![endpoint.start(&session.peer, call, Wire::Pipe).unwrap()]);
        let mut reader = stream.read(Some(0), true);
        let read = std::future::poll_fn(|cx| reader.poll_event(cx)).now_or_never();
        assert_eq!(read.is_some(), tool == "echo");
        drop(reader);
        tokio::time::sleep(LINGER + 2 * SWEEP).await;
        let first = EventId {
            stream: stream.number(),
            place: 0,
        };
        let mut back = session.resume(first).unwrap();
        let (_, message) = std::future::poll_fn(|cx| back.poll_event(cx)).await.unwrap();
        let message: Value = serde_json::from_slice(&message.into_bytes()).unwrap();
        let data = json!({"may_have_executed": true, "reason": reason});
        assert_eq!(
            (&message["id"], &message["error"]["data"]),
            (&json!(7), &data),
            "{message}"
        );
        assert!(std::future::poll_fn(|cx| back.poll_event(cx)).await.is_none());
    }
}
