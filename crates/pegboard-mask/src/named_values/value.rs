//! Reads the value at a position of a text: quoted, bare, a list, or a block of YAML.

use std::ops::Range;

use memchr::{memchr, memchr2, memchr3};

use super::{expressions::ValueForm, quotes::OpenQuotes};

/// How far a list or a block of YAML is read, in bytes.
const MAX_NESTED: usize = 16 << 10;
/// How far before a name its line is looked at, in bytes.
const MAX_PREFIX: usize = 120;

/// A value, and how it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Read {
    /// One value: its range, the range that tells code from config, and its form.
    One {
        range: Range<usize>,
        shown: Range<usize>,
        form: ValueForm,
    },
    /// The strings of a list.
    List(Vec<Range<usize>>),
    /// A JSON object.
    Object(Range<usize>),
}

/// What joins a name to its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "four independent facts")]
pub(super) struct Joint {
    /// Whether the sign is a colon.
    pub(super) is_colon: bool,
    /// Whether there are spaces around the sign.
    pub(super) is_spaced: bool,
    /// Whether the name is in quotes of its own.
    pub(super) is_quoted: bool,
    /// Whether name and value are two fields of one object.
    pub(super) is_pair: bool,
}

/// Positions ahead that many values of one line share, so that each is searched once.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    line_end: usize,
    space: usize,
}

impl Ahead {
    pub(super) fn line_end(&mut self, bytes: &[u8], at: usize) -> usize {
        if self.line_end < at || self.line_end == 0 {
            let end = memchr2(b'\n', b'\r', &bytes[at..]).map_or(bytes.len(), |step| at + step);
            self.line_end = end;
        }
        self.line_end
    }

    fn space(&mut self, bytes: &[u8], at: usize) -> usize {
        if self.space < at || self.space == 0 {
            let is_end = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b'<');
            self.space = bytes[at..]
                .iter()
                .position(is_end)
                .map_or(bytes.len(), |step| at + step);
        }
        self.space
    }
}

/// Reads the value at `at`, after the joint of `name`.
pub(super) fn read(
    text: &str,
    name: &Range<usize>,
    at: usize,
    joint: Joint,
    open: OpenQuotes,
    ahead: &mut Ahead,
) -> Option<Read> {
    let bytes = text.as_bytes();
    let at = skip_type(bytes, at);
    // Before a name with quotes of its own, its opening quote counts.
    let open = if joint.is_quoted { OpenQuotes::default() } else { open };
    match *bytes.get(at)? {
        b'[' if joint.is_quoted || joint.is_colon || joint.is_spaced => list(bytes, at, open).map(Read::List),
        b'{' if joint.is_pair => Some(Read::Object(at..nested_end(bytes, at))),
        b'|' | b'>' if joint.is_colon => block(bytes, name.start, at).map(one(ValueForm::Line)),
        // In Markdown the name and its sign may be in backticks: the next backtick opens no value.
        b'`' if name.start.checked_sub(1).is_some_and(|at| bytes[at] == b'`') => None,
        // The string that the name is in ends here, without a value.
        b'"' | b'\'' | b'\\' if ends_string(bytes, at, open) => None,
        b'"' | b'\'' | b'`' | b'\\' => find_quoted(bytes, at).map(one(ValueForm::Quoted)),
        // Strings of Python, C# and Rust: `b'x'`, `@"x"`.
        b'b' | b'r' | b'f' | b'u' | b'@' if matches!(bytes.get(at + 1), Some(b'"' | b'\'')) => {
            find_quoted(bytes, at + 1).map(one(ValueForm::Quoted))
        }
        _ => read_bare(text, name, at, joint, open, ahead),
    }
}

fn one(form: ValueForm) -> impl Fn(Range<usize>) -> Read {
    move |range| Read::One {
        shown: range.clone(),
        range,
        form,
    }
}

/// Whether the quote at `at` closes the string that is open.
fn ends_string(bytes: &[u8], at: usize, open: OpenQuotes) -> bool {
    let slashes = bytes[at..].iter().take(16).take_while(|b| **b == b'\\').count();
    let quote = bytes.get(at + slashes).copied().unwrap_or_default();
    matches!(quote, b'"' | b'\'') && open.is_closed_by(quote, slashes > 0)
}

