//! Manifests in braces: JSON, JSON quoted within JSON to any depth, and the flow style of YAML.

use std::ops::Range;

use super::{Finds, Kind, MARK, SECTIONS, looks_encoded};

/// How deep objects are followed. Nothing is deeper on the wire.
const MAX_DEPTH: usize = 256;
/// How deep quoted documents are followed.
const MAX_QUOTING: u32 = 4;

/// Looks at everything in braces.
pub(super) fn scan(text: &str, finds: &mut Finds) {
    scan_range(text, 0..text.len(), finds, 0);
}

fn scan_range(text: &str, range: Range<usize>, finds: &mut Finds, nested: u32) {
    let mut at = range.start;
    let mut quote = Quote::default();
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
        scan.judge(finds);
        if nested < MAX_QUOTING {
            for inner in std::mem::take(&mut scan.nested) {
                scan_range(text, inner, finds, nested + 1);
            }
        }
    }
}

/// The first quote at or after a place. It is looked for once, however many documents begin before it.
#[derive(Debug, Default)]
struct Quote {
    /// Where it stands, or the end of the text if there is none.
    at: Option<usize>,
}

impl Quote {
    /// How many backslashes stand before each quote of a document, told by its first one. Documents are asked for in ascending order.
    fn quoting_after(&mut self, text: &str, range: Range<usize>) -> usize {
        let at = match self.at {
            Some(at) if at >= range.start => at,
            _ => memchr::memchr(b'"', &text.as_bytes()[range.clone()]).map_or(range.end, |step| range.start + step),
        };
        self.at = Some(at);
        if at == range.end {
            return 0;
        }
        // `\n` before a key is a line end of the quoted text, and its backslash belongs to no quote.
        let before = text.as_bytes()[range.start..at].iter().rev();
        before.take_while(|b| **b == b'\\').take(15).count()
    }
}

/// One object or list.
#[derive(Debug, Default)]
struct Frame {
    parent: Option<usize>,
    is_list: bool,
    is_closed: bool,
    kind: Option<(Kind, usize)>,
    is_core: bool,
    /// Values under the names of sections.
    sections: Vec<Range<usize>>,
    /// The key whose value comes next.
    key: Option<Range<usize>>,
    /// Where that value began.
    value: Option<usize>,
    /// The last text, when it may turn out to be a key.
    last: Option<Range<usize>>,
}

/// What the objects and lists around a frame tell about it.
#[derive(Debug, Clone, Copy)]
struct Around {
    /// It and everything around it was closed. Where it was not, a brace may be missing, and what is within what is not certain.
    is_whole: bool,
    /// It is an item of a SecretList.
    is_listed: bool,
}

struct Scan<'t> {
    text: &'t str,
    end: usize,
    quoting: usize,
    frames: Vec<Frame>,
    stack: Vec<usize>,
    /// Quoted texts that may be documents.
    nested: Vec<Range<usize>>,
}

