//! Whatever the network does: each call ends once and in time, its outcome is true, and calls succeed again afterwards.

use std::{
    net::SocketAddr,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt as _, future::join_all};
use pegboard::{
    Outcome, Pegboard, ServerConfig,
    config::{BreakerPolicy, BreakerRule, Tls, Transport},
};
use pegboard_testkit::NetHandle;
use tokio::{
    runtime::{Builder, Handle, Runtime},
    time::Instant,
};
use tokio_util::sync::DropGuard;

use crate::{
    simulation::{
        network::{Network, NetworkState},
        recorded_calls::{Figures, RecordedCalls, comes_true, opened},
        script::{Event, Script, Wire},
    },
    support::{rng::number, *},
    tls_front::{self, Clients},
};

/// The default number of seeds. They are always the same.
const USUAL: u64 = 80;
/// How many of them run at once. They mostly wait.
const AT_ONCE: u64 = 8;
/// How long it may take until a call succeeds after the network has healed.
const RECOVERY: Duration = Duration::from_secs(15);
/// How long tasks and connections may take to be gone after a shutdown.
const GONE: Duration = Duration::from_secs(10);

#[test]
fn each_call_ends_once_and_is_told_truly_whatever_the_network_does() {
    let seeds = match (number("PEGBOARD_SEED"), number("PEGBOARD_SEEDS")) {
        (Some(seed), None) => seed..seed + 1,
        (first, Some(count)) => first.unwrap_or(1_000)..first.unwrap_or(1_000) + count,
        (None, None) => 0..USUAL,
    };
    let servers = Arc::new(
        Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap(),
    );
    let next = Arc::new(AtomicU64::new(seeds.start));
    let players: Vec<_> = (0..AT_ONCE.min(seeds.end - seeds.start))
        .map(|_| {
            let (servers, next, end) = (servers.clone(), next.clone(), seeds.end);
            std::thread::spawn(move || {
                let mut played = Vec::new();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return played;
                    }
                    played.push((seed, play(seed, servers.handle())));
                }
            })
        })
        .collect();
    let (mut failed, mut sums) = (Vec::new(), [0; 5]);
    for (seed, played) in players.into_iter().flat_map(|player| player.join().unwrap()) {
        match played {
            Ok(figures) => add(&mut sums, &figures),
            Err(why) => failed.push(format!("PEGBOARD_SEED={seed}: {why}\n  {:?}", Script::of(seed))),
        }
    }
    let [calls, ok, retried, not_executed, may_have_executed] = sums;
    eprintln!(
        "{} seeds, {calls} calls: {ok} ok ({retried} of them made again), {not_executed} not executed, {may_have_executed} may have executed",
        seeds.end - seeds.start
    );
    assert!(
        failed.is_empty(),
        "{} seeds failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
    if seeds.end - seeds.start >= USUAL {
        assert!(sums.iter().all(|count| *count > 0), "each ending is seen: {sums:?}");
    }
}

fn add(sums: &mut [u64; 5], figures: &Figures) {
    let of_seed = [
        figures.calls,
        figures.ok,
        figures.retried,
        figures.not_executed,
        figures.may_have_executed,
    ];
    for (sum, count) in sums.iter_mut().zip(of_seed) {
        *sum += count;
    }
}

/// Runs one seed in its own runtime, so that all remaining tasks belong to the library.
fn play(seed: u64, servers: &Handle) -> Result<Figures, String> {
    let client: Runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let played = AssertUnwindSafe(client.block_on(AssertUnwindSafe(played(seed, servers)).catch_unwind()));
    played.0.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(text.unwrap_or_else(|| "a panic".to_owned()))
    })
}

