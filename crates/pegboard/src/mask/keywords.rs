//! Tells which of many words a text holds, in any case, at about the speed of reading it.
//!
//! Three bytes of each word are its mark. A sieve lets pass most stretches of a text in which no mark stands. In the others every three
//! bytes are looked up in one small table of marks, six places at a time and independently of each other, so that the processor can
//! work ahead. Only where a mark stands is the word compared.

mod prefilter;

use memchr::memchr2_iter;

use prefilter::{Prefilter, STRETCH};

/// How many bytes a mark has. Keywords that are shorter are looked for one by one.
const MARK: usize = 3;
/// How many bytes are read at once, and at how many places a mark can begin in them.
const BLOCK: usize = 8;
const PLACES: usize = BLOCK - MARK + 1;
/// The tables of the sieve are large, and not worth being fetched for shorter texts.
const LONG: usize = 512;
/// A stretch of text and what is read beyond it.
const MOST: usize = STRETCH + BLOCK;
/// The table has a slot for each number of so many bits.
const BITS: u32 = 14;
const SLOTS: usize = 1 << BITS;
/// Characters from the most to the least frequent ones, roughly as they are in prose, programs and JSON.
const FREQUENT: &[u8] = b" et\"aoinsr:hld,cum./fp-g=wy_bvkxjqz";

/// Keywords, ready to be looked for.
pub(super) struct Keywords {
    words: Vec<&'static str>,
    /// For each slot the number of its list, counted from one; zero where no mark belongs.
    lists_by_slot: Box<[u8; SLOTS]>,
    lists: Vec<Vec<Place>>,
    short: Vec<usize>,
    prefilter: Prefilter,
}

/// A word, and where in it its mark stands.
struct Place {
    word: usize,
    offset: usize,
}

impl Keywords {
    /// Keywords in lower case, each of them once, none of them empty.
    pub(super) fn new(words: Vec<&'static str>) -> Self {
        let mut lists_by_slot = Box::new([0; SLOTS]);
        let mut lists: Vec<Vec<Place>> = Vec::new();
        let (long, short) = (0..words.len()).partition::<Vec<_>, _>(|word| words[*word].len() >= MARK);
        let mut prefilter = Prefilter::default();
        for word in long {
            let (offset, slot) = mark(words[word].as_bytes());
            prefilter.catch(words[word].as_bytes(), offset);
            let list = &mut lists_by_slot[slot];
            if *list == 0 {
                // When there are as many lists as a byte can tell apart, the last one serves for all further slots.
                if lists.len() < usize::from(u8::MAX) {
                    lists.push(Vec::new());
                }
                *list = u8::try_from(lists.len()).unwrap_or(u8::MAX);
            }
            lists[usize::from(*list) - 1].push(Place { word, offset });
        }
        Self {
            words,
            lists_by_slot,
            lists,
            short,
            prefilter,
        }
    }

    /// Where each word stands first, by the number of the word; empty when none of them is in the text.
    pub(super) fn firsts(&self, text: &str) -> Vec<Option<usize>> {
        let bytes = text.as_bytes();
        let mut firsts = Vec::new();
        for word in &self.short {
            let first = self.words[*word].as_bytes()[0];
            let mut places = memchr2_iter(first, first.to_ascii_uppercase(), bytes);
            if let Some(start) = places.find(|at| self.stands_at(*word, *at, bytes)) {
                self.note(*word, start, &mut firsts);
            }
        }
        let mut at = 0;
        while bytes.len() >= LONG
            && let Some(stretch) = bytes[at..].first_chunk::<MOST>()
        {
            if self.prefilter.catches(stretch) {
                self.look_through(stretch, at, bytes, &mut firsts);
            }
            at += STRETCH;
        }
        while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
            self.look(block, at, bytes, &mut firsts);
            at += PLACES;
        }
        let rest = &bytes[at..];
        let mut last = [0; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        self.look(&last, at, bytes, &mut firsts);
        firsts
    }

    /// Looks for marks where the sieve caught something.
    #[inline(never)]
    fn look_through(&self, stretch: &[u8; MOST], at: usize, bytes: &[u8], firsts: &mut Vec<Option<usize>>) {
        self.prefilter.caught(stretch, |place| {
            if let Some(block) = stretch[place..].first_chunk() {
                let list = self.lists_by_slot[slot(fold(*block) as u32)];
                self.compare(list, at + place, bytes, firsts);
            }
        });
    }

    /// Looks for marks in one block.
    #[inline(always)]
    fn look(&self, block: &[u8; BLOCK], at: usize, bytes: &[u8], firsts: &mut Vec<Option<usize>>) {
        let folded = fold(*block);
        let list = |place: usize| self.lists_by_slot[slot((folded >> (8 * place)) as u32)];
        let lists: [u8; PLACES] = std::array::from_fn(list);
        if lists.iter().fold(0, |any, list| any | list) != 0 {
            for (place, list) in lists.into_iter().enumerate() {
                self.compare(list, at + place, bytes, firsts);
            }
        }
    }

