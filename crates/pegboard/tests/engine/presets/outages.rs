//! Outages of every kind, under every preset, scope and at every age of a server: once the server is well, each of them ends without an
//! operator, and without a call where restarts or health checks exist.

use std::time::Duration;

use pegboard::State;
use pegboard_testkit::{FakeServer, Fault, Tool, When};
use tokio::time::Instant;

use crate::{presets::fixtures::*, support::*};

/// Longer than the rarest retry together with a start that is in flight and times out.
const ENDS_WITHIN: Duration = Duration::from_secs(120);

/// When the outage begins, and how long it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Age {
    FirstStart,
    Young,
    Old,
}

impl Age {
    const ALL: [Self; 3] = [Self::FirstStart, Self::Young, Self::Old];

    fn lasts(self) -> Duration {
        match self {
            Self::FirstStart => secs(40),
            Self::Young => secs(5),
            Self::Old => secs(600),
        }
    }
}

/// Every kind of outage, as what the server does meanwhile.
fn kinds() -> Vec<(&'static str, FakeServer)> {
    let error = |code| Fault::AnswersError {
        code,
        message: "out of order".to_owned(),
        data: None,
    };
    let refusing = |code| good().fault_on(When::always(), error(code));
    vec![
        ("exits at the handshake", crashing()),
        ("is silent", silent()),
        ("answers nothing", good().fault_on(When::always(), Fault::NeverAnswers)),
        (
            "closes its output",
            good().fault_on(When::always(), Fault::ClosesOutput),
        ),
        ("stops reading", good().fault_on(When::always(), Fault::StopsReading)),
        ("answers internal errors", refusing(-32603)),
        ("answers that requests are invalid", refusing(-32600)),
        ("knows no method", refusing(-32601)),
        (
            "speaks another version",
            FakeServer::new("fx").versions(&["2030-01-01"]),
        ),
        (
            "answers with other ids",
            good().fault_on(When::always(), Fault::WrongId),
        ),
        (
            "cannot list its tools",
            good().fault_on(When::method("tools/list"), error(-32603)),
        ),
        (
            "does not answer the listing",
            good().fault_on(When::method("tools/list"), Fault::NeverAnswers),
        ),
    ]
}

/// Waits until no server is down, and returns how long that took.
async fn wait_until_well(stage: &Stage, what: &str) -> Duration {
    let began = Instant::now();
    loop {
        let status = stage.board.status();
        let is_up = |state| matches!(state, State::Ready | State::Idle);
        if status.ready && status.healthy && status.servers.iter().all(|server| is_up(server.state)) {
            assert_eq!(status.warnings, [], "{what}");
            return began.elapsed();
        }
        assert!(began.elapsed() < ENDS_WITHIN, "{what}: {:?}", status.servers);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Plays one outage, and asserts that it ends by itself.
async fn play(preset: &str, settings: &str, age: Age, (kind, broken): &(&str, FakeServer)) {
    let what = format!("{preset}, {settings}, {age:?}: a server that {kind}");
    let first = if age == Age::FirstStart { broken.clone() } else { good() };
    let stage = Stage::new(preset, settings, &first).await;
    if age != Age::FirstStart {
        assert_eq!(unfenced(&stage.call("hello").await.text()), "hi", "{what}");
        if age == Age::Old {
            tokio::time::sleep(secs(600)).await;
        }
        stage.handle.change(|script| *script = broken.script().clone());
        stage.handle.kill();
    }
    // Somebody wants it, and gets an error in time.
    let listing = stage.tools.list(PATIENCE);
    tokio::time::timeout(secs(60), listing).await.expect("a listing");
    tokio::time::sleep(age.lasts()).await;
    stage.handle.change(|script| *script = good().script().clone());
    wait_until_well(&stage, &what).await;
    let reply = stage.call("hello").await;
    assert_eq!(unfenced(&reply.text()), "hi", "{what}");
}

async fn play_all(preset: &str) {
    for kind in &kinds() {
        for scope in ["shared", "session", "pool(2)"] {
            for age in Age::ALL {
                // Later, `required` only keeps a lazy server from being idle.
                for required in [false, true]
                    .into_iter()
                    .filter(|required| age == Age::FirstStart || *required)
                {
                    let settings = format!("scope = '{scope}'\nrequired = {required}");
                    play(preset, &settings, age, kind).await;
                }
            }
        }
    }
}

macro_rules! outages_end_by_themselves {
    ($($test:ident: $preset:literal,)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $test() {
                play_all($preset).await;
            }
        )*
    };
}

outages_end_by_themselves! {
    every_outage_ends_by_itself_under_pegboard: "pegboard",
    every_outage_ends_by_itself_under_tarsy: "tarsy",
    every_outage_ends_by_itself_under_ai_agent: "ai-agent",
    every_outage_ends_by_itself_under_antwort: "antwort",
    every_outage_ends_by_itself_under_goat: "goat",
    every_outage_ends_by_itself_under_minion: "minion",
}

/// A required server that is late at the start: nobody calls a board that is not ready, so a health check has to start it.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_late_at_the_start_is_ready_within_one_check_interval() {
    for (preset, interval) in row([60, 15, 60, 60, 30, 30]) {
        for scope in ["shared", "session", "pool(2)"] {
            let settings = format!("scope = '{scope}'\nrequired = true");
            let stage = Stage::new(preset, &settings, &crashing()).await;
            // Longer than the starts that minion makes in a row.
            tokio::time::sleep(secs(40)).await;
            assert!(!stage.board.status().ready, "{preset}, {scope}");
            stage.handle.change(|script| *script = good().script().clone());
            let took = wait_until_well(&stage, &format!("{preset}, {scope}")).await;
            assert!(took <= secs(interval), "{preset}, {scope}: {took:?}");
        }
    }
}

