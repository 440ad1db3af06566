//! Spans of secrets in a text, and their replacement by placeholders.

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use memchr::{memchr, memmem, memrchr};

use super::counts::Counts;

/// The start of every placeholder.
const PREFIX: &str = "[MASKED";
/// The longest placeholder.
const MAX_PLACEHOLDER: usize = 64;

/// A range of a text that is to be replaced.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) range: Range<usize>,
    /// The name under which it is counted.
    pub(super) name: Cow<'static, str>,
    /// The text that replaces it.
    pub(super) replacement: Cow<'static, str>,
}

impl Span {
    /// Creates a span that is counted under `name` and replaced by `placeholder`.
    pub(super) fn new(range: Range<usize>, name: &'static str, placeholder: &'static str) -> Self {
        Self {
            range,
            name: name.into(),
            replacement: placeholder.into(),
        }
    }
}

/// Formats the placeholder of a pattern: `[MASKED_API_KEY]`.
pub(super) fn placeholder(name: &str) -> String {
    format!("{PREFIX}_{}]", name.to_ascii_uppercase())
}

/// Whether a text contains a placeholder.
pub(super) fn has_placeholder(text: &str) -> bool {
    text.contains(PREFIX)
}

/// Whether the whole text is a placeholder.
pub(super) fn is_placeholder(text: &str) -> bool {
    placeholder_len(text) == Some(text.len())
}

/// The length of the placeholder that a text begins with.
fn placeholder_len(text: &str) -> Option<usize> {
    let name = text.strip_prefix(PREFIX)?;
    let end = name.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))?;
    name[end..].starts_with(']').then_some(PREFIX.len() + end + 1)
}

/// A text with replaced spans.
pub(super) struct Replaced {
    pub(super) text: String,
    /// Whether the replacements can reveal no further secrets, because each stands between separators.
    pub(super) is_settled: bool,
}

/// Replaces every span of a text. Overlapping spans are merged. Returns `None` if nothing changes.
pub(super) fn replace(text: &str, mut spans: Vec<Span>, counts: &mut Counts) -> Option<Replaced> {
    for span in &mut spans {
        widen_to_chars(text, &mut span.range);
        skip_escape(text, &mut span.range);
        leave_escape(text, &mut span.range);
    }
    spans.retain(|span| !is_masked_already(text, span));
    // Of spans with the same start the longest comes first and gives its name to the merged span.
    spans.sort_by_key(|span| (span.range.start, std::cmp::Reverse(span.range.end)));
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.range.start < last.range.end => last.range.end = last.range.end.max(span.range.end),
            _ => merged.push(span),
        }
    }
    if merged.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    // Strings with escapes are searched once more, unescaped.
    let is_settled = memchr(b'\\', text.as_bytes()).is_none() && merged.iter().all(|span| is_apart(text, &span.range));
    // Consecutive spans often have the same name, and are counted together.
    let mut run: (Cow<'static, str>, usize) = (Cow::Borrowed(""), 0);
    for span in merged {
        out.push_str(&text[from..span.range.start]);
        let quote = json_quote(text, &span.range);
        out.push_str(&quote);
        out.push_str(&span.replacement);
        out.push_str(&quote);
        from = span.range.end;
        if run.0 != span.name {
            count(counts, &run);
            run = (span.name, 0);
        }
        run.1 += 1;
    }
    count(counts, &run);
    out.push_str(&text[from..]);
    Some(Replaced {
        text: quote_placeholders(out),
        is_settled,
    })
}

