//! Manifests in braces: JSON, JSON quoted inside JSON, and YAML's flow style.

use std::ops::Range;

use super::findings::{Findings, ObjectKind, PLACEHOLDER, SECTIONS, looks_encoded};

/// The deepest nesting of objects that is followed. Messages cannot be nested deeper.
const MAX_DEPTH: usize = 256;
/// The deepest nesting of quoted documents that is followed.
const MAX_QUOTING: u32 = 4;

/// Scans every document in braces.
pub(super) fn scan(text: &str, findings: &mut Findings) {
    scan_range(text, 0..text.len(), findings, 0);
}

fn scan_range(text: &str, range: Range<usize>, findings: &mut Findings, nested: u32) {
    let mut at = range.start;
    let mut quote = NextQuote::default();
    while let Some(open) = text.as_bytes()[at..range.end].iter().position(|b| *b == b'{') {
        let from = at + open;
        let quoting = quote.quoting_after(text, from + 1..range.end);
        let mut scan = Scan {
            text,
            end: range.end,
            quoting,
            frames: Vec::new(),
            stack: Vec::new(),
            nested: Vec::new(),
        };
        at = scan.document(from).max(from + 1);
        scan.report(findings);
        if nested < MAX_QUOTING {
            for inner in std::mem::take(&mut scan.nested) {
                scan_range(text, inner, findings, nested + 1);
            }
        }
    }
}

/// Caches the position of the next quote, so that it is searched once for all documents before it.
#[derive(Debug, Default)]
struct NextQuote {
    /// Its position, or the end of the range if there is none.
    at: Option<usize>,
}

impl NextQuote {
    /// Returns the number of backslashes before each quote of a document, read off its first quote. Ranges must be in ascending order.
    fn quoting_after(&mut self, text: &str, range: Range<usize>) -> usize {
        let at = match self.at {
            Some(at) if at >= range.start => at,
            _ => memchr::memchr(b'"', &text.as_bytes()[range.clone()]).map_or(range.end, |step| range.start + step),
        };
        self.at = Some(at);
        if at == range.end {
            return 0;
        }
        // `\n` before a key is an escaped line break; its backslash does not belong to the quote.
        let before = text.as_bytes()[range.start..at].iter().rev();
        before.take_while(|b| **b == b'\\').take(15).count()
    }
}

/// One object or list of a document.
#[derive(Debug, Default)]
struct Frame {
    parent: Option<usize>,
    is_list: bool,
    is_closed: bool,
    kind: Option<(ObjectKind, usize)>,
    /// Other keys that end in `kind`, such as `x-kind`, which a search for markers finds too.
    other_kinds: Vec<Range<usize>>,
    is_core: bool,
    /// The values of its data sections.
    sections: Vec<Range<usize>>,
    /// The current key.
    key: Option<Range<usize>>,
    /// The start of its value.
    value: Option<usize>,
    /// The last scalar, which may turn out to be a key.
    last: Option<Range<usize>>,
}

/// The context of a frame in its enclosing objects and lists.
#[derive(Debug, Clone, Copy)]
struct Surroundings {
    /// Whether it and all enclosing frames are closed. If not, a brace may be missing and the nesting is uncertain.
    is_whole: bool,
    /// Whether it is an item of a SecretList.
    is_listed: bool,
}

struct Scan<'t> {
    text: &'t str,
    end: usize,
    quoting: usize,
    frames: Vec<Frame>,
    stack: Vec<usize>,
    /// Quoted strings that may be documents.
    nested: Vec<Range<usize>>,
}

