//! Manifests in lines: the block style of YAML, also with something before every line, as in differences and quotations.

use std::{collections::HashMap, ops::Range};

use super::{Finds, Kind, MARK, SECTIONS, looks_encoded};

/// One line, and where its content begins.
#[derive(Debug, Clone, Copy)]
struct Line<'t> {
    start: usize,
    /// Without the white space at its end, which may be long and is asked about often.
    text: &'t str,
    /// How many bytes stand before the content.
    indent: usize,
}

impl<'t> Line<'t> {
    fn content(&self) -> &'t str {
        &self.text[self.indent..]
    }

    fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Empty lines and comments belong to whatever is around them.
    fn is_nothing(&self) -> bool {
        self.content().is_empty() || self.content().starts_with('#')
    }

    fn parts_documents(&self) -> bool {
        self.text == "---" || self.text == "..." || self.text.starts_with("--- ")
    }

    /// Whether an item of a list begins here.
    fn is_item(&self) -> bool {
        let before = &self.text[..self.indent];
        before.ends_with(' ') && before.trim_end().ends_with('-')
    }

    /// The key of this line, and where its value begins in the text.
    fn key(&self) -> Option<(&'t str, usize)> {
        let content = self.content();
        let colon = content.find(':')?;
        let after = content.as_bytes().get(colon + 1);
        let key = content[..colon].trim_end().trim_matches(['"', '\'']);
        after
            .is_none_or(u8::is_ascii_whitespace)
            .then_some((key, self.start + self.indent + colon + 1))
    }

    fn kind(&self) -> Option<Kind> {
        let (key, value) = self.key()?;
        let value = self.content()[value - self.start - self.indent..].split(" #").next()?;
        (key == "kind").then(|| Kind::named(value.trim().trim_matches(['"', '\''])))
    }

    fn begins_section(&self) -> Option<usize> {
        let (key, value) = self.key()?;
        SECTIONS.contains(&key).then_some(value)
    }
}

/// More lines than this that begin sections are nobody's manifests, and are not sorted by whose they are.
const MAX_SECTIONS: usize = 256;

/// Looks at every line that says that something is a Secret.
pub(super) fn scan(text: &str, finds: &mut Finds) {
    let lines = lines(text);
    // The mapping that was looked at last at each column: one that has many kinds is looked at once.
    let mut done: HashMap<usize, Range<usize>> = HashMap::new();
    let mut ownerless = Ownerless::default();
    for (at, line) in lines.iter().enumerate() {
        let Some(kind @ (Kind::Secret | Kind::List)) = line.kind() else {
            continue;
        };
        let place = line.start + line.indent..line.end();
        if finds.is_settled(place.clone()) {
            continue;
        }
        if !done.get(&line.indent).is_some_and(|lines| lines.contains(&at)) {
            let mapping = mapping(&lines, at);
            done.insert(line.indent, mapping.clone());
            // A Secret without data is one when nothing around it looks like data of nobody.
            if !hide_sections(text, &lines, at, kind, mapping, finds) && ownerless.has_any(&lines, at) {
                continue;
            }
        }
        finds.settle(place);
    }
    // Only the last object of a text can be cut off.
    if let Some(at) = lines.iter().rposition(|line| line.content() == "apiVersion: v1") {
        hide_if_cut(text, &lines, at, finds);
    }
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let text = line.trim_end();
        lines.push(Line {
            start,
            text,
            indent: text.find(|c: char| !" \t+->|│*•".contains(c)).unwrap_or(text.len()),
        });
        start += line.len();
    }
    lines
}

