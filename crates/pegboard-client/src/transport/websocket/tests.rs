//! What a WebSocket connection does with messages, faults and its end.

use super::*;
use crate::transport::byte_budget::ByteBudget;
use pegboard_base::sync::Mutex;
use tokio::io::{DuplexStream, duplex};
use tokio_tungstenite::{WebSocketStream, tungstenite::protocol::Role};

/// An inbox that ignores everything.
struct IgnoringInbox;

impl Inbox for IgnoringInbox {
    fn message(&self, _message: Bytes) -> Option<u64> {
        None
    }
    fn too_long(&self, _head: &[u8], _tail: &[u8], _limit: usize) {}
    fn waits_for(&self, _id: u64) -> bool {
        false
    }
    fn report_failure(&self, _id: u64, _failure: WireFailure) {}
    fn report_end(&self, _end: WireEnd) {}
}

async fn socket(stream: DuplexStream, role: Role) -> WebSocketStream<DuplexStream> {
    WebSocketStream::from_raw_socket(stream, role, None).await
}

/// Runs our side until it ends. Returns why, and how long that took.
async fn end_of_ours(ours: DuplexStream) -> (EndReason, Duration) {
    let started = Instant::now();
    let (out, incoming) = socket(ours, Role::Client).await.split();
    let outbox = Outbox::default();
    let reason = tokio::select! {
        reason = read(incoming, &IgnoringInbox, 1000, ByteBudget::default().quota(1000)) => reason,
        Some(reason) = write(out, &outbox, Duration::from_secs(10)) => reason,
    };
    (reason, started.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_kept_while_it_answers_pings() {
    let (ours, theirs) = duplex(1 << 16);
    let pings = Arc::new(Mutex::new(0));
    let counted = pings.clone();
    tokio::spawn(async move {
        let mut theirs = socket(theirs, Role::Server).await;
        // Reading answers a ping. After ten pings the server falls silent but keeps the connection open.
        while let Some(Ok(message)) = theirs.next().await {
            if message.is_ping() {
                let mut pings = counted.lock();
                *pings += 1;
                if *pings == 10 {
                    break;
                }
            }
        }
        std::future::pending::<()>().await;
    });
    let (reason, took) = end_of_ours(ours).await;
    assert_eq!(*pings.lock(), 10);
    assert!(
        matches!(&reason, EndReason::Broken(text) if text.contains("no sign of life")),
        "{reason}"
    );
    // Nine or ten pings were answered; then the timeout ran out.
    let silent_after = took.saturating_sub(SILENCE_TIMEOUT);
    assert!(
        (9 * PING_INTERVAL..=10 * PING_INTERVAL).contains(&silent_after),
        "{took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_read_ends_the_wire_after_the_write_timeout() {
    let (ours, _theirs) = duplex(1);
    let (reason, took) = end_of_ours(ours).await;
    assert_eq!(reason, EndReason::Stalled(Duration::from_secs(10)));
    assert_eq!(took, PING_INTERVAL + Duration::from_secs(10));
}
