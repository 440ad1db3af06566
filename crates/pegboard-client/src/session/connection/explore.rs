//! Cancellation under every order of threads.

use pegboard_base::BoxFuture;
use shuttle::{future::block_on, thread};

use super::*;
use crate::{session::explore::no_host, transport::Inbox};
use pegboard_base::{
    deadline::Deadline,
    sync::{
        Mutex,
        explore::{explore, idle_runtime},
    },
};

/// Writes each message in a thread of its own, and records what was written.
#[derive(Default)]
struct Threads {
    written: Arc<Mutex<Vec<String>>>,
    writers: Mutex<Vec<thread::JoinHandle<()>>>,
}

impl Wire for Threads {
    fn send(&self, message: Outgoing) {
        let written = self.written.clone();
        let writer = thread::spawn(move || {
            if message.delivery.begin() {
                let text = String::from_utf8_lossy(&message.body).into_owned();
                written.lock().push(text);
                message.delivery.mark_sent();
            }
        });
        self.writers.lock().push(writer);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[test]
fn a_request_reported_as_unsent_is_never_written_and_a_written_one_is_cancelled() {
    explore(|| {
        let runtime = idle_runtime();
        let _entered = runtime.enter();
        let passed = Deadline::within(Duration::ZERO);
        let (dispatcher, requests) = Dispatcher::for_tests();
        let wire = Arc::new(Threads::default());
        let responding = host::ResponderTask {
            requests,
            responder: no_host(),
        };
        let connection = RpcConnection::new(dispatcher.clone(), wire.clone(), responding, &TaskTracker::new());

        let patience = Patience::until(passed);
        let fault = block_on(connection.request(Request::new("tools/call", Params::default()), patience)).unwrap_err();
        assert!(matches!(fault.kind, FaultKind::TimedOut { .. }), "{fault:?}");

        let writers = std::mem::take(&mut *wire.writers.lock());
        for writer in writers {
            writer.join().unwrap();
        }
        let written = wire.written.lock().clone();
        let wrote = |method: &str| written.iter().any(|text| text.contains(method));
        assert_eq!(
            wrote("tools/call"),
            fault.sent != Sent::No,
            "{fault:?}, and written was {written:?}"
        );
        assert_eq!(wrote("tools/call"), wrote("notifications/cancelled"), "{written:?}");
        assert!(!dispatcher.waits_for(1));
    });
}
