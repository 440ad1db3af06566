//! Which replica has a legacy session: the one that opened it, or the one that went on with it when that had ended.

use bytes::Bytes;
use pegboard_store::{Key, PutNew, Replaced, StoreError};

use super::registry::{Known, Replicas};
use crate::protocol::{ReplicaId, SESSION_LIFETIME};

/// How often another replica may take a session over while this one looks for its owner.
const MAX_TAKEOVERS: usize = 4;

/// Which replica has a session.
pub(crate) enum SessionOwner {
    /// This one, perhaps from now on.
    This,
    Other(std::sync::Arc<super::registry::Replica>),
    /// Its client has ended it.
    Ended,
}

/// What the store says of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    Owned(ReplicaId),
    Ended,
}

impl Replicas {
    /// Notes that a session was opened here. If the store does not answer, another replica may go on with it while this one lives.
    /// `handshake` is what the id of the session has no room for, sealed.
    pub(crate) async fn note_session(&self, id: &str, handshake: Option<String>) {
        let entry = Entry::Owned(self.this()).write();
        let _ = self.note(self.0.store.put(&key_of(id), entry, SESSION_LIFETIME).await);
        if let Some(handshake) = handshake {
            let key = handshake_key(id);
            let _ = self.note(self.0.store.put(&key, handshake.into(), SESSION_LIFETIME).await);
        }
    }

    /// What the id of a session had no room for.
    pub(crate) async fn kept_handshake(&self, id: &str) -> Result<Option<String>, StoreError> {
        let kept = self.note(self.0.store.get(&handshake_key(id)).await)?;
        Ok(kept.and_then(|kept| String::from_utf8(kept.bytes.to_vec()).ok()))
    }

    /// Notes that a session was ended by its client.
    pub(crate) async fn note_end_of_session(&self, id: &str) -> Result<(), StoreError> {
        self.note(
            self.0
                .store
                .put(&key_of(id), Entry::Ended.write(), SESSION_LIFETIME)
                .await,
        )
    }

    /// Finds the owner of a session that this process does not know, and takes it over if there is none. The caller must have shown that it opened the session.
    /// `opener` is the process where that was, which has it still if the store has lost that.
    pub(crate) async fn find_session(&self, id: &str, opener: Option<ReplicaId>) -> Result<SessionOwner, StoreError> {
        let key = key_of(id);
        let this = Entry::Owned(self.this()).write();
        let store = &self.0.store;
        let mut current = self.note(store.get(&key).await)?;
        for _ in 0..MAX_TAKEOVERS {
            let Some(value) = current else {
                let other = match opener {
                    Some(opener) => self.find(opener).await?,
                    None => Known::This,
                };
                let entry = match (&other, opener) {
                    (Known::Other(_), Some(opener)) => Entry::Owned(opener).write(),
                    _ => this.clone(),
                };
                match (self.note(store.put_new(&key, entry, SESSION_LIFETIME).await)?, other) {
                    (PutNew::Stored(_), Known::Other(replica)) => return Ok(SessionOwner::Other(replica)),
                    (PutNew::Stored(_), Known::This) => return Ok(SessionOwner::This),
                    (PutNew::Stored(_), Known::Gone) => return Ok(self.take_over()),
                    (PutNew::Exists(value), _) => current = Some(value),
                }
                continue;
            };
            // What cannot be read was written by a later version of this program.
            match Entry::read(&value.bytes) {
                None | Some(Entry::Ended) => return Ok(SessionOwner::Ended),
                Some(Entry::Owned(owner)) => match self.find(owner).await? {
                    Known::This => return Ok(SessionOwner::This),
                    Known::Other(replica) => return Ok(SessionOwner::Other(replica)),
                    Known::Gone => {}
                },
            }
            let replaced = store
                .replace(&key, &value.version, this.clone(), SESSION_LIFETIME)
                .await;
            match self.note(replaced)? {
                Replaced::Stored(_) => return Ok(self.take_over()),
                Replaced::Lost(value) => current = value,
            }
        }
        // Replicas end faster than this one can follow: it goes on with the session, as it would without a store.
        Ok(self.take_over())
    }

    fn take_over(&self) -> SessionOwner {
        self.count_adopted();
        SessionOwner::This
    }
}

fn handshake_key(id: &str) -> Key {
    Key::secret("handshake", &[], id.as_bytes())
}

fn key_of(id: &str) -> Key {
    Key::secret("session", &[], id.as_bytes())
}

impl Entry {
    fn write(self) -> Bytes {
        match self {
            Self::Owned(ReplicaId(id)) => [&b"o"[..], &id.to_be_bytes()].concat().into(),
            Self::Ended => Bytes::from_static(b"e"),
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (b'o', id) => Some(Self::Owned(ReplicaId(u64::from_be_bytes(id.try_into().ok()?)))),
            (b'e', []) => Some(Self::Ended),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_it_is_written() {
        for entry in [Entry::Owned(ReplicaId(7)), Entry::Ended] {
            assert_eq!(Entry::read(&entry.write()), Some(entry));
        }
        for other in [&b""[..], b"o", b"o1234567890", b"ee", b"x"] {
            assert_eq!(Entry::read(other), None);
        }
    }
}