fn count(counts: &mut Counts, (name, spans): &(Cow<'static, str>, usize)) {
    if !name.is_empty() {
        counts.add(name, *spans);
    }
}

/// Returns the quote to put around the replacement of an unquoted JSON value, such as a number; empty elsewhere.
fn json_quote(text: &str, range: &Range<usize>) -> String {
    let before = text[..range.start].trim_end();
    let found = &text[range.clone()];
    if found.starts_with(['"', '\\', '{', '[']) {
        return String::new();
    }
    if let Some(key) = before.strip_suffix(':').map(str::trim_end)
        && key.ends_with('"')
    {
        let slashes = key[..key.len() - 1].bytes().rev().take_while(|b| *b == b'\\').count();
        return format!("{}\"", "\\".repeat(slashes));
    }
    let is_number = found.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    let is_item = before.ends_with(['[', ',']) && text[range.end..].trim_start().starts_with([',', ']']);
    if is_number && is_item {
        "\"".to_owned()
    } else {
        String::new()
    }
}

/// Whether a span is a placeholder, lies in one, or would be replaced by itself.
fn is_masked_already(text: &str, span: &Span) -> bool {
    let found = &text[span.range.clone()];
    if found.is_empty() || found == span.replacement || is_placeholder(found) {
        return true;
    }
    // A placeholder around the span starts at most this far before it.
    let mut from = span.range.start.saturating_sub(MAX_PLACEHOLDER);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let around = &text[from..span.range.end];
    around.match_indices('[').any(|(at, _)| {
        placeholder_len(&text[from + at..])
            .is_some_and(|len| from + at + len >= span.range.end && from + at <= span.range.start)
    })
}

fn widen_to_chars(text: &str, range: &mut Range<usize>) {
    range.end = range.end.min(text.len());
    range.start = range.start.min(range.end);
    while !text.is_char_boundary(range.start) {
        range.start -= 1;
    }
    while !text.is_char_boundary(range.end) {
        range.end += 1;
    }
}

/// Moves the start of a span past the letter of an escape sequence, as in `\\nabc`.
fn skip_escape(text: &str, range: &mut Range<usize>) {
    let slashes = text[..range.start].bytes().rev().take_while(|b| *b == b'\\').count();
    if slashes % 2 == 1 && text[range.clone()].starts_with(['n', 'r', 't', 'b', 'f', '"']) {
        range.start += 1;
    }
}

/// Moves the end of a span before the backslashes of an escaped quote.
fn leave_escape(text: &str, range: &mut Range<usize>) {
    if text[range.end..].starts_with(['"', '\'']) {
        let slashes = text[range.clone()].bytes().rev().take_while(|b| *b == b'\\').count();
        if slashes % 2 == 1 {
            range.end -= slashes;
        }
    }
}

/// Whether separators are before and after a range.
fn is_apart(text: &str, range: &Range<usize>) -> bool {
    let is_separator = |b: u8| b.is_ascii_whitespace() || b"\"'`=:<>()[]{},;|&@/".contains(&b);
    let bytes = text.as_bytes();
    let before = range.start.checked_sub(1).map(|at| bytes[at]);
    let after = &bytes[range.end..];
    before.is_none_or(is_separator)
        && match after {
            [] => true,
            [b'\\', quote, ..] => matches!(quote, b'"' | b'\''),
            [byte, ..] => is_separator(*byte),
        }
}

/// Quotes YAML values that begin with a placeholder; a plain scalar that begins with a bracket would be a list.
fn quote_placeholders(text: String) -> String {
    static FINDER: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(PREFIX));
    let bytes = text.as_bytes();
    let mut out = String::new();
    // `from` is always the start of a line. The text before `copied` is in `out`.
    let mut from = 0;
    let mut copied = 0;
    while let Some(placeholder) = FINDER.find(&bytes[from..]).map(|step| from + step) {
        let start = memrchr(b'\n', &bytes[from..placeholder]).map_or(from, |end| from + end + 1);
        let end = memchr(b'\n', &bytes[placeholder..]).map_or(text.len(), |step| placeholder + step + 1);
        let line = &text[start..end];
        if let Some(value) = scalar_start(line, placeholder - start) {
            out.push_str(&text[copied..start + value]);
            push_quoted(&mut out, &line[value..]);
            copied = end;
        }
        from = end;
    }
    if copied == 0 {
        return text;
    }
    out.push_str(&text[copied..]);
    out
}