    /// Compares the words of a list, whose mark seems to stand at `at`.
    fn compare(&self, list: u8, at: usize, bytes: &[u8], firsts: &mut Vec<Option<usize>>) {
        let Some(list) = usize::from(list).checked_sub(1) else {
            return;
        };
        for Place { word, offset } in &self.lists[list] {
            let is_known = firsts.get(*word).is_some_and(Option::is_some);
            if let Some(start) = at.checked_sub(*offset)
                && !is_known
                && self.stands_at(*word, start, bytes)
            {
                self.note(*word, start, firsts);
            }
        }
    }

    fn stands_at(&self, word: usize, start: usize, bytes: &[u8]) -> bool {
        let word = self.words[word].as_bytes();
        let there = bytes.get(start..start + word.len());
        there.is_some_and(|there| there.eq_ignore_ascii_case(word))
    }

    fn note(&self, word: usize, start: usize, firsts: &mut Vec<Option<usize>>) {
        firsts.resize(self.words.len(), None);
        firsts[word] = Some(start);
    }
}

/// The three bytes of a word that are the least likely to stand in a text, and their slot.
fn mark(word: &[u8]) -> (usize, usize) {
    let frequency = |byte: &u8| match FREQUENT.iter().position(|letter| letter == byte) {
        Some(rank) => FREQUENT.len() - rank,
        None => 1,
    };
    let weight = |offset: &usize| -> usize { word[*offset..offset + MARK].iter().map(frequency).sum() };
    let offset = (0..=word.len() - MARK).min_by_key(weight).unwrap_or(0);
    let mut block = [0; BLOCK];
    block[..MARK].copy_from_slice(&word[offset..offset + MARK]);
    (offset, slot(fold(block) as u32))
}

/// Eight bytes with capital letters as small ones. Other bytes change as well, which the comparison puts right.
fn fold(block: [u8; BLOCK]) -> u64 {
    u64::from_le_bytes(block) | u64::from_le_bytes([b' '; BLOCK])
}

/// The slot of the first three of four bytes.
#[inline(always)]
fn slot(bytes: u32) -> usize {
    ((bytes << 8).wrapping_mul(0x9e37_79b9) >> (u32::BITS - BITS)) as usize
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use proptest::prelude::*;

    const SOME: [&str; 10] = [
        "@",
        "q~",
        "key",
        "keys",
        "secret",
        "password",
        "pass",
        "://",
        "-----begin",
        "ssw",
    ];

    fn slowly(text: &str) -> Vec<Option<usize>> {
        let lower = text.to_ascii_lowercase();
        SOME.iter().map(|word| lower.find(word)).collect()
    }

    fn quickly(text: &str) -> Vec<Option<usize>> {
        static WORDS: LazyLock<Keywords> = LazyLock::new(|| Keywords::new(SOME.to_vec()));
        let mut firsts = WORDS.firsts(text);
        firsts.resize(SOME.len(), None);
        firsts
    }

    #[test]
    fn a_word_is_found_at_every_place_in_any_case() {
        for word in SOME {
            for before in 0..20 {
                for after in 0..10 {
                    for word in [word.to_owned(), word.to_ascii_uppercase()] {
                        let text = format!("{}{word}{}", ".".repeat(before), "é".repeat(after));
                        assert_eq!(quickly(&text), slowly(&text), "{text}");
                        assert!(quickly(&text).contains(&Some(before)), "{text}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_word_is_found_wherever_stretches_begin_and_end() {
        for word in SOME {
            for before in 0..100 {
                let text = format!(
                    "{}{word}{}",
                    "é".repeat(before / 2) + &"x".repeat(before % 2),
                    ",".repeat(90)
                );
                assert_eq!(quickly(&text), slowly(&text), "{text}");
            }
        }
    }

    #[test]
    fn more_words_than_there_are_lists_are_all_found() {
        let words: Vec<&'static str> = (0..700).map(|n| &*format!("w{n:03}").leak()).collect();
        let all = Keywords::new(words.clone());
        for (number, word) in words.iter().enumerate() {
            assert_eq!(all.firsts(&format!("a {word} b"))[number], Some(2), "{word}");
        }
    }

    proptest! {
        #[test]
        fn the_first_of_each_word_is_found(text in "(key|KEY|secre|t|pass|word|ss|w|:/|/|-{1,6}|begin|[@q~é. ]|[a-z]{9}){0,300}") {
            prop_assert_eq!(quickly(&text), slowly(&text));
        }
    }
}
