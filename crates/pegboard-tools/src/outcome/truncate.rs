//! Truncates text to limits of bytes, lines and tokens: keeps its head, or its head and tail, with a marker that says what is missing.
//!
//! The result never exceeds a limit, is never cut inside a character, and is cut at a line end if one is near.

use std::fmt;

/// Counts the tokens of a text.
pub type Count<'a> = dyn Fn(&str) -> usize + Send + Sync + 'a;

/// The limits for a text.
#[derive(Clone, Copy)]
pub struct Bounds<'a> {
    /// The most bytes.
    pub bytes: usize,
    /// The most lines, if they are limited.
    pub lines: Option<usize>,
    /// The most tokens, if they are limited.
    pub tokens: Option<usize>,
    /// The tokenizer; without one, tokens are estimated.
    pub count: Option<&'a Count<'a>>,
}

/// Which part of a text is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Only the head.
    Head,
    /// Half head, half tail.
    Ends,
}

/// The size of a text and how much of it was kept, for the marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The bytes of the whole text.
    pub bytes: usize,
    /// The lines of the whole text.
    pub lines: usize,
    /// The bytes that were kept.
    pub kept: usize,
}

/// An estimate for English and code: four bytes per token.
pub fn estimate_tokens(bytes: usize) -> usize {
    bytes.div_ceil(4)
}

impl Bounds<'_> {
    /// Limits in bytes only.
    pub fn bytes(bytes: usize) -> Self {
        Self {
            bytes,
            lines: None,
            tokens: None,
            count: None,
        }
    }

    /// Returns whether every text of this many bytes is within the limits.
    pub fn surely_hold(&self, bytes: usize) -> bool {
        let tokens = match (self.tokens, self.count) {
            (None, _) => true,
            (Some(most), None) => estimate_tokens(bytes) <= most,
            // No tokenizer counts more than one token per byte.
            (Some(most), Some(_)) => bytes <= most,
        };
        bytes <= self.bytes && tokens && self.lines.is_none_or(|most| bytes < most)
    }

    /// Returns whether the text is within the limits.
    pub fn hold(&self, text: &str) -> bool {
        if self.surely_hold(text.len()) {
            return true;
        }
        text.len() <= self.bytes
            && self.lines.is_none_or(|most| lines(text) <= most)
            && self.tokens.is_none_or(|most| self.tokens_of(text) <= most)
    }

    /// Counts the tokens of a text with the tokenizer, or estimates them without one.
    pub fn tokens_of(&self, text: &str) -> usize {
        match self.count {
            Some(count) => count(text),
            None => estimate_tokens(text.len()),
        }
    }
}

impl fmt::Debug for Bounds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bounds")
            .field("bytes", &self.bytes)
            .field("lines", &self.lines)
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}

/// The number of lines; a trailing newline does not start another.
pub fn lines(text: &str) -> usize {
    let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    breaks + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Truncates `text`, or returns `None` if it fits. `marker` describes what is missing, given the sizes; a marker that does not fit itself
/// is left out.
pub fn fit(text: &str, bounds: &Bounds<'_>, part: Part, marker: impl Fn(Sizes) -> String) -> Option<String> {
    if bounds.hold(text) {
        return None;
    }
    let mut bytes = bounds.bytes.min(match (bounds.tokens, bounds.count) {
        (Some(most), None) => most.saturating_mul(4),
        _ => usize::MAX,
    });
    // With a tokenizer the size is found by trial and error; the last resort assumes one token per byte.
    for _ in 0..6 {
        let cut = cut(text, bytes, bounds.lines, part, &marker);
        let tokens = bounds.tokens.map(|most| (most, bounds.tokens_of(&cut)));
        match tokens {
            Some((most, tokens)) if tokens > most => {
                // A little less than proportional, so that the next try is likely to fit.
                let share = cut.len().saturating_mul(most) / tokens;
                bytes = share / 20 * 19;
            }
            _ => return Some(cut),
        }
    }
    Some(cut(
        text,
        bounds.tokens.unwrap_or(0).min(bounds.bytes),
        bounds.lines,
        part,
        &marker,
    ))
}

/// Cuts the text to at most this many bytes and lines, including the marker.
fn cut(text: &str, bytes: usize, most_lines: Option<usize>, part: Part, marker: impl Fn(Sizes) -> String) -> String {
    let all = Sizes {
        bytes: text.len(),
        lines: lines(text),
        kept: text.len(),
    };
    // The marker for the whole text is the longest one: its number has the most digits.
    let longest = marker(all);
    let room = bytes.checked_sub(longest.len() + 2);
    let room_lines = most_lines.map(|most| most.checked_sub(lines(&longest)));
    let (Some(room), Some(Some(_)) | None) = (room, room_lines) else {
        let head = head(text, bytes, most_lines);
        return head.trim_end_matches('\n').to_owned();
    };
    // Head and tail must not overlap.
    let room = room.min(text.len());
    let room_lines = room_lines.flatten();
    let (first, last) = match part {
        Part::Head => (head(text, room, room_lines), ""),
        Part::Ends => {
            let first = head(text, room.div_ceil(2), room_lines.map(|most| most.div_ceil(2)));
            let last = tail(text, room - room.div_ceil(2), room_lines.map(|most| most / 2));
            (first, last)
        }
    };
    let kept = first.len() + last.len();
    let marker = marker(Sizes { kept, ..all });
    let mut out = String::with_capacity(kept + marker.len() + 2);
    out.push_str(first);
    if !first.is_empty() && !first.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&marker);
    if !last.is_empty() {
        out.push('\n');
        out.push_str(last);
    }
    out
}

/// The first bytes and lines of a text, up to a line end unless that loses more than half of them.
pub(crate) fn head(text: &str, bytes: usize, most_lines: Option<usize>) -> &str {
    let mut head = &text[..text.floor_char_boundary(bytes)];
    if head.len() < text.len()
        && let Some(end) = head.rfind('\n')
        && end + 1 >= head.len() / 2
    {
        head = &head[..=end];
    }
    if let Some(most) = most_lines {
        let mut ends = memchr::memchr_iter(b'\n', head.as_bytes());
        head = match most.checked_sub(1) {
            None => "",
            Some(before) => ends.nth(before).map_or(head, |end| &head[..=end]),
        };
    }
    head
}

/// The last bytes and lines of a text, from a line start unless that loses more than half of them.
fn tail(text: &str, bytes: usize, most_lines: Option<usize>) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(bytes));
    let mut tail = &text[start..];
    if start > 0
        && !text[..start].ends_with('\n')
        && let Some(end) = tail.find('\n')
        && end < tail.len() / 2
    {
        tail = &tail[end + 1..];
    }
    if let Some(most) = most_lines {
        let body = tail.strip_suffix('\n').unwrap_or(tail);
        let mut ends = memchr::memrchr_iter(b'\n', body.as_bytes());
        tail = match most.checked_sub(1) {
            None => "",
            Some(before) => ends.nth(before).map_or(tail, |end| &tail[end + 1..]),
        };
    }
    tail
}

#[cfg(test)]
mod tests;
