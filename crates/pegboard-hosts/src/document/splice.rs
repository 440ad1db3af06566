//! Edits of a text: what is replaced, and by what. Everything else keeps its bytes.

use std::ops::Range;

/// A part of the text and what it becomes. The new text has `\n` for line breaks; the document's own kind is put in when it is applied.
#[derive(Debug)]
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) with: String,
}

impl Edit {
    pub(super) fn insert(at: usize, with: impl Into<String>) -> Self {
        Self::replace(at..at, with)
    }

    pub(super) fn replace(range: Range<usize>, with: impl Into<String>) -> Self {
        Self {
            range,
            with: with.into(),
        }
    }

    pub(super) fn delete(range: Range<usize>) -> Self {
        Self::replace(range, "")
    }
}

/// The text after the edits, which do not overlap.
pub(super) fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    let newline = newline(text);
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let mut result = String::with_capacity(text.len() + 64);
    let mut at = 0;
    for edit in edits {
        let start = edit.range.start.max(at);
        result.push_str(text.get(at..start).unwrap_or_default());
        result.push_str(&edit.with.replace('\n', newline));
        at = edit.range.end.max(start);
    }
    result.push_str(text.get(at..).unwrap_or_default());
    result
}

/// How the document ends its lines.
fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Where the line of this position starts.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Where the line of this position ends, before its line break.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    if end > at && text[..end].ends_with('\r') {
        end - 1
    } else {
        end
    }
}

/// Where the next line starts.
pub(super) fn next_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

/// The white space at the start of the line of this position.
pub(super) fn indent(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Whether only white space is before this position on its line.
pub(super) fn starts_line(text: &str, at: usize) -> bool {
    text[line_start(text, at)..at].trim().is_empty()
}

/// Whole lines that are to go, with one of the two blank lines around them.
pub(super) fn without_double_blank(text: &str, mut range: Range<usize>) -> Range<usize> {
    let before = text[..range.start].lines().next_back();
    if range.start == 0 || before.is_some_and(|line| line.trim().is_empty()) {
        while range.end < text.len() && text[range.end..next_line(text, range.end)].trim().is_empty() {
            range.end = next_line(text, range.end);
        }
        if range.end == text.len() {
            while range.start > 0 {
                let previous = line_start(text, range.start - 1);
                if !text[previous..range.start].trim().is_empty() {
                    break;
                }
                range.start = previous;
            }
        }
    }
    range
}
