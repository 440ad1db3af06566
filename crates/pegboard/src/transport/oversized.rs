//! A message that is too large to keep, while its end is looked for.

/// How much of each end is kept, to find out whose answer it was.
pub(super) const KEPT_END: usize = 256;
/// A message this many times larger than allowed has no end.
const ENDLESS: usize = 8;

/// What is kept of a message that is too large.
#[derive(Debug, Default)]
pub(super) struct Oversized {
    pub(super) head: Vec<u8>,
    pub(super) tail: Vec<u8>,
    pub(super) bytes: usize,
}

impl Oversized {
    /// The next part of the message.
    pub(super) fn add(&mut self, part: &[u8]) {
        self.bytes += part.len();
        let room = KEPT_END.saturating_sub(self.head.len());
        self.head.extend_from_slice(&part[..part.len().min(room)]);
        self.tail
            .extend_from_slice(&part[part.len().saturating_sub(KEPT_END)..]);
        let surplus = self.tail.len().saturating_sub(KEPT_END);
        self.tail.drain(..surplus);
    }

    /// Whether the message is not worth reading on, where messages may have `limit` bytes.
    pub(super) fn is_endless(&self, limit: usize) -> bool {
        self.bytes > limit.saturating_mul(ENDLESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_kept_however_the_parts_are_cut() {
        let whole: Vec<u8> = (0..2_000u32).map(|n| (n % 251) as u8).collect();
        for size in [1, 7, 255, 256, 257, 2_000] {
            let mut skipped = Oversized::default();
            whole.chunks(size).for_each(|part| skipped.add(part));
            assert_eq!((skipped.bytes, &*skipped.head), (2_000, &whole[..KEPT_END]), "{size}");
            assert_eq!(skipped.tail, whole[2_000 - KEPT_END..], "{size}");
            assert!(skipped.is_endless(249) && !skipped.is_endless(250));
        }
    }
}
