//! What a file of a store contains: a record with its name, its expiry and a checksum.

use std::collections::VecDeque;

use bytes::{Buf, BufMut, Bytes};
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

use crate::{key::Key, lease::LeaseState, log::LogState, rate::Bucket};

/// What a file begins with.
const MAGIC: &[u8] = b"pegboard 1\n";

/// How much of a file says when it expires.
pub(super) const HEAD: usize = MAGIC.len() + SHA256_OUTPUT_LEN + 8;

/// By how much a file is larger than its content.
pub(super) const OVERHEAD: usize = HEAD + 4 + Key::MAX_BYTES;

/// An entry that was read from a file.
pub(super) struct Record {
    pub(super) name: String,
    pub(super) expires_micros: u64,
    pub(super) content: Bytes,
}

/// The bytes of a file.
pub(super) fn encode(name: &str, expires_micros: u64, content: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(12 + name.len() + content.len());
    body.put_u64(expires_micros);
    body.put_u32(u32::try_from(name.len()).unwrap_or(u32::MAX));
    body.put_slice(name.as_bytes());
    body.put_slice(content);
    let mut file = Vec::with_capacity(MAGIC.len() + SHA256_OUTPUT_LEN + body.len());
    file.put_slice(MAGIC);
    file.put_slice(digest(&SHA256, &body).as_ref());
    file.put_slice(&body);
    file
}

/// Reads the bytes of a file. `None` if they are not what was written.
pub(super) fn decode(file: Vec<u8>) -> Option<Record> {
    let mut file = Bytes::from(file);
    if !file.starts_with(MAGIC) || file.len() < HEAD {
        return None;
    }
    file.advance(MAGIC.len());
    let checksum = file.split_to(SHA256_OUTPUT_LEN);
    if digest(&SHA256, &file).as_ref() != checksum.as_ref() {
        return None;
    }
    let expires_micros = file.try_get_u64().ok()?;
    let name = take_counted(&mut file)?;
    Some(Record {
        name: String::from_utf8(name.to_vec()).ok()?,
        expires_micros,
        content: file,
    })
}

/// When a file expires, from its first [`HEAD`] bytes, which may be damaged.
pub(super) fn expiry(head: &[u8]) -> Option<u64> {
    let mut rest = head.strip_prefix(MAGIC)?.get(SHA256_OUTPUT_LEN..)?;
    rest.try_get_u64().ok()
}

/// Content that is not a value.
pub(super) trait State: Sized {
    fn encode(&self) -> Vec<u8>;
    /// `None` if it is damaged.
    fn decode(content: Bytes) -> Option<Self>;
}

impl State for LogState {
    fn encode(&self) -> Vec<u8> {
        let mut content = Vec::with_capacity(16 + self.bytes + 4 * self.entries.len());
        content.put_u64(self.base);
        content.put_u64(self.dropped);
        for entry in &self.entries {
            content.put_u32(u32::try_from(entry.len()).unwrap_or(u32::MAX));
            content.put_slice(entry);
        }
        content
    }

    fn decode(mut content: Bytes) -> Option<Self> {
        let base = content.try_get_u64().ok()?;
        let dropped = content.try_get_u64().ok()?;
        let mut entries = VecDeque::new();
        while content.has_remaining() {
            entries.push_back(take_counted(&mut content)?);
        }
        Some(Self {
            base,
            dropped,
            bytes: entries.iter().map(Bytes::len).sum(),
            entries,
        })
    }
}

impl State for Bucket {
    fn encode(&self) -> Vec<u8> {
        let mut content = Vec::with_capacity(16);
        content.put_f64(self.tokens);
        content.put_u64(self.at_micros);
        content
    }

    fn decode(mut content: Bytes) -> Option<Self> {
        let tokens = content.try_get_f64().ok()?;
        let at_micros = content.try_get_u64().ok()?;
        tokens.is_finite().then_some(Self { tokens, at_micros })
    }
}

impl State for LeaseState {
    fn encode(&self) -> Vec<u8> {
        let mut content = Vec::with_capacity(16 + self.holder.len());
        content.put_u64(self.fence);
        content.put_u64(self.until_micros);
        content.put_slice(self.holder.as_bytes());
        content
    }

    fn decode(mut content: Bytes) -> Option<Self> {
        Some(Self {
            fence: content.try_get_u64().ok()?,
            until_micros: content.try_get_u64().ok()?,
            holder: String::from_utf8(content.to_vec()).ok()?,
        })
    }
}

/// Takes bytes with their number in front.
fn take_counted(bytes: &mut Bytes) -> Option<Bytes> {
    let count = usize::try_from(bytes.try_get_u32().ok()?).ok()?;
    (count <= bytes.len()).then(|| bytes.split_to(count))
}
