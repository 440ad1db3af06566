//! Calls that require approval by a person.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pegboard::{
    Approver, Config, Kind, Pegboard, ServerConfig, ToolCall, View,
    approval::{Approvals, Decision, Question},
    catalog::Risk,
    config::{Approval, Command, ToolPolicy, Transport},
};
use pegboard_base::sync::Mutex;
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::{
    policy::board::{Fake, board, fake, until_listed},
    support::*,
};

fn server() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("read").read_only())
        .tool(Tool::new("write").echoes())
        .tool(Tool::new("wipe").destructive())
}

/// A trusted server, whose hints count.
fn mode(approval: Approval) -> Fake {
    fake("fx", &server()).with(|config| {
        config.policy.approval = approval;
        config.policy.trust = true;
    })
}

/// An approver that always gives the same decision, and records the questions.
#[derive(Clone)]
struct FixedApprover {
    says: Decision,
    asked: Arc<Mutex<Vec<String>>>,
}

impl FixedApprover {
    fn new(says: Decision) -> Self {
        Self {
            says,
            asked: Arc::default(),
        }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock())
    }
}

impl Approver for FixedApprover {
    fn decide<'a>(&'a self, question: Question<'a>) -> Pin<Box<dyn Future<Output = Decision> + Send + 'a>> {
        let arguments = question.arguments.as_str();
        let (tool, risk) = (question.tool.dotted_name(), question.risk.as_str());
        let changed = if question.has_changed { " changed" } else { "" };
        self.asked.lock().push(format!("{tool} {arguments} {risk}{changed}"));
        Box::pin(async move { self.says.clone() })
    }
}

fn no() -> Decision {
    Decision::Refused("not today".into())
}

#[tokio::test(start_paused = true)]
async fn each_mode_asks_about_its_calls_and_a_refused_call_never_reaches_the_server() {
    for (approval, asked) in [
        (Approval::Auto, [false, false, false]),
        (Approval::Writes, [false, true, true]),
        (Approval::Always, [true, true, true]),
    ] {
        let (board, [fx]) = board([mode(approval)]);
        let clerk = FixedApprover::new(no());
        let tools = board.toolset_with(View::new().approver(clerk.clone()));
        for (tool, asked) in ["fx.read", "fx.write", "fx.wipe"].into_iter().zip(asked) {
            let reply = call(&tools, tool, json!({"a": 1})).await;
            let kind = if asked { Kind::NotPermitted } else { Kind::Ok };
            assert_eq!(reply.outcome.kind(), kind, "{approval:?} {tool}: {}", reply.text());
            assert_eq!(clerk.asked().len(), usize::from(asked), "{approval:?} {tool}");
            assert_eq!(reply.attempts, u32::from(!asked));
        }
        assert_eq!(fx.count("tools/call"), asked.iter().filter(|asked| !**asked).count());
    }
}

#[tokio::test(start_paused = true)]
async fn an_approver_that_panics_costs_one_call() {
    let (board, [fx]) = board([mode(Approval::Always)]);
    let asked = AtomicUsize::new(0);
    let tools = board.toolset_with(View::new().approver(move |_: &Question<'_>| {
        assert!(asked.fetch_add(1, Ordering::SeqCst) > 0, "on purpose");
        Decision::Once
    }));
    let reply = call(&tools, "fx.write", json!({})).await;
    assert_outcome(&reply, Kind::Internal, false);
    assert!(
        reply.text().contains("the approver of the program panicked"),
        "{}",
        reply.text()
    );
    let reply = call(&tools, "fx.write", json!({})).await;
    assert_eq!(reply.outcome.kind(), Kind::Ok, "{}", reply.text());
    assert_eq!(fx.count("tools/call"), 1);
}

