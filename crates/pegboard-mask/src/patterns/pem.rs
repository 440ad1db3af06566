//! Finds PEM blocks, whole or truncated. The search is one pass, however many `BEGIN` lines have no `END`.

use std::{ops::Range, sync::LazyLock};

use memchr::memmem::{self, FinderRev};

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";
/// The longest label of a PEM block.
const MAX_NAME: usize = 64;

/// PEM blocks of private keys.
pub(super) fn private_pem(text: &str) -> Vec<Range<usize>> {
    find(text, |name| name.contains("PRIVATE KEY"))
}

/// All PEM blocks.
pub(super) fn any_pem(text: &str) -> Vec<Range<usize>> {
    find(text, |_| true)
}

const PUTTY_LINES: &str = "Private-Lines:";
const PUTTY_MAC: &str = "Private-MAC:";

/// Searches backwards, which cost more to prepare than to run.
static LAST_BEGIN: LazyLock<FinderRev<'static>> = LazyLock::new(|| FinderRev::new(BEGIN));
static LAST_PUTTY_LINES: LazyLock<FinderRev<'static>> = LazyLock::new(|| FinderRev::new(PUTTY_LINES));

/// The lines of private keys in PuTTY's format, and their checksums.
pub(super) fn putty(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for start in memmem::find_iter(text.as_bytes(), PUTTY_LINES) {
        let mut lines = text[start..].split_inclusive('\n');
        let count = lines
            .next()
            .and_then(|line| line[PUTTY_LINES.len()..].trim().parse::<usize>().ok());
        let mut at = start + text[start..].find('\n').map_or(text.len() - start, |end| end + 1);
        for line in lines.take(count.unwrap_or(0).min(MAX_PUTTY_LINES)) {
            found.extend(payload_range(line, at));
            at += line.len();
        }
    }
    for start in memmem::find_iter(text.as_bytes(), PUTTY_MAC) {
        let at = start + PUTTY_MAC.len();
        let blank = text[at..].bytes().take_while(|b| *b == b' ').count();
        let len = text[at + blank..].bytes().take_while(u8::is_ascii_hexdigit).count();
        if len >= MIN_LINE {
            found.push(at + blank..at + blank + len);
        }
    }
    found
}

/// The range of the part of a key in the line that begins at `at`.
fn payload_range(line: &str, at: usize) -> Option<Range<usize>> {
    let part = payload(line);
    let start = at + line.rfind(part)?;
    (part.len() >= MIN_LAST).then(|| start..start + part.len())
}

fn find(text: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<Range<usize>> {
    let mut begins = memmem::find_iter(text.as_bytes(), BEGIN).peekable();
    let mut ends = memmem::find_iter(text.as_bytes(), END).peekable();
    let mut found = Vec::new();
    while let Some(begin) = begins.next() {
        let Some(name) = name_at(text, begin + BEGIN.len()) else {
            continue;
        };
        while ends.next_if(|end| *end < begin).is_some() {}
        // The dashes after a label may be the start of the next block.
        let next = begins
            .peek()
            .map_or(text.len(), |next| (*next).max(name.end + DASHES.len()));
        if !is_wanted(&text[name.clone()]) {
            continue;
        }
        let body = name.end + DASHES.len();
        let end = match ends.peek() {
            Some(end) if *end < next => match name_at(text, end + END.len()) {
                Some(name) => name.end + DASHES.len(),
                None => end + END.len(),
            },
            // Truncated: as far as it looks like a key.
            _ => body + body_len(&text[body..next], prefix_len(text, begin)),
        };
        found.push(begin..end);
    }
    found
}

/// The range of the label that begins at `at`.
fn name_at(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text.get(at..)?;
    let len = rest.find(DASHES).filter(|len| *len <= MAX_NAME)?;
    let is_name = rest[..len]
        .bytes()
        .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b' ');
    is_name.then_some(at..at + len)
}

/// The most bytes of a line's prefix.
const MAX_PREFIX: usize = 80;
/// The fewest characters of a key in a line with a prefix, and in the last one.
const MIN_LINE: usize = 32;
const MIN_LAST: usize = 4;
/// The most lines of a private key in PuTTY's format.
const MAX_PUTTY_LINES: usize = 64;

/// The length of what precedes `at` in its line.
fn prefix_len(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[at.saturating_sub(MAX_PREFIX)..at];
    before
        .iter()
        .rev()
        .take_while(|b| !matches!(b, b'\n' | b'"' | b'\''))
        .count()
}

/// The part of a key at the end of a line, after a prefix such as `> `, `12: ` or the time of a log.
fn payload(line: &str) -> &str {
    let line = line.trim_end_matches(|c: char| c.is_whitespace() || "\"',\\".contains(c));
    let line = line.strip_suffix("\\n").unwrap_or(line);
    let len = line
        .bytes()
        .rev()
        .take_while(|b| b.is_ascii_alphanumeric() || b"+/=".contains(b))
        .count();
    &line[line.len() - len..]
}

/// The length of the text that looks like the body of a PEM block. `prefix` is the length of what precedes each line.
fn body_len(text: &str, prefix: usize) -> usize {
    let plain = plain_body_len(text);
    if prefix == 0 || plain > MIN_LINE {
        return plain;
    }
    prefixed_body_len(text, prefix)
}

/// The length of the lines with a prefix that look like a key.
fn prefixed_body_len(text: &str, prefix: usize) -> usize {
    let (mut len, mut end) = (0, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let found = payload(line).len();
        let content = line.trim_end();
        // The rest of the header's line, and lines with nothing but the prefix.
        let is_blank = content.len() <= prefix || number == 0;
        let is_last = found >= MIN_LAST && content.len() == prefix + found;
        let is_header = content.contains("Proc-Type:") || content.contains("DEK-Info:");
        if !(is_blank || is_header || found >= MIN_LINE || is_last) {
            break;
        }
        len += line.len();
        if found >= MIN_LINE || is_last || is_header {
            end = len - (line.len() - content.len());
        }
    }
    end
}