/// Skips a type of YAML: `!!str `.
fn skip_type(bytes: &[u8], at: usize) -> usize {
    if !bytes[at..].starts_with(b"!!") {
        return at;
    }
    let len = bytes[at..].iter().take(16).position(|b| *b == b' ');
    len.map_or(at, |len| at + len + 1)
}

/// The inside of a quoted string. It ends at the end of the line at the latest.
pub(super) fn find_quoted(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let slashes = bytes[at..].iter().take(16).take_while(|b| **b == b'\\').count();
    let quote = *bytes.get(at + slashes)?;
    if !matches!(quote, b'"' | b'\'' | b'`') {
        return None;
    }
    let mut start = at + slashes + 1;
    // A string in a string of YAML or SQL: `''x''`.
    if quote == b'\'' && bytes.get(start) == Some(&quote) && bytes.get(start + 1).is_some_and(u8::is_ascii_alphanumeric)
    {
        start += 1;
    }
    let mut end = start;
    loop {
        end += memchr3(quote, b'\n', b'\\', &bytes[end..]).unwrap_or(bytes.len() - end);
        match bytes.get(end) {
            // In a string within a string, any backslash may belong to the closing quote.
            Some(b'\\') if slashes > 0 || quote == b'\'' && !escapes_quote(bytes, end) => {
                if slashes > 0 {
                    break;
                }
                end += 1;
            }
            Some(b'\\') => end = (end + 2).min(bytes.len()),
            // A doubled quote is a quote.
            Some(b) if *b == quote && quote == b'\'' && end > start && bytes.get(end + 1) == Some(&quote) => end += 2,
            _ => break,
        }
    }
    Some(start..end)
}

fn escapes_quote(bytes: &[u8], at: usize) -> bool {
    bytes.get(at + 1) == Some(&b'\'') && bytes.get(at + 2).is_some_and(|b| !b",;)\n\r ".contains(b))
}

/// The strings of a list.
fn list(bytes: &[u8], at: usize, open: OpenQuotes) -> Option<Vec<Range<usize>>> {
    let mut found = Vec::new();
    let end = (at + MAX_NESTED).min(bytes.len());
    let mut at = at + 1;
    while at < end {
        match bytes[at] {
            b']' => return Some(found),
            b'"' | b'\'' | b'\\' if ends_string(bytes, at, open) => return None,
            b'"' | b'\'' | b'\\' => {
                let Some(range) = find_quoted(bytes, at) else {
                    at += 1;
                    continue;
                };
                at = range.end.max(at) + 1;
                while bytes.get(at - 1) == Some(&b'\\') {
                    at += 1;
                }
                found.push(range);
            }
            b',' | b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            _ => return None,
        }
    }
    Some(found)
}

/// The end of a JSON object; the end of the text if it is truncated.
fn nested_end(bytes: &[u8], at: usize) -> usize {
    let (mut depth, mut next) = (0_usize, at);
    while next < bytes.len() {
        match bytes[next] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return next + 1,
            b'}' | b']' => depth -= 1,
            b'"' => next = find_quoted(bytes, next).map_or(next, |inside| inside.end),
            _ => {}
        }
        next += 1;
    }
    bytes.len()
}

/// The lines of a block of YAML: those that are indented more than the name.
fn block(bytes: &[u8], name: usize, at: usize) -> Option<Range<usize>> {
    let header_end = at + memchr(b'\n', &bytes[at..])?;
    let header = &bytes[at + 1..header_end];
    if !header.iter().all(|b| b"+-0123456789 \r".contains(b)) {
        return None;
    }
    let column = |line: &[u8]| {
        line.iter()
            .take_while(|b| matches!(b, b' ' | b'\t' | b'+' | b'-' | b'>' | b'|' | b'#'))
            .count()
    };
    let line_start = bytes[..name]
        .iter()
        .rev()
        .take(MAX_PREFIX)
        .position(|b| *b == b'\n')
        .map_or(0, |back| name - back);
    let indent = column(&bytes[line_start..name]);
    let limit = (header_end + MAX_NESTED).min(bytes.len());
    let (mut start, mut end, mut next) = (None, header_end, header_end + 1);
    while next < limit {
        let line_end = memchr(b'\n', &bytes[next..]).map_or(bytes.len(), |step| next + step);
        let line = &bytes[next..line_end];
        let blank = column(line);
        if blank < line.len() {
            if blank <= indent {
                break;
            }
            start.get_or_insert(next + blank);
            end = line_end;
        }
        next = line_end + 1;
    }
    start.map(|start| start..end)
}

