//! Events that belong to no request.

use super::*;
use crate::protocol::{EarlyEnd, Event, LogLevel};

fn updated(uri: &str) -> Event {
    Event::ResourceUpdated { uri: uri.into() }
}

fn log(level: LogLevel) -> Event {
    let params = json!({"data": 1}).as_object().unwrap().clone();
    Event::Log { level, params }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_client_gets_events_from_initialized_on() {
    let rig = rig();
    let hello = json!({"protocolVersion": "2025-11-25"});
    let mut session = rig.connect();
    response(session.start(request(0, "initialize", hello))).await;
    assert!(
        rig.service.events.send(Event::PromptsChanged).is_err(),
        "it does not listen yet"
    );
    session.tell("notifications/initialized", json!({}));
    rig.service.events.send(Event::ToolsChanged).unwrap();
    assert_eq!(
        session.next_in_outbox().await["method"],
        "notifications/tools/list_changed"
    );
    rig.service.events.send(log(LogLevel::Error)).unwrap();
    rig.service.events.send(updated("a:b")).unwrap();
    rig.service.events.send(Event::ResourcesChanged).unwrap();
    let next = session.next_in_outbox().await;
    assert_eq!(
        next["method"], "notifications/resources/list_changed",
        "no level, no subscription"
    );
    response(session.start(request(1, "logging/setLevel", json!({"level": "error"})))).await;
    rig.service.events.send(log(LogLevel::Warning)).unwrap();
    rig.service.events.send(log(LogLevel::Error)).unwrap();
    let message = session.next_in_outbox().await;
    assert_eq!(message["params"], json!({"level": "error", "data": 1}));
}

#[tokio::test(start_paused = true)]
async fn events_end_with_the_session() {
    let rig = rig();
    let session = rig.session("2025-11-25", json!({})).await;
    assert_eq!(rig.service.events.receiver_count(), 1);
    session.peer.close(EarlyEnd::SessionEnded);
    tokio::task::yield_now().await;
    assert_eq!(rig.service.events.receiver_count(), 0);
    session.tell("notifications/initialized", json!({}));
    tokio::task::yield_now().await;
    assert_eq!(rig.service.events.receiver_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_legacy_client_subscribes_to_resources_that_exist() {
    let rig = rig();
    let mut session = rig.session("2025-11-25", json!({})).await;
    let subscribe = |id, uri: &str| session.start(request(id, "resources/subscribe", json!({"uri": uri})));
    let unknown = response(subscribe(1, "no:such")).await;
    assert_eq!(unknown["error"]["code"], code::RESOURCE_NOT_FOUND);
    assert_eq!(response(subscribe(2, "a:b")).await["result"], json!({}));
    assert_eq!(
        response(subscribe(3, "a:b")).await["result"],
        json!({}),
        "twice is once"
    );
    rig.service.events.send(updated("no:such")).unwrap();
    rig.service.events.send(updated("a:b")).unwrap();
    let update = session.next_in_outbox().await;
    assert_eq!(update["method"], "notifications/resources/updated");
    assert_eq!(update["params"], json!({"uri": "a:b"}));
    response(session.start(request(4, "resources/unsubscribe", json!({"uri": "a:b"})))).await;
    rig.service.events.send(updated("a:b")).unwrap();
    rig.service.events.send(Event::ToolsChanged).unwrap();
    assert_eq!(
        session.next_in_outbox().await["method"],
        "notifications/tools/list_changed"
    );
}

fn listen(id: u64, notifications: Value) -> Request {
    modern(id, "subscriptions/listen", json!({"notifications": notifications}))
}

#[tokio::test(start_paused = true)]
async fn a_modern_client_gets_what_it_asked_for_after_the_acknowledgement() {
    let rig = rig();
    let wanted = json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["a:b"]});
    let mut running = rig.modern(None, listen(7, wanted)).unwrap();
    let first = next_message(&mut running).await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    let honoured = json!({"toolsListChanged": true, "resourceSubscriptions": ["a:b"]});
    assert_eq!(first["params"]["notifications"], honoured, "the service has no prompts");
    let id = json!({"io.modelcontextprotocol/subscriptionId": 7});
    assert_eq!(first["params"]["_meta"], id);
    for event in [
        Event::ResourcesChanged,
        log(LogLevel::Emergency),
        updated("no:such"),
        updated("a:b"),
        Event::ToolsChanged,
    ] {
        rig.service.events.send(event).unwrap();
    }
    let update = next_message(&mut running).await;
    assert_eq!(update["params"], json!({"uri": "a:b", "_meta": id}));
    let changed = next_message(&mut running).await;
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(changed["params"]["_meta"], id);
    rig.endpoint.stop();
    let (rest, end) = run(running).await;
    assert!(rest.is_empty());
    assert_eq!(
        end.unwrap(),
        json!({"jsonrpc": "2.0", "id": 7, "result": {"resultType": "complete", "_meta": id}})
    );
}

#[tokio::test(start_paused = true)]
async fn dropping_a_subscription_ends_it() {
    let rig = rig();
    let mut running = rig.modern(None, listen(1, json!({"toolsListChanged": true}))).unwrap();
    next_message(&mut running).await;
    assert_eq!(rig.service.events.receiver_count(), 1);
    drop(running);
    assert_eq!(rig.service.events.receiver_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_service_without_events_has_no_subscriptions() {
    let rig = rig();
    let missing = response(rig.modern(None, modern(1, "subscriptions/listen", json!({})))).await;
    assert_eq!(missing["error"]["code"], code::INVALID_PARAMS);
    let many: Vec<_> = (0..1025).map(|number| format!("a:{number}")).collect();
    let too_many = response(rig.modern(None, listen(1, json!({"resourceSubscriptions": many})))).await;
    assert_eq!(too_many["error"]["code"], code::INVALID_PARAMS);
    *rig.service.capabilities.lock() = json!({"tools": {}});
    let none = response(rig.modern(None, modern(1, "subscriptions/listen", json!({})))).await;
    assert_eq!(none["error"]["code"], code::METHOD_NOT_FOUND);
}