async fn played(seed: u64, servers: &Handle) -> Result<Figures, String> {
    let script = Script::of(seed);
    let recorded = RecordedCalls::new();
    let world = World::open(&script, &recorded, servers).await;
    let board = opened(world.config.clone(), |server| {
        let mut rule = BreakerRule::default();
        (rule.failures, rule.open) = (3, Duration::from_millis(100));
        server.policy.breaker = script.breaker.then_some(BreakerPolicy::On(rule));
    });
    let tools = board.toolset();
    let calls = script.calls.iter().map(|call| {
        let (recorded, tools) = (&recorded, &tools);
        async move {
            tokio::time::sleep(call.after).await;
            recorded.call(tools, call.reads, call.work).await;
        }
    });
    tokio::join!(join_all(calls), world.play(&script, servers));
    world.network.set(NetworkState::Healed);
    works_again(&recorded, &board).await?;
    drop(tools);
    tokio::time::timeout(GONE, board.shutdown())
        .await
        .map_err(|_| "the shutdown does not end".to_owned())?;
    drop(board);
    world.nothing_is_left().await?;
    let figures = recorded.figures();
    if figures.violations.is_empty() {
        Ok(figures)
    } else {
        Err(figures.violations.join("; "))
    }
}

/// Calls until a call succeeds, without any other intervention.
async fn works_again(recorded: &RecordedCalls, board: &Pegboard) -> Result<(), String> {
    let (began, tools) = (Instant::now(), board.toolset());
    loop {
        let outcome = recorded.call(&tools, false, Duration::ZERO).await;
        if matches!(outcome, Outcome::Done(_)) {
            return Ok(());
        }
        if began.elapsed() > RECOVERY {
            let row = board.status().servers.remove(0);
            return Err(format!("after the network healed: {}; {row:?}", outcome.text()));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A server with a network in front of it.
struct World {
    network: Network,
    server: NetHandle,
    config: ServerConfig,
    _front: Option<DropGuard>,
}

impl World {
    async fn open(script: &Script, recorded: &RecordedCalls, servers: &Handle) -> Self {
        let fake = recorded.fake().era(script.era);
        let fake = if script.streams { fake.streams() } else { fake };
        let (wire, faults) = (script.wire, script.faults.clone());
        let opening = servers.spawn(async move {
            let server = fake.serve_http().await.unwrap();
            let (address, front) = in_front(wire, server.address()).await;
            (server, Network::open(address, faults).await.unwrap(), front)
        });
        let (server, network, front) = opening.await.unwrap();
        Self {
            config: reached(wire, network.address()),
            network,
            server,
            _front: front,
        }
    }

    /// Plays the events of the whole network.
    async fn play(&self, script: &Script, servers: &Handle) {
        for (after, event) in &script.events {
            tokio::time::sleep(*after).await;
            match event {
                Event::Partition => self.network.set(NetworkState::Partitioned),
                Event::Refuse => self.network.set(NetworkState::Refusing),
                Event::Open => self.network.set(NetworkState::Open),
                Event::ResetAll => self.network.reset_all(),
                Event::Forget => self.server.forget_sessions(),
                Event::Restart => {
                    let _servers = servers.enter();
                    self.server.restart().await.unwrap();
                }
            }
        }
    }

    async fn nothing_is_left(&self) -> Result<(), String> {
        let tasks = || Handle::current().metrics().num_alive_tasks();
        if !comes_true(GONE, || tasks() == 0).await {
            return Err(format!("{} tasks are left", tasks()));
        }
        if !comes_true(GONE, || self.network.connections() == 0).await {
            return Err(format!("{} connections are left", self.network.connections()));
        }
        Ok(())
    }
}

/// The address in front of a server on this wire: a TLS proxy for HTTP/2.
pub(crate) async fn in_front(wire: Wire, server: SocketAddr) -> (SocketAddr, Option<DropGuard>) {
    match wire {
        Wire::Http1 => (server, None),
        Wire::Http2 => {
            let (address, guard) = tls_front::front(server, Clients::Anyone, true).await;
            (address, Some(guard))
        }
    }
}

/// The settings of a server at this address.
pub(crate) fn reached(wire: Wire, address: SocketAddr) -> ServerConfig {
    let mut endpoint = match wire {
        Wire::Http1 => endpoint(&format!("http://{address}/mcp")),
        Wire::Http2 => endpoint(&format!("https://localhost:{}/mcp", address.port())),
    };
    if wire == Wire::Http2 {
        endpoint.tls = Tls::default();
        endpoint.tls.insecure = true;
    }
    ServerConfig::new(Transport::http(endpoint))
}
