//! Content blocks of a result, up to a limit: an empty block takes three bytes on the wire and a hundred in memory.

use std::fmt;

use serde::{
    Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};

use pegboard_tools::outcome::Content;

/// The most content blocks of one result that are kept. A text block at the end says how many more there were.
pub(super) const MAX_BLOCKS: usize = 10_000;

/// Collects content blocks.
#[derive(Debug)]
pub(super) struct ContentBlocks {
    kept: Vec<Content>,
    left_out: usize,
}

impl ContentBlocks {
    pub(super) fn new() -> Self {
        Self {
            // Most results have one block.
            kept: Vec::with_capacity(1),
            left_out: 0,
        }
    }

    /// Returns `true` if a further block is kept. Otherwise it need not be parsed.
    pub(super) fn has_room(&self) -> bool {
        self.kept.len() < MAX_BLOCKS
    }

    pub(super) fn push(&mut self, block: Content) {
        self.kept.push(block);
    }

    pub(super) fn leave_out(&mut self) {
        self.left_out += 1;
    }

    pub(super) fn finish(mut self) -> Vec<Content> {
        if self.left_out > 0 {
            self.kept.push(Content::text(format!(
                "[{} more content blocks were left out: at most {MAX_BLOCKS} of one result are kept]",
                self.left_out
            )));
        }
        self.kept
    }
}

/// Deserialises a list of content blocks. Null counts as an empty list.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Content>, D::Error> {
    deserializer.deserialize_any(BlocksVisitor)
}

struct BlocksVisitor;

impl<'de> Visitor<'de> for BlocksVisitor {
    type Value = Vec<Content>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of content blocks")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut blocks = ContentBlocks::new();
        loop {
            if blocks.has_room() {
                match items.next_element()? {
                    Some(block) => blocks.push(block),
                    None => break,
                }
            } else if items.next_element::<IgnoredAny>()?.is_some() {
                blocks.leave_out();
            } else {
                break;
            }
        }
        Ok(blocks.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::CallResult, *};

    #[test]
    fn blocks_over_the_limit_are_counted_and_not_kept() {
        for (block, unusual) in [("{}", ""), (r#"{"type":"text","text":""}"#, r#","isError":null"#)] {
            let many = vec![block; MAX_BLOCKS + 5].join(",");
            let text = format!(r#"{{"content":[{many}]{unusual}}}"#);
            let read: CallResult = serde_json::from_str(&text).unwrap();
            let fast = CallResult::fast_parse(text.as_bytes()).map(|(result, _)| result);
            assert_eq!(fast.is_some(), unusual.is_empty());
            for result in fast.into_iter().chain([read]) {
                assert_eq!(result.content.len(), MAX_BLOCKS + 1);
                let last = result.content.last().unwrap().to_text();
                assert!(last.starts_with("[5 more content blocks were left out"), "{last}");
            }
        }
        let all = vec!["{}"; MAX_BLOCKS].join(",");
        let read: CallResult = serde_json::from_str(&format!(r#"{{"content":[{all}]}}"#)).unwrap();
        assert_eq!(read.content.len(), MAX_BLOCKS, "the limit itself is kept whole");
    }
}
