//! The scan for names and the values joined to them.

use std::{ops::Range, sync::LazyLock};

use memchr::memmem;

use super::{
    arguments,
    expressions::ValueForm,
    literals::is_secret,
    named_value::NamedValue,
    names::{self, Strength},
    pairs,
    quotes::{OpenQuotes, Quotes},
    value::{self, Ahead, Joint, Read},
};
use crate::{keywords::Keywords, plausibility};

/// Words in names of secrets, and marks of objects whose value is a secret.
pub(crate) const STEMS: &[&str] = &[
    "pass",
    "pwd",
    "secret",
    "token",
    "key",
    "credential",
    "signature",
    "samlresponse",
    "_pw",
    "device_code",
    "mnemonic",
    "phrase",
    "psk",
    SECURE,
    SENSITIVE,
    KEY_VAULT,
    IDENTIFIED,
    AUTHORIZATION,
    COOKIE,
];
const SECURE: &str = "securestring";
const SENSITIVE: &str = "sensitive";
const KEY_VAULT: &str = ".net/secrets/";
const IDENTIFIED: &str = "identified by";
const AUTHORIZATION: &str = "authorization";
const COOKIE: &str = "cookie";
/// The most bytes of a name before and after such a word.
const MAX_NAME: usize = 64;

/// Finds all secrets in `text` from `from` on.
pub(crate) fn find(text: &str, from: usize) -> Vec<NamedValue> {
    static WORDS: LazyLock<Keywords> = LazyLock::new(|| Keywords::in_order(STEMS.to_vec()));
    let mut scanner = Scanner {
        text,
        bytes: text.as_bytes(),
        done: from,
        ahead: Ahead::default(),
        quotes: Quotes::default(),
        open: OpenQuotes::default(),
        is_list: false,
        is_table: None,
        found: Vec::new(),
    };
    WORDS.for_each(&text.as_bytes()[from..], |word, start| {
        let start = from + start;
        if start >= scanner.done {
            scanner.scan_word(STEMS[word], start..start + STEMS[word].len());
        }
    });
    scanner.found
}

struct Scanner<'t> {
    text: &'t str,
    bytes: &'t [u8],
    /// The end of what was read.
    done: usize,
    ahead: Ahead,
    quotes: Quotes,
    /// The quotes that are open before the name.
    open: OpenQuotes,
    /// Whether the name is in the plural.
    is_list: bool,
    /// Whether the text has a table of keys and values, once that was looked up.
    is_table: Option<bool>,
    found: Vec<NamedValue>,
}