impl Scan<'_> {
    /// Reads from an opening brace to its end, and returns where that is.
    fn document(&mut self, from: usize) -> usize {
        let mut at = from;
        while at < self.end {
            at = match self.text.as_bytes()[at] {
                b'{' | b'[' if self.stack.len() < MAX_DEPTH => self.open(at),
                b'}' | b']' => self.close(at),
                b':' => self.colon(at),
                b',' => self.comma(at),
                b'\\' | b'"' => self.quoted_or_space(at),
                b'\'' => self.single(at),
                b if b.is_ascii_whitespace() => at + 1,
                _ => self.bare(at),
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

    /// The value of the current key is complete.
    fn value_ends(&mut self, at: usize) {
        let text = self.text;
        let Some(frame) = self.top() else { return };
        let (key, value, last) = (frame.key.take(), frame.value.take(), frame.last.take());
        let (Some(key), Some(from)) = (key, value) else { return };
        match &text[key.clone()] {
            "kind" => {
                let word = last.map_or("", |last| &text[last]);
                frame.kind.get_or_insert((Kind::named(word), key.start));
            }
            "apiVersion" => frame.is_core = last.is_some_and(|last| &text[last] == "v1"),
            name if SECTIONS.contains(&name) => {
                let value = from..from + text[from..at].trim_end_matches(is_space).len();
                frame.sections.push(value);
            }
            _ => {}
        }
    }

    fn top(&mut self) -> Option<&mut Frame> {
        let top = self.stack.last().copied()?;
        self.frames.get_mut(top)
    }

    /// A text, where it begins and ends with its quotes, and what is within them.
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

    /// A quote of this document begins a text; other backslashes are line ends and tabs of the text that the document is quoted in.
    fn quoted_or_space(&mut self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let slashes = bytes[at..self.end].iter().take_while(|b| **b == b'\\').count();
        let quote = at + slashes;
        if bytes.get(quote).filter(|_| quote < self.end) != Some(&b'"') {
            // The letter after it is part of the escape.
            let letter = bytes.get(quote).is_some_and(u8::is_ascii_alphabetic);
            return (quote + usize::from(letter)).min(self.end);
        }
        let from = quote + 1;
        let mut end = from;
        while let Some(step) = self.text[end..self.end].find('"') {
            let close = end + step;
            let before = self.text[from..close].bytes().rev().take_while(|b| *b == b'\\').count();
            // A text that ends in a backslash has more of them, by the double of what quotes it.
            if before % (2 * (self.quoting + 1)) == self.quoting {
                return self.scalar(at..close + 1, from..close - self.quoting);
            }
            end = close + 1;
        }
        // Cut off: the rest is the text.
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

    fn bare(&mut self, at: usize) -> usize {
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

    /// Hides the sections of what turned out to be Secrets.
    fn judge(&mut self, finds: &mut Finds) {
        for at in self.stack.clone() {
            self.cut_off(at);
        }
        let quote = format!("{}\"", "\\".repeat(self.quoting));
        let around = self.around();
        for (frame, around) in self.frames.iter().zip(around) {
            if let Some((kind, at)) = frame.kind
                && kind != Kind::Other
                && (!frame.sections.is_empty() || around.is_whole)
            {
                finds.settle(at..at + 1);
            }
            if self.is_secret(frame, around) {
                for section in &frame.sections {
                    finds.hide(self.text, section.clone(), format!("{quote}{MARK}{quote}"));
                }
            }
        }
    }

    /// What is around each frame. A frame comes after the one that it is in.
    fn around(&self) -> Vec<Around> {
        let mut all: Vec<Around> = Vec::with_capacity(self.frames.len());
        for frame in &self.frames {
            let outer = frame.parent.map(|parent| (&self.frames[parent], all[parent]));
            all.push(Around {
                is_whole: frame.is_closed && outer.is_none_or(|(_, around)| around.is_whole),
                is_listed: outer
                    .is_some_and(|(outer, around)| around.is_listed || matches!(outer.kind, Some((Kind::List, _)))),
            });
        }
        all
    }

    /// What was under way when the text ended.
    fn cut_off(&mut self, at: usize) {
        let (text, end) = (self.text, self.end);
        let frame = &mut self.frames[at];
        let (Some(key), Some(from)) = (frame.key.clone(), frame.value) else {
            return;
        };
        match &text[key.clone()] {
            name if SECTIONS.contains(&name) => frame.sections.push(from..end),
            "kind" => {
                let word = frame.last.clone().map_or("", |last| &text[last]);
                frame.kind.get_or_insert((Kind::named(word), key.start));
            }
            _ => {}
        }
    }

    fn is_secret(&self, frame: &Frame, around: Around) -> bool {
        match frame.kind {
            Some((Kind::Secret, _)) => true,
            Some(_) => false,
            None => around.is_listed || self.may_be_secret(frame),
        }
    }

    /// Whether it was cut off before it said what it is.
    fn may_be_secret(&self, frame: &Frame) -> bool {
        let encoded = |section: &Range<usize>| looks_encoded(&self.text[section.clone()]);
        !frame.is_closed && frame.is_core && frame.sections.iter().any(encoded)
    }
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || c == '\\'
}
