//! Finds which of many keywords occur in a text, ignoring case, at about the speed of reading it.
//!
//! Each keyword is represented by its rarest trigram. A prefilter skips most windows of a text in which no such trigram begins. In the other
//! windows each trigram is looked up in one small table, six at a time and independently of each other, so that the processor can overlap
//! the lookups. Only where the table has a trigram is the whole keyword compared.

mod prefilter;

use std::{fmt, sync::OnceLock};

use memchr::{memchr2_iter, memchr3_iter};

use prefilter::{FREQUENT, Prefilter, TRIGRAM, WINDOW};

/// How many bytes are read at once, and how many trigrams begin in them.
const BLOCK: usize = 8;
const TRIGRAMS: usize = BLOCK - TRIGRAM + 1;
/// The shortest text that is prefiltered. The tables are large and not worth loading into the cache for shorter ones.
const MIN_PREFILTERED: usize = 512;
/// The length of a window and the bytes that are read beyond it.
const WINDOW_READ: usize = WINDOW + BLOCK;
/// The bits of a slot number in the table of trigrams.
const BITS: u32 = 14;
const SLOTS: usize = 1 << BITS;

/// A set of keywords, compiled for searching.
#[doc(hidden)]
pub struct Keywords {
    words: Vec<&'static str>,
    /// For each slot the number of its list, counted from one; zero for slots without a trigram.
    lists_by_slot: Box<[u8; SLOTS]>,
    lists: Vec<Vec<TrigramMatch>>,
    short: Vec<usize>,
    /// The bytes with which the short ones begin, in both cases.
    short_firsts: Vec<u8>,
    /// Built for the first long text, because most programs start for a few short ones.
    prefilter: OnceLock<Prefilter>,
}

/// A keyword, and the offset of its trigram.
struct TrigramMatch {
    word: usize,
    offset: usize,
}

/// Collects the keywords that are found in a text.
trait Sink {
    /// Whether further places of a keyword matter.
    fn wants(&self, word: usize) -> bool;
    fn add(&mut self, word: usize, start: usize);
}

/// The places of the keywords in a text.
#[derive(Debug)]
pub(super) struct Places<'k> {
    /// How many places of each keyword were found, at most `most`; empty if there are none at all.
    counts: Vec<usize>,
    most: usize,
    is_many: &'k [bool],
    /// Keyword and place. The places of one keyword are in order.
    found: Vec<(usize, usize)>,
    words: usize,
}

impl Places<'_> {
    /// Whether no keyword occurs.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Keywords and their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        self.found.iter().copied()
    }

    /// How many places of a keyword were recorded.
    pub(super) fn count(&self, word: usize) -> usize {
        self.counts.get(word).copied().unwrap_or(0)
    }
}

impl Sink for Places<'_> {
    fn wants(&self, word: usize) -> bool {
        let most = if self.is_many[word] { self.most } else { 1 };
        self.counts.get(word).is_none_or(|count| *count < most)
    }

    fn add(&mut self, word: usize, start: usize) {
        self.counts.resize(self.words, 0);
        self.counts[word] += 1;
        self.found.push((word, start));
    }
}

/// Passes every place on.
struct Each<F>(F);

impl<F: FnMut(usize, usize)> Sink for Each<F> {
    fn wants(&self, _: usize) -> bool {
        true
    }

    fn add(&mut self, word: usize, start: usize) {
        self.0(word, start);
    }
}

/// Notes whether any keyword occurs.
struct Any(bool);

impl Sink for Any {
    fn wants(&self, _: usize) -> bool {
        !self.0
    }

    fn add(&mut self, _: usize, _: usize) {
        self.0 = true;
    }
}

impl Keywords {
    /// Compiles keywords. They must be in lower case, distinct, and not empty.
    pub fn new(words: Vec<&'static str>) -> Self {
        Self::with_trigrams(words, rarest_trigram)
    }

    /// Compiles keywords of at least three letters for [`for_each`](Self::for_each).
    pub(super) fn in_order(words: Vec<&'static str>) -> Self {
        Self::with_trigrams(words, |_| 0)
    }

    fn with_trigrams(words: Vec<&'static str>, trigram: fn(&[u8]) -> usize) -> Self {
        let mut lists_by_slot = Box::new([0; SLOTS]);
        let mut lists: Vec<Vec<TrigramMatch>> = Vec::new();
        let (long, short) = (0..words.len()).partition::<Vec<_>, _>(|word| words[*word].len() >= TRIGRAM);
        for word in long {
            let offset = trigram(words[word].as_bytes());
            let slot = slot_at(words[word].as_bytes(), offset);
            let list = &mut lists_by_slot[slot];
            if *list == 0 {
                // A list number is a byte; when all are used, further slots share the last list.
                if lists.len() < usize::from(u8::MAX) {
                    lists.push(Vec::new());
                }
                *list = u8::try_from(lists.len()).unwrap_or(u8::MAX);
            }
            lists[usize::from(*list) - 1].push(TrigramMatch { word, offset });
        }
        let firsts = short.iter().map(|word| words[*word].as_bytes()[0]);
        let mut short_firsts: Vec<u8> = firsts.flat_map(|first| [first, first.to_ascii_uppercase()]).collect();
        short_firsts.sort_unstable();
        short_firsts.dedup();
        Self {
            words,
            lists_by_slot,
            lists,
            short,
            short_firsts,
            prefilter: OnceLock::new(),
        }
    }

