//! [`Envelope`]: a request on its way from the replica that it reached to the one that it belongs to, sealed with the key that they share. Whoever is at
//! the other end of the connection can read nothing of it without the key, and an answer must prove that it was opened.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use serde::{Deserialize, Serialize};

use super::{
    registry::Replicas,
    replay_guard::{Admitted, MAX_AGE},
};
use crate::protocol::{ReplicaId, Sealer};

/// The header of a response by which the owner proves that it has opened the request.
pub(crate) const PROOF: HeaderName = HeaderName::from_static("pegboard-replica");

/// Set in the response of a replica that has not taken the request.
pub(crate) const REFUSED: HeaderName = HeaderName::from_static("pegboard-replica-refused");
pub(crate) const OTHER_REPLICA: HeaderValue = HeaderValue::from_static("other-replica");
pub(crate) const STALE: HeaderValue = HeaderValue::from_static("stale");
pub(crate) const BUSY: HeaderValue = HeaderValue::from_static("busy");
pub(crate) const REPEATED: HeaderValue = HeaderValue::from_static("repeated");

const REQUEST: &[u8] = b"a request for another replica";
const RESPONSE: &[u8] = b"the proof of a replica";

/// What tells one forwarded request from all others.
pub(super) type Nonce = [u8; 8];

/// A request that was forwarded to this replica.
pub(crate) struct Envelope {
    pub(crate) request: Request<Bytes>,
    pub(crate) proof: HeaderValue,
}

/// Why a forwarded request is not taken.
pub(crate) enum NotOpened {
    /// It is no such request, or of a gateway with another key.
    Unknown,
    /// This replica does not take it: why, as the value of [`REFUSED`], and the proof that it was opened.
    Refused(HeaderValue, HeaderValue),
}

#[derive(Serialize, Deserialize)]
struct Head {
    to: u64,
    /// Seconds since 1970.
    at: u64,
    nonce: Nonce,
    method: String,
    uri: String,
    /// Values are in base64, because they may have any bytes.
    headers: Vec<(String, String)>,
}

/// Seals a request for a replica. Returns what must be in the proof as well.
pub(super) fn seal(
    sealer: &Sealer,
    to: ReplicaId,
    (method, uri, headers): (&Method, &Uri, &HeaderMap),
    body: &[u8],
) -> Option<(Bytes, Nonce)> {
    let mut nonce = Nonce::default();
    getrandom::fill(&mut nonce).ok()?;
    let head = Head {
        to: to.0,
        at: now(),
        nonce,
        method: method.to_string(),
        uri: uri.to_string(),
        headers: headers
            .iter()
            .map(|(name, value)| (name.to_string(), BASE64_STANDARD_NO_PAD.encode(value)))
            .collect(),
    };
    let head = serde_json::to_vec(&head).ok()?;
    let length = u32::try_from(head.len()).ok()?;
    let plain = [&length.to_be_bytes()[..], &head, body].concat();
    Some((sealer.seal(REQUEST, &plain)?.into(), nonce))
}

/// Whether a response proves that its sender has opened the request with this nonce.
pub(super) fn is_proof(sealer: &Sealer, proof: Option<&HeaderValue>, nonce: Nonce) -> bool {
    let sealed = proof.and_then(|proof| BASE64_STANDARD_NO_PAD.decode(proof).ok());
    let opened = sealed.and_then(|sealed| sealer.open(RESPONSE, &sealed));
    opened.is_some_and(|opened| opened == nonce)
}

impl Replicas {
    /// Opens a request that was sent to the listener for replicas.
    pub(crate) fn open(&self, sealed: &[u8]) -> Result<Envelope, NotOpened> {
        let opened = self
            .0
            .sealer
            .open(REQUEST, sealed)
            .map(Bytes::from)
            .ok_or(NotOpened::Unknown)?;
        let (head, body) = split(&opened).ok_or(NotOpened::Unknown)?;
        let proof = self.prove(head.nonce).ok_or(NotOpened::Unknown)?;
        if head.to != self.this().0 {
            return Err(NotOpened::Refused(OTHER_REPLICA, proof));
        }
        if now().abs_diff(head.at) > MAX_AGE.as_secs() {
            return Err(NotOpened::Refused(STALE, proof));
        }
        match self.0.replays.admit(u64::from_be_bytes(head.nonce)) {
            Admitted::Once => {}
            Admitted::Before => return Err(NotOpened::Refused(REPEATED, proof)),
            Admitted::Full => return Err(NotOpened::Refused(BUSY, proof)),
        }
        let request = head.into_request(body).ok_or(NotOpened::Unknown)?;
        self.count_received();
        Ok(Envelope { request, proof })
    }

