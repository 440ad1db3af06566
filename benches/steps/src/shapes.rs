//! Texts of any length for the masker, each full of one kind of match.

use pegboard::{
    Secret,
    mask::{Masker, Masking},
};

/// A secret that every masker here knows.
const KNOWN: &str = "correct-horse-battery";

/// A shape of text.
pub struct Shape {
    pub name: &'static str,
    /// Whether all groups of patterns are on, not only the default ones.
    all_groups: bool,
    /// Whether it contains no secrets.
    pub is_ordinary: bool,
    write: fn(usize) -> String,
}

/// Every shape.
pub const SHAPES: [Shape; 17] = [
    ordinary("prose", |bytes| repeated(PROSE, bytes)),
    ordinary("records", |bytes| repeated(RECORD, bytes)),
    shape("quoted", |bytes| repeated(QUOTED, bytes)),
    shape("password-lines", |bytes| numbered("password: hunter2xK9", "\n", bytes)),
    shape("assignments", |bytes| repeated(ASSIGNMENTS, bytes)),
    shape("known", |bytes| repeated("the word is correct-horse-battery\n", bytes)),
    shape("tokens", |bytes| numbered(TOKEN, "\n", bytes)),
    shape("one-line", |bytes| numbered("token=xK9vT3mQz8wL", "&", bytes)),
    shape("short-lines", |bytes| repeated("a: 1\npwd: xK9vT3mQ\n\n", bytes)),
    shape("escaped", |bytes| escaped(QUOTED, 1, bytes)),
    shape("escaped-twice", |bytes| escaped(QUOTED, 2, bytes)),
    shape("escaped-thrice", |bytes| escaped(QUOTED, 3, bytes)),
    shape("manifests", |bytes| repeated(MANIFEST, bytes)),
    all_groups("all-groups", |bytes| repeated(EVERYTHING, bytes)),
    all_groups("all-password-lines", |bytes| {
        numbered("password: hunter2xK9", "\n", bytes)
    }),
    all_groups("all-escaped-twice", |bytes| escaped(QUOTED, 2, bytes)),
    all_groups("all-base64", |bytes| {
        numbered("c2VjcmV0LXZhbHVlLTEyMzQ1Njc4OTA", "=\n", bytes)
    }),
];

const fn shape(name: &'static str, write: fn(usize) -> String) -> Shape {
    Shape {
        name,
        all_groups: false,
        is_ordinary: false,
        write,
    }
}

const fn ordinary(name: &'static str, write: fn(usize) -> String) -> Shape {
    Shape {
        is_ordinary: true,
        ..shape(name, write)
    }
}

const fn all_groups(name: &'static str, write: fn(usize) -> String) -> Shape {
    Shape {
        all_groups: true,
        ..shape(name, write)
    }
}

impl Shape {
    /// A text of about this many bytes.
    pub fn text(&self, bytes: usize) -> String {
        (self.write)(bytes)
    }

    /// The masker for this shape.
    pub fn masker(&self) -> Option<Masker> {
        let mut policy = Masking::default();
        if self.all_groups {
            policy.groups.push("all".to_owned());
        }
        Masker::new(&policy, [Secret::new(KNOWN)]).ok()
    }
}

fn repeated(record: &str, bytes: usize) -> String {
    record.repeat((bytes / record.len()).max(1))
}

/// Records that differ from each other.
fn numbered(record: &str, end: &str, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 64);
    for number in 0.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&format!("{record}{number}{end}"));
    }
    text
}

/// JSON quoted in a JSON string, this many times over.
fn escaped(record: &str, times: u32, bytes: usize) -> String {
    let write = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let once = (0..times).fold(record.to_owned(), |text, _| write(&text));
    let inner = repeated(record, bytes * record.len() / once.len().max(1));
    (0..times).fold(inner, |text, _| write(&text))
}

pub const RECORD: &str =
    r#"{\"file\": \"docs/guide.md\", \"line\": 7, \"words\": \"a board with pegs, and on each peg a tool\"}\n"#;
pub const PROSE: &str =
    r"A board has pegs, and on each peg hangs a tool; whoever needs one takes it, and hangs it back after use.\n";
const QUOTED: &str =
    r#"{"user": "ada", "password": "xK9v\"T3mQ-z8wL", "api_key": "k3yk3yQk3yk3yk3yZk3y", "note": "a\tb"}, "#;
const ASSIGNMENTS: &str = concat!(
    "DB_PASSWORD=xK9vT3mQz8wL\nexport API_KEY=\"k3yk3yQk3yk3yk3yZk3y\"\nAuthorization: Bearer xK9vT3mQz8wLxK9vT3mQz8wL\n",
    "postgres://ada:xK9vT3mQ@db/x\n",
);
const TOKEN: &str = concat!("gh", "p_16C7e42F292c6912E7710c838347Ae178B4a ");
const MANIFEST: &str =
    "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\ndata:\n  password: aHVudGVyMmh1bnRlcjI=\n  user: YWRh\n---\n";
const EVERYTHING: &str = concat!(
    "password: hunter2xK9 mail ada@example.org card 4111 1111 1111 1111 ssn 536-90-4399 iban DE89370400440532013000\n",
    "c2VjcmV0LXZhbHVlLTEyMzQ1Njc4OTA= token: xK9vT3mQz8wLxK9vT3mQz8wL \"key\": \"k3yk3yQk3yk3yk3yZk3y\", curl -u a:xK9vT3mQ x\n",
    "word: YWRhCg== machine db login ada password xK9vT3mQ AccountKey=xK9vT3mQz8wLxK9vT3mQz8wLxK9vT3mQz8wLxK9vT3mQz8wL==\n",
);