    fn prefilter(&self) -> &Prefilter {
        self.prefilter.get_or_init(|| {
            let mut trigrams: Vec<&TrigramMatch> = self.lists.iter().flatten().collect();
            trigrams.sort_unstable_by_key(|trigram| trigram.word);
            let mut prefilter = Prefilter::default();
            for TrigramMatch { word, offset } in trigrams {
                prefilter.add(self.words[*word].as_bytes(), *offset);
            }
            prefilter
        })
    }

    /// Returns the first `most` places of each keyword with many places, and the first one of the others.
    pub(super) fn places<'k>(&self, text: &str, most: usize, is_many: &'k [bool]) -> Places<'k> {
        let bytes = text.as_bytes();
        let mut places = Places {
            counts: Vec::new(),
            most,
            is_many,
            found: Vec::new(),
            words: self.words.len(),
        };
        for word in &self.short {
            let first = self.words[*word].as_bytes()[0];
            memchr2_iter(first, first.to_ascii_uppercase(), bytes)
                .filter(|at| self.matches_at(*word, *at, bytes))
                .take(if is_many[*word] { most } else { 1 })
                .for_each(|start| places.add(*word, start));
        }
        self.scan(bytes, &mut places);
        places
    }

    /// Whether any keyword occurs in a text.
    pub fn occur_in(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        let mut any = Any(false);
        self.scan(bytes, &mut any);
        let is_at = |at| self.short.iter().any(|word| self.matches_at(*word, at, bytes));
        any.0
            || self.short_firsts.chunks(3).any(|firsts| {
                let [a, b, c] = [0, 1, 2].map(|at| firsts[at.min(firsts.len() - 1)]);
                memchr3_iter(a, b, c, bytes).any(is_at)
            })
    }

    /// Calls `visit` with the number and the place of every keyword in a text, in order of the places.
    pub(super) fn for_each(&self, text: &[u8], visit: impl FnMut(usize, usize)) {
        self.scan(text, &mut Each(visit));
    }

    fn scan(&self, bytes: &[u8], sink: &mut impl Sink) {
        let mut at = 0;
        if bytes.len() >= MIN_PREFILTERED {
            let prefilter = self.prefilter();
            while let Some(window) = bytes[at..].first_chunk::<WINDOW_READ>() {
                if prefilter.may_match(window) {
                    self.scan_window(prefilter, (window, at), bytes, sink);
                }
                at += WINDOW;
            }
        }
        while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
            self.scan_block(block, at, bytes, sink);
            at += TRIGRAMS;
        }
        let rest = &bytes[at..];
        let mut last = [0; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        self.scan_block(&last, at, bytes, sink);
    }

    /// Looks up the trigrams at the prefilter's candidates.
    #[inline(never)]
    fn scan_window(
        &self,
        prefilter: &Prefilter,
        (window, at): (&[u8; WINDOW_READ], usize),
        bytes: &[u8],
        sink: &mut impl Sink,
    ) {
        prefilter.for_each_candidate(window, |place| {
            if let Some(block) = window[place..].first_chunk() {
                let list = self.lists_by_slot[slot(fold(*block) as u32)];
                self.compare(list, at + place, bytes, sink);
            }
        });
    }

    /// Looks up all trigrams of one block.
    #[inline(always)]
    fn scan_block(&self, block: &[u8; BLOCK], at: usize, bytes: &[u8], sink: &mut impl Sink) {
        let folded = fold(*block);
        let list = |place: usize| self.lists_by_slot[slot((folded >> (8 * place)) as u32)];
        let lists: [u8; TRIGRAMS] = std::array::from_fn(list);
        if lists.iter().fold(0, |any, list| any | list) != 0 {
            for (place, list) in lists.into_iter().enumerate() {
                self.compare(list, at + place, bytes, sink);
            }
        }
    }

    /// Compares the keywords of a list, whose trigram is probably at `at`.
    fn compare(&self, list: u8, at: usize, bytes: &[u8], sink: &mut impl Sink) {
        let Some(list) = usize::from(list).checked_sub(1) else {
            return;
        };
        for TrigramMatch { word, offset } in &self.lists[list] {
            if let Some(start) = at.checked_sub(*offset)
                && sink.wants(*word)
                && self.matches_at(*word, start, bytes)
            {
                sink.add(*word, start);
            }
        }
    }

    fn matches_at(&self, word: usize, start: usize, bytes: &[u8]) -> bool {
        let word = self.words[word].as_bytes();
        let slice = bytes.get(start..start + word.len());
        slice.is_some_and(|slice| slice.eq_ignore_ascii_case(word))
    }
}

