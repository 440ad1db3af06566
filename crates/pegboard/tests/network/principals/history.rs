//! The history checker: many tasks of several principals on one board, with equal call ids. No token, answer, cached answer, kept reply or
//! output ever reaches the wrong principal, nor views of the same principal that have another token.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pegboard::{Arguments, Kind, Pegboard, Reply, ServerConfig, ToolCall, Toolset, View, config::Transport};
use pegboard_base::sync::Mutex;
use pegboard_testkit::{Era, NetHandle};
use serde_json::{Value, json};

use crate::{
    principals::fixtures::*,
    support::{rng::Rng, *},
};

const TASKS: u64 = 64;
const STEPS: u64 = 6;
/// How many calls end between two changes of the board.
const CALLS_PER_CHANGE: usize = 32;
/// The largest result that is not kept as an output, in bytes, and how many lines are more than that. Every line has the beginning of a token,
/// so masking decodes all of them, which takes long in a debug build.
const MAX_RESULT: usize = 2 << 10;
const LONG: u64 = 250;
/// How long a task may take. Only a task that hangs reaches it, also on a busy machine.
const TASK_PATIENCE: Duration = Duration::from_secs(240);
/// Who calls. The first two are one principal with two tokens, the last one has neither a principal nor a token.
const CALLERS: [&str; 4] = ["alice:read", "alice:write", "bob", ""];

/// Whether the tokens go into processes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tokens {
    InRequests,
    InProcesses,
    /// All principals share one process.
    Nowhere,
}

/// One reply, and for whom it was.
struct Entry {
    caller: &'static str,
    nonce: Option<String>,
    reply: Reply,
}

/// All replies of a run, and the handles of outputs.
#[derive(Default)]
struct History {
    entries: Mutex<Vec<Entry>>,
    handles: Mutex<Vec<(usize, String)>>,
}

/// The board under test. Each caller has one view that stays open, and opens others for single calls.
struct Stage {
    board: Pegboard,
    kept: [Toolset; CALLERS.len()],
    tokens: Tokens,
    history: History,
}

impl Stage {
    fn new(server: ServerConfig, tokens: Tokens) -> Self {
        let board = board_of(caching(server));
        let kept = CALLERS.map(|caller| board.toolset_with(view(caller, tokens)));
        Self {
            board,
            kept,
            tokens,
            history: History::default(),
        }
    }

    /// The kept view of a caller, or one for a single request.
    fn tools(&self, caller: usize, is_kept: bool) -> Toolset {
        if is_kept {
            return self.kept[caller].clone();
        }
        self.board.toolset_with(view(CALLERS[caller], self.tokens))
    }

    async fn step(&self, rng: &mut Rng, task: u64, step: u64) {
        let caller = usize::try_from(rng.next() % CALLERS.len() as u64).unwrap();
        let action = rng.next() % 6;
        let tools = self.tools(caller, action >= 4 || rng.next().is_multiple_of(2));
        // The ids of calls are the same for all callers.
        let id = format!("call-{step}");
        let nonce = format!("{}/{task}/{step}", CALLERS[caller]);
        let act = |arguments: Value| {
            let arguments = Arguments::try_from(arguments).unwrap();
            ToolCall::new("fx.act").id(id.clone()).arguments(arguments)
        };
        let (nonce, reply) = match action {
            0 => (None, tools.call(ToolCall::new("fx.whoami").id(id)).await),
            1 => (None, tools.call(ToolCall::new("fx.act").id(id).key("key-1")).await),
            2 => {
                let cancelled = tools.call(act(json!({ "nonce": nonce, "delay_ms": 500 })));
                let wait = Duration::from_millis(rng.next() % 20);
                let Ok(reply) = tokio::time::timeout(wait, cancelled).await else {
                    return;
                };
                (Some(nonce), reply)
            }
            4 => {
                let reply = tools.call(act(json!({ "nonce": nonce, "pad": LONG }))).await;
                let handle = reply.handle.clone();
                self.history
                    .handles
                    .lock()
                    .extend(handle.map(|handle| (caller, handle)));
                (Some(nonce), reply)
            }
            _ => (Some(nonce.clone()), tools.call(act(json!({ "nonce": nonce }))).await),
        };
        let entry = Entry {
            caller: CALLERS[caller],
            nonce,
            reply,
        };
        self.history.entries.lock().push(entry);
    }

