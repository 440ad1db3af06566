//! [`Key`]: the name of a value, made of a kind and parts so that no two different lists of parts have the same name.

use std::fmt;

use ring::digest::{SHA256, digest};

/// The longest escaped part that stands in a name as it is. A longer one is replaced with its hash.
const MAX_PART: usize = 96;

/// The most parts that stand in a name by themselves. More are replaced with one hash.
const MAX_PARTS: usize = 6;

/// Between the parts of a name. It is escaped within a part.
const SEPARATOR: char = ':';

/// The name of a value in a store: a kind, such as `session`, and parts. It has at most [`Key::MAX_BYTES`] bytes, all of them printable ASCII.
///
/// Names are stored in plain text, and errors show them. A part that is a secret belongs into [`Key::secret`].
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    name: Box<str>,
    /// Where the last part begins, at its separator; the length if there are no parts.
    parent: usize,
}

impl Key {
    /// The longest name.
    pub const MAX_BYTES: usize = (MAX_PART + 1) * (MAX_PARTS + 1);

    /// Creates the key of a kind with these parts. The parts may contain anything; long ones are hashed.
    pub fn new(kind: &'static str, parts: &[&str]) -> Self {
        let mut key = Self::root(kind);
        let (shown, rest) = match parts.len() {
            0..=MAX_PARTS => (parts, &[][..]),
            _ => parts.split_at(MAX_PARTS - 1),
        };
        for part in shown {
            key.push(&escape(part));
        }
        if !rest.is_empty() {
            // The length in front of each part keeps the parts apart.
            let joined: String = rest.iter().map(|part| format!("{}:{part}", part.len())).collect();
            key.push(&hashed("##", joined.as_bytes()));
        }
        key
    }

    /// Creates a key whose last part is the hash of a secret, from which the secret cannot be computed. The secret must be random and have at
    /// least 128 bits, as tokens have: a password or a short code could be guessed from its hash.
    ///
    /// The hash is SHA-256 without a key, so that a key survives a change of the [`KeyRing`](crate::KeyRing).
    pub fn secret(kind: &'static str, parts: &[&str], secret: &[u8]) -> Self {
        let mut key = Self::new(kind, &parts[..parts.len().min(MAX_PARTS - 1)]);
        let mut secret_in_place = format!("pegboard key {} {}:", parts.len(), kind.len()).into_bytes();
        secret_in_place.extend_from_slice(kind.as_bytes());
        for part in parts.iter().skip(MAX_PARTS - 1) {
            secret_in_place.extend_from_slice(format!("{}:{part}", part.len()).as_bytes());
        }
        secret_in_place.push(0);
        secret_in_place.extend_from_slice(secret);
        key.push(&hashed("$", &secret_in_place));
        key
    }

    /// The name, escaped.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// The name without its last part: that of the key under which [`Store::list`](crate::Store::list) finds this one. `None` if there are no parts.
    pub(crate) fn parent(&self) -> Option<&str> {
        (self.parent < self.name.len()).then(|| &self.name[..self.parent])
    }

    /// The last part with its escapes undone. `None` if there are no parts, or if the part was hashed.
    pub fn last_part(&self) -> Option<String> {
        let part = self.name.get(self.parent + 1..)?;
        if part.starts_with(['#', '$']) {
            return None;
        }
        unescape(part)
    }

    /// The key that has this name, if one has.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let is_plain = |byte: u8| is_unescaped(byte) || matches!(byte, b':' | b'%' | b'#' | b'$');
        if name.is_empty() || name.len() > Self::MAX_BYTES || !name.bytes().all(is_plain) {
            return None;
        }
        Some(Self {
            name: name.into(),
            parent: name.rfind(SEPARATOR).unwrap_or(name.len()),
        })
    }

    fn root(kind: &str) -> Self {
        let name = escape(kind).into_boxed_str();
        Self {
            parent: name.len(),
            name,
        }
    }

    fn push(&mut self, part: &str) {
        self.parent = self.name.len();
        self.name = format!("{}{SEPARATOR}{part}", self.name).into_boxed_str();
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn is_unescaped(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'@')
}

fn escape(part: &str) -> String {
    let mut escaped = String::with_capacity(part.len().min(MAX_PART));
    for byte in part.bytes() {
        if is_unescaped(byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
        if escaped.len() > MAX_PART {
            return hashed("#", part.as_bytes());
        }
    }
    escaped
}

fn unescape(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

/// A part that stands for others. Its mark is never in an escaped part.
fn hashed(mark: &str, bytes: &[u8]) -> String {
    format!("{mark}{}", hex(digest(&SHA256, bytes).as_ref()))
}

/// The bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn different_parts_never_have_the_same_name() {
        let (long, longer) = ("x".repeat(200), "x".repeat(201));
        let (long, longer) = (long.as_str(), longer.as_str());
        let hash_of_long = hashed("#", long.as_bytes());
        let lists: &[&[&str]] = &[
            &[],
            &[""],
            &["", ""],
            &["a:b"],
            &["a", "b"],
            &["a%3Ab"],
            &["a", ":b"],
            &["a:", "b"],
            &["A", "b"],
            &["é"],
            &["%"],
            &[long],
            &[longer],
            &[&hash_of_long],
            &["1", "2", "3", "4", "5", "6"],
            &["1", "2", "3", "4", "5", "6", "7"],
            &["1", "2", "3", "4", "5", "67"],
            &["1", "2", "3", "4", "5", "67", ""],
            &["1", "2", "3", "4", "5", "", "67"],
        ];
        let mut names = HashSet::new();
        for parts in lists {
            assert!(names.insert(Key::new("k", parts).to_string()), "{parts:?}");
            assert!(names.insert(Key::secret("k", parts, b"s").to_string()), "{parts:?}");
            assert!(names.insert(Key::secret("k", parts, b"t").to_string()), "{parts:?}");
            assert!(names.insert(Key::new("k2", parts).to_string()), "{parts:?}");
        }
    }

    #[test]
    fn a_name_is_bounded_and_printable() {
        let long = "é".repeat(10_000);
        let parts = [long.as_str(); 9];
        for key in [
            Key::new("kind", &parts),
            Key::secret("kind", &parts, b"token"),
            Key::new("k", &["\n\0"]),
        ] {
            assert!(key.as_str().len() <= Key::MAX_BYTES, "{key}");
            assert!(key.as_str().bytes().all(|byte| byte.is_ascii_graphic()), "{key}");
        }
    }

    #[test]
    fn a_secret_is_not_in_its_name() {
        let key = Key::secret("token", &["mcp"], b"c4nary7f3a9b1e");
        assert!(!key.as_str().contains("c4nary7f3a9b1e"));
        assert!(key.as_str().starts_with("token:mcp:$"), "{key}");
        assert_eq!(key.last_part(), None);
    }

    #[test]
    fn a_name_is_read_back() {
        for part in ["", "a", "a:b/c %41", "é\n"] {
            let key = Key::new("replica", &["x", part]);
            let read = Key::parse(key.as_str()).unwrap();
            assert_eq!(read, key);
            assert_eq!(read.last_part().as_deref(), Some(part));
            assert_eq!(read.parent(), Some("replica:x"));
        }
        assert_eq!(Key::new("replica", &[]).parent(), None);
        assert_eq!(Key::new("replica", &[]).last_part(), None);
        for name in ["", "a b", "é", &"a".repeat(5000)] {
            assert_eq!(Key::parse(name), None, "{name}");
        }
    }
}
