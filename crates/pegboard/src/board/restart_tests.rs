//! The documented times of restarts, on paused time and without jitter.

use pegboard_base::sync::Mutex;
use pegboard_testkit::{FakeServer, MemoryHandle};
use tokio::{io, time::Instant};

use super::*;
use crate::status::State;
use pegboard_client::transport::{ByteSink, ByteSource, Dialer};
use pegboard_config::Config;

/// When the board dialled its server.
#[derive(Clone, Default)]
struct Dials(Arc<Mutex<Vec<Instant>>>);

impl Dials {
    fn record(&self) {
        self.0.lock().push(Instant::now());
    }

    fn all(&self) -> Vec<Instant> {
        self.0.lock().clone()
    }
}

fn board(dialer: impl Dialer) -> Pegboard {
    Pegboard::builder(Config::default())
        .in_process(ServerName::parse("fx").unwrap(), dialer)
        .without_jitter()
        .open()
}

/// A wait in seconds. Timers fire up to a few milliseconds late.
fn seconds(wait: Duration) -> u128 {
    assert!(wait.as_millis() % 1000 < 50, "{wait:?}");
    wait.as_millis() / 1000
}

#[tokio::test(start_paused = true)]
async fn failed_starts_are_repeated_at_once_and_then_after_1_2_5_10_30_and_60_seconds() {
    let dials = Dials::default();
    let recorded = dials.clone();
    // The peer closes the connection at once.
    let board = board(move || {
        recorded.record();
        (Box::new(io::empty()) as ByteSource, Box::new(io::sink()) as ByteSink)
    });
    tokio::time::sleep(Duration::from_secs(200)).await;
    // Each start tries both eras of the protocol, as the first connection ends without a response.
    let starts: Vec<Instant> = dials.all().into_iter().step_by(2).collect();
    let waits: Vec<u128> = starts.windows(2).map(|pair| seconds(pair[1] - pair[0])).collect();
    assert_eq!(waits, [0, 1, 2, 5, 10, 30, 60, 60]);
    board.shutdown().await;
}

/// Lets a ready server live, kills it, and returns how many seconds later it is dialled again.
async fn wait_after_life_of(lived: Duration, board: &Pegboard, handle: &MemoryHandle, dials: &Dials) -> u128 {
    while board.status().servers[0].state != State::Ready {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(lived).await;
    let (killed, before) = (Instant::now(), dials.all().len());
    handle.kill();
    while dials.all().len() == before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    seconds(dials.all()[before] - killed)
}

#[tokio::test(start_paused = true)]
async fn sixty_seconds_of_health_reset_the_restart_schedule() {
    let (_unused, handle) = FakeServer::new("fx").connect();
    let (dials, server) = (Dials::default(), handle.clone());
    let recorded = dials.clone();
    let board = board(move || {
        recorded.record();
        let (read, write) = io::split(server.connect());
        (Box::new(read) as ByteSource, Box::new(write) as ByteSink)
    });
    for (lived, expected) in [(10, 0), (10, 1), (59, 2), (60, 0), (10, 1)] {
        let wait = wait_after_life_of(Duration::from_secs(lived), &board, &handle, &dials).await;
        assert_eq!(wait, expected, "after a session of {lived} s");
    }
    board.shutdown().await;
}
