//! Tests of the session state.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

use tokio::sync::mpsc;

use super::*;
use crate::transport::{
    delivery::{Delivery, Sent},
    request_failure::{FailureKind, WireFailure},
};
use pegboard_base::secret::SafeUrl;

fn endpoint() -> Endpoint {
    Endpoint::from(SafeUrl::parse("http://127.0.0.1:9/mcp").unwrap())
}

/// Forwards the failures of requests.
struct Failures(mpsc::Sender<WireFailure>);

impl Inbox for Failures {
    fn message(&self, _message: Bytes) -> Option<u64> {
        None
    }
    fn too_long(&self, _head: &[u8], _tail: &[u8], _limit: usize) {}
    fn waits_for(&self, _id: u64) -> bool {
        true
    }
    fn report_failure(&self, _id: u64, failure: WireFailure) {
        let _ = self.0.try_send(failure);
    }
    fn report_end(&self, _end: WireEnd) {}
}

/// Ignores everything.
struct Ignoring;

impl Inbox for Ignoring {
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

#[tokio::test]
async fn the_session_id_is_marked_sensitive_and_never_printed() {
    let http = Http::new(&endpoint(), &Limits::default(), None, Arc::new(Ignoring))
        .await
        .unwrap();
    let session = &http.session;
    let mut answer = HeaderMap::new();
    answer.insert("mcp-session-id", HeaderValue::from_static("5e551011-1d"));
    session.store_session_id(&answer).unwrap();
    let id = session.state.lock().id.clone();
    let request = http_client::mcp_headers(&Envelope::default(), id.as_ref());
    assert_eq!(request["mcp-session-id"], "5e551011-1d");
    assert!(request["mcp-session-id"].is_sensitive());
    let printed = format!("{request:?}");
    assert!(!printed.contains("5e551011-1d"), "{printed}");
}

#[tokio::test]
async fn a_request_that_comes_after_the_end_of_the_session_is_not_sent() {
    let (failed, mut failures) = mpsc::channel(1);
    let http = Http::new(&endpoint(), &Limits::default(), None, Arc::new(Failures(failed)))
        .await
        .unwrap();
    http.session.state.lock().over = Some("the server does not know our session any more");
    http.send(Outgoing {
        body: b"{}".to_vec(),
        id: Some(7),
        delivery: Arc::new(Delivery::default()),
        envelope: Envelope::default(),
        taken: None,
    });
    let failure = failures.recv().await.unwrap();
    assert!(matches!(failure.kind, FailureKind::SessionGone), "{failure:?}");
    assert_eq!(failure.sent, Sent::No);
}
