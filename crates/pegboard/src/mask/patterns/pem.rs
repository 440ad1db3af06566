//! Finds PEM blocks, whole or truncated. The search is one pass, however many `BEGIN` lines have no `END`.

use std::ops::Range;

use memchr::memmem;

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
            _ => body + body_len(&text[body..next]),
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

/// The length of the text that looks like the body of a PEM block: lines without spaces, with real or escaped line breaks.
fn body_len(text: &str) -> usize {
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