/// Reads a value without quotes.
fn read_bare(
    text: &str,
    name: &Range<usize>,
    at: usize,
    joint: Joint,
    open: OpenQuotes,
    ahead: &mut Ahead,
) -> Option<Read> {
    let bytes = text.as_bytes();
    let mut line_end = ahead.line_end(bytes, at);
    let before = name.start.checked_sub(1).map(|at| bytes[at]);
    if at >= line_end || is_placeholder(&bytes[at..line_end]) {
        return None;
    }
    let read = |end: usize, form: ValueForm| {
        let range = trim(bytes, at, end);
        Some(Read::One {
            shown: range.clone(),
            range,
            form,
        })
    };
    // `"NAME=value"`: the quote that is open before the name ends the value.
    if let Some(quote) = open.quote() {
        let end = string_end(bytes, at, quote);
        if matches!(before, Some(b'"' | b'\'')) || end < line_end.min(ahead.space(bytes, at)) {
            return read(end, form_of(text, name, joint));
        }
        line_end = line_end.min(end);
    }
    if matches!(before, Some(b'?' | b'&')) && !joint.is_colon && !joint.is_spaced {
        let end = ahead.space(bytes, at);
        let end = bytes[at..end]
            .iter()
            .position(|b| matches!(b, b'&' | b'#' | b'>' | b')'))
            .map_or(end, |step| at + step);
        return read(end, ValueForm::Variable);
    }
    let is_line = is_line_start(text, name.start);
    let is_env = !joint.is_colon && !joint.is_spaced;
    let word_end = ahead.space(bytes, at).min(line_end);
    // A value of JSON without quotes ends with its field.
    if joint.is_quoted && joint.is_colon && !joint.is_pair {
        let end = bytes[at..word_end].iter().position(|b| matches!(b, b',' | b'}' | b']'));
        return read(end.map_or(word_end, |step| at + step), ValueForm::Inline);
    }
    let end = if is_line && !is_env && (!joint.is_quoted || joint.is_pair && is_yaml(bytes, at)) {
        comment(bytes, at, line_end)
    } else if is_line && is_env {
        // A quote may be a part of the value; a space ends it.
        bytes[at..line_end]
            .iter()
            .position(u8::is_ascii_whitespace)
            .map_or(line_end, |step| at + step)
    } else {
        word_end
    };
    let is_yaml_line = is_line && joint.is_colon && joint.is_spaced;
    let cut = separator(bytes, at, end, is_yaml_line);
    let is_connection = cut < end || before == Some(b';');
    let range = trim(bytes, at, cut);
    let range = match is_connection || !is_line || (joint.is_quoted && !joint.is_pair) {
        true => range.start..without_ending(bytes, &range),
        false => range,
    };
    let is_free = is_env && bytes.get(cut).is_none_or(|b| b.is_ascii_whitespace()) && range.end == cut;
    let form = match form_of(text, name, joint) {
        ValueForm::Line if !is_line && !is_free && !is_connection => ValueForm::Inline,
        form => form,
    };
    // `NAME: Type = value` declares a name.
    let after = &bytes[range.end..line_end];
    if joint.is_colon && (after.starts_with(b" = ") || after.starts_with(b" =\n")) {
        return None;
    }
    let shown = if is_connection { range.clone() } else { at..cut };
    Some(Read::One { range, shown, form })
}

/// Whether a text begins with a placeholder of several words: `<your password>`.
fn is_placeholder(text: &[u8]) -> bool {
    /// The longest placeholder, in bytes.
    const MAX_LEN: usize = 80;
    let is_inside = |b: &&u8| b.is_ascii_alphabetic() || b" _-.'".contains(b);
    let Some(rest) = text.strip_prefix(b"<") else {
        return false;
    };
    let len = rest.iter().take(MAX_LEN).take_while(is_inside).count();
    let is_end = |b: &u8| b.is_ascii_whitespace() || b"\"'`,;)&".contains(b);
    rest[..len].contains(&b' ') && rest.get(len) == Some(&b'>') && rest.get(len + 1).is_none_or(is_end)
}

/// The form of a value by its name: that of a variable in capital letters is no expression.
fn form_of(text: &str, name: &Range<usize>, joint: Joint) -> ValueForm {
    let is_shouted = !text[name.clone()].bytes().any(|b| b.is_ascii_lowercase());
    match is_shouted && !joint.is_colon && !joint.is_spaced {
        true => ValueForm::Variable,
        false => ValueForm::Line,
    }
}

