//! Sixty-four clients, and the faults that happen meanwhile.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pegboard_testkit::{ErrorClass, History};
use tokio::{task::JoinHandle, time::Instant};

use crate::gateway_soak::{
    caller::{Caller, Outcome, Protocol},
    daemon::{Daemon, Held, SERVERS},
};

const CLIENTS: usize = 64;
/// Longer than any call may take, restarts of its server included.
const PATIENCE: Duration = Duration::from_secs(60);
/// The growth of memory that is no leak: allocators keep what they freed.
const MEMORY_SLACK_KB: u64 = 16 << 10;
const SLACK: usize = 24;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Random numbers that a seed repeats.
#[derive(Debug, Clone)]
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// One history for each server, because each has a ledger of its own.
#[derive(Clone)]
struct Histories(Arc<Vec<History>>);

/// Records a call that has no outcome yet as unknown when its client is killed.
struct Open<'a> {
    history: &'a History,
    nonce: String,
    is_open: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.history.unknown(self.nonce.as_str());
        }
    }
}

/// Makes calls until the run is over. Aborting the task kills the client in the middle of a call.
async fn client(
    protocol: Protocol,
    daemon: Arc<Daemon>,
    histories: Histories,
    seed: u64,
    until: Instant,
    done: Arc<AtomicU64>,
) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut rng = Rng(seed);
    let mut caller = Caller::connect(protocol, daemon.address).await.unwrap();
    while Instant::now() < until {
        let server = rng.below(SERVERS as u64) as usize;
        let nonce = format!("n{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let history = &histories.0[server];
        history.invoke(nonce.as_str());
        let mut open = Open {
            history,
            nonce: nonce.clone(),
            is_open: true,
        };
        let tool = format!("s{server:02}__pay");
        let calling = caller.call(&tool, &nonce, rng.below(8));
        let outcome = tokio::time::timeout(PATIENCE, calling)
            .await
            .expect("a call that never ends")
            .unwrap();
        open.is_open = false;
        match outcome {
            Outcome::Done(text) => history.ok(nonce.as_str(), text),
            Outcome::NotRun => history.error(nonce.as_str(), ErrorClass::Rejected),
            Outcome::MayHaveRun => history.unknown(nonce.as_str()),
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// What the daemon holds once it is quiet.
async fn settled(daemon: &Daemon, before: Option<Held>) -> Held {
    let began = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let held = daemon.held();
        let is_quiet = before.is_some_and(|before| {
            held.descriptors <= before.descriptors + SLACK
                && held.threads <= before.threads + SLACK
                && held.servers <= SERVERS
        });
        let limit = if before.is_some() { 30 } else { 3 };
        if is_quiet || began.elapsed() > Duration::from_secs(limit) {
            return held;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_crossed_or_doubled_and_everything_comes_back() {
    let seconds = number("PEGBOARD_SOAK_SECONDS").unwrap_or(20);
    let mut rng = Rng(number("PEGBOARD_SEED").unwrap_or(7));
    let daemon = Arc::new(Daemon::start());
    let histories = Histories(Arc::new((0..SERVERS).map(|_| History::new()).collect()));
    let done = Arc::new(AtomicU64::new(0));
    // A first round starts every server.
    let spawn = |index: usize, rng: &mut Rng, until: Instant| -> JoinHandle<()> {
        let protocol = [Protocol::Legacy, Protocol::Modern, Protocol::Sse][index % 3];
        let (daemon, histories, done) = (daemon.clone(), histories.clone(), done.clone());
        tokio::spawn(client(protocol, daemon, histories, rng.below(u64::MAX), until, done))
    };
    let warm = Instant::now() + Duration::from_secs(3);
    let first: Vec<_> = (0..CLIENTS).map(|index| spawn(index, &mut rng, warm)).collect();
    for client in first {
        client.await.unwrap();
    }
    let before = settled(&daemon, None).await;

    let (began, until) = (Instant::now(), Instant::now() + Duration::from_secs(seconds));
    let mut clients: Vec<_> = (0..CLIENTS).map(|index| spawn(index, &mut rng, until)).collect();
    let (mut round, mut killed) = (0, 0);
    while Instant::now() + Duration::from_secs(1) < until {
        tokio::time::sleep(Duration::from_secs(1)).await;
        round += 1;
        // In turn, so that no server seems to be in a crash loop, in which it would not be restarted for a minute.
        killed += u32::from(daemon.kill_server(round % SERVERS));
        let index = rng.below(CLIENTS as u64) as usize;
        clients[index].abort();
        let new = spawn(index, &mut rng, until);
        let old = std::mem::replace(&mut clients[index], new);
        let ended = old.await;
        assert!(
            ended.is_ok() || ended.is_err_and(|error| error.is_cancelled()),
            "a client failed"
        );
        if round % 10 == 0 {
            daemon.reload(round);
        }
    }
    for client in clients {
        client.await.unwrap();
    }
    let calls = done.load(Ordering::Relaxed);
    let rate = calls as f64 / began.elapsed().as_secs_f64();
    let after = settled(&daemon, Some(before)).await;
    let mut ok = 0;
    for (server, history) in histories.0.iter().enumerate() {
        match history.check(daemon.ledger(server)) {
            Ok(summary) => ok += summary.ok,
            Err(violations) => panic!("server {server}: {violations:#?}"),
        }
    }
    eprintln!("{calls} calls ({rate:.0}/s), {ok} done, {killed} servers killed; before {before:?}, after {after:?}");
    assert!(ok * 10 >= calls * 8, "most calls succeed: {ok} of {calls}");
    assert!(after.descriptors <= before.descriptors + SLACK, "{before:?} {after:?}");
    assert!(after.threads <= before.threads + SLACK, "{before:?} {after:?}");
    assert!(after.servers <= SERVERS, "{before:?} {after:?}");
    assert!(
        after.memory_kb <= before.memory_kb + MEMORY_SLACK_KB,
        "{before:?} {after:?}"
    );
    Arc::into_inner(daemon).unwrap().stop();
}
