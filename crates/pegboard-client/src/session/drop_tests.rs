//! Drops every future of a session after each number of polls: no state is left behind, and the session stays usable.

mod wires;

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use pegboard_testkit::{FakeServer, Tool as FakeTool};
use tokio_util::task::TaskTracker;

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use super::*;
use crate::transport::{ByteBudget, ByteSink, ByteSource, Target};
use pegboard_base::{caller::Caller, deadline::Deadline, name::ServerName};
use pegboard_config::{Capabilities, EraChoice, Limits};
use pegboard_mask::ServerMasker;
use pegboard_tools::args::Arguments;

/// More polls than any of the futures needs.
const MANY: usize = 300;

/// Polls a future up to `polls` times, with time for other tasks in between, and drops it. Returns `true` if it completed.
async fn ends_within(polls: usize, future: impl Future) -> bool {
    let mut future = pin!(future);
    for _ in 0..polls {
        if poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    false
}

fn fake(era: pegboard_testkit::Era) -> FakeServer {
    FakeServer::new("fx")
        .era(era)
        .tool(FakeTool::new("slow").after(Duration::from_millis(5)).needs_input(2))
        .tool(FakeTool::new("task").needs_input(1).runs_as_task())
        .resource("note://a", "text")
        .prompt("p", "text")
        .pages_of(1)
}

fn spec(fake: &FakeServer, era: EraChoice) -> (Spec, pegboard_testkit::MemoryHandle) {
    let (_first, handle) = fake.connect();
    let again = handle.clone();
    let dialer = move || {
        let (read, write) = tokio::io::split(again.connect());
        (Box::new(read) as ByteSource, Box::new(write) as ByteSink)
    };
    (spec_of(Target::InProcess(Arc::new(dialer)), era), handle)
}

fn spec_of(target: Target, era: EraChoice) -> Spec {
    Spec {
        desired_state: DesiredState::new(&[]),
        roots: Vec::new(),
        name: ServerName::parse("fx").unwrap(),
        target,
        era,
        limits: Limits::default(),
        host: Arc::new(Quick),
        client: Arc::default(),
        memory: Arc::new(EraMemory::new(None)),
        masker: ServerMasker::default(),
        credentials: None,
        configured_credentials: None,
        owner: None,
        is_for_questions: false,
        budget: ByteBudget::default(),
    }
}

/// Checks that no requests or subscriptions are left.
fn nothing_is_left(session: &Session, what: &str) {
    let dispatcher = session.connection.dispatcher();
    let tasks = dispatcher
        .notifications()
        .map_or(0, |notifications| notifications.subscribed_tasks());
    assert_eq!(
        (
            dispatcher.pending_requests().count(),
            dispatcher.progress().count(),
            dispatcher.calls().count(),
            tasks
        ),
        (0, 0, 0, 0),
        "{what} left requests, calls, or subscriptions to progress or tasks behind"
    );
}

/// A user who agrees at once.
struct Quick;

impl Host for Quick {
    fn offers_elicitation(&self) -> bool {
        true
    }

    fn elicit<'a>(
        &'a self,
        _context: HostContext<'a>,
        _request: Elicitation,
    ) -> std::pin::Pin<Box<dyn Future<Output = ElicitAnswer> + Send + 'a>> {
        Box::pin(async {
            tokio::task::yield_now().await;
            ElicitAnswer::Accept(Map::new())
        })
    }
}

/// Drops the future of `begin` after every number of polls, until it completes.
async fn check<F: Future>(what: &str, session: &Session, begin: impl Fn() -> F) {
    for polls in 0..MANY {
        let ended = ends_within(polls, begin()).await;
        nothing_is_left(session, &format!("{what} after {polls} polls"));
        assert!(
            session.probe(Duration::from_secs(5)).await.is_ok(),
            "{what} broke the session after {polls} polls"
        );
        if ended {
            assert!(polls > 1, "{what} never waited");
            return;
        }
    }
    panic!("{what} did not end");
}

/// A caller without a principal or a host of its own.
fn on_behalf() -> OnBehalf<'static> {
    static META: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    OnBehalf {
        caller: Caller::new("1", "view", &META),
        host: None,
    }
}

