//! Manifests in YAML's block style, also with a prefix on every line, as in diffs and quotations.

use std::{collections::HashMap, ops::Range};

use super::findings::{Findings, ObjectKind, PLACEHOLDER, SECTIONS, looks_encoded};

/// One line of a text.
#[derive(Debug, Clone, Copy)]
struct TextLine<'t> {
    start: usize,
    /// The line without trailing whitespace.
    text: &'t str,
    /// How many bytes of indentation and prefix come before the content.
    indent: usize,
}

impl<'t> TextLine<'t> {
    fn content(&self) -> &'t str {
        &self.text[self.indent..]
    }

    fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether the line is empty or a comment, and belongs to the mapping around it.
    fn is_blank(&self) -> bool {
        self.content().is_empty() || self.content().starts_with('#')
    }

    fn separates_documents(&self) -> bool {
        self.text == "---" || self.text == "..." || self.text.starts_with("--- ")
    }

    /// Whether the line begins an item of a list.
    fn is_item(&self) -> bool {
        let before = &self.text[..self.indent];
        before.ends_with(' ') && before.trim_end().ends_with('-')
    }

    /// The key of this line, and the position of its value in the text.
    fn key(&self) -> Option<(&'t str, usize)> {
        let content = self.content();
        let colon = content.find(':')?;
        let after = content.as_bytes().get(colon + 1);
        let key = content[..colon].trim_end().trim_matches(['"', '\'']);
        after
            .is_none_or(u8::is_ascii_whitespace)
            .then_some((key, self.start + self.indent + colon + 1))
    }

    fn kind(&self) -> Option<ObjectKind> {
        let (key, value) = self.key()?;
        let value = self.content()[value - self.start - self.indent..].split(" #").next()?;
        (key == "kind").then(|| ObjectKind::from_word(value.trim().trim_matches(['"', '\''])))
    }

    fn section_value(&self) -> Option<usize> {
        let (key, value) = self.key()?;
        SECTIONS.contains(&key).then_some(value)
    }
}

/// The most sections of a document that are attributed to their objects. No real manifest has more, and the cost is quadratic.
const MAX_SECTIONS: usize = 256;

/// Masks the sections of every object with `kind: Secret`.
pub(super) fn scan(text: &str, findings: &mut Findings) {
    let lines = lines(text);
    // The last mapping at each column, so that a mapping with many `kind` lines is processed once.
    let mut done: HashMap<usize, Range<usize>> = HashMap::new();
    let mut unclaimed = UnclaimedSections::default();
    for (at, line) in lines.iter().enumerate() {
        let Some(kind @ (ObjectKind::Secret | ObjectKind::List)) = line.kind() else {
            continue;
        };
        let place = line.start + line.indent..line.end();
        if findings.is_parsed(place.clone()) {
            continue;
        }
        if !done.get(&line.indent).is_some_and(|lines| lines.contains(&at)) {
            let mapping = mapping(&lines, at);
            done.insert(line.indent, mapping.clone());
            // A Secret without sections counts as parsed only if no unclaimed section in the document may be its data.
            if !mask_sections(text, &lines, at, kind, mapping, findings) && unclaimed.has_any(&lines, at) {
                continue;
            }
        }
        findings.mark_parsed(place);
    }
    // Only the last object of a text can be truncated.
    if let Some(at) = lines.iter().rposition(|line| line.content() == "apiVersion: v1") {
        mask_if_truncated(text, &lines, at, findings);
    }
}

fn lines(text: &str) -> Vec<TextLine<'_>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let text = line.trim_end();
        lines.push(TextLine {
            start,
            text,
            indent: text.find(|c: char| !" \t+->|│*•".contains(c)).unwrap_or(text.len()),
        });
        start += line.len();
    }
    lines
}

