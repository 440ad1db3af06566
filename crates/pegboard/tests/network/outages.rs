//! Outages of remote servers under every preset: once the server is well, each of them ends without an operator and without a call.
//!
//! The sockets are real, so the clock is only moved while nothing is in flight.
#![expect(
    clippy::disallowed_types,
    reason = "tokio's clock is paused and moved; these waits are of real sockets"
)]

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use pegboard::{Config, Env, Format, Pegboard, State, ToolCall, Toolset, View};
use pegboard_testkit::{Era, Fault, NetHandle, When};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    fixtures::*,
    support::{name, secs},
    tls::{Authority, Front, pass_to},
};

const PRESETS: [&str; 6] = ["pegboard", "tarsy", "ai-agent", "antwort", "goat", "minion"];
/// Longer than the rarest retry.
const ENDS_WITHIN: Duration = Duration::from_secs(130);
/// As much time again, in longer steps: on a slow machine the clock may have been moved past the limits of a start in flight.
const AT_THE_LATEST: Duration = Duration::from_secs(400);
/// The longest a loop may take in real time. A failure that needs a person is tried again after a minute, which must not happen meanwhile.
const REAL_LIMIT: Duration = Duration::from_secs(50);
/// How long a step on loopback may take before the clock is moved on.
const A_STEP: Duration = Duration::from_millis(40);

/// Lets this much time pass at once.
async fn skip(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// A port in front of servers with a right and a wrong certificate.
struct Switch {
    address: SocketAddr,
    to: watch::Sender<SocketAddr>,
    right: Front,
    wrong: Front,
    authority: Authority,
    _guard: DropGuard,
}

impl Switch {
    async fn to(server: SocketAddr) -> Self {
        let (authority, stranger) = (Authority::new(), Authority::new());
        let right = pass_to(authority.signs(|_| {}).settings(None), server).await;
        let wrong = pass_to(stranger.signs(|_| {}).settings(None), server).await;
        let to = watch::Sender::new(right.address());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, ended) = (listener.local_addr().unwrap(), CancellationToken::new());
        let (targets, guard) = (to.subscribe(), ended.clone().drop_guard());
        tokio::spawn(ended.clone().run_until_cancelled_owned(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut targets = targets.clone();
                let target = *targets.borrow_and_update();
                tokio::spawn(ended.clone().run_until_cancelled_owned(async move {
                    let Ok(mut server) = TcpStream::connect(target).await else {
                        return;
                    };
                    // Connections to the other server end with the switch.
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        _ = targets.changed() => {}
                    }
                }));
            }
        }));
        Self {
            address,
            to,
            right,
            wrong,
            authority,
            _guard: guard,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    Refused,
    Unauthorized,
    Forbidden,
    NotFound,
    ServerError,
    Unavailable,
    WebPage,
    WrongCertificate,
}

struct Remote {
    http: NetHandle,
    switch: Switch,
}

impl Remote {
    async fn new() -> Self {
        let http = fake(Era::Legacy).serve_http().await.unwrap();
        let switch = Switch::to(http.address()).await;
        Self { http, switch }
    }

    async fn begin(&self, trouble: Trouble) {
        let status = |status| Fault::Status {
            status,
            headers: Vec::new(),
            body: String::new(),
        };
        let fault = match trouble {
            Trouble::Refused => return self.http.stop().await,
            Trouble::WrongCertificate => {
                self.switch.to.send_replace(self.switch.wrong.address());
                return;
            }
            Trouble::Unauthorized => status(401),
            Trouble::Forbidden => status(403),
            Trouble::NotFound => status(404),
            Trouble::ServerError => status(500),
            Trouble::Unavailable => status(503),
            Trouble::WebPage => Fault::HtmlPage,
        };
        let broken = fake(Era::Legacy).fault_on(When::always(), fault);
        self.http.change(|script| *script = broken.script().clone());
    }

    async fn end(&self, trouble: Trouble) {
        match trouble {
            Trouble::Refused => self.http.restart().await.unwrap(),
            Trouble::WrongCertificate => {
                self.switch.to.send_replace(self.switch.right.address());
            }
            _ => self.http.change(|script| *script = fake(Era::Legacy).script().clone()),
        }
    }

    async fn board(&self, preset: &str, settings: &str) -> Pegboard {
        let (ca, port) = (self.switch.authority.file(), self.switch.address.port());
        let text = format!(
            "preset = '{preset}'\n[servers.fx]\ntype = 'http'\nurl = 'https://localhost:{port}/mcp'\n\
             auth = {{ bearer = 'static' }}\ntls = {{ ca = '{}' }}\n\
             connect_timeout = '10m'\nlist_timeout = '10m'\n{settings}\n",
            ca.display()
        );
        let loaded = Config::from_text(&text, Format::Toml, &Env::new(|_| None));
        assert_eq!(loaded.errors().count(), 0, "{text}");
        let board = Pegboard::builder(loaded.config).without_jitter().open();
        if preset == "goat" {
            board.reconnect(&name("fx")).await;
        }
        board
    }
}

