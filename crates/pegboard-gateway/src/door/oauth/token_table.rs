//! [`TokenTable`]: remembers a bounded number of tokens by their digests, without a lock.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

/// How many places a token may be in.
const WAYS: usize = 4;

/// A table of fixed size. A token that finds no place takes that of another one, which is then verified again.
pub(super) struct TokenTable<T> {
    slots: Box<[ArcSwapOption<Slot<T>>]>,
}

struct Slot<T> {
    digest: [u8; 32],
    value: Arc<T>,
}

impl<T> TokenTable<T> {
    /// A table for so many tokens.
    pub(super) fn new(size: usize) -> Self {
        let places = size.next_multiple_of(WAYS);
        Self {
            slots: (0..places).map(|_| ArcSwapOption::empty()).collect(),
        }
    }

    /// What is remembered of a token.
    pub(super) fn get(&self, digest: &[u8; 32]) -> Option<Arc<T>> {
        // A comparison that takes a varying time tells nothing: a digest leads to no token.
        self.places_of(digest).iter().find_map(|place| {
            let entry = place.load();
            let entry = entry.as_ref().filter(|entry| entry.digest == *digest)?;
            Some(entry.value.clone())
        })
    }

    /// Remembers a token, in the place of one that `is_old` if there is no free one.
    pub(super) fn put(&self, digest: [u8; 32], value: Arc<T>, is_old: impl Fn(&T) -> bool) {
        let places = self.places_of(&digest);
        let is =
            |wanted: &dyn Fn(Option<&Slot<T>>) -> bool| places.iter().position(|place| wanted(place.load().as_deref()));
        let own = is(&|entry| entry.is_some_and(|entry| entry.digest == digest));
        let free = || is(&|entry| entry.is_none_or(|entry| is_old(&entry.value)));
        let any = usize::from(digest[8]) % WAYS;
        let chosen = own.or_else(free).unwrap_or(any);
        if let Some(place) = places.get(chosen) {
            place.store(Some(Arc::new(Slot { digest, value })));
        }
    }

    fn places_of(&self, digest: &[u8; 32]) -> &[ArcSwapOption<Slot<T>>] {
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        let sets = (self.slots.len() / WAYS) as u64;
        let set = usize::try_from(u64::from_le_bytes(first) % sets.max(1)).unwrap_or(0);
        self.slots.get(set * WAYS..(set + 1) * WAYS).unwrap_or_default()
    }

    /// How many tokens are remembered.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slots.iter().filter(|place| place.load().is_some()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(number: u64) -> [u8; 32] {
        let digest = ring::digest::digest(&ring::digest::SHA256, &number.to_le_bytes());
        digest.as_ref().try_into().unwrap()
    }

    #[test]
    fn tokens_are_found_and_their_number_is_bounded() {
        let table = TokenTable::new(64);
        for number in 0..10_000 {
            table.put(digest(number), Arc::new(number), |_| false);
            assert_eq!(table.get(&digest(number)).as_deref(), Some(&number));
        }
        assert!(table.len() <= 64, "{}", table.len());
        assert_eq!(table.get(&digest(10_000)), None);
    }

    #[test]
    fn old_tokens_make_room_first_and_a_token_has_one_place() {
        let table = TokenTable::new(WAYS);
        for number in 0..4 {
            table.put(digest(number), Arc::new(number), |_| false);
        }
        table.put(digest(9), Arc::new(9), |old| *old == 2);
        for number in [0, 1, 3, 9] {
            assert!(table.get(&digest(number)).is_some(), "{number}");
        }
        table.put(digest(9), Arc::new(10), |_| true);
        assert_eq!(table.get(&digest(9)).as_deref(), Some(&10));
        assert_eq!(table.len(), 4);
    }
}