/// Writes a value in quotes, and a comment after it unchanged.
fn push_quoted(out: &mut String, rest: &str) {
    let value = rest.trim_end();
    let (value, after) = match value.find(" #") {
        Some(comment) => rest.split_at(rest[..comment].trim_end().len()),
        None => rest.split_at(value.len()),
    };
    out.push('"');
    for c in value.chars() {
        if matches!(c, '\\' | '"') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out.push_str(after);
}

/// Returns the start of a plain scalar that begins with the first placeholder of the line, after `key: ` or `- `.
fn scalar_start(line: &str, placeholder: usize) -> Option<usize> {
    let head = line[..placeholder].trim_start();
    let indent = placeholder - head.len();
    let mut key = head;
    while let Some(rest) = key.strip_prefix("- ") {
        key = rest.trim_start();
    }
    if key.is_empty() {
        return (!head.is_empty()).then_some(indent + head.len());
    }
    let name = key.trim_end().strip_suffix(':')?;
    let spaced = key.ends_with([' ', '\t']);
    let unquoted = |quote: char| name.strip_prefix(quote)?.strip_suffix(quote);
    let plain = unquoted('"').or_else(|| unquoted('\'')).unwrap_or(name);
    let is_key = !plain.is_empty() && plain.bytes().all(|b| b.is_ascii_alphanumeric() || b"_./-".contains(&b));
    (spaced && is_key).then_some(placeholder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(text: &str, secrets: &[&str]) -> String {
        let spans = secrets.iter().map(|secret| {
            let at = text.find(secret).unwrap();
            Span::new(at..at + secret.len(), "token", "[MASKED_TOKEN]")
        });
        let mut counts = Counts::default();
        replace(text, spans.collect(), &mut counts).map_or_else(|| text.to_owned(), |replaced| replaced.text)
    }

    #[test]
    fn spans_that_overlap_become_one() {
        assert_eq!(replaced("a secret thing", &["secret", "ret th"]), "a [MASKED_TOKEN]ing");
        assert_eq!(replaced("xyz", &["x", "z"]), "[MASKED_TOKEN]y[MASKED_TOKEN]");
    }

    #[test]
    fn a_mark_is_not_masked_again_nor_any_part_of_it() {
        for (text, secret) in [
            ("key=[MASKED_TOKEN]", "[MASKED_TOKEN]"),
            ("key=[MASKED_TOKEN]", "MASKED"),
            ("key=[MASKED_API_KEY]", "API_KEY"),
        ] {
            assert_eq!(replaced(text, &[secret]), text);
        }
    }

    #[test]
    fn values_of_yaml_stay_strings() {
        for (text, want) in [
            ("key: abc\n", "key: \"[MASKED_TOKEN]\"\n"),
            ("- abc", "- \"[MASKED_TOKEN]\""),
            ("  - key: abc:80 # x\n", "  - key: \"[MASKED_TOKEN]:80\" # x\n"),
            ("key: \"abc\"", "key: \"[MASKED_TOKEN]\""),
            ("key: x abc y", "key: x [MASKED_TOKEN] y"),
            ("see abc", "see [MASKED_TOKEN]"),
            ("{\"key\": abc}", "{\"key\": \"[MASKED_TOKEN]\"}"),
            ("{\\\"key\\\": abc}", "{\\\"key\\\": \\\"[MASKED_TOKEN]\\\"}"),
            ("{\"key\": \"abc\"}", "{\"key\": \"[MASKED_TOKEN]\"}"),
        ] {
            assert_eq!(replaced(text, &["abc"]), want);
        }
    }

    #[test]
    fn a_span_never_cuts_a_character() {
        let mut counts = Counts::default();
        let spans = vec![Span::new(1..2, "token", "[MASKED_TOKEN]")];
        assert_eq!(replace("aéb", spans, &mut counts).unwrap().text, "a[MASKED_TOKEN]b");
    }
}