/// The warning about a view's server whose first start failed ends when the server is well, although the view makes no call.
#[tokio::test(start_paused = true)]
async fn the_warning_of_a_view_ends_when_its_server_is_well() {
    for (preset, ()) in row([(); 6]) {
        let stage = Stage::new(preset, "scope = 'session'", &good()).await;
        assert_eq!(unfenced(&stage.call("hello").await.text()), "hi", "{preset}");
        stage.handle.change(|script| *script = crashing().script().clone());
        let other = stage.board.toolset();
        other.list(PATIENCE).await;
        assert!(!stage.board.status().healthy, "{preset}");
        stage.handle.change(|script| *script = good().script().clone());
        wait_until_well(&stage, preset).await;
    }
}

/// Without restarts and health checks a call starts the server again, also after a failure that somebody had to mend.
#[tokio::test(start_paused = true)]
async fn without_restarts_and_checks_the_next_call_ends_an_outage() {
    for kind in &kinds() {
        let settings = "restart = false\nhealth_restart = false";
        let stage = Stage::new("pegboard", settings, &kind.1).await;
        stage.tools.list(PATIENCE).await;
        stage.handle.change(|script| *script = good().script().clone());
        tokio::time::sleep(secs(61)).await;
        assert_eq!(unfenced(&stage.call("hello").await.text()), "hi", "{}", kind.0);
    }
}

/// A failure that somebody has to mend is retried once a minute, and the error says when.
#[tokio::test(start_paused = true)]
async fn a_lasting_failure_is_retried_once_a_minute_and_the_error_says_when() {
    let stranger = FakeServer::new("fx").tool(Tool::new("hello")).versions(&["2030-01-01"]);
    for (preset, ()) in row([(); 6]) {
        let stage = Stage::new(preset, "connect_timeout = '5s'", &stranger).await;
        let text = stage.call("hello").await.text();
        assert_contains(&text, &["2030-01-01", "(next try in 60 s)", "Call again later"]);
        let starts = stage.starts();
        tokio::time::sleep(secs(3600)).await;
        let later = stage.starts() - starts;
        // A start makes one connection per era.
        assert!((55..=130).contains(&later), "{preset}: {later}");
    }
}