impl Scan<'_> {
    /// Scans from an opening brace to its closing one, and returns the end.
    fn document(&mut self, from: usize) -> usize {
        let mut at = from;
        while at < self.end {
            at = match self.text.as_bytes()[at] {
                b'{' | b'[' if self.stack.len() < MAX_DEPTH => self.open(at),
                b'}' | b']' => self.close(at),
                b':' => self.colon(at),
                b',' => self.comma(at),
                b'\\' | b'"' => self.scan_string_or_escape(at),
                b'\'' => self.single(at),
                b if b.is_ascii_whitespace() => at + 1,
                _ => self.scan_bare(at),
            };
            if self.stack.is_empty() {
                return at;
            }
        }
        self.end
    }

    fn open(&mut self, at: usize) -> usize {
        let parent = self.stack.last().copied();
        if let Some(parent) = parent {
            self.frames[parent].value.get_or_insert(at);
        }
        self.stack.push(self.frames.len());
        self.frames.push(Frame {
            parent,
            is_list: self.text.as_bytes()[at] == b'[',
            ..Frame::default()
        });
        at + 1
    }

    fn close(&mut self, at: usize) -> usize {
        self.value_ends(at);
        if let Some(closed) = self.stack.pop() {
            self.frames[closed].is_closed = true;
        }
        at + 1
    }

    fn comma(&mut self, at: usize) -> usize {
        self.value_ends(at);
        at + 1
    }

    fn colon(&mut self, at: usize) -> usize {
        if let Some(frame) = self.top()
            && !frame.is_list
            && frame.key.is_none()
        {
            frame.key = frame.last.take();
        }
        at + 1
    }

    /// Ends the value of the current key.
    fn value_ends(&mut self, at: usize) {
        let text = self.text;
        let Some(frame) = self.top() else { return };
        let (key, value, last) = (frame.key.take(), frame.value.take(), frame.last.take());
        let (Some(key), Some(from)) = (key, value) else { return };
        match &text[key.clone()] {
            "kind" => {
                let word = last.map_or("", |last| &text[last]);
                frame.kind.get_or_insert((ObjectKind::from_word(word), key.start));
            }
            "apiVersion" => frame.is_core = last.is_some_and(|last| &text[last] == "v1"),
            name if SECTIONS.contains(&name) => {
                let value = from..from + text[from..at].trim_end_matches(is_space).len();
                frame.sections.push(value);
            }
            name if name.ends_with("kind") => frame.other_kinds.push(key),
            _ => {}
        }
    }

    fn top(&mut self) -> Option<&mut Frame> {
        let top = self.stack.last().copied()?;
        self.frames.get_mut(top)
    }

    /// Records a scalar: its range with quotes, and the range inside them.
    fn scalar(&mut self, whole: Range<usize>, inner: Range<usize>) -> usize {
        if self.text[inner.clone()].contains('{') {
            self.nested.push(inner.clone());
        }
        if let Some(frame) = self.top() {
            if frame.key.is_some() {
                frame.value.get_or_insert(whole.start);
            }
            frame.last = Some(inner);
        }
        whole.end
    }

    /// Scans a string, or skips an escape: backslashes without a quote are escaped line breaks and tabs of the enclosing string.
    fn scan_string_or_escape(&mut self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let slashes = bytes[at..self.end].iter().take_while(|b| **b == b'\\').count();
        let quote = at + slashes;
        if bytes.get(quote).filter(|_| quote < self.end) != Some(&b'"') {
            // The letter after the backslashes is part of the escape.
            let letter = bytes.get(quote).is_some_and(u8::is_ascii_alphabetic);
            return (quote + usize::from(letter)).min(self.end);
        }
        let from = quote + 1;
        let mut end = from;
        while let Some(step) = self.text[end..self.end].find('"') {
            let close = end + step;
            let before = self.text[from..close].bytes().rev().take_while(|b| *b == b'\\').count();
            // A string that ends in backslashes has further ones, in multiples of two per level of quoting.
            if before % (2 * (self.quoting + 1)) == self.quoting {
                return self.scalar(at..close + 1, from..close - self.quoting);
            }
            end = close + 1;
        }
        // Truncated: the rest is the string.
        self.scalar(at..self.end, from..self.end)
    }

    fn single(&mut self, at: usize) -> usize {
        let rest = &self.text[at + 1..self.end];
        match rest.find(['\'', '\n']) {
            Some(len) if rest.as_bytes()[len] == b'\'' => {
                let close = at + 1 + len;
                self.scalar(at..close + 1, at + 1..close)
            }
            _ => at + 1,
        }
    }

    fn scan_bare(&mut self, at: usize) -> usize {
        let bytes = &self.text.as_bytes()[at..self.end];
        let mut len = 0;
        while let Some(b) = bytes.get(len) {
            let ends = b",{}[]\"\\".contains(b)
                || b.is_ascii_whitespace()
                || (*b == b':'
                    && bytes
                        .get(len + 1)
                        .is_none_or(|next| next.is_ascii_whitespace() || b"\"'\\{[".contains(next)));
            if ends {
                break;
            }
            len += 1;
        }
        let mut len = len.max(1);
        while !self.text.is_char_boundary(at + len) {
            len += 1;
        }
        self.scalar(at..at + len, at..at + len)
    }

    /// Adds the sections of all Secrets to the findings.
    fn report(&mut self, findings: &mut Findings) {
        for at in self.stack.clone() {
            self.finish_truncated(at);
        }
        let quote = format!("{}\"", "\\".repeat(self.quoting));
        let around = self.around();
        for (frame, around) in self.frames.iter().zip(around) {
            if let Some((kind, at)) = frame.kind
                && (around.is_whole || kind != ObjectKind::Other && !frame.sections.is_empty())
            {
                findings.mark_parsed(at..at + 1);
            }
            if around.is_whole {
                frame
                    .other_kinds
                    .iter()
                    .for_each(|key| findings.mark_parsed(key.clone()));
            }
            if self.is_secret(frame, around) {
                for section in &frame.sections {
                    findings.mask(self.text, section.clone(), format!("{quote}{PLACEHOLDER}{quote}"));
                }
            }
        }
    }

    /// The surroundings of each frame. A frame comes after its parent.
    fn around(&self) -> Vec<Surroundings> {
        let mut all: Vec<Surroundings> = Vec::with_capacity(self.frames.len());
        for frame in &self.frames {
            let outer = frame.parent.map(|parent| (&self.frames[parent], all[parent]));
            all.push(Surroundings {
                is_whole: frame.is_closed && outer.is_none_or(|(_, around)| around.is_whole),
                is_listed: outer.is_some_and(|(outer, around)| {
                    around.is_listed || matches!(outer.kind, Some((ObjectKind::List, _)))
                }),
            });
        }
        all
    }

    /// Ends the value that was open at the end of the text.
    fn finish_truncated(&mut self, at: usize) {
        let (text, end) = (self.text, self.end);
        let frame = &mut self.frames[at];
        let (Some(key), Some(from)) = (frame.key.clone(), frame.value) else {
            return;
        };
        match &text[key.clone()] {
            name if SECTIONS.contains(&name) => frame.sections.push(from..end),
            "kind" => {
                let word = frame.last.clone().map_or("", |last| &text[last]);
                frame.kind.get_or_insert((ObjectKind::from_word(word), key.start));
            }
            _ => {}
        }
    }

    fn is_secret(&self, frame: &Frame, around: Surroundings) -> bool {
        match frame.kind {
            Some((ObjectKind::Secret, _)) => true,
            Some(_) => false,
            None => around.is_listed || self.may_be_secret(frame),
        }
    }

    /// Whether a frame may be a Secret that was truncated before its `kind`.
    fn may_be_secret(&self, frame: &Frame) -> bool {
        let encoded = |section: &Range<usize>| looks_encoded(&self.text[section.clone()]);
        !frame.is_closed && frame.is_core && frame.sections.iter().any(encoded)
    }
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || c == '\\'
}