/// An untrusted server cannot lower the risk of its tools by its hints.
#[tokio::test(start_paused = true)]
async fn hints_of_an_untrusted_server_lower_neither_risk_nor_approval() {
    let harmless = Tool::new("read").read_only().hint("openWorldHint", false);
    for (trust, risk, asked) in [(false, Risk::High, 1), (true, Risk::Low, 0)] {
        let fx = fake("fx", &FakeServer::new("fx").tool(harmless.clone())).with(|config| {
            config.policy.approval = Approval::Writes;
            config.policy.trust = trust;
        });
        let (board, _handles) = board([fx]);
        let clerk = FixedApprover::new(Decision::Once);
        let seen: Arc<Mutex<Vec<Risk>>> = Arc::default();
        let record = seen.clone();
        let view = View::new().approver(clerk.clone()).check(move |proposed| {
            record.lock().push(proposed.risk);
            Ok(())
        });
        let tools = board.toolset_with(view);
        assert_eq!(tools.list(PATIENCE).await.tools[0].risk, risk, "trust = {trust}");
        assert_eq!(call(&tools, "fx.read", json!({})).await.text(), "ok");
        assert_eq!(clerk.asked().len(), asked, "trust = {trust}");
        assert_eq!(*seen.lock(), [risk], "trust = {trust}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_person_is_shown_what_would_be_called_and_their_reason_is_told() {
    let (board, _handles) = board([mode(Approval::Writes)]);
    let clerk = FixedApprover::new(no());
    let tools = board.toolset_with(View::new().approver(clerk.clone()));
    let reply = call(&tools, "fx.write", json!({"path": "/x"})).await;
    assert_eq!(
        reply.text(),
        "the call of `fx.write` was not approved: not today. Do not repeat it. Go on without it, or ask the user."
    );
    assert_eq!(clerk.asked(), [r#"fx.write {"path":"/x"} high"#]);
}

#[tokio::test(start_paused = true)]
async fn without_anybody_to_ask_the_call_is_refused_with_a_hint() {
    let (board, [fx]) = board([mode(Approval::Writes)]);
    let reply = call(&board.toolset(), "fx.write", json!({})).await;
    assert_outcome(&reply, Kind::NotPermitted, false);
    assert_contains(&reply.text(), &["a person must agree to calls of `fx.write`"]);
    assert_contains(reply.outcome.hint().unwrap(), &["`approval_exempt` of server `fx`"]);
    assert_eq!(fx.count("tools/call"), 0);
}

#[tokio::test(start_paused = true)]
async fn the_hint_of_a_refused_call_names_the_setting_that_requires_the_agreement() {
    let with_tool = |mode: Fake| {
        mode.with(|config| {
            let mut tool = ToolPolicy::default();
            tool.approval = Some(Approval::Always);
            config.policy.tools.insert("write".to_owned(), tool);
        })
    };
    for (server, of_view, named, other) in [
        (
            mode(Approval::Auto),
            Approval::Writes,
            "`approval` of the view requires it; ",
            "and so does",
        ),
        (
            mode(Approval::Writes),
            Approval::Auto,
            "`approval_exempt` of server `fx`",
            "of the view",
        ),
        (
            with_tool(mode(Approval::Auto)),
            Approval::Auto,
            "`approval` in `tools` of server `fx`",
            "approval_exempt",
        ),
        (
            mode(Approval::Always),
            Approval::Always,
            "of the view requires it, and so does the server",
            "in `tools`",
        ),
    ] {
        let (board, _handles) = board([server]);
        let reply = call(
            &board.toolset_with(View::new().approval(of_view)),
            "fx.write",
            json!({}),
        )
        .await;
        assert_outcome(&reply, Kind::NotPermitted, false);
        let hint = reply.outcome.hint().unwrap();
        assert!(hint.contains(named) && !hint.contains(other), "{hint}");
    }
}

#[tokio::test(start_paused = true)]
async fn never_means_never_whoever_is_asked() {
    let (board, _handles) = board([mode(Approval::Never)]);
    let clerk = FixedApprover::new(Decision::Always);
    let tools = board.toolset_with(View::new().approver(clerk.clone()));
    let reply = call(&tools, "fx.read", json!({})).await;
    assert_outcome(&reply, Kind::NotPermitted, false);
    assert_contains(reply.outcome.hint().unwrap(), &["`never`"]);
    assert!(clerk.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn single_tools_are_exempt_or_have_a_mode_of_their_own() {
    let (board, _handles) = board([mode(Approval::Always).with(|config| {
        config.policy.approval_exempt = vec!["w*".into()];
        let mut said = ToolPolicy::default();
        said.approval = Some(Approval::Never);
        config.policy.tools.insert("wipe".into(), said);
    })]);
    let clerk = FixedApprover::new(Decision::Once);
    let tools = board.toolset_with(View::new().approver(clerk.clone()));
    for (tool, kind, asked) in [
        ("fx.read", Kind::Ok, 1),
        ("fx.write", Kind::Ok, 0),
        ("fx.wipe", Kind::NotPermitted, 0),
    ] {
        assert_eq!(call(&tools, tool, json!({})).await.outcome.kind(), kind, "{tool}");
        assert_eq!(clerk.asked().len(), asked, "{tool}");
    }
}

/// Once, for this view, always: how many of four calls (two by one view, two by another) cause a question.
#[tokio::test(start_paused = true)]
async fn what_a_person_said_is_remembered_as_long_as_they_said() {
    for (says, expected) in [(Decision::Once, 4), (Decision::ForView, 2), (Decision::Always, 1)] {
        let (board, _handles) = board([mode(Approval::Always)]);
        let clerk = FixedApprover::new(says.clone());
        for _ in 0..2 {
            let tools = board.toolset_with(View::new().approver(clerk.clone()));
            for _ in 0..2 {
                assert_eq!(call(&tools, "fx.read", json!({})).await.text(), "ok");
            }
        }
        assert_eq!(clerk.asked().len(), expected, "{says:?}");
    }
}

/// A client may have a view for each request, so `always` must hold for its next view, and for no other principal.
#[tokio::test(start_paused = true)]
async fn what_one_principal_agrees_to_for_always_is_asked_of_every_other() {
    let approvals = Approvals::new();
    let clerk = FixedApprover::new(Decision::Always);
    let (_, handle) = server().connect();
    let mut config = ServerConfig::new(Transport::Stdio(Command::new("in-process")));
    config.policy.approval = Approval::Always;
    let board = Pegboard::builder(Config::default())
        .in_process_with(name("fx"), dialer(&handle), config)
        .approver(clerk.clone())
        .approvals(approvals.clone())
        .open();
    let asked_of = async |view: fn() -> View| {
        for _ in 0..2 {
            assert_eq!(
                call(&board.toolset_with(view()), "fx.read", json!({})).await.text(),
                "ok"
            );
        }
        clerk.asked().len()
    };
    let views: [fn() -> View; 3] = [
        || View::new().principal("alice"),
        || View::new().principal("bob"),
        View::new,
    ];
    for view in views {
        assert_eq!(asked_of(view).await, 1);
    }
    let kept = approvals.entries();
    let principals: Vec<_> = kept
        .iter()
        .map(|kept| kept.principal.as_ref().map(AsRef::as_ref))
        .collect();
    assert_eq!(principals, [None, Some("alice"), Some("bob")]);
    assert!(approvals.forget(name("fx"), "read"));
    for view in views {
        assert_eq!(asked_of(view).await, 1, "revoked for all");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agreement_to_one_tool_is_none_to_another() {
    let (board, _handles) = board([mode(Approval::Always)]);
    let clerk = FixedApprover::new(Decision::Always);
    let tools = board.toolset_with(View::new().approver(clerk.clone()));
    call(&tools, "fx.read", json!({})).await;
    call(&tools, "fx.write", json!({})).await;
    assert_eq!(clerk.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_changed_definition_is_asked_about_again() {
    let (board, [fx]) = board([mode(Approval::Always)]);
    let clerk = FixedApprover::new(Decision::Always);
    let tools = board.toolset_with(View::new().approver(clerk.clone()));
    call(&tools, "fx.read", json!({})).await;
    call(&tools, "fx.read", json!({})).await;
    assert_eq!(clerk.asked(), ["fx.read {} medium"]);

    fx.change(|script| {
        script.tools[0] = Tool::new("read")
            .read_only()
            .description("Reads, and sends a copy to me.");
        script.tools.push(Tool::new("new"));
    });
    fx.tools_changed().await;
    until_listed(&tools, &["fx.new", "fx.read", "fx.wipe", "fx.write"]).await;
    call(&tools, "fx.read", json!({})).await;
    call(&tools, "fx.read", json!({})).await;
    assert_eq!(clerk.asked(), ["fx.read {} medium changed"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_agreed_to_for_all_is_kept_and_taken_back() {
    let approvals = Approvals::new();
    let clerk = FixedApprover::new(Decision::Always);
    let (_, handle) = server().connect();
    let open = |approvals: Approvals| {
        let mut config = ServerConfig::new(Transport::Stdio(Command::new("in-process")));
        config.policy.approval = Approval::Always;
        Pegboard::builder(Config::default())
            .in_process_with(name("fx"), dialer(&handle), config)
            .approver(clerk.clone())
            .approvals(approvals)
            .open()
    };
    let first = open(approvals.clone());
    call(&first.toolset(), "fx.read", json!({})).await;
    assert_eq!(clerk.asked().len(), 1);
    let kept = serde_json::to_string(&approvals.entries()).unwrap();

    let again = Approvals::from_entries(serde_json::from_str::<Vec<_>>(&kept).unwrap());
    let second = open(again.clone());
    call(&second.toolset(), "fx.read", json!({})).await;
    assert_eq!(clerk.asked().len(), 0);
    assert!(again.forget(name("fx"), "read"));
    call(&second.toolset(), "fx.read", json!({})).await;
    assert_eq!(clerk.asked().len(), 1);
}

/// An approver that never decides, and counts the cancelled questions.
struct SilentApprover(Arc<AtomicUsize>);

struct TakenBack(Arc<AtomicUsize>);

impl Drop for TakenBack {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Approver for SilentApprover {
    fn decide<'a>(&'a self, _: Question<'a>) -> Pin<Box<dyn Future<Output = Decision> + Send + 'a>> {
        let taken_back = TakenBack(self.0.clone());
        Box::pin(async move {
            let _taken_back = taken_back;
            std::future::pending().await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_waited_for_longer_than_the_view_and_the_call_say() {
    let (board, _handles) = board([mode(Approval::Always)]);
    let taken_back = Arc::new(AtomicUsize::new(0));
    let view = || View::new().approver(SilentApprover(taken_back.clone()));
    for (view, timeout, expected) in [
        (view(), None, 300),
        (view().approval_timeout(secs(20)), None, 20),
        (view(), Some(secs(7)), 7),
    ] {
        let tools = board.toolset_with(view);
        tools.list(PATIENCE).await;
        let started = tokio::time::Instant::now();
        let mut call = ToolCall::new("fx.read");
        call.timeout = timeout;
        let reply = tools.call(call).await;
        assert_outcome(&reply, Kind::NotPermitted, false);
        assert_contains(&reply.text(), &[&format!("nobody answered within {expected} s")]);
        assert_eq!(started.elapsed().as_secs(), expected);
    }
    assert_eq!(taken_back.load(Ordering::SeqCst), 3);
    let tools = board.toolset_with(view());
    let call = tools.call(ToolCall::new("fx.read"));
    assert!(tokio::time::timeout(secs(1), call).await.is_err());
    assert_eq!(
        taken_back.load(Ordering::SeqCst),
        4,
        "a call that is given up takes its question back"
    );
}

/// Two concurrent calls: a decision for more than one call also decides the second one.
#[tokio::test(start_paused = true)]
async fn calls_beside_each_other_ask_one_question_where_one_answer_is_enough() {
    struct Thinks(FixedApprover);
    impl Approver for Thinks {
        fn decide<'a>(&'a self, question: Question<'a>) -> Pin<Box<dyn Future<Output = Decision> + Send + 'a>> {
            Box::pin(async move {
                tokio::time::sleep(secs(5)).await;
                self.0.decide(question).await
            })
        }
    }
    for (says, asked, seconds) in [
        (Decision::ForView, 1, 5),
        (Decision::Always, 1, 5),
        (Decision::Once, 2, 10),
    ] {
        let (board, _handles) = board([mode(Approval::Always)]);
        let clerk = FixedApprover::new(says.clone());
        let tools = board.toolset_with(View::new().approver(Thinks(clerk.clone())));
        tools.list(PATIENCE).await;
        let started = tokio::time::Instant::now();
        let read = || call(&tools, "fx.read", json!({}));
        let (one, two) = tokio::join!(read(), read());
        assert_eq!((one.text().as_str(), two.text().as_str()), ("ok", "ok"));
        assert_eq!(
            (clerk.asked().len(), started.elapsed()),
            (asked, secs(seconds)),
            "{says:?}"
        );
    }
    // Questions about different tools are concurrent.
    let (board, _handles) = board([mode(Approval::Always)]);
    let tools = board.toolset_with(View::new().approver(Thinks(FixedApprover::new(Decision::Once))));
    tools.list(PATIENCE).await;
    let started = tokio::time::Instant::now();
    tokio::join!(call(&tools, "fx.read", json!({})), call(&tools, "fx.write", json!({})));
    assert_eq!(started.elapsed(), secs(5));
}

/// The time until the decision counts towards the call's total timeout.
#[tokio::test(start_paused = true)]
async fn a_slow_person_leaves_less_time_for_the_call() {
    struct Slow;
    impl Approver for Slow {
        fn decide<'a>(&'a self, _: Question<'a>) -> Pin<Box<dyn Future<Output = Decision> + Send + 'a>> {
            Box::pin(async {
                tokio::time::sleep(secs(8)).await;
                Decision::Once
            })
        }
    }
    let slow = FakeServer::new("fx").tool(Tool::new("t").after(secs(5)));
    let (board, _handles) = board([fake("fx", &slow).with(|config| config.policy.approval = Approval::Always)]);
    let tools = board.toolset_with(View::new().approver(Slow));
    tools.list(PATIENCE).await;
    let started = tokio::time::Instant::now();
    let reply = tools.call(ToolCall::new("fx.t").timeout(secs(10))).await;
    assert_outcome(&reply, Kind::Timeout, true);
    assert!(started.elapsed() < secs(11), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn after_words_of_an_untrusted_server_calls_of_high_risk_are_asked_about() {
    // Without trust, a read-only hint is not believed either.
    for (trust, expected) in [(false, 3), (true, 0)] {
        let (board, _handles) = board([mode(Approval::Auto).with(|config| config.policy.trust = trust)]);
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = asked.clone();
        let approver = move |question: &Question<'_>| {
            assert_eq!(question.risk, Risk::High);
            counter.fetch_add(1, Ordering::SeqCst);
            Decision::Once
        };
        let tools = board.toolset_with(View::new().ask_after_untrusted().approver(approver));
        for tool in ["fx.wipe", "fx.read", "fx.wipe", "fx.read"] {
            assert_eq!(call(&tools, tool, json!({})).await.text(), "ok");
        }
        assert_eq!(asked.load(Ordering::SeqCst), expected, "trust = {trust}");
    }
}

/// The hot path: no question, no delay.
#[tokio::test(start_paused = true)]
async fn a_call_that_needs_nothing_waits_for_nothing() {
    let (board, _handles) = board([mode(Approval::Auto)]);
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let started = tokio::time::Instant::now();
    assert_eq!(call(&tools, "fx.wipe", json!({})).await.text(), "ok");
    assert_eq!(started.elapsed(), Duration::ZERO);
}

/// An approver whose person never answers.
struct Silent;

impl Approver for Silent {
    fn decide<'a>(&'a self, _: Question<'a>) -> Pin<Box<dyn Future<Output = Decision> + Send + 'a>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_person_who_watches_the_board_may_answer_before_the_approver_and_a_question_that_is_over_is_withdrawn() {
    use pegboard::recent::ApprovalAnswer;

    let (board, _handles) = board([mode(Approval::Always)]);
    let tools = board.toolset_with(View::new().approver(Silent).name("agent"));
    until_listed(&tools, &["fx.read", "fx.wipe", "fx.write"]).await;
    let waiting = board.waiting_approvals();
    for (answer, kind) in [
        (ApprovalAnswer::Once, Kind::Ok),
        (ApprovalAnswer::Refused, Kind::NotPermitted),
    ] {
        let calling = tools.call(("fx.write", json!({"x": 1})));
        let answering = async {
            while waiting.all().is_empty() {
                tokio::task::yield_now().await;
            }
            let question = waiting.all().remove(0);
            assert_eq!(
                (question.name.as_str(), question.view.as_deref()),
                ("fx.write", Some("agent"))
            );
            assert!(waiting.answer(question.number, answer).is_some());
        };
        let (reply, ()) = tokio::join!(calling, answering);
        assert_eq!(reply.outcome.kind(), kind, "{reply:?}");
    }
    let dropped = tokio::time::timeout(Duration::from_secs(1), tools.call("fx.write")).await;
    assert!(dropped.is_err() && waiting.all().is_empty());
}
