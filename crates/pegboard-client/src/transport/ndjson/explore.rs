//! Explores thread interleavings of the outbox and its writer.

use std::{
    collections::BTreeSet,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use shuttle::{future::block_on, thread};
use tokio::io::AsyncWrite;

use super::*;
use crate::transport::{Delivery, EndReason, Envelope, Inbox, Outgoing, Sent, WireEnd, WireFailure, outbox::Outbox};
use pegboard_base::sync::{
    Mutex,
    explore::{explore, idle_runtime},
};

const LONG: Duration = Duration::from_secs(60);

/// Records the ids of failed requests.
#[derive(Default)]
struct Failures(Mutex<Vec<u64>>);

impl Inbox for Failures {
    fn message(&self, _message: Bytes) -> Option<u64> {
        None
    }
    fn too_long(&self, _head: &[u8], _tail: &[u8], _limit: usize) {}
    fn waits_for(&self, _id: u64) -> bool {
        false
    }
    fn report_failure(&self, id: u64, failure: WireFailure) {
        assert_eq!(failure.sent, Sent::No);
        self.0.lock().push(id);
    }
    fn report_end(&self, _end: WireEnd) {}
}

/// Accepts `left` bytes, three at a time, and then fails. Another thread may run at each write.
struct Sink {
    text: Arc<Mutex<Vec<u8>>>,
    left: usize,
}

impl AsyncWrite for Sink {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let taken = bytes.len().min(3).min(self.left);
        if taken == 0 {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        self.text.lock().extend_from_slice(&bytes[..taken]);
        self.left -= taken;
        Poll::Ready(Ok(taken))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn message(id: u64, delivery: &Arc<Delivery>) -> Outgoing {
    Outgoing {
        body: id.to_string().into_bytes(),
        id: Some(id),
        delivery: delivery.clone(),
        envelope: Envelope::default(),
        taken: None,
    }
}

/// Starts the real writer over a stream that fails after `left` bytes.
fn writer(outbox: &Arc<Outbox>, left: usize) -> (thread::JoinHandle<Option<EndReason>>, Arc<Mutex<Vec<u8>>>) {
    let text = Arc::new(Mutex::default());
    let sink = Sink {
        text: text.clone(),
        left,
    };
    let outbox = outbox.clone();
    (thread::spawn(move || block_on(write_lines(sink, outbox, LONG))), text)
}

/// The messages that were written as whole lines.
fn lines(text: &Mutex<Vec<u8>>) -> Vec<u64> {
    let text = String::from_utf8(text.lock().clone()).unwrap();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn every_message_is_written_in_its_callers_order_or_dropped_because_the_outbox_is_closed() {
    explore(|| {
        let runtime = idle_runtime();
        let _entered = runtime.enter();
        let (outbox, failures) = (Arc::new(Outbox::default()), Arc::new(Failures::default()));
        let (writer, text) = writer(&outbox, usize::MAX);
        let callers = [10, 20].map(|first| {
            let (outbox, failures) = (outbox.clone(), failures.clone());
            thread::spawn(move || {
                for id in first..first + 3 {
                    outbox.push(message(id, &Arc::default()), &*failures);
                }
            })
        });
        let closer = {
            let (outbox, failures) = (outbox.clone(), failures.clone());
            thread::spawn(move || {
                outbox.close();
                outbox.push(message(30, &Arc::default()), &*failures);
            })
        };
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        closer.join().unwrap();
        assert_eq!(writer.join().unwrap(), None);

        let (written, failed) = (lines(&text), failures.0.lock().clone());
        assert!(
            failed.is_empty(),
            "the end of the wire reports dropped messages: {failed:?}"
        );
        assert!(!written.contains(&30), "queued after the outbox was closed");
        for first in [10, 20] {
            let of_this: Vec<u64> = written.iter().copied().filter(|id| id / 10 == first / 10).collect();
            // Nothing is queued after the close, so only the last messages can be missing.
            let begun: Vec<u64> = (first..first + 3).take(of_this.len()).collect();
            assert_eq!(of_this, begun, "written {written:?}");
        }
        assert_eq!(outbox.queued_bytes(), 0);
    });
}

#[test]
fn an_abandoned_message_is_never_written_and_a_written_one_never_counts_as_unsent() {
    explore(|| {
        let runtime = idle_runtime();
        let _entered = runtime.enter();
        let (outbox, failures) = (Arc::new(Outbox::default()), Arc::new(Failures::default()));
        let deliveries: [Arc<Delivery>; 3] = Default::default();
        // It fails in the middle of the second line or the third, depending on which messages are abandoned.
        let (writer, text) = writer(&outbox, 4);
        let cancellers: Vec<_> = (0..3)
            .map(|at| {
                let delivery = deliveries[at].clone();
                thread::spawn(move || {
                    let abandoned = delivery.abandon();
                    (abandoned, delivery.sent())
                })
            })
            .collect();
        for (id, delivery) in (10..).zip(&deliveries) {
            outbox.push(message(id, delivery), &*failures);
        }
        outbox.close();
        let results: Vec<_> = cancellers
            .into_iter()
            .map(|canceller| canceller.join().unwrap())
            .collect();
        writer.join().unwrap();

        let written: BTreeSet<u64> = lines(&text).into_iter().collect();
        for ((id, delivery), (abandoned, sent)) in (10..).zip(&deliveries).zip(results) {
            if written.contains(&id) {
                assert!(!abandoned, "{id} was abandoned and written");
                assert_eq!((sent, delivery.sent()), (Sent::Maybe, Sent::Maybe), "{id} was written");
            } else {
                assert_eq!(delivery.sent(), Sent::No, "{id} was not written");
            }
        }
    });
}