/// The lines of the mapping that has a key in line `at`: those around it that are indented as far or further.
fn mapping(lines: &[Line<'_>], at: usize) -> Range<usize> {
    let column = lines[at].indent;
    let mut first = at;
    while !(lines[first].indent == column && lines[first].is_item()) && first > 0 {
        let before = &lines[first - 1];
        if before.parts_documents() || (!before.is_nothing() && before.indent < column) {
            break;
        }
        first -= 1;
    }
    let mut last = at + 1;
    while let Some(line) = lines.get(last) {
        let ends = line.indent < column || (line.indent == column && line.is_item());
        if line.parts_documents() || (!line.is_nothing() && ends) {
            break;
        }
        last += 1;
    }
    first..last
}

/// Hides the sections of the mapping around line `at`. Whether there are any.
fn hide_sections(
    text: &str,
    lines: &[Line<'_>],
    at: usize,
    kind: Kind,
    mapping: Range<usize>,
    finds: &mut Finds,
) -> bool {
    let column = lines[at].indent;
    let mut next = 0;
    for index in mapping {
        let line = &lines[index];
        // A section that stands too far in is one all the same, and goes as far as the Secret's next key.
        let (fits, until) = match kind {
            Kind::List => (line.indent > column, line.indent),
            Kind::Secret | Kind::Other => (line.indent >= column, column),
        };
        if index >= next
            && fits
            && let Some(value) = line.begins_section()
        {
            let (after, end) = section_end(text, lines, index, value, until);
            finds.hide(text, value..end.max(value), format!(" \"{MARK}\""));
            next = after;
        }
    }
    next > 0
}

/// The line after a section, and where the section's last line ends.
fn section_end(text: &str, lines: &[Line<'_>], at: usize, value: usize, column: usize) -> (usize, usize) {
    let (mut next, mut end) = (at + 1, lines[at].end());
    let mut depth = braces(&text[value..lines[at].end().max(value)]);
    for (index, line) in lines.iter().enumerate().skip(at + 1) {
        if line.parts_documents() {
            break;
        }
        if line.is_nothing() && depth <= 0 {
            continue;
        }
        if depth <= 0 && line.indent <= column {
            break;
        }
        depth += braces(line.content());
        (next, end) = (index + 1, line.end());
    }
    (next, end)
}

/// How many more braces are opened than closed.
fn braces(text: &str) -> i32 {
    let flow = text.trim_start().starts_with(['{', '[', '}', ']']) || text.trim_end().ends_with(['{', '}']);
    if !flow {
        return 0;
    }
    text.bytes().map(|b| i32::from(b == b'{') - i32::from(b == b'}')).sum()
}

/// What is known of the document that was looked at last.
#[derive(Default)]
struct Ownerless {
    document: Range<usize>,
    sections: Vec<usize>,
}

impl Ownerless {
    /// Whether sections that are nobody's stand in the document of line `at`.
    fn has_any(&mut self, lines: &[Line<'_>], at: usize) -> bool {
        if !self.document.contains(&at) {
            self.document = document(lines, at);
            self.sections = ownerless_sections(lines, self.document.clone());
        }
        !self.sections.is_empty()
    }
}

/// Lines of a document that begin a section, in no mapping that says it is something else than a Secret.
fn ownerless_sections(lines: &[Line<'_>], document: Range<usize>) -> Vec<usize> {
    let mut sections: Vec<usize> = document.filter(|at| lines[*at].begins_section().is_some()).collect();
    if sections.len() <= MAX_SECTIONS {
        // The mapping that was looked at last at each column, and whether it says that it is something else.
        let mut known: HashMap<usize, (Range<usize>, bool)> = HashMap::new();
        sections.retain(|at| {
            let column = lines[*at].indent;
            if let Some((_, is_other)) = known.get(&column).filter(|(mapping, _)| mapping.contains(at)) {
                return !is_other;
            }
            let mapping = mapping(lines, *at);
            let mut siblings = lines[mapping.clone()].iter().filter(|line| line.indent == column);
            let is_other = siblings.find_map(Line::kind) == Some(Kind::Other);
            known.insert(column, (mapping, is_other));
            !is_other
        });
    }
    sections
}

/// The lines of the document that line `at` is in.
fn document(lines: &[Line<'_>], at: usize) -> Range<usize> {
    let before = lines[..at]
        .iter()
        .rposition(Line::parts_documents)
        .map_or(0, |line| line + 1);
    let after = lines[at..]
        .iter()
        .position(Line::parts_documents)
        .map_or(lines.len(), |line| at + line);
    before..after
}

/// A core object at the end of the text that does not say what it is, with data that is all base64.
fn hide_if_cut(text: &str, lines: &[Line<'_>], at: usize, finds: &mut Finds) {
    let column = lines[at].indent;
    let around = mapping(lines, at);
    let is_last = lines[around.end..].iter().all(Line::is_nothing);
    let says_kind = lines[around.clone()]
        .iter()
        .any(|line| line.indent == column && line.kind().is_some());
    if !is_last || says_kind {
        return;
    }
    for index in around {
        if let Some(value) = lines[index].begins_section().filter(|_| lines[index].indent == column) {
            let (_, end) = section_end(text, lines, index, value, column);
            if end > value && looks_encoded(&text[lines[index].end()..end.max(lines[index].end())]) {
                finds.hide(text, value..end, format!(" \"{MARK}\""));
            }
        }
    }
}

/// The structure around these markers was not understood: everything after the first name of a section in their documents is hidden.
pub(super) fn hide_all_after(text: &str, markers: &[usize], finds: &mut Finds) {
    let lines = lines(text);
    let mut done = 0;
    for marker in markers {
        let index = lines.partition_point(|line| line.start <= *marker).saturating_sub(1);
        if *marker < done || lines.is_empty() {
            continue;
        }
        let document = document(&lines, index);
        let (from, end) = (lines[document.start].start, lines[document.end.max(1) - 1].end());
        done = end;
        hide_rest(text, &lines, document, from..end.max(from), finds);
    }
}

fn hide_rest(text: &str, lines: &[Line<'_>], document: Range<usize>, place: Range<usize>, finds: &mut Finds) {
    let ownerless = ownerless_sections(lines, document);
    let is_another_one = |value: usize| {
        let line = lines.partition_point(|line| line.start < value).saturating_sub(1);
        lines[line].begins_section().is_some() && ownerless.binary_search(&line).is_err()
    };
    let mut values = names_of_sections(&text[place.clone()]);
    values.sort_unstable();
    let values = values.into_iter().map(|value| place.start + value);
    let is_hidden = |value: &usize| {
        let rest = text[*value..place.end].trim_start_matches(|c: char| c.is_whitespace() || "\"'\\".contains(c));
        rest.starts_with(MARK)
    };
    if let Some(value) = { values }.find(|value| !is_another_one(*value) && !is_hidden(value)) {
        finds.hide(text, value..place.end, format!(" \"{MARK}\""));
    }
}

/// Where the values begin that stand after the name of a section and a colon, in whatever quotes.
fn names_of_sections(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for section in SECTIONS {
        for (at, _) in text.match_indices(section) {
            let before = text[..at].chars().next_back();
            let after = text[at + section.len()..]
                .trim_start_matches(['"', '\'', '\\'])
                .trim_start_matches([' ', '\t']);
            if !before.is_some_and(|c| c.is_alphanumeric() || "_-./".contains(c)) && after.starts_with(':') {
                found.push(text.len() - after.len() + 1);
            }
        }
    }
    found
}
