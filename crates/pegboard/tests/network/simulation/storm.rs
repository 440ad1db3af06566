//! Thousands of calls while servers are killed, connections reset and starts refused: on stdio, HTTP/1 and HTTP/2, in both eras.
//!
//! By default a storm is short. `PEGBOARD_STORM=10000` makes 10,000 calls on each wire and prints the figures.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pegboard::{
    Outcome, Pegboard, ServerConfig, State,
    config::{Command, Transport},
};
use pegboard_testkit::{Era, NetHandle};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::JoinSet,
    time::Instant,
};

use crate::{
    simulation::{
        network::{Network, NetworkState},
        recorded_calls::{RecordedCalls, comes_true, opened},
        script::{Faults, Wire},
        seeds::{in_front, reached},
    },
    support::{
        rng::{Rng, number},
        *,
    },
};

/// The default number of calls of a storm.
const USUAL: u64 = 150;
/// The number of concurrent callers.
const CALLERS: u64 = 8;
/// The largest number of calls that succeed between two disruptions, so that a storm is as hard on a busy machine as on an idle one.
const PAUSE_CALLS: u64 = 8;
/// How long a disruption waits for them at most.
const PAUSE_LIMIT: Duration = Duration::from_secs(2);
/// The percentage of calls that may be retried.
const READS: u64 = 30;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_on_stdio_are_told_truly_in_a_storm() {
    for era in [Era::Legacy, Era::Modern] {
        let _turn = turn().await;
        on_stdio(era).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_on_http_1_are_told_truly_in_a_storm() {
    for era in [Era::Legacy, Era::Modern] {
        let _turn = turn().await;
        on_http(Wire::Http1, era).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_on_http_2_are_told_truly_in_a_storm() {
    for era in [Era::Legacy, Era::Modern] {
        let _turn = turn().await;
        on_http(Wire::Http2, era).await;
    }
}

/// Serialises the storms: each needs all processors.
async fn turn() -> SemaphorePermit<'static> {
    static TURN: Semaphore = Semaphore::const_new(1);
    TURN.acquire().await.expect("it is never closed")
}

/// The disruptions so far.
#[derive(Debug, Default)]
struct Disruptions {
    kills: AtomicU64,
    resets: AtomicU64,
    refusals: AtomicU64,
}

impl Disruptions {
    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Asserts that each of these happened at least once. Rare ones may be missing in a short storm.
    fn all_happened(&self, counters: &[&AtomicU64]) {
        let has_happened = |counter: &&AtomicU64| counter.load(Ordering::Relaxed) > 0;
        assert!(counters.iter().all(has_happened), "{self:?}");
    }
}

async fn on_stdio(era: Era) {
    let (recorded, disruptions) = (RecordedCalls::new(), Arc::new(Disruptions::default()));
    let gated = GatedServer::new(&recorded, era);
    let board = opened(gated.config.clone(), |_| {});
    board.settle(PATIENCE).await;
    let mut rng = Rng::new();
    let pause = Pause::new(&recorded, &mut rng);
    let killing = kill_repeatedly(board.clone(), gated, disruptions.clone(), pause);
    let began = Instant::now();
    calls_during(killing, &recorded, &board, &mut rng).await;
    disruptions.all_happened(&[&disruptions.kills]);
    told(&format!("stdio, {era:?}"), &recorded, &board, &disruptions, began).await;
}

async fn on_http(wire: Wire, era: Era) {
    let (recorded, disruptions) = (RecordedCalls::new(), Arc::new(Disruptions::default()));
    let mut rng = Rng::new();
    let server = recorded.fake().era(era).serve_http().await.unwrap();
    let (address, _front) = in_front(wire, server.address()).await;
    let faults = Faults::new(rng.next(), 25, 10);
    let network = Arc::new(Network::open(address, faults).await.unwrap());
    let board = opened(reached(wire, network.address()), |_| {});
    let pause = Pause::new(&recorded, &mut rng);
    let blowing = disrupt_repeatedly(network.clone(), server, disruptions.clone(), pause);
    let began = Instant::now();
    calls_during(blowing, &recorded, &board, &mut rng).await;
    // The storm may have ended during a partition.
    network.set(NetworkState::Healed);
    disruptions.resets.fetch_add(network.broken(), Ordering::Relaxed);
    disruptions.all_happened(&[&disruptions.resets]);
    told(&format!("{wire:?}, {era:?}"), &recorded, &board, &disruptions, began).await;
    let is_left = !comes_true(secs(10), || network.connections() == 0).await;
    assert!(!is_left, "{} connections are left", network.connections());
}

/// Makes all calls of a storm while `trouble` runs, which never ends by itself.
async fn calls_during(
    trouble: impl Future<Output = ()> + Send + 'static,
    recorded: &RecordedCalls,
    board: &Pegboard,
    rng: &mut Rng,
) {
    let trouble = tokio::spawn(trouble);
    let left = Arc::new(AtomicU64::new(number("PEGBOARD_STORM").unwrap_or(USUAL)));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (recorded, board, left, mut rng) = (recorded.clone(), board.clone(), left.clone(), rng.split());
        callers.spawn(async move {
            let tools = board.toolset();
            let take = |left: u64| left.checked_sub(1);
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                let (reads, work) = (rng.percent(READS), rng.up_to_ms(8));
                let outcome = recorded.call(&tools, reads, work).await;
                // A rejected caller waits for the server, or for a moment.
                if matches!(outcome, Outcome::Refused(_)) {
                    let is_ready = || board.status().servers[0].state == State::Ready;
                    comes_true(Duration::from_millis(500), is_ready).await;
                }
            }
        });
    }
    while let Some(ended) = callers.join_next().await {
        assert!(!trouble.is_finished(), "the storm ended before the calls");
        ended.expect("no caller panics");
    }
    trouble.abort();
    let _ = trouble.await;
}

/// Closes the board, prints the figures and checks them.
#[expect(clippy::print_stderr, reason = "the numbers are the result of a long run")]
async fn told(what: &str, recorded: &RecordedCalls, board: &Pegboard, disruptions: &Disruptions, began: Instant) {
    let took = began.elapsed();
    tokio::time::timeout(secs(20), board.shutdown())
        .await
        .expect("the shutdown ends");
    let figures = recorded.figures();
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    eprintln!(
        "{what}: {figures}; {} kills, {} resets, {} refusals; {:.1} s",
        load(&disruptions.kills),
        load(&disruptions.resets),
        load(&disruptions.refusals),
        took.as_secs_f64()
    );
    assert!(figures.violations.is_empty(), "{}", figures.violations.join("\n"));
    assert!(figures.ok > 0 && figures.ok < figures.calls, "{figures}");
}

/// A server process that can be made to refuse its start.
struct GatedServer {
    config: ServerConfig,
    /// While this file exists, the program exits at once.
    closed: PathBuf,
}

impl GatedServer {
    fn new(recorded: &RecordedCalls, era: Era) -> Self {
        let closed = recorded.path("closed");
        let fake = recorded.fake().era(era);
        let (program, args) = fake.command_with_file(&recorded.path("script")).unwrap();
        let script = "test -e \"$0\" && exit 1; exec \"$@\"";
        let shell = Command::new("sh")
            .args(["-c", script])
            .args([closed.to_str().unwrap(), program.to_str().unwrap()])
            .args(args);
        Self {
            config: ServerConfig::new(Transport::Stdio(shell)),
            closed,
        }
    }
}

/// The pause between two disruptions.
struct Pause {
    recorded: RecordedCalls,
    rng: Rng,
}

impl Pause {
    fn new(recorded: &RecordedCalls, rng: &mut Rng) -> Self {
        Self {
            recorded: recorded.clone(),
            rng: rng.split(),
        }
    }

    /// Waits until some calls have succeeded.
    async fn pass(&mut self) {
        let enough = self.recorded.ok() + self.rng.below(PAUSE_CALLS);
        comes_true(PAUSE_LIMIT, || self.recorded.ok() >= enough).await;
        tokio::time::sleep(self.rng.up_to_ms(10)).await;
    }
}

async fn kill_repeatedly(board: Pegboard, gated: GatedServer, disruptions: Arc<Disruptions>, mut pause: Pause) {
    loop {
        let server = board.status().servers.remove(0);
        match (server.state, server.pid) {
            (State::Ready, Some(pid)) => {
                pause.pass().await;
                let refuses = pause.rng.percent(20);
                if refuses {
                    std::fs::write(&gated.closed, "").unwrap();
                }
                let failed = || board.metrics().total.failed_starts;
                let before = failed();
                pegboard_testkit::kill(pid);
                Disruptions::count(&disruptions.kills);
                comes_true(PATIENCE, || board.status().servers[0].pid != Some(pid)).await;
                if refuses {
                    comes_true(secs(1), || failed() > before).await;
                    disruptions.refusals.fetch_add(failed() - before, Ordering::Relaxed);
                    std::fs::remove_file(&gated.closed).unwrap();
                }
            }
            // A server that is killed this often rightly counts as a crash loop, with long pauses between restarts.
            (State::CrashLooping, _) => {
                board.reconnect(&name("fx")).await;
            }
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

async fn disrupt_repeatedly(network: Arc<Network>, server: NetHandle, disruptions: Arc<Disruptions>, mut pause: Pause) {
    loop {
        pause.pass().await;
        let rng = &mut pause.rng;
        match rng.below(10) {
            0 => {
                Disruptions::count(&disruptions.kills);
                server.stop().await;
                tokio::time::sleep(rng.up_to_ms(40)).await;
                server.restart().await.unwrap();
            }
            1 | 2 => {
                Disruptions::count(&disruptions.refusals);
                network.set(NetworkState::Refusing);
                tokio::time::sleep(rng.up_to_ms(40)).await;
                network.set(NetworkState::Open);
            }
            3 => {
                network.set(NetworkState::Partitioned);
                tokio::time::sleep(rng.up_to_ms(40)).await;
                network.set(NetworkState::Open);
            }
            _ => network.reset_all(),
        }
    }
}
