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

use pegboard::{Command, Outcome, Pegboard, ServerConfig, State, Transport};
use pegboard_testkit::{Era, NetHandle};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::JoinSet,
    time::Instant,
};

use crate::{
    network::{Network, Weather},
    script::{Faults, Wire},
    seeds::{in_front, reached},
    support::{
        chance::{Chance, number},
        *,
    },
    watched::{Watched, comes_true, opened},
};

/// The default number of calls of a storm.
const USUAL: u64 = 150;
/// The number of concurrent callers.
const CALLERS: u64 = 8;
/// The largest number of calls that succeed between two disruptions, so that a storm is as hard on a busy machine as on an idle one.
const CALM: u64 = 8;
/// How long a disruption waits for them at most.
const CALM_LIMIT: Duration = Duration::from_secs(2);
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
struct Blows {
    kills: AtomicU64,
    resets: AtomicU64,
    refusals: AtomicU64,
}

impl Blows {
    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Asserts that each of these happened at least once. Rare ones may be missing in a short storm.
    fn were_dealt(&self, counters: &[&AtomicU64]) {
        let was_dealt = |counter: &&AtomicU64| counter.load(Ordering::Relaxed) > 0;
        assert!(counters.iter().all(was_dealt), "{self:?}");
    }
}

async fn on_stdio(era: Era) {
    let (watched, blows) = (Watched::new(), Arc::new(Blows::default()));
    let door = Door::new(&watched, era);
    let board = opened(door.config.clone(), |_| {});
    board.settle(PATIENCE).await;
    let mut chance = Chance::new();
    let calm = Calm::new(&watched, &mut chance);
    let killing = kill_again_and_again(board.clone(), door, blows.clone(), calm);
    let began = Instant::now();
    calls_during(killing, &watched, &board, &mut chance).await;
    blows.were_dealt(&[&blows.kills]);
    told(&format!("stdio, {era:?}"), &watched, &board, &blows, began).await;
}

async fn on_http(wire: Wire, era: Era) {
    let (watched, blows) = (Watched::new(), Arc::new(Blows::default()));
    let mut chance = Chance::new();
    let server = watched.fake().era(era).serve_http().await.unwrap();
    let (address, _front) = in_front(wire, server.address()).await;
    let faults = Faults::new(chance.next(), 25, 10);
    let network = Arc::new(Network::open(address, faults).await.unwrap());
    let board = opened(reached(wire, network.address()), |_| {});
    let calm = Calm::new(&watched, &mut chance);
    let blowing = blow_again_and_again(network.clone(), server, blows.clone(), calm);
    let began = Instant::now();
    calls_during(blowing, &watched, &board, &mut chance).await;
    // The storm may have ended during a partition.
    network.set(Weather::Healed);
    blows.resets.fetch_add(network.broken(), Ordering::Relaxed);
    blows.were_dealt(&[&blows.resets]);
    told(&format!("{wire:?}, {era:?}"), &watched, &board, &blows, began).await;
    let is_left = !comes_true(secs(10), || network.connections() == 0).await;
    assert!(!is_left, "{} connections are left", network.connections());
}

/// Makes all calls of a storm while `trouble` runs, which never ends by itself.
async fn calls_during(
    trouble: impl Future<Output = ()> + Send + 'static,
    watched: &Watched,
    board: &Pegboard,
    chance: &mut Chance,
) {
    let trouble = tokio::spawn(trouble);
    let left = Arc::new(AtomicU64::new(number("PEGBOARD_STORM").unwrap_or(USUAL)));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (watched, board, left, mut chance) = (watched.clone(), board.clone(), left.clone(), chance.split());
        callers.spawn(async move {
            let tools = board.toolset();
            let take = |left: u64| left.checked_sub(1);
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                let (reads, work) = (chance.percent(READS), chance.up_to_ms(8));
                let outcome = watched.call(&tools, reads, work).await;
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
#[expect(clippy::print_stderr, reason = "long runs are made for their numbers")]
async fn told(what: &str, watched: &Watched, board: &Pegboard, blows: &Blows, began: Instant) {
    let took = began.elapsed();
    tokio::time::timeout(secs(20), board.shutdown())
        .await
        .expect("the shutdown ends");
    let figures = watched.figures();
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    eprintln!(
        "{what}: {figures}; {} kills, {} resets, {} refusals; {:.1} s",
        load(&blows.kills),
        load(&blows.resets),
        load(&blows.refusals),
        took.as_secs_f64()
    );
    assert!(figures.violations.is_empty(), "{}", figures.violations.join("\n"));
    assert!(figures.ok > 0 && figures.ok < figures.calls, "{figures}");
}

/// A server process that can be made to refuse its start.
struct Door {
    config: ServerConfig,
    /// While this file exists, the program exits at once.
    closed: PathBuf,
}

impl Door {
    fn new(watched: &Watched, era: Era) -> Self {
        let closed = watched.path("closed");
        let fake = watched.fake().era(era);
        let (program, args) = fake.command_with_file(&watched.path("script")).unwrap();
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
struct Calm {
    watched: Watched,
    chance: Chance,
}

impl Calm {
    fn new(watched: &Watched, chance: &mut Chance) -> Self {
        Self {
            watched: watched.clone(),
            chance: chance.split(),
        }
    }

    /// Waits until some calls have succeeded.
    async fn pass(&mut self) {
        let enough = self.watched.ok() + self.chance.below(CALM);
        comes_true(CALM_LIMIT, || self.watched.ok() >= enough).await;
        tokio::time::sleep(self.chance.up_to_ms(10)).await;
    }
}

async fn kill_again_and_again(board: Pegboard, door: Door, blows: Arc<Blows>, mut calm: Calm) {
    loop {
        let server = board.status().servers.remove(0);
        match (server.state, server.pid) {
            (State::Ready, Some(pid)) => {
                calm.pass().await;
                let refuses = calm.chance.percent(20);
                if refuses {
                    std::fs::write(&door.closed, "").unwrap();
                }
                let failed = || board.metrics().total.failed_starts;
                let before = failed();
                pegboard_testkit::kill(pid);
                Blows::count(&blows.kills);
                comes_true(PATIENCE, || board.status().servers[0].pid != Some(pid)).await;
                if refuses {
                    comes_true(secs(1), || failed() > before).await;
                    blows.refusals.fetch_add(failed() - before, Ordering::Relaxed);
                    std::fs::remove_file(&door.closed).unwrap();
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

async fn blow_again_and_again(network: Arc<Network>, server: NetHandle, blows: Arc<Blows>, mut calm: Calm) {
    loop {
        calm.pass().await;
        let chance = &mut calm.chance;
        match chance.below(10) {
            0 => {
                Blows::count(&blows.kills);
                server.stop().await;
                tokio::time::sleep(chance.up_to_ms(40)).await;
                server.restart().await.unwrap();
            }
            1 | 2 => {
                Blows::count(&blows.refusals);
                network.set(Weather::Refusing);
                tokio::time::sleep(chance.up_to_ms(40)).await;
                network.set(Weather::Open);
            }
            3 => {
                network.set(Weather::Partitioned);
                tokio::time::sleep(chance.up_to_ms(40)).await;
                network.set(Weather::Open);
            }
            _ => network.reset_all(),
        }
    }
}