/// Calls a tool with a subscription to its progress.
async fn call(session: &Session, tool: &pegboard_tools::catalog::Tool) -> Result<CallResult, Fault> {
    let (sink, _progress) = tokio::sync::mpsc::channel(1);
    let (arguments, none) = (Arguments::default(), Map::new());
    let call = Call {
        tool,
        arguments: arguments.as_raw(),
        meta: &none,
        patience: Patience::until(Deadline::within(Duration::from_secs(5))),
        on_behalf: on_behalf(),
        progress: Some(sink),
        as_task: false,
        pass_on: Default::default(),
    };
    session.call(call).await
}

#[tokio::test(start_paused = true)]
async fn every_future_of_a_session_can_be_dropped_at_any_time() {
    for (era, choice) in [
        (pegboard_testkit::Era::Legacy, EraChoice::Legacy),
        (pegboard_testkit::Era::Modern, EraChoice::Modern),
    ] {
        let (spec, _handle) = spec(&fake(era), choice);
        let tasks = TaskTracker::new();
        let session = connect(&spec, Duration::from_secs(5), &tasks).await.unwrap();
        let undescribed = ConfiguredTools::new();
        let (catalog, _) = session
            .catalog(ListScope::More(Capabilities::default()), &undescribed, None)
            .await
            .unwrap();
        let none = Map::new();
        for tool in &catalog.tools {
            check(&tool.name, &session, || call(&session, tool)).await;
        }
        check("a listing", &session, || {
            session.catalog(ListScope::More(Capabilities::default()), &undescribed, None)
        })
        .await;
        check("reading", &session, || session.read_resource("note://a", on_behalf())).await;
        check("a prompt", &session, || session.get_prompt("p", &none, on_behalf())).await;
        let of = CompletionOf::Prompt("p".into());
        check("a completion", &session, || {
            session.complete(&of, "a", "", &none, on_behalf())
        })
        .await;
        check("polling a task", &session, || {
            session
                .tasks()
                .state("t", Patience::until(Deadline::within(Duration::from_secs(5))))
        })
        .await;
        check("cancelling a task", &session, || session.tasks().cancel("t")).await;
        check("a ping", &session, || session.probe(Duration::from_secs(5))).await;
        session.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn reconciliation_can_be_dropped_and_resumed_at_any_time() {
    for (era, choice) in [
        (pegboard_testkit::Era::Legacy, EraChoice::Legacy),
        (pegboard_testkit::Era::Modern, EraChoice::Modern),
    ] {
        let (spec, _handle) = spec(&fake(era), choice);
        let session = connect(&spec, Duration::from_secs(5), &TaskTracker::new())
            .await
            .unwrap();
        let subscription = spec.desired_state.subscribe("note://a", "note://a").unwrap();
        spec.desired_state.set_level(LogLevel::Info);
        for polls in 0..20 {
            assert!(!ends_within(polls, session.reconcile()).await);
            assert_eq!(
                session.connection.dispatcher().pending_requests().count(),
                0,
                "after {polls} polls"
            );
        }
        let reconciled = async {
            tokio::select! {
                never = session.reconcile() => match never {},
                result = session.until_subscribed("note://a", subscription.revision()) => result,
            }
        };
        let result = tokio::time::timeout(Duration::from_secs(60), reconciled).await.unwrap();
        // The fake server has no subscriptions in the older era.
        assert_eq!(result.is_ok(), spec.era == EraChoice::Modern, "{result:?}");
        session.close().await;
    }
}

/// A connection that is dropped half-way leaves no stream open.
#[tokio::test(start_paused = true)]
async fn a_connection_can_be_dropped_at_any_time() {
    for (era, choice) in [
        (pegboard_testkit::Era::Legacy, EraChoice::Auto),
        (pegboard_testkit::Era::Modern, EraChoice::Auto),
    ] {
        let (spec, handle) = spec(&fake(era), choice);
        let tasks = TaskTracker::new();
        for polls in 0..MANY {
            let connecting = async {
                let session = connect(&spec, Duration::from_secs(5), &tasks).await.unwrap();
                session.close().await;
            };
            if ends_within(polls, Box::pin(connecting)).await {
                assert!(handle.starts() > 2);
                break;
            }
            assert!(polls + 1 < MANY);
        }
        tasks.close();
        // The tasks that close dropped connections end.
        tokio::time::timeout(Duration::from_secs(60), tasks.wait())
            .await
            .unwrap();
    }
}