/// Moves the clock until no server is down.
async fn wait_until_well(board: &Pegboard, what: &str) {
    let (mut passed, began) = (Duration::ZERO, Instant::now());
    loop {
        let status = board.status();
        let is_up = |state| matches!(state, State::Ready | State::Idle);
        if status.ready && status.healthy && status.servers.iter().all(|server| is_up(server.state)) {
            return;
        }
        assert!(
            passed < AT_THE_LATEST || began.elapsed() < secs(30),
            "{what}: {:?}",
            status.servers
        );
        skip(secs(5)).await;
        passed += secs(5);
        let is_slow = passed > ENDS_WITHIN;
        tokio::time::sleep(if is_slow { 10 * A_STEP } else { A_STEP }).await;
    }
}

/// Calls until the server answers, as a client that goes on does.
async fn call_until_answered(tools: &Toolset, what: &str) {
    let began = Instant::now();
    loop {
        let reply = hello(tools).await;
        if reply.text().contains("hi") && !reply.is_error() {
            return;
        }
        assert!(began.elapsed() < REAL_LIMIT, "{what}: {}", reply.text());
        tokio::time::sleep(A_STEP).await;
    }
}

/// Whose connection has the outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Everybody,
    AView,
    APrincipal,
}

/// Plays the outage under every preset, at the first start and later, and asserts that it ends by itself.
async fn play(trouble: Trouble) {
    for preset in PRESETS {
        for (is_first, of) in [
            (true, Of::Everybody),
            (false, Of::Everybody),
            (true, Of::AView),
            (false, Of::AView),
            (true, Of::APrincipal),
            (false, Of::APrincipal),
        ] {
            let what = format!("{preset}, the connection of {of:?}, first start: {is_first}, {trouble:?}");
            let remote = Remote::new().await;
            if is_first {
                remote.begin(trouble).await;
            }
            let scope = if of == Of::AView { "session" } else { "shared" };
            let board = remote.board(preset, &format!("scope = '{scope}'")).await;
            let tools = match of {
                Of::APrincipal => board.toolset_with(View::new().principal("alice")),
                Of::Everybody | Of::AView => board.toolset(),
            };
            if !is_first {
                call_until_answered(&tools, &what).await;
                remote.begin(trouble).await;
            }
            // Somebody wants it meanwhile, and may give up.
            let _ = tokio::time::timeout(secs(1), tools.call(ToolCall::new("fx.hello").timeout(secs(1)))).await;
            skip(secs(40)).await;
            tokio::time::sleep(A_STEP).await;
            remote.end(trouble).await;
            wait_until_well(&board, &what).await;
            call_until_answered(&tools, &what).await;
            board.shutdown().await;
        }
    }
}

macro_rules! outages_end_by_themselves {
    ($($test:ident: $trouble:ident,)*) => {
        $(
            #[tokio::test]
            async fn $test() {
                play(Trouble::$trouble).await;
            }
        )*
    };
}

outages_end_by_themselves! {
    a_refused_connection_ends_by_itself: Refused,
    a_refused_token_is_tried_again: Unauthorized,
    a_forbidden_server_is_tried_again: Forbidden,
    a_path_that_is_not_found_is_tried_again: NotFound,
    server_errors_end_by_themselves: ServerError,
    an_unavailable_server_ends_by_itself: Unavailable,
    a_web_page_ends_by_itself: WebPage,
    a_wrong_certificate_is_tried_again: WrongCertificate,
}

/// The error about a server that is away says when the next start is made, or that a call starts it.
#[tokio::test]
async fn errors_about_certificates_and_tokens_say_when_they_are_tried_again() {
    for (trouble, preset) in [
        (Trouble::WrongCertificate, "antwort"),
        (Trouble::Unauthorized, "antwort"),
        (Trouble::Unauthorized, "pegboard"),
    ] {
        let remote = Remote::new().await;
        let board = remote.board(preset, "").await;
        let tools = board.toolset();
        call_until_answered(&tools, preset).await;
        remote.begin(trouble).await;
        let began = Instant::now();
        loop {
            let text = hello(&tools).await.text();
            // Without restarts, a call ends an outage that may end by itself.
            let is_by_call = trouble == Trouble::WrongCertificate;
            let said = if is_by_call {
                "a call starts it again in "
            } else {
                "next try in "
            };
            if text.contains(said) {
                break;
            }
            assert!(began.elapsed() < REAL_LIMIT, "{preset}, {trouble:?}: {text}");
            tokio::time::sleep(A_STEP).await;
        }
        board.shutdown().await;
    }
}

