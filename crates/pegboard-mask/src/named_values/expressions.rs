//! Tells expressions and types of source code from values that are written without quotes.

use super::{names::strength, words::is_placeholder};

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueForm {
    /// In quotes, or as a JSON string: a literal.
    Quoted,
    /// Without quotes in a line of a config file.
    Line,
    /// Without quotes after the name of an environment variable or a query: `NAME=value`.
    Variable,
    /// Without quotes in source code, a log or a command line, where an expression may stand as well.
    Inline,
}

/// Roots of paths in source code.
const ROOTS: &[&str] = &[
    "self",
    "this",
    "config",
    "cfg",
    "conf",
    "settings",
    "args",
    "argv",
    "opts",
    "options",
    "params",
    "process",
    "os",
    "env",
    "req",
    "request",
    "res",
    "response",
    "resp",
    "ctx",
    "context",
    "user",
    "data",
    "props",
    "form",
    "event",
    "body",
    "input",
    "state",
    "creds",
    "credentials",
    "auth",
    "std",
    "core",
    "crate",
    "super",
    "sys",
    "app",
    "client",
    "account",
    "session",
    "vars",
    "var",
    "local",
    "module",
    "each",
    "spec",
    "obj",
    "item",
    "row",
    "result",
    "values",
    "secrets",
    "steps",
    "needs",
    "github",
    "string",
    "system",
    "java",
    "e",
    "s",
    "p",
    "t",
    "a",
    "c",
    "x",
    "m",
];

/// Whether a value without quotes is an expression or a type of source code.
pub(super) fn is_expression(value: &str, form: ValueForm) -> bool {
    let code = value.trim_end_matches([',', ';', ')', '}', '{', '(', ']', ' ', '.', ':', '?']);
    let Some(first) = code.chars().next() else {
        return true;
    };
    let has_end = code.len() < value.len();
    // A number of an enumeration, and a declaration with a type: `PASSWORD: u16 = 1;`.
    if has_end && code.bytes().all(|b| b.is_ascii_alphanumeric()) && code.len() <= 12 && first.is_ascii_digit()
        || value.contains(" = ")
    {
        return true;
    }
    let head = code.trim_start_matches(['&', '*', '!', '(', '[', ']', '?', '@', '-', '+', '{', ' ']);
    let name_len = head
        .bytes()
        .take_while(|b| b.is_ascii_alphanumeric() || b"_$".contains(b))
        .count();
    let (name, rest) = head.split_at(name_len);
    if name.is_empty() {
        // Operators and punctuation alone. A quote begins a literal, which is read as such.
        return matches!(first, '=' | '>' | '|' | '"' | '\'' | '/' | '\\') && head.len() < 4;
    }
    let is_worded = has_words(name) && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !is_worded {
        return false;
    }
    let is_placeholder = is_placeholder(name);
    if rest.is_empty() {
        let is_single = match form {
            // `password = other_name` is code, `PASSWORD=sunny` a config.
            ValueForm::Line => has_end,
            ValueForm::Variable => return has_end,
            ValueForm::Inline => has_end || name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_'),
            ValueForm::Quoted => false,
        };
        return is_single
            || head.len() < code.len()
            || !has_inner_digit(name) && (is_placeholder || has_telling_word(name));
    }
    let is_called = value[code.len()..].starts_with("()");
    is_continued(name, rest, form, has_end, is_called)
        || ((is_placeholder || strength(name).is_some()) && rest.starts_with([' ', '.', '[', '(', ':', '<', '=', ',']))
}