/// A private key that was begun in an earlier text and has not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OpenKey {
    /// How many more lines that are no key may come between its lines; none if no key is open.
    patience: u8,
}

impl OpenKey {
    /// How many lines of something else may come between the lines of a key.
    const PATIENCE: u8 = 4;

    /// Returns the ranges of a text that continue the key.
    pub(crate) fn find(&mut self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            if self.patience == 0 {
                break;
            }
            let start = at;
            at += line.len();
            if line.contains(PUTTY_MAC) {
                self.patience = 0;
            } else if let Some(end) = line.find(END) {
                let rest = &line[end + END.len()..];
                let close = rest
                    .find(DASHES)
                    .map_or(line.len(), |close| end + END.len() + close + DASHES.len());
                found.push(start..start + close);
                self.patience = 0;
            } else if let content @ 1.. = payload(line).len() {
                let is_line = content >= MIN_LINE / 2
                    || content == line.trim().len() && (line.contains('=') || content >= MIN_LINE / 4);
                if is_line {
                    found.extend(payload_range(line, start));
                    self.patience = Self::PATIENCE;
                } else {
                    self.patience -= 1;
                }
            } else if !line.trim().is_empty() {
                self.patience -= 1;
            }
        }
        found
    }

    /// Remembers whether a text ends within a private key.
    pub(crate) fn note(&mut self, text: &str) {
        if let Some(begin) = LAST_PUTTY_LINES.rfind(text)
            && !text[begin..].contains(PUTTY_MAC)
        {
            self.patience = Self::PATIENCE;
        }
        let Some(begin) = LAST_BEGIN.rfind(text) else {
            return;
        };
        let is_private = name_at(text, begin + BEGIN.len()).is_some_and(|name| text[name].contains("PRIVATE KEY"));
        let rest = &text[begin..];
        if is_private && memmem::find(rest.as_bytes(), END.as_bytes()).is_none() {
            let lines = rest.lines().skip(1);
            let others = lines
                .filter(|line| payload(line).len() < MIN_LINE / 2 && !line.trim().is_empty())
                .count();
            self.patience = Self::PATIENCE.saturating_sub(u8::try_from(others).unwrap_or(u8::MAX));
        }
    }

    pub(crate) fn is_open(self) -> bool {
        self.patience > 0
    }
}

/// The length of the text that looks like the body of a PEM block: lines without spaces, with real or escaped line breaks.
fn plain_body_len(text: &str) -> usize {
    let mut len = 0;
    for line in text.split_inclusive('\n') {
        let plain = line.trim().replace("\\n", "").replace("\\r", "");
        let is_header =
            plain.starts_with("Proc-Type:") || plain.starts_with("DEK-Info:") || plain.starts_with("Comment:");
        let inside = plain
            .bytes()
            .take_while(|b| b.is_ascii_alphanumeric() || b"+/=\\".contains(b))
            .count();
        if inside < plain.len() && !is_header {
            // The last line may be truncated or end a quoted string, and be followed by prose.
            let cut = line.find(|c: char| !(c.is_ascii_alphanumeric() || "+/=\\ \t".contains(c)));
            let part = line.split([' ', '"', '\'']).next().unwrap_or_default();
            let is_part = part.len() >= 16
                || part.ends_with('=')
                || part.contains("\\n")
                || part.len() < line.trim_end().len() && line[part.len()..].starts_with(['"', '\'']);
            return len
                + if is_part {
                    part.len().min(cut.unwrap_or(line.len()))
                } else {
                    0
                };
        }
        len += line.len();
    }
    text[..len].trim_end().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written in parts, so that nothing here looks like a key.
    fn armour(body: &str) -> String {
        format!(
            "-----BEGIN RSA PRIV{}-----\n{body}\n-----END RSA PRIV{0}-----",
            "ATE KEY"
        )
    }

    #[test]
    fn whole_keys_are_found_and_certificates_left() {
        let key = armour("QUJD\nREVG");
        let text = format!("before\n{key}\nafter");
        assert_eq!(private_pem(&text), vec![7..7 + key.len()]);
        let certificate = key.replace("RSA PRIVATE KEY", "CERTIFICATE");
        assert!(private_pem(&certificate).is_empty());
        assert_eq!(any_pem(&certificate), vec![0..certificate.len()]);
    }

    #[test]
    fn keys_that_are_cut_off_are_found_up_to_what_is_no_key() {
        let key = armour("QUJDREVGR0g=\nSUpLTE1OT1A=");
        let cut = &key[..key.len() - 32];
        assert_eq!(private_pem(cut), vec![0..cut.len()]);
        let text = format!("{cut}\nand then words follow");
        let found = private_pem(&text);
        assert_eq!(found.len(), 1);
        assert!(!text[found[0].clone()].contains("words") && text[found[0].clone()].contains("SUpL"));
        let json = format!(r#"{{"key": "{}", "next": 1}}"#, cut.replace('\n', "\\n"));
        let found = private_pem(&json);
        assert!(json[found[0].end..].starts_with("\", "), "{}", &json[found[0].end..]);
    }

    #[test]
    fn many_beginnings_without_an_end_take_one_pass() {
        let text = format!("-----BEGIN PRIV{}-----", "ATE KEY").repeat(40_000);
        assert_eq!(private_pem(&text).len(), 40_000);
    }
}