/// A proxy in front of a server that needs no sign-in asks for one for a while.
#[tokio::test]
async fn a_server_that_was_ready_without_a_sign_in_is_tried_again_after_it_was_asked_for_one() {
    let http = fake(Era::Legacy).serve_http().await.unwrap();
    let board = crate::support::board(crate::fixtures::http(&http.url()));
    let tools = board.toolset();
    call_until_answered(&tools, "before").await;
    let asks = Fault::Status {
        status: 401,
        headers: vec![("WWW-Authenticate".to_owned(), "Bearer".to_owned())],
        body: String::new(),
    };
    http.change(|script| *script = fake(Era::Legacy).fault_on(When::always(), asks).script().clone());
    let began = Instant::now();
    while board.status().servers[0].state != State::NeedsAuth {
        let _ = hello(&tools).await;
        assert!(began.elapsed() < REAL_LIMIT, "{:?}", board.status().servers);
        tokio::time::sleep(A_STEP).await;
    }
    http.change(|script| *script = fake(Era::Legacy).script().clone());
    wait_until_well(&board, "after it was asked for a sign-in").await;
    board.shutdown().await;
}

/// The certificate of a server that was ready is wrong while it is replaced. Nobody waits a minute for the right one.
#[tokio::test]
async fn a_certificate_that_is_wrong_for_a_moment_is_tried_again_by_the_backoff() {
    for preset in PRESETS {
        let remote = Remote::new().await;
        let board = remote.board(preset, "").await;
        let tools = board.toolset();
        call_until_answered(&tools, preset).await;
        remote.begin(Trouble::WrongCertificate).await;
        let began = Instant::now();
        while !hello(&tools).await.text().contains("certificate") {
            assert!(began.elapsed() < REAL_LIMIT, "{preset}");
            tokio::time::sleep(A_STEP).await;
        }
        remote.end(Trouble::WrongCertificate).await;
        // In the real time of the backoff's first steps.
        call_until_answered(&tools, preset).await;
        board.shutdown().await;
    }
}

/// Where no check is scheduled, a call that does not reach the server is the reason for one.
#[tokio::test]
async fn a_failed_call_shows_that_a_server_is_gone_where_nothing_else_would() {
    for preset in ["ai-agent", "antwort", "goat"] {
        let remote = Remote::new().await;
        let board = remote.board(preset, "required = true").await;
        let tools = board.toolset();
        call_until_answered(&tools, preset).await;
        remote.begin(Trouble::Refused).await;
        assert!(hello(&tools).await.is_error(), "{preset}");
        let began = Instant::now();
        while board.status().ready {
            assert!(began.elapsed() < REAL_LIMIT, "{preset}: {:?}", board.status().servers);
            tokio::time::sleep(A_STEP).await;
        }
        board.shutdown().await;
    }
}

/// A server that is gone is noticed by the check that is due, also while calls are tried again and again, so that it is never without one.
#[tokio::test]
async fn a_server_that_is_gone_is_noticed_while_calls_try_it_all_the_time() {
    for preset in PRESETS {
        let remote = Remote::new().await;
        let board = remote
            .board(preset, "required = true\nhealth_interval = '1s'\nbreaker = false")
            .await;
        let tools = board.toolset();
        call_until_answered(&tools, preset).await;
        remote.begin(Trouble::Refused).await;
        let (callers, noticed) = (FuturesUnordered::new(), async {
            let began = Instant::now();
            while board.status().ready {
                assert!(began.elapsed() < REAL_LIMIT, "{preset}: {:?}", board.status().servers);
                tokio::time::sleep(A_STEP).await;
            }
        });
        for _ in 0..8 {
            callers.push(async {
                loop {
                    let reply = hello(&tools).await;
                    assert!(reply.is_error(), "{preset}: {}", reply.text());
                    tokio::task::yield_now().await;
                }
            });
        }
        tokio::select! {
            () = noticed => {}
            () = callers.for_each(|()| std::future::ready(())) => {}
        }
        board.shutdown().await;
    }
}

/// A server that is away for a moment is called again soon after its return, also if a client tries all the time.
#[tokio::test]
async fn a_server_that_is_away_for_a_moment_is_not_refused_for_half_a_minute() {
    for era in BOTH_ERAS {
        let web = fake(era).serve_http().await.unwrap();
        let board = crate::support::board(http(&web.url()));
        let tools = board.toolset();
        assert_greets(&tools, "before").await;
        for away in [Duration::from_millis(300), secs(3)] {
            web.stop().await;
            let began = Instant::now();
            while began.elapsed() < away {
                let _ = hello(&tools).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            web.restart().await.unwrap();
            let back = Instant::now();
            while hello(&tools).await.is_error() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            assert!(back.elapsed() < secs(25), "{era:?}: {:?}", back.elapsed());
        }
        board.shutdown().await;
    }
}

/// Nothing ran, so the call is made in a new session whatever the preset says about retries.
#[tokio::test]
async fn the_first_call_after_a_server_forgot_its_sessions_is_made_again_under_every_preset() {
    for preset in PRESETS {
        let remote = Remote::new().await;
        let board = remote.board(preset, "").await;
        let tools = board.toolset();
        call_until_answered(&tools, preset).await;
        for _ in 0..2 {
            remote.http.forget_sessions();
            let reply = hello(&tools).await;
            assert!(!reply.is_error(), "{preset}: {}", reply.text());
            assert_eq!(reply.attempts, 2, "{preset}");
        }
        board.shutdown().await;
    }
}