impl fmt::Debug for Keywords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keywords")
            .field("words", &self.words)
            .finish_non_exhaustive()
    }
}

/// Returns the offset of the trigram of a keyword that is least likely to occur in a text.
fn rarest_trigram(word: &[u8]) -> usize {
    let frequency = |byte: &u8| match FREQUENT.iter().position(|letter| letter == byte) {
        Some(rank) => FREQUENT.len() - rank,
        None => 1,
    };
    let weight = |offset: &usize| -> usize { word[*offset..offset + TRIGRAM].iter().map(frequency).sum() };
    (0..=word.len() - TRIGRAM).min_by_key(weight).unwrap_or(0)
}

/// The slot of the trigram at an offset.
fn slot_at(word: &[u8], offset: usize) -> usize {
    let mut block = [0; BLOCK];
    block[..TRIGRAM].copy_from_slice(&word[offset..offset + TRIGRAM]);
    slot(fold(block) as u32)
}

/// Lower-cases eight bytes. Other bytes change as well; the comparison of the whole keyword rejects false matches.
fn fold(block: [u8; BLOCK]) -> u64 {
    u64::from_le_bytes(block) | u64::from_le_bytes([b' '; BLOCK])
}

/// Hashes the first three of four bytes to a slot.
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

    fn naive(text: &str) -> Vec<Option<usize>> {
        let lower = text.to_ascii_lowercase();
        SOME.iter().map(|word| lower.find(word)).collect()
    }

    fn fast(text: &str) -> Vec<Option<usize>> {
        static WORDS: LazyLock<Keywords> = LazyLock::new(|| Keywords::new(SOME.to_vec()));
        let mut firsts = vec![None; SOME.len()];
        for (word, start) in WORDS.places(text, 2, &[true; SOME.len()]).iter() {
            firsts[word] = firsts[word].or(Some(start));
        }
        firsts
    }

    #[test]
    fn a_keyword_is_found_at_every_position_in_any_case() {
        for word in SOME {
            for before in 0..20 {
                for after in 0..10 {
                    for word in [word.to_owned(), word.to_ascii_uppercase()] {
                        let text = format!("{}{word}{}", ".".repeat(before), "é".repeat(after));
                        assert_eq!(fast(&text), naive(&text), "{text}");
                        assert!(fast(&text).contains(&Some(before)), "{text}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_keyword_is_found_wherever_windows_begin_and_end() {
        for word in SOME {
            for before in 0..100 {
                let text = format!(
                    "{}{word}{}",
                    "é".repeat(before / 2) + &"x".repeat(before % 2),
                    ",".repeat(90)
                );
                assert_eq!(fast(&text), naive(&text), "{text}");
            }
        }
    }

    #[test]
    fn more_words_than_there_are_lists_are_all_found() {
        let words: Vec<&'static str> = (0..700).map(|n| &*format!("w{n:03}").leak()).collect();
        let all = Keywords::new(words.clone());
        for (number, word) in words.iter().enumerate() {
            let found: Vec<_> = all.places(&format!("a {word} b"), 1, &[true; 700]).iter().collect();
            assert_eq!(found, [(number, 2)], "{word}");
        }
    }

    proptest! {
        #[test]
        fn whether_any_word_occurs_is_found(text in "(ke|y|KEY|secre|t|pas|s|:/|/|-{1,6}|begi|n|[@q~é. ]|[a-z]{9}){0,40}") {
            static WORDS: LazyLock<Keywords> = LazyLock::new(|| Keywords::new(SOME.to_vec()));
            prop_assert_eq!(WORDS.occur_in(&text), naive(&text).iter().any(Option::is_some));
        }

        #[test]
        fn the_first_of_each_word_is_found(text in "(key|KEY|secre|t|pass|word|ss|w|:/|/|-{1,6}|begin|[@q~é. ]|[a-z]{9}){0,300}") {
            prop_assert_eq!(fast(&text), naive(&text));
        }

        #[test]
        fn every_place_is_visited_in_order(text in "(key|KEY|secret|pass|word|ss|-{1,6}|[@q~é. ]|[a-z]{9}){0,300}") {
            static WORDS: LazyLock<Keywords> = LazyLock::new(|| Keywords::in_order(vec!["key", "secret", "pass"]));
            let mut visited = Vec::new();
            WORDS.for_each(text.as_bytes(), |word, start| visited.push((start, word)));
            let lower = text.to_ascii_lowercase();
            let mut expected: Vec<(usize, usize)> = Vec::new();
            for (word, keyword) in ["key", "secret", "pass"].iter().enumerate() {
                expected.extend(lower.match_indices(keyword).map(|(start, _)| (start, word)));
            }
            expected.sort_unstable();
            prop_assert_eq!(visited, expected);
        }
    }
}