    fn prove(&self, nonce: Nonce) -> Option<HeaderValue> {
        let sealed = self.0.sealer.seal(RESPONSE, &nonce)?;
        HeaderValue::try_from(BASE64_STANDARD_NO_PAD.encode(sealed)).ok()
    }
}

fn split(opened: &Bytes) -> Option<(Head, Bytes)> {
    let (length, rest) = opened.split_first_chunk()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (head, body) = rest.split_at_checked(length)?;
    Some((serde_json::from_slice(head).ok()?, opened.slice_ref(body)))
}

impl Head {
    fn into_request(self, body: Bytes) -> Option<Request<Bytes>> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method.parse().ok()?;
        *request.uri_mut() = self.uri.parse().ok()?;
        for (name, value) in self.headers {
            let value = BASE64_STANDARD_NO_PAD.decode(value).ok()?;
            let mut value = HeaderValue::from_bytes(&value).ok()?;
            value.set_sensitive(true);
            request.headers_mut().append(HeaderName::try_from(name).ok()?, value);
        }
        Some(request)
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pegboard_store::MemoryStore;

    use super::*;

    fn replica(key: u8) -> Replicas {
        let sealer = Arc::new(Sealer::with_key(&[key; 32]));
        Replicas::new(Arc::new(MemoryStore::new()), sealer, None).unwrap()
    }

    fn sealed(from: &Replicas, to: ReplicaId) -> (Bytes, Nonce) {
        let mut headers = HeaderMap::new();
        headers.append("authorization", HeaderValue::from_static("Bearer secret"));
        headers.append("x-odd", HeaderValue::from_bytes(b"\xff").unwrap());
        headers.append("x-odd", HeaderValue::from_static("two"));
        let head = (&Method::POST, &Uri::from_static("/mcp?a=b"), &headers);
        seal(&from.0.sealer, to, head, b"body").unwrap()
    }

    #[test]
    fn a_request_arrives_as_it_was_sent_and_its_owner_proves_it() {
        let (from, to) = (replica(1), replica(1));
        let (sealed, nonce) = sealed(&from, to.this());
        assert!(!sealed.windows(6).any(|part| part == b"secret"));
        let Ok(Envelope { request, proof }) = to.open(&sealed) else {
            panic!("it has the key")
        };
        assert_eq!(
            (request.method(), request.uri().to_string().as_str()),
            (&Method::POST, "/mcp?a=b")
        );
        assert_eq!(request.headers()["authorization"], "Bearer secret");
        let odd: Vec<_> = request
            .headers()
            .get_all("x-odd")
            .iter()
            .map(HeaderValue::as_bytes)
            .collect();
        assert_eq!(odd, [&b"\xff"[..], b"two"]);
        assert_eq!(request.body(), "body");
        assert!(is_proof(&from.0.sealer, Some(&proof), nonce));
        assert!(!is_proof(&from.0.sealer, Some(&proof), [0; 8]));
        assert!(!is_proof(&from.0.sealer, None, nonce));
    }

    #[test]
    fn a_request_is_taken_once_by_the_replica_that_it_is_for() {
        let (from, to, other) = (replica(1), replica(1), replica(1));
        let (sealed, _) = sealed(&from, to.this());
        assert!(matches!(other.open(&sealed), Err(NotOpened::Refused(why, _)) if why == OTHER_REPLICA));
        assert!(matches!(replica(2).open(&sealed), Err(NotOpened::Unknown)));
        assert!(to.open(&sealed).is_ok());
        assert!(matches!(to.open(&sealed), Err(NotOpened::Refused(why, _)) if why == REPEATED));
        for at in 0..sealed.len() {
            let mut altered = sealed.to_vec();
            altered[at] ^= 1;
            assert!(matches!(to.open(&altered), Err(NotOpened::Unknown)), "byte {at}");
        }
        assert!(matches!(to.open(b""), Err(NotOpened::Unknown)));
    }
}
