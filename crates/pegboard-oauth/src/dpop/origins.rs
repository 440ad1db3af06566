//! What the servers of a key said about its proofs, by origin: the nonce of the next one, and their clocks.

use http::{HeaderMap, header::DATE};
use pegboard_base::sync::Mutex;
use url::Url;

use crate::clock::unix_now;

/// The most origins. A key is used at a server and its authorization server, and at others only after a change.
const MAX_ORIGINS: usize = 8;
/// The longest nonce.
const MAX_NONCE: usize = 1024;
/// A clock that differs by less is right, in seconds.
const MAX_SKEW: u64 = 5;
/// A clock that is off by more than a day is not followed: proofs for another day would outlive the key that they prove.
const MOST_SKEW: u64 = 24 * 60 * 60;

#[derive(Debug, Default)]
pub(super) struct Origins(Mutex<Vec<(String, OriginFacts)>>);

/// What the next proof for an origin needs.
#[derive(Debug, Clone, Default)]
pub(super) struct OriginFacts {
    pub(super) nonce: Option<String>,
    /// How far its clock is ahead, in seconds.
    pub(super) skew: i64,
}

impl Origins {
    pub(super) fn get(&self, url: &Url) -> OriginFacts {
        let origin = url.origin().ascii_serialization();
        let known = self.0.lock();
        let mut found = known.iter().filter(|(name, _)| *name == origin);
        found.next().map(|(_, known)| known.clone()).unwrap_or_default()
    }

    /// Takes the nonce of a response, and the clock of one that refuses a request. Returns whether the next proof will differ for it.
    pub(super) fn learn(&self, url: &Url, is_refusal: bool, response: &HeaderMap) -> bool {
        let nonce = nonce(response);
        let skew = skew(response).filter(|_| is_refusal);
        let is_off = skew.is_some_and(|skew| skew != 0);
        if nonce.is_none() && skew.is_none() {
            return false;
        }
        let is_lesson = nonce.is_some() || is_off;
        let origin = url.origin().ascii_serialization();
        let mut known = self.0.lock();
        let place = match known.iter().position(|(name, _)| *name == origin) {
            Some(place) => place,
            None => {
                if known.len() >= MAX_ORIGINS {
                    known.remove(0);
                }
                known.push((origin, OriginFacts::default()));
                known.len() - 1
            }
        };
        let (_, entry) = &mut known[place];
        entry.nonce = nonce.or(entry.nonce.take());
        entry.skew = skew.unwrap_or(entry.skew);
        is_lesson
    }
}

fn nonce(response: &HeaderMap) -> Option<String> {
    let nonce = response.get("dpop-nonce")?.to_str().ok()?.trim();
    (!nonce.is_empty() && nonce.len() <= MAX_NONCE).then(|| nonce.to_owned())
}

/// How far the server's clock is ahead, in seconds.
fn skew(response: &HeaderMap) -> Option<i64> {
    let date = response.get(DATE)?.to_str().ok()?;
    let date = jiff::fmt::rfc2822::parse(date).ok()?.timestamp().as_second();
    let skew = date.checked_sub_unsigned(unix_now())?;
    let is_followed = (MAX_SKEW + 1..=MOST_SKEW).contains(&skew.unsigned_abs());
    Some(if is_followed { skew } else { 0 })
}