/// A call waits over the backoff of restarts that fail quickly, if the server is back within the wait for restarts. Under ai-agent and minion
/// callers have shared one wait already, and fail at once.
#[tokio::test(start_paused = true)]
async fn a_call_waits_over_the_backoff_of_a_restart() {
    for (preset, waits) in row([true, true, false, true, true, false]) {
        let stage = Stage::new(preset, "restart = true", &good()).await;
        assert_eq!(unfenced(&stage.call("hello").await.text()), "hi", "{preset}");
        stage.handle.change(|script| *script = crashing().script().clone());
        stage.handle.kill();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let recovering = async {
            tokio::time::sleep(secs(2)).await;
            stage.handle.change(|script| *script = good().script().clone());
        };
        let (reply, ()) = tokio::join!(stage.call("hello"), recovering);
        assert_eq!(!reply.is_error(), waits, "{preset}: {}", reply.text());
    }
}

/// The wait for restarts has a limit, and a start that is not due within it is not waited for.
#[tokio::test(start_paused = true)]
async fn a_call_does_not_wait_for_a_restart_that_is_due_too_late() {
    let stage = Stage::new("pegboard", "restart = { backoff = ['0s', '20s'] }", &good()).await;
    assert_eq!(stage.call("hello").await.text(), "hi");
    stage.handle.change(|script| *script = crashing().script().clone());
    stage.handle.kill();
    tokio::time::sleep(secs(5)).await;
    let began = Instant::now();
    let reply = stage.call("hello").await;
    assert_contains(&reply.text(), &["next try in 15 s"]);
    assert_eq!(began.elapsed(), Duration::ZERO);
    // The next restart fails too, after nine seconds.
    tokio::time::sleep(secs(6)).await;
    let reply = stage.call("hello").await;
    assert_contains(&reply.text(), &["next try in 20 s"]);
    assert_eq!(began.elapsed(), secs(15));
}

/// A call that the design gives no limit ends after ten minutes without a sign of life; a server that answers probes is waited for.
#[tokio::test(start_paused = true)]
async fn a_call_without_a_limit_ends_when_its_server_shows_no_sign_of_life() {
    for preset in ["antwort", "goat"] {
        let dead = good().fault_on(When::tool("hello"), Fault::StopsReading);
        let stage = Stage::new(preset, "", &dead).await;
        // An idle time before the call is no silence during it.
        tokio::time::sleep(secs(30)).await;
        let began = Instant::now();
        let reply = stage.call("hello").await;
        assert!(reply.outcome.may_have_executed(), "{preset}: {}", reply.text());
        let took = began.elapsed().as_secs();
        assert!((600..=640).contains(&took), "{preset}: {took}");

        let busy = FakeServer::new("fx").tool(Tool::new("hello").answers_text("hi").after(secs(3600)));
        let stage = Stage::new(preset, "", &busy).await;
        assert_eq!(unfenced(&stage.call("hello").await.text()), "hi", "{preset}");
        assert!(
            stage.handle.count("ping") >= 30,
            "{preset}: {}",
            stage.handle.count("ping")
        );
    }
}

/// The failed calls of a server that was never ready are its own, so that its error rate shows them.
#[tokio::test(start_paused = true)]
async fn the_calls_of_a_server_that_was_never_ready_count_under_it() {
    for (preset, ()) in row([(); 6]) {
        let stage = Stage::new(preset, "", &crashing()).await;
        assert!(stage.call("hello").await.is_error(), "{preset}");
        let metrics = stage.board.metrics();
        let calls = &metrics.servers[&name("fx")].calls;
        assert_eq!((calls.total, metrics.unrouted.total), (1, 0), "{preset}");
    }
}

/// A server with more tools than `max_items` offers what fits, with a warning that names the setting, however many pages it has.
#[tokio::test(start_paused = true)]
async fn a_server_with_too_many_tools_offers_what_fits_and_the_warning_names_the_setting() {
    for pages_of in [50, 1000] {
        let tools = (0..200).map(|number| Tool::new(format!("t{number:03}")).answers_text("ok"));
        let fake = FakeServer::new("fx").tools(tools).pages_of(pages_of);
        let stage = Stage::new("pegboard", "max_items = 120", &fake).await;
        let listing = stage.tools.list(PATIENCE).await;
        assert_eq!(listing.tools.len(), 120, "{pages_of}");
        assert_eq!(stage.call("t119").await.text(), "ok", "{pages_of}");
        assert_contains(
            &listing.warnings.join("\n"),
            &["were left out: the limit is 120 (`max_items` of the server)"],
        );
    }
}