impl Scanner<'_> {
    fn scan_word(&mut self, stem: &str, word: Range<usize>) {
        match stem {
            SECURE => {
                return match arguments::find_secure_string_argument(self.bytes, &word) {
                    Some(range) => self.add(&word, range, Strength::Password, ValueForm::Quoted),
                    None => self.scan_sibling(&word),
                };
            }
            KEY_VAULT => return self.scan_sibling(&word),
            SENSITIVE if self.is_set(word.end) => return self.scan_sibling(&word),
            IDENTIFIED => return self.scan_identified_by(&word),
            _ => {}
        }
        let name = self.name_around(&word);
        self.done = name.end;
        // Headers have patterns of their own; only a pair of fields is read here.
        if matches!(stem, AUTHORIZATION | COOKIE) {
            if let Some(at) = pairs::value_of_name(self.text, &name) {
                self.scan_value(&name, at, Self::PAIR, Strength::Strong);
            }
            return;
        }
        if let Some(range) = arguments::login(self.bytes, &name) {
            return self.add(&name, range, Strength::Password, ValueForm::Quoted);
        }
        let next = self.bytes.get(name.end);
        if !matches!(
            next,
            Some(b'"' | b'\'' | b'\\' | b' ' | b'\t' | b'=' | b':' | b'>' | b',' | b'|' | b'\n' | b'\r' | b'<' | b']')
        ) {
            return;
        }
        let single = names::strength(&self.text[name.clone()]);
        self.is_list = single.is_none();
        let Some(strength) = single.or_else(|| names::strength_of_plural(&self.text[name.clone()])) else {
            return;
        };
        self.open = self.quotes.open_at(self.bytes, name.start);
        if let Some(at) = pairs::value_of_name(self.text, &name) {
            return self.scan_value(&name, at, Self::PAIR, strength);
        }
        if let Some(start) = pairs::input_type(self.text, &name) {
            if let Some(at) = pairs::value_of_input(self.text, start, name.end) {
                self.scan_value(&name, at, Self::PAIR, Strength::Password);
            }
            return;
        }
        match self.read_joint(&name) {
            Some((at, joint)) => self.scan_value(&name, at, joint, strength),
            None => self.scan_unjoined(&name, strength),
        }
    }

    const PAIR: Joint = Joint {
        is_colon: true,
        is_spaced: true,
        is_quoted: true,
        is_pair: true,
    };

    fn name_around(&self, word: &Range<usize>) -> Range<usize> {
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"_.-".contains(b);
        let from = self.done.max(word.start.saturating_sub(MAX_NAME));
        let before = self.bytes[from..word.start]
            .iter()
            .rev()
            .take_while(|b| is_name(b))
            .count();
        let after = self.bytes[word.end..]
            .iter()
            .take(MAX_NAME)
            .take_while(|b| is_name(b))
            .count();
        let mut name = word.start - before..word.end + after;
        // An escape before the name: its letter is not a part of the name.
        if name.start > 0
            && self.bytes[name.start - 1] == b'\\'
            && matches!(self.bytes[name.start], b'n' | b'r' | b't')
            && name.start < word.start
        {
            name.start += 1;
        }
        while name.end > word.end && matches!(self.bytes[name.end - 1], b'.' | b'-') {
            name.end -= 1;
        }
        name
    }

    /// Reads what joins a name to its value. Returns the position of the value.
    fn read_joint(&self, name: &Range<usize>) -> Option<(usize, Joint)> {
        let bytes = self.bytes;
        let mut at = name.end;
        let slashes = run(bytes, at, |b| b == b'\\');
        let is_quoted = matches!(bytes.get(at + slashes), Some(b'"' | b'\''));
        if is_quoted {
            at += slashes + 1;
            // `settings["password"] = …`
            if bytes.get(at) == Some(&b']') {
                at += 1;
            }
        } else if slashes > 0 {
            return None;
        }
        let blank = run(bytes, at, |b| matches!(b, b' ' | b'\t'));
        at += blank;
        let sign = match bytes.get(at..)? {
            [b'=', b'=', ..] | [b':', b':', ..] | [b'=', b'~', b' ', ..] => return None,
            [b'=', b'>', ..] | [b':', b'=', ..] => 2,
            [b'=' | b':', ..] => 1,
            [b',', ..] if is_quoted && self.is_argument(name) => 1,
            _ => return None,
        };
        let is_colon = sign == 1 && bytes[at] == b':';
        at += sign;
        let mut after = run(bytes, at, |b| matches!(b, b' ' | b'\t'));
        if is_quoted && after == run(bytes, at, |b| b == b' ') {
            after = run(bytes, at, |b| b.is_ascii_whitespace());
        }
        let joint = Joint {
            is_colon,
            is_spaced: blank > 0 || after > 0,
            is_quoted,
            is_pair: false,
        };
        Some((at + after, joint))
    }

    /// Whether a quoted name is an argument before its value: `define('DB_PASSWORD', '…')`, `["--password", "…"]`.
    fn is_argument(&self, name: &Range<usize>) -> bool {
        const CALLS: &[&str] = &[
            "define",
            "setProperty",
            "setenv",
            "putenv",
            "setHeader",
            "addHeader",
            "add_header",
            "SetEnvironmentVariable",
            "env",
        ];
        if self.bytes[name.start] == b'-' {
            return true;
        }
        let from = name.start.saturating_sub(40);
        let before = String::from_utf8_lossy(&self.bytes[from..name.start]);
        let before = before.trim_end_matches(['"', '\'', '\\', ' ']);
        before
            .strip_suffix('(')
            .is_some_and(|call| CALLS.iter().any(|known| call.trim_end().ends_with(known)))
    }

    /// Reads a value without a sign before it: an XML element, a flag, a line of a table, SQL.
    fn scan_unjoined(&mut self, name: &Range<usize>, strength: Strength) {
        let bytes = self.bytes;
        let before = name.start.checked_sub(1).map(|at| bytes[at]);
        let rest = &bytes[name.end..];
        let blank = run(bytes, name.end, |b| matches!(b, b' ' | b'\t'));
        let at = name.end + blank;
        // `<property name="db.password">…</property>`
        if matches!(rest, [b'"' | b'\'', b'>', ..]) && pairs::is_name(self.text, name) {
            return self.scan_element(name, strength);
        }
        if matches!(before, Some(b'<' | b':')) && (rest.starts_with(b">") || rest.starts_with(b" ")) {
            return self.scan_element(name, strength);
        }
        if blank == 0 || at >= bytes.len() {
            return;
        }
        if bytes[name.start] == b'-' {
            return self.scan_flag(name, at, strength);
        }
        if self.text[name.clone()].eq_ignore_ascii_case(names::REQUIRE_PASS) {
            if let Some(range) = arguments::directive(self.text, name, at) {
                self.add(name, range, strength, ValueForm::Quoted);
            }
            return;
        }
        if bytes[at] == b'\'' && strength >= Strength::Strong {
            // In a string of YAML, quotes are doubled.
            let is_doubled = bytes.get(at + 1) == Some(&b'\'');
            if (is_doubled || !self.open.is_closed_by(b'\'', false))
                && let Some(range) = value::find_quoted(bytes, at)
            {
                self.add(name, range, strength, ValueForm::Quoted);
            }
            return;
        }
        if let Some(after) = after_is(rest).filter(|_| strength >= Strength::Strong) {
            return self.scan_prose(name, name.end + after);
        }
        let is_row = blank > 1 || rest[0] == b'\t' || bytes[at] == b'|';
        if strength >= Strength::Strong && (is_row || self.is_table(name.start)) {
            self.scan_row(name, at);
        }
    }

    /// An XML element: `<password>…</password>`.
    fn scan_element(&mut self, name: &Range<usize>, strength: Strength) {
        let rest = &self.bytes[name.end..];
        let rest = &rest[..rest.len().min(4096)];
        let Some(open) = rest
            .iter()
            .take(128)
            .position(|b| matches!(b, b'>' | b'\n'))
            .filter(|at| rest[*at] == b'>')
        else {
            return;
        };
        if open > 0 && rest[open - 1] == b'/' {
            return;
        }
        if let Some(close) = memmem::find(&rest[open..], b"</") {
            let range = without_cdata(self.bytes, name.end + open + 1..name.end + open + close);
            let is_inside = |quote: u8| !self.bytes[range.clone()].contains(&quote);
            if self.open.quote().is_none_or(is_inside) {
                self.add(name, trim(self.text, range), strength, ValueForm::Quoted);
            }
        }
    }

    /// A flag of a command: `--password …`.
    fn scan_flag(&mut self, name: &Range<usize>, at: usize, strength: Strength) {
        let before = name.start.checked_sub(1).map(|at| self.bytes[at]);
        if !before.is_none_or(|b| b.is_ascii_whitespace() || b"\"'=[,(`".contains(&b)) || self.bytes[at] == b'-' {
            return;
        }
        let is_quoted = matches!(self.bytes[at], b'"' | b'\'');
        let range = match is_quoted {
            true if self.open.is_closed_by(self.bytes[at], false) => None,
            true => value::find_quoted(self.bytes, at),
            false => Some(at..at + run(self.bytes, at, |b| !b.is_ascii_whitespace() && !b"\"'`<>".contains(&b))),
        };
        let Some(range) = range else { return };
        // Usage lines have words and types after a flag.
        let shown = &self.text[range.clone()];
        if is_quoted || plausibility::is_token_like(shown) || shown.bytes().any(|b| b"!@#%^&*+=~".contains(&b)) {
            self.add(name, range, strength, ValueForm::Quoted);
        }
    }

    /// A sentence: `the password is …`.
    fn scan_prose(&mut self, name: &Range<usize>, at: usize) {
        let at = at + run(self.bytes, at, |b| matches!(b, b' ' | b'"' | b'\'' | b'`' | b':'));
        let len = run(self.bytes, at, |b| {
            !b.is_ascii_whitespace() && !b"\"'`,;<>()".contains(&b)
        });
        let word = self.text[at..at + len].trim_end_matches(['.', '!', '?']);
        if word.len() >= 6 && plausibility::is_token_like(word) && !plausibility::is_reference(word) {
            self.add(name, at..at + word.len(), Strength::Password, ValueForm::Quoted);
        }
    }

    /// A row of a table with a column for names and one for values.
    fn scan_row(&mut self, name: &Range<usize>, at: usize) {
        let from = name.start.saturating_sub(64);
        let line = self.bytes[from..name.start].iter().rev().take_while(|b| **b != b'\n');
        if !{ line }.all(|b| b" \t|+>-".contains(b)) {
            return;
        }
        let at = at + run(self.bytes, at, |b| matches!(b, b'|' | b' ' | b'\t'));
        let end = self.ahead.line_end(self.bytes, at.min(self.bytes.len()));
        if at >= end {
            return;
        }
        let range = trim(self.text, at..end);
        let value = self.text[range.clone()].trim_end_matches([' ', '|']);
        let range = range.start..range.start + value.len();
        let is_one = !value.contains([' ', '\t']);
        if is_one
            && (value.len() >= 8 && plausibility::is_token_like(value) && !plausibility::is_reference(value)
                || self.is_table(name.start))
        {
            self.add(name, range, Strength::Password, ValueForm::Quoted);
        }
    }

    /// Whether a header `Key   Value` precedes, as in the tables of Vault.
    fn is_table(&mut self, at: usize) -> bool {
        let bytes = self.bytes;
        *self.is_table.get_or_insert_with(|| {
            let header = memmem::find_iter(&bytes[..at], b"Value").find(|end| {
                let before = bytes[..*end].iter().rev().take(64).skip_while(|b| **b == b' ');
                before.take(3).eq([b'y', b'e', b'K'].iter())
            });
            header.is_some()
        })
    }

    /// `IDENTIFIED BY '…'` of SQL.
    fn scan_identified_by(&mut self, word: &Range<usize>) {
        let at = word.end + run(self.bytes, word.end, |b| b == b' ');
        if matches!(self.bytes.get(at), Some(b'\'' | b'"'))
            && let Some(range) = value::find_quoted(self.bytes, at)
        {
            self.done = at;
            self.add(word, range, Strength::Password, ValueForm::Quoted);
        }
    }

    /// Whether `": true` follows.
    fn is_set(&self, at: usize) -> bool {
        let at = at + run(self.bytes, at, |b| b"\\\"' \t:=".contains(&b));
        self.bytes[at..].starts_with(b"true")
    }

    /// The value beside a field that marks its object as a secret.
    fn scan_sibling(&mut self, word: &Range<usize>) {
        self.done = word.end;
        if let Some(at) = pairs::sibling(self.text, word.start, word.end) {
            self.scan_value(word, at, Self::PAIR, Strength::Password);
        }
    }

    fn scan_value(&mut self, name: &Range<usize>, at: usize, joint: Joint, strength: Strength) {
        match value::read(self.text, name, at, joint, self.open, &mut self.ahead) {
            Some(Read::One { range, shown, form }) if !self.is_list || joint.is_pair => {
                let shown = &self.text[shown];
                // `a:b` is a path, a time or a label, not an assignment.
                let is_label = joint.is_colon && !joint.is_spaced && !joint.is_quoted && form != ValueForm::Quoted;
                let strength = if is_label { Strength::Weak } else { strength };
                if is_secret(strength, shown, form) && !is_small(&self.text[range.clone()], form) {
                    let whole = if joint.is_pair { range.clone() } else { name.clone() };
                    self.push(&whole, range);
                }
            }
            Some(Read::List(items)) if strength >= Strength::Strong => {
                for item in items {
                    self.add(name, item, strength, ValueForm::Quoted);
                }
            }
            Some(Read::Object(range)) => {
                self.done = range.end;
                self.found.push(NamedValue {
                    whole: range.clone(),
                    value: range,
                    is_nested: true,
                });
            }
            _ => {}
        }
    }

    fn add(&mut self, name: &Range<usize>, range: Range<usize>, strength: Strength, form: ValueForm) {
        let value = &self.text[range.clone()];
        // A list of names is no list of secrets.
        let is_plain = || value.bytes().all(|b| b.is_ascii_alphabetic() || b"_.-".contains(&b));
        let is_name = names::strength(value).is_some() && is_plain();
        if !is_name && is_secret(strength, value, form) {
            self.push(name, range);
        }
    }

    fn push(&mut self, name: &Range<usize>, value: Range<usize>) {
        self.done = self.done.max(value.end);
        self.found.push(NamedValue {
            whole: name.start.min(value.start)..value.end.max(name.end),
            value,
            is_nested: false,
        });
    }
}