    /// Changes the config and restarts the server until the tasks are done.
    async fn disturb(&self, server: &ServerConfig, is_over: &AtomicBool) {
        let mut changed = caching(server.clone());
        let before = changed.limits.max_message;
        for round in 0.. {
            // Paced by the calls, so that most of them succeed on a slow machine too.
            let seen = self.history.entries.lock().len();
            while self.history.entries.lock().len() < seen + CALLS_PER_CHANGE {
                if is_over.load(Ordering::Acquire) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            if round % 3 == 2 {
                self.board.reconnect(&name("fx")).await;
            } else {
                changed.limits.max_message = before + round % 2;
                self.board.apply(config(changed.clone())).await;
            }
        }
    }

    /// Every reply is that of its caller, and no output can be read through another view.
    async fn check(&self) {
        let owner_of = |caller: &'static str| if self.tokens == Tokens::Nowhere { "" } else { caller };
        let entries = std::mem::take(&mut *self.history.entries.lock());
        let mut answered = BTreeMap::<&str, usize>::new();
        for entry in &entries {
            if entry.reply.handle.is_none() && entry.reply.outcome.kind() == Kind::Ok {
                let told = told(&entry.reply);
                assert_eq!(told["owner"], owner_of(entry.caller), "{}: {told}", entry.caller);
                assert_eq!(told["nonce"].as_str(), entry.nonce.as_deref(), "{}", entry.caller);
            }
            *answered.entry(entry.caller).or_default() += usize::from(entry.reply.outcome.kind() == Kind::Ok);
            let text = entry.reply.text();
            for other in CALLERS
                .into_iter()
                .filter(|other| *other != entry.caller && !other.is_empty())
            {
                assert!(!text.contains(&format!("{other}.secret")), "{text}");
                assert!(!text.contains(&format!("{other}/")), "{text}");
                assert!(!text.contains(&format!("{other} line")), "{text}");
            }
        }
        assert!(CALLERS.iter().all(|caller| answered[caller] >= 20), "{answered:?}");
        let handles = std::mem::take(&mut *self.history.handles.lock());
        assert!(!handles.is_empty());
        for (owner, handle) in &handles {
            for (reader, tools) in self.kept.iter().enumerate() {
                let read = call(tools, "read_output", json!({ "handle": handle, "grep": "nonce" })).await;
                let is_read = read.text().contains(&format!("{}/", CALLERS[*owner]));
                assert!(reader == *owner || !is_read, "{}", read.text());
            }
        }
    }
}

fn view(caller: &'static str, tokens: Tokens) -> View {
    match (caller, tokens) {
        ("", _) => View::new(),
        (caller, Tokens::InProcesses) => with(Token::for_processes(caller)),
        (caller, _) => of(caller),
    }
}

/// Runs the tasks on a board with one server and checks all replies.
async fn run(mut server: ServerConfig, tokens: Tokens, seed: u64) {
    server.policy.result.max_bytes = MAX_RESULT;
    let stage = Arc::new(Stage::new(server.clone(), tokens));
    let is_over = Arc::new(AtomicBool::new(false));
    let disturbing = tokio::spawn({
        let (stage, is_over) = (stage.clone(), is_over.clone());
        async move { stage.disturb(&server, &is_over).await }
    });
    let mut seeds = Rng::of(seed);
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (stage, mut rng) = (stage.clone(), seeds.split());
            tokio::spawn(async move {
                for step in 0..STEPS {
                    stage.step(&mut rng, task, step).await;
                }
            })
        })
        .collect();
    for task in tasks {
        tokio::time::timeout(TASK_PATIENCE, task)
            .await
            .expect("a task ends in time")
            .unwrap();
    }
    is_over.store(true, Ordering::Release);
    tokio::time::timeout(TASK_PATIENCE, disturbing)
        .await
        .expect("the changes end in time")
        .unwrap();
    stage.check().await;
    stage.board.shutdown().await;
}

/// Every request had the token of the principal that it was made for, and every session had one owner.
fn check_requests(server: &NetHandle) {
    let mut owners = BTreeMap::<String, BTreeSet<String>>::new();
    let mut calls = 0;
    for request in server.requests() {
        let owner = token_owner(&request);
        if let Some(session) = request.header("mcp-session-id") {
            owners.entry(session.to_owned()).or_default().insert(owner.to_owned());
        }
        if let Some(nonce) = request.params["arguments"]["nonce"].as_str() {
            calls += 1;
            assert_eq!(nonce.split('/').next(), Some(owner), "{request:?}");
        }
    }
    assert!(calls > 60, "{calls}");
    assert!(owners.values().all(|owners| owners.len() == 1), "{owners:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_reaches_the_wrong_principal_over_http() {
    for (era, seed) in [(Era::Legacy, 1), (Era::Modern, 2)] {
        let server = fake(era).serve_http().await.unwrap();
        run(at(&server.url()), Tokens::InRequests, seed).await;
        check_requests(&server);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_reaches_the_wrong_principal_over_sse() {
    let server = fake(Era::Legacy).serve_sse().await.unwrap();
    run(at(&server.url()), Tokens::InRequests, 3).await;
    check_requests(&server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_reaches_the_wrong_principal_over_websockets() {
    for (era, seed) in [(Era::Legacy, 4), (Era::Modern, 5)] {
        let server = fake(era).serve_ws().await.unwrap();
        let transport = Transport::websocket(endpoint(&server.url()));
        run(ServerConfig::new(transport), Tokens::InRequests, seed).await;
        check_requests(&server);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_reaches_the_wrong_principal_in_a_shared_process() {
    for (era, seed) in [(Era::Legacy, 6), (Era::Modern, 7)] {
        run(process(&fake(era)), Tokens::Nowhere, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_reaches_the_wrong_principal_with_a_process_for_each() {
    for (era, seed) in [(Era::Legacy, 8), (Era::Modern, 9)] {
        run(process(&fake(era)), Tokens::InProcesses, seed).await;
    }
}
