//! The same on every wire, with real servers: futures are polled only when woken, and dropped at once or after their wake-up is ready.

use pegboard_testkit::{Ask, Era as FakeEra};

use super::*;
use pegboard_base::secret::SafeUrl;
use pegboard_config::{Command, Endpoint, Transport};

/// Polls a future up to `polls` times, each time that it is woken, and drops it. Returns `true` if it completed.
async fn ends_when_woken(polls: usize, lingers: bool, future: impl Future) -> bool {
    let mut future = Box::pin(future);
    let mut left = polls;
    let ended = poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if left == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    });
    let ended = tokio::time::timeout(Duration::from_secs(20), ended)
        .await
        .expect("it ends");
    if lingers {
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    ended
}

async fn check<T, F: Future<Output = T>>(what: &str, session: &Session, begin: impl Fn() -> F) {
    for lingers in [false, true] {
        for polls in 0.. {
            assert!(polls < MANY, "{what} did not end");
            let ended = ends_when_woken(polls, lingers, begin()).await;
            nothing_is_left(session, &format!("{what} after {polls} polls"));
            assert!(
                session.probe(Duration::from_secs(5)).await.is_ok(),
                "{what} broke the session after {polls} polls"
            );
            if ended {
                break;
            }
        }
    }
}

fn server(era: FakeEra) -> FakeServer {
    let asking = FakeTool::new("asking").asks(Ask::Elicitation).asks(Ask::Ping);
    fake(era)
        .tool(asking.progress(3, Duration::from_millis(1)))
        .tool(FakeTool::new("long").answers(pegboard_testkit::Answer::Bytes(300_000)))
}

#[tokio::test]
async fn every_future_of_a_session_can_be_dropped_at_any_time_on_every_wire() {
    for (era, choice) in [
        (FakeEra::Legacy, EraChoice::Legacy),
        (FakeEra::Modern, EraChoice::Modern),
    ] {
        let (http, ws) = (server(era).serve_http().await, server(era).serve_ws().await);
        let streaming = server(era).streams().serve_http().await;
        let sse = server(FakeEra::Legacy).serve_sse().await;
        let (http, ws, streaming, sse) = (http.unwrap(), ws.unwrap(), streaming.unwrap(), sse.unwrap());
        let endpoint = |url: String| Endpoint::from(SafeUrl::parse(&url).unwrap());
        let (program, args) = server(era).command();
        let mut wires = vec![
            Transport::Stdio(Command::new(program.to_str().unwrap()).args(args)),
            Transport::http(endpoint(http.url())),
            Transport::http(endpoint(streaming.url())),
            Transport::websocket(endpoint(ws.url())),
        ];
        if era == FakeEra::Legacy {
            wires.push(Transport::sse(endpoint(sse.url())));
        }
        for wire in wires {
            on(&spec_of(Target::Configured(Box::new(wire)), choice.clone())).await;
        }
    }
}

async fn on(spec: &Spec) {
    let tasks = TaskTracker::new();
    let session = connect(spec, Duration::from_secs(20), &tasks).await.unwrap();
    let (all, undescribed) = (ListScope::More(Capabilities::default()), ConfiguredTools::new());
    let (catalog, _) = session.catalog(all, &undescribed, None).await.unwrap();
    let none = Map::new();
    for tool in &catalog.tools {
        check(&tool.name, &session, || call(&session, tool)).await;
    }
    check("a listing", &session, || session.catalog(all, &undescribed, None)).await;
    check("reading", &session, || session.read_resource("note://a", on_behalf())).await;
    check("a prompt", &session, || session.get_prompt("p", &none, on_behalf())).await;
    check("a ping", &session, || session.probe(Duration::from_secs(5))).await;
    session.close().await;
    tasks.close();
    let ended = tokio::time::timeout(Duration::from_secs(20), tasks.wait()).await;
    assert!(ended.is_ok(), "{:?} leaves tasks behind", spec.target);
}