/// The length of ` is ` or ` for ada is: ` at the start of a text.
fn after_is(text: &[u8]) -> Option<usize> {
    let text = &text[..text.len().min(48)];
    let at = memmem::find(text, b" is")?;
    let is_between = |b: &u8| b.is_ascii_alphanumeric() || b" _.@-'".contains(b);
    let is_told = at == 0 || (text.starts_with(b" for ") && text[..at].iter().all(is_between));
    match (is_told, &text[at + 3..]) {
        (true, [b' ', ..] | [b':', b' ', ..]) => Some(at + 3),
        _ => None,
    }
}

/// The inside of `<![CDATA[…]]>`.
fn without_cdata(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    const START: &[u8] = b"<![CDATA[";
    const END: &[u8] = b"]]>";
    let inside = bytes[range.clone()]
        .strip_prefix(START)
        .and_then(|rest| rest.strip_suffix(END));
    match inside {
        Some(_) => range.start + START.len()..range.end - END.len(),
        None => range,
    }
}

/// Whether a value without quotes is too short for a secret, or a small number.
fn is_small(value: &str, form: ValueForm) -> bool {
    let is_number = value.bytes().all(|b| b.is_ascii_digit() || b"-.".contains(&b));
    form != ValueForm::Quoted && (value.len() < 3 || (is_number && value.len() < 4))
}

/// The length of the run of such bytes at `at`.
fn run(bytes: &[u8], at: usize, is_such: impl Fn(u8) -> bool) -> usize {
    bytes
        .get(at..)
        .map_or(0, |rest| rest.iter().take_while(|b| is_such(**b)).count())
}

fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let value = &text[range.clone()];
    let start = range.start + (value.len() - value.trim_start().len());
    start..(start + value.trim().len())
}