/// Whether what follows a name makes it an expression: a call, an index, a path, a generic type, an operator.
fn is_continued(name: &str, rest: &str, form: ValueForm, has_end: bool, is_called: bool) -> bool {
    let is_root = || ROOTS.iter().any(|root| root.eq_ignore_ascii_case(name));
    let mut chars = rest.chars();
    let first = chars.next();
    let (next, inside) = (chars.clone().next(), chars.as_str());
    // What a line or an argument ends before its closing bracket consists of names.
    let is_part = |b: u8| b.is_ascii_alphabetic() || b"_.&\"' ".contains(&b);
    let is_closed =
        |close: u8| has_end || rest.as_bytes().contains(&close) || (inside.bytes().all(is_part) && has_words(inside));
    match first.map_or(0, |first| first as u32 as u8) {
        b'(' => next.is_none_or(|c| is_closed(b')') && (c.is_ascii_alphabetic() || "\"')&_*$".contains(c))),
        b'[' => next.is_none_or(|c| is_closed(b']') && (c.is_ascii_alphanumeric() || "\"']$_:".contains(c))),
        b'<' => next.is_none_or(|c| c.is_ascii_alphabetic() || c == '&'),
        b':' => rest.starts_with("::"),
        b'-' => rest.starts_with("->"),
        b'.' | b'?' => {
            // The arguments of a call are no names.
            let path = rest.split('(').next().unwrap_or(rest);
            let parts: Vec<&str> = path.split(['.', '?', ':']).filter(|part| !part.is_empty()).collect();
            let is_name = |part: &&str| {
                let len = part
                    .bytes()
                    .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
                    .count();
                len > 0
                    && has_words(&part[..len])
                    && matches!(part.as_bytes().get(len), None | Some(b'(' | b'[' | b' ' | b'<' | b')'))
            };
            parts.iter().all(is_name)
                && (is_root()
                    || form == ValueForm::Inline
                    || is_called
                    || rest.contains(['(', '[', '_'])
                    || parts.iter().any(|part| is_stem(part)))
        }
        b' ' => is_phrase(name, rest, form),
        _ => false,
    }
}

/// Whether words after a name are an expression or a sentence.
fn is_phrase(name: &str, rest: &str, form: ValueForm) -> bool {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let is_plain = |word: &&str| {
        let word = word.trim_matches(|c: char| c.is_ascii_punctuation());
        word.bytes().all(|b| b.is_ascii_alphabetic() || b"'-_./".contains(&b))
    };
    let is_operator = |word: &&str| {
        matches!(
            *word,
            "=" | "=="
                | "+"
                | "-"
                | "|"
                | "||"
                | "&&"
                | "?"
                | ":"
                | "=>"
                | "->"
                | "{"
                | "}"
                | "if"
                | "or"
                | "and"
                | "as"
                | "is"
                | "in"
                | "for"
                | "//"
                | "/*"
                | "<"
                | ">"
                | "!="
                | "else"
                | "->>"
                | "\\"
        )
    };
    form == ValueForm::Inline
        || matches!(name, "new" | "await" | "mut" | "const" | "dyn" | "impl")
        || words.iter().any(is_operator)
        || words.iter().all(is_plain)
}

/// Whether a name has several digits, or one that is not its last character. Names of variables seldom have them, passwords often.
fn has_inner_digit(name: &str) -> bool {
    let is_digit = |b: &u8| b.is_ascii_digit();
    name.as_bytes().iter().rev().skip(1).any(is_digit)
}

/// Whether a name has a word in it that names secrets, written as a word of its own: `hashed_password`, `userToken`, but not `mysecret`.
fn has_telling_word(name: &str) -> bool {
    let bytes = name.as_bytes();
    let begins_word = |at: usize| match at.checked_sub(1).map(|before| bytes[before]) {
        None | Some(b'_') => true,
        Some(before) => bytes[at].is_ascii_uppercase() && !before.is_ascii_uppercase(),
    };
    let begins = |at: usize, word: &str| {
        bytes
            .get(at..at + word.len())
            .is_some_and(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    let words = ["pass", "secret", "token", "cred", "key", "getenv", "environ"];
    (0..bytes.len()).any(|at| begins_word(at) && words.iter().any(|word| begins(at, word)))
}

/// Whether a name has a word in it that names secrets, such as `hashed_password_field`.
fn is_stem(name: &str) -> bool {
    let has = |stem: &str| {
        name.as_bytes()
            .windows(stem.len())
            .any(|part| part.eq_ignore_ascii_case(stem.as_bytes()))
    };
    strength(name).is_some()
        || ["passw", "secret", "token", "cred", "_key", "getenv", "environ"]
            .iter()
            .any(|stem| has(stem))
}

/// Whether a name consists of words and not of random characters: it has few digits and its letters change case rarely.
pub(super) fn has_words(name: &str) -> bool {
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    let bytes = name.as_bytes();
    let turns = bytes
        .windows(2)
        .filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
        .count();
    let odd = bytes
        .windows(2)
        .filter(|pair| pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic())
        .count();
    digits <= 2 && odd <= 1 && turns <= name.len() / 5
}