/// Whether the value at `at` is the only one of its line, after a name without quotes.
fn is_yaml(bytes: &[u8], at: usize) -> bool {
    let before = bytes[at.saturating_sub(MAX_PREFIX)..at]
        .iter()
        .rev()
        .take_while(|b| **b != b'\n');
    !{ before }.any(|b| matches!(b, b'"' | b'\'' | b'{' | b'['))
}

/// The end of a value in a string: its quote, an escaped quote, or an escaped end of line.
fn string_end(bytes: &[u8], at: usize, quote: u8) -> usize {
    let mut end = at;
    loop {
        end += memchr3(quote, b'\n', b'\\', &bytes[end..]).unwrap_or(bytes.len() - end);
        if bytes.get(end) != Some(&b'\\') {
            return end;
        }
        let slashes = bytes[end..].iter().take_while(|b| **b == b'\\').count();
        if matches!(bytes.get(end + slashes), Some(b'n' | b'r' | b't' | b'"' | b'\'')) {
            return end;
        }
        end += slashes;
    }
}

/// The end of a value before a comment.
fn comment(bytes: &[u8], at: usize, end: usize) -> usize {
    let value = &bytes[at..end.min(at + 4096)];
    let comment = value.windows(2).position(|pair| matches!(pair, b" #" | b"\t#"));
    comment.map_or(end, |step| at + step)
}

/// The position of the `;` or `,` that ends a value because another assignment follows.
fn separator(bytes: &[u8], at: usize, end: usize, is_yaml: bool) -> usize {
    let mut from = at;
    let limit = end.min(at + 4096);
    while let Some(step) = memchr3(b';', b',', b'&', &bytes[from..limit]) {
        let sign = from + step;
        let rest = &bytes[sign + 1..end];
        let blank = rest.iter().take_while(|b| **b == b' ').count();
        let name = rest[blank..]
            .iter()
            .take(40)
            .take_while(|b| b.is_ascii_alphanumeric() || b"_- .".contains(b))
            .count();
        let next = rest.get(blank + name);
        // In a line of YAML a comma belongs to the value, unless a name and its sign follow.
        let is_end = match is_yaml {
            true => name > 0 && blank > 0 && matches!(next, Some(b':' | b'=' | b'?')),
            false => name > 0 && next == Some(&b'=') || (blank > 0 && bytes[sign] != b'&'),
        };
        if is_end {
            return sign;
        }
        from = sign + 1;
    }
    end
}

/// The end of a value without the punctuation of the text around it.
fn without_ending(bytes: &[u8], range: &Range<usize>) -> usize {
    let ending = bytes[range.clone()]
        .iter()
        .rev()
        .take_while(|b| b",;)]}".contains(b))
        .count();
    (range.end - ending).max(range.start)
}

fn trim(bytes: &[u8], start: usize, end: usize) -> Range<usize> {
    let blank = bytes[start..end]
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_whitespace())
        .count();
    start..end - blank
}

/// Words that may precede a name in a line of a config file or a log.
const LEADS: &[&str] = &[
    "export",
    "set",
    "env",
    "arg",
    "declare",
    "setx",
    "info",
    "debug",
    "warn",
    "warning",
    "error",
    "trace",
    "stderr",
    "environment",
    "rem",
];

/// Whether only indentation, the prefix of a quotation, diff or log, or a word such as `export` precedes `at` in its line.
pub(super) fn is_line_start(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    let from = at.saturating_sub(MAX_PREFIX);
    let start = match bytes[from..at].iter().rposition(|b| *b == b'\n') {
        Some(line) => from + line + 1,
        None if from == 0 => 0,
        None => return false,
    };
    let mut words = bytes[start..at]
        .split(|b| b.is_ascii_whitespace())
        .filter(|word| !word.is_empty());
    words.all(|word| {
        let letters = word.iter().any(u8::is_ascii_alphabetic);
        let is_lead = |lead: &&str| word.trim_ascii_end().eq_ignore_ascii_case(lead.as_bytes());
        !letters
            || word[0].is_ascii_digit()
            || matches!(word.last(), Some(b':' | b'|' | b']' | b'='))
            || LEADS.iter().any(is_lead)
    })
}
