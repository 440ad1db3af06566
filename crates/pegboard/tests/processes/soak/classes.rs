//! Which calls are retried after an unknown outcome: only those with a retry class that allows it.

use std::collections::BTreeSet;

use pegboard::{
    Outcome, ServerConfig,
    config::{RetryClass, Transport},
};
use pegboard_testkit::{Era, FakeServer, Fault, Tool, When};
use serde_json::{Value, json};

use crate::{soak::fixtures::*, support::*};

/// The settings of a tool and its call, and the number of executions when no response ever arrives.
struct Case {
    what: &'static str,
    operator: Option<RetryClass>,
    trust: bool,
    tool: fn(Tool) -> Tool,
    arguments: Value,
    executed: usize,
}

fn case(what: &'static str, executed: usize) -> Case {
    Case {
        what,
        operator: None,
        trust: false,
        tool: |tool| tool,
        arguments: json!({"nonce": "n"}),
        executed,
    }
}

fn cases() -> Vec<Case> {
    let key = || Some(RetryClass::Key("key".to_owned()));
    vec![
        case("nobody says anything", 1),
        Case {
            operator: Some(RetryClass::Safe),
            ..case("the operator says that it only reads", 3)
        },
        Case {
            operator: Some(RetryClass::Idempotent),
            ..case("the operator says that the second time changes nothing", 2)
        },
        Case {
            operator: Some(RetryClass::Never),
            trust: true,
            tool: Tool::read_only,
            ..case("the operator forbids what a trusted server allows", 1)
        },
        Case {
            trust: true,
            tool: Tool::read_only,
            ..case("a trusted server says that it only reads", 3)
        },
        Case {
            tool: Tool::read_only,
            ..case("a server that is not trusted says that it only reads", 1)
        },
        Case {
            trust: true,
            tool: Tool::idempotent,
            ..case("a trusted server says that the second time changes nothing", 2)
        },
        Case {
            trust: true,
            tool: |tool| tool.read_only().destructive(),
            ..case("a trusted server says that it reads and destroys", 1)
        },
        Case {
            operator: key(),
            arguments: json!({"nonce": "n", "key": "k-17"}),
            ..case("the server knows a repeated call by its key", 3)
        },
        Case {
            operator: key(),
            ..case("the key is not among the arguments", 1)
        },
    ]
}

fn settings(mut config: ServerConfig, case: &Case) -> ServerConfig {
    config.policy.trust = case.trust;
    config
        .policy
        .tool_retry
        .extend(case.operator.clone().map(|class| ("read".to_owned(), class)));
    config
}

fn fake(case: &Case, fault: Option<Fault>) -> FakeServer {
    let fake = FakeServer::new("fx").tool((case.tool)(Tool::new("read").echoes_nonce()));
    match fault {
        Some(fault) => fake.fault_on(When::tool("read"), fault),
        None => fake,
    }
}

fn executions(ledger: &std::path::Path) -> usize {
    std::fs::read_to_string(ledger).unwrap_or_default().lines().count()
}

/// A process that dies after each execution; every attempt carries the same idempotency key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_a_dying_process_is_repeated_as_often_as_its_class_allows() {
    let _alone = alone().await;
    for case in cases() {
        let folder = tempfile::tempdir().unwrap();
        let (ledger, log) = (folder.path().join("ledger"), folder.path().join("log"));
        let fake = fake(&case, Some(Fault::DiesAfterExecuting { code: 1 }))
            .ledger(&ledger)
            .log(&log);
        let board = restarting_board(settings(process(&fake), &case));
        let reply = call(&board.toolset(), "fx.read", case.arguments.clone()).await;
        assert!(
            matches!(reply.outcome, Outcome::Lost(_)),
            "{}: {}",
            case.what,
            reply.text()
        );
        assert_eq!(executions(&ledger), case.executed, "{}", case.what);
        assert_eq!(reply.attempts as usize, case.executed, "{}", case.what);
        let log = pegboard_testkit::read_log(&log).unwrap();
        let calls = log.requests.iter().filter(|received| received.method == "tools/call");
        let arguments: BTreeSet<_> = calls.map(|call| call.params["arguments"].to_string()).collect();
        assert_eq!(arguments, BTreeSet::from([case.arguments.to_string()]), "{}", case.what);
        board.shutdown().await;
    }
}

/// Connections that are cut within the response, in both eras.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_answer_is_cut_is_repeated_as_often_as_its_class_allows() {
    let _alone = alone().await;
    for era in [Era::Legacy, Era::Modern] {
        for case in cases() {
            let folder = tempfile::tempdir().unwrap();
            let ledger = folder.path().join("ledger");
            let fake = fake(&case, Some(Fault::ResetInBody)).era(era).ledger(&ledger);
            let fake = fake.serve_http().await.unwrap();
            let config = ServerConfig::new(Transport::http(endpoint(&fake.url())));
            let board = restarting_board(settings(config, &case));
            let reply = call(&board.toolset(), "fx.read", case.arguments.clone()).await;
            assert!(
                matches!(reply.outcome, Outcome::Lost(_)),
                "{}: {}",
                case.what,
                reply.text()
            );
            assert_eq!(executions(&ledger), case.executed, "{era:?}: {}", case.what);
            board.shutdown().await;
        }
    }
}

/// A retry that is answered completes the call, and no further one follows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_call_that_is_answered_is_done() {
    let _alone = alone().await;
    for case in cases().into_iter().filter(|case| case.executed > 1) {
        let folder = tempfile::tempdir().unwrap();
        let (ledger, log) = (folder.path().join("ledger"), folder.path().join("log"));
        let well = fake(&case, None).ledger(&ledger).log(&log);
        let dying = fake(&case, Some(Fault::DiesAfterExecuting { code: 1 }))
            .ledger(&ledger)
            .log(&log);
        let board = restarting_board(settings(process(&dying.then_after(1, well)), &case));
        let reply = call(&board.toolset(), "fx.read", case.arguments.clone()).await;
        assert!(
            matches!(reply.outcome, Outcome::Done(_)),
            "{}: {}",
            case.what,
            reply.text()
        );
        assert_eq!((reply.attempts, executions(&ledger)), (2, 2), "{}", case.what);
        board.shutdown().await;
    }
}

/// A first attempt that may have run still counts when the second one is rejected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_ran_once_is_never_reported_as_not_run() {
    let _alone = alone().await;
    let gone = FakeServer::new("fx").fault(Fault::ExitsAtHandshake {
        code: 1,
        stderr: String::new(),
    });
    let changed = FakeServer::new("fx").tool(Tool::new("read").refuses(-32601, "no such method"));
    for (what, later) in [
        ("the server does not come back", gone),
        ("it rejects the call", changed),
    ] {
        for case in cases().into_iter().filter(|case| case.executed > 1) {
            let folder = tempfile::tempdir().unwrap();
            let (ledger, log) = (folder.path().join("ledger"), folder.path().join("log"));
            let dying = fake(&case, Some(Fault::DiesAfterExecuting { code: 1 }))
                .ledger(&ledger)
                .log(&log);
            let later = later.clone().ledger(&ledger).log(&log);
            let board = restarting_board(settings(process(&dying.then_after(1, later)), &case));
            let reply = call(&board.toolset(), "fx.read", case.arguments.clone()).await;
            assert_eq!(executions(&ledger), 1, "{what}: {}", case.what);
            assert!(reply.is_error(), "{what}: {}", case.what);
            assert!(
                reply.outcome.may_have_executed(),
                "{what}: {}: {}",
                case.what,
                reply.text()
            );
            board.shutdown().await;
        }
    }
}