/// The lines of the mapping that has a key in line `at`: the adjacent lines with the same or deeper indentation.
fn mapping(lines: &[TextLine<'_>], at: usize) -> Range<usize> {
    let column = lines[at].indent;
    let mut first = at;
    while !(lines[first].indent == column && lines[first].is_item()) && first > 0 {
        let before = &lines[first - 1];
        if before.separates_documents() || (!before.is_blank() && before.indent < column) {
            break;
        }
        first -= 1;
    }
    let mut last = at + 1;
    while let Some(line) = lines.get(last) {
        let ends = line.indent < column || (line.indent == column && line.is_item());
        if line.separates_documents() || (!line.is_blank() && ends) {
            break;
        }
        last += 1;
    }
    first..last
}

/// Masks the sections of the mapping around line `at`. Returns whether there are any.
fn mask_sections(
    text: &str,
    lines: &[TextLine<'_>],
    at: usize,
    kind: ObjectKind,
    mapping: Range<usize>,
    findings: &mut Findings,
) -> bool {
    let column = lines[at].indent;
    let mut next = 0;
    for index in mapping {
        let line = &lines[index];
        // A section that is indented too far counts as well, and ends at the Secret's next key.
        let (fits, until) = match kind {
            ObjectKind::List => (line.indent > column, line.indent),
            ObjectKind::Secret | ObjectKind::Other => (line.indent >= column, column),
        };
        if index >= next
            && fits
            && let Some(value) = line.section_value()
        {
            let (after, end) = section_end(text, lines, index, value, until);
            findings.mask(text, value..end.max(value), format!(" \"{PLACEHOLDER}\""));
            next = after;
        }
    }
    next > 0
}

/// Returns the line after a section, and the end position of its last line.
fn section_end(text: &str, lines: &[TextLine<'_>], at: usize, value: usize, column: usize) -> (usize, usize) {
    let (mut next, mut end) = (at + 1, lines[at].end());
    let mut depth = braces(&text[value..lines[at].end().max(value)]);
    for (index, line) in lines.iter().enumerate().skip(at + 1) {
        if line.separates_documents() {
            break;
        }
        if line.is_blank() && depth <= 0 {
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

/// The number of opened minus closed braces.
fn braces(text: &str) -> i32 {
    let flow = text.trim_start().starts_with(['{', '[', '}', ']']) || text.trim_end().ends_with(['{', '}']);
    if !flow {
        return 0;
    }
    text.bytes().map(|b| i32::from(b == b'{') - i32::from(b == b'}')).sum()
}

/// Caches the unclaimed sections of the last document.
#[derive(Default)]
struct UnclaimedSections {
    document: Range<usize>,
    sections: Vec<usize>,
}

impl UnclaimedSections {
    /// Whether the document of line `at` has unclaimed sections.
    fn has_any(&mut self, lines: &[TextLine<'_>], at: usize) -> bool {
        if !self.document.contains(&at) {
            self.document = document(lines, at);
            self.sections = unclaimed_sections(lines, self.document.clone());
        }
        !self.sections.is_empty()
    }
}

/// The lines of a document that begin a section outside mappings of another kind than Secret.
fn unclaimed_sections(lines: &[TextLine<'_>], document: Range<usize>) -> Vec<usize> {
    let mut sections: Vec<usize> = document.filter(|at| lines[*at].section_value().is_some()).collect();
    if sections.len() <= MAX_SECTIONS {
        // The last mapping at each column, and whether it is of another kind.
        let mut known: HashMap<usize, (Range<usize>, bool)> = HashMap::new();
        sections.retain(|at| {
            let column = lines[*at].indent;
            if let Some((_, is_other)) = known.get(&column).filter(|(mapping, _)| mapping.contains(at)) {
                return !is_other;
            }
            let mapping = mapping(lines, *at);
            let mut siblings = lines[mapping.clone()].iter().filter(|line| line.indent == column);
            let is_other = siblings.find_map(TextLine::kind) == Some(ObjectKind::Other);
            known.insert(column, (mapping, is_other));
            !is_other
        });
    }
    sections
}

/// The lines of the document that line `at` is in.
fn document(lines: &[TextLine<'_>], at: usize) -> Range<usize> {
    let before = lines[..at]
        .iter()
        .rposition(TextLine::separates_documents)
        .map_or(0, |line| line + 1);
    let after = lines[at..]
        .iter()
        .position(TextLine::separates_documents)
        .map_or(lines.len(), |line| at + line);
    before..after
}

/// Masks a truncated core object at the end of the text: one without `kind` whose data is all base64.
fn mask_if_truncated(text: &str, lines: &[TextLine<'_>], at: usize, findings: &mut Findings) {
    let column = lines[at].indent;
    let around = mapping(lines, at);
    let is_last = lines[around.end..].iter().all(TextLine::is_blank);
    let says_kind = lines[around.clone()]
        .iter()
        .any(|line| line.indent == column && line.kind().is_some());
    if !is_last || says_kind {
        return;
    }
    for index in around {
        if let Some(value) = lines[index].section_value().filter(|_| lines[index].indent == column) {
            let (_, end) = section_end(text, lines, index, value, column);
            if end > value && looks_encoded(&text[lines[index].end()..end.max(lines[index].end())]) {
                findings.mask(text, value..end, format!(" \"{PLACEHOLDER}\""));
            }
        }
    }
}

/// Masks everything after the first section name in the documents of these markers, whose structure could not be parsed.
pub(super) fn mask_all_after(text: &str, markers: &[usize], findings: &mut Findings) {
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
        mask_rest(text, &lines, document, from..end.max(from), findings);
    }
}

fn mask_rest(text: &str, lines: &[TextLine<'_>], document: Range<usize>, place: Range<usize>, findings: &mut Findings) {
    let unclaimed = unclaimed_sections(lines, document);
    let is_claimed = |value: usize| {
        let line = lines.partition_point(|line| line.start < value).saturating_sub(1);
        lines[line].section_value().is_some() && unclaimed.binary_search(&line).is_err()
    };
    let mut values = section_values(&text[place.clone()]);
    values.sort_unstable();
    let values = values.into_iter().map(|value| place.start + value);
    let is_hidden = |value: &usize| {
        let rest = text[*value..place.end].trim_start_matches(|c: char| c.is_whitespace() || "\"'\\".contains(c));
        rest.starts_with(PLACEHOLDER)
    };
    if let Some(value) = { values }.find(|value| !is_claimed(*value) && !is_hidden(value)) {
        findings.mask(text, value..place.end, format!(" \"{PLACEHOLDER}\""));
    }
}

/// The positions of the values after a section name and a colon, with any quotes.
fn section_values(text: &str) -> Vec<usize> {
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
