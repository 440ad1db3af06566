//! A message over the size limit: only its first and last bytes are kept; the rest is dropped as it is read.

/// How many bytes are kept at each end, to find the id of the request that the message responds to.
pub(super) const KEPT_BYTES: usize = 256;
/// A message that exceeds the limit by this factor is not read any further.
const MAX_FACTOR: usize = 8;

/// The first and last bytes of a message over the size limit.
#[derive(Debug, Default)]
pub(super) struct Oversized {
    pub(super) head: Vec<u8>,
    pub(super) tail: Vec<u8>,
    pub(super) bytes: usize,
}

impl Oversized {
    /// Adds the next part of the message.
    pub(super) fn add(&mut self, part: &[u8]) {
        self.bytes += part.len();
        let room = KEPT_BYTES.saturating_sub(self.head.len());
        self.head.extend_from_slice(&part[..part.len().min(room)]);
        self.tail
            .extend_from_slice(&part[part.len().saturating_sub(KEPT_BYTES)..]);
        let surplus = self.tail.len().saturating_sub(KEPT_BYTES);
        self.tail.drain(..surplus);
    }

    /// Whether the message exceeds `limit` by so much that the connection is given up.
    pub(super) fn is_endless(&self, limit: usize) -> bool {
        self.bytes > limit.saturating_mul(MAX_FACTOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_kept_however_the_message_is_split() {
        let whole: Vec<u8> = (0..2_000u32).map(|n| (n % 251) as u8).collect();
        for size in [1, 7, 255, 256, 257, 2_000] {
            let mut oversized = Oversized::default();
            whole.chunks(size).for_each(|part| oversized.add(part));
            assert_eq!(
                (oversized.bytes, &*oversized.head),
                (2_000, &whole[..KEPT_BYTES]),
                "{size}"
            );
            assert_eq!(oversized.tail, whole[2_000 - KEPT_BYTES..], "{size}");
            assert!(oversized.is_endless(249) && !oversized.is_endless(250));
        }
    }
}
