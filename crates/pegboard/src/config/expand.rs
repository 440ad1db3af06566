//! Variables in values: `${VAR}`, `${VAR:-default}`, `${env:VAR}` and `{{.VAR}}`.
//!
//! A value is expanded once, after parsing, as a whole: what a variable holds is never read again for more variables and
//! never split. `$$` stands for one `$`.

use std::{collections::BTreeMap, fmt};

/// The longest value that expansion may make. Variables can be repeated, so a small file could ask for gigabytes.
const MAX_VALUE: usize = 1 << 20;

/// Finds the value of a variable.
type Lookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Where variables come from, and what to do about missing ones.
pub struct Env<'a> {
    lookup: Box<Lookup<'a>>,
    lenient: bool,
}

impl<'a> Env<'a> {
    /// Variables from a function.
    pub fn new(lookup: impl Fn(&str) -> Option<String> + 'a) -> Self {
        Self {
            lookup: Box::new(lookup),
            lenient: false,
        }
    }

    /// The variables of this process.
    pub fn process() -> Self {
        Self::new(|name| std::env::var(name).ok())
    }

    /// These variables and no others.
    pub fn of<K: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        let pairs: BTreeMap<String, String> = pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        Self::new(move |name| pairs.get(name).cloned())
    }

    /// Leaves references to missing variables as they are written, with a warning, instead of refusing them.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    pub(super) fn is_lenient(&self) -> bool {
        self.lenient
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<String> {
        (self.lookup)(name)
    }
}

impl fmt::Debug for Env<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env")
            .field("lenient", &self.lenient)
            .finish_non_exhaustive()
    }
}

/// A part of a value as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    Literal(&'t str),
    Variable {
        name: &'t str,
        default: Option<&'t str>,
        written: &'t str,
    },
    /// Something that looks like a reference but is none.
    Bad {
        written: &'t str,
        why: Bad,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Bad {
    #[error("has no closing brace")]
    Unclosed,
    #[error("is not the name of a variable")]
    Name,
    #[error("asks a person for a value, which is not possible here")]
    Input,
    #[error("has a default that holds another variable")]
    Nested,
}

/// Takes `text` apart.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = next_mark(rest) {
        let (before, mark) = rest.split_at(at);
        if !before.is_empty() {
            pieces.push(Piece::Literal(before));
        }
        let (piece, length) = if mark.starts_with("$$") {
            (Piece::Literal("$"), 2)
        } else if mark.starts_with("${") {
            dollar(mark)
        } else {
            braces(mark)
        };
        pieces.push(piece);
        rest = mark.get(length..).unwrap_or("");
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest));
    }
    pieces
}

/// Whether `text` refers to a variable at all.
pub(super) fn has_variables(text: &str) -> bool {
    pieces(text).iter().any(|piece| !matches!(piece, Piece::Literal(_)))
}

/// Why a value could not be expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    Missing(String),
    Bad { written: String, why: Bad },
    TooLong,
}

/// Replaces the variables in `text`. Every trouble is named, not only the first.
pub(super) fn expand(text: &str, env: &Env<'_>) -> (String, Vec<Trouble>) {
    let mut value = String::with_capacity(text.len());
    let mut troubles = Vec::new();
    for piece in pieces(text) {
        match piece {
            Piece::Literal(literal) => value.push_str(literal),
            Piece::Variable { name, default, written } => match (env.get(name), default) {
                (Some(found), None) => value.push_str(&found),
                (Some(found), Some(_)) if !found.is_empty() => value.push_str(&found),
                (_, Some(default)) => value.push_str(default),
                (None, None) => {
                    value.push_str(written);
                    troubles.push(Trouble::Missing(name.to_owned()));
                }
            },
            Piece::Bad { written, why } => {
                value.push_str(written);
                troubles.push(Trouble::Bad {
                    written: written.to_owned(),
                    why,
                });
            }
        }
        if value.len() > MAX_VALUE.max(text.len()) {
            troubles.push(Trouble::TooLong);
            return (String::new(), troubles);
        }
    }
    (value, troubles)
}

fn next_mark(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr::memchr2_iter(b'$', b'{', bytes).find(|at| {
        let next = bytes.get(at + 1..).unwrap_or(&[]);
        match bytes.get(*at) {
            Some(b'$') => matches!(next.first(), Some(b'$' | b'{')),
            _ => next.starts_with(b"{."),
        }
    })
}

/// `${…}`; `mark` starts with it.
fn dollar(mark: &str) -> (Piece<'_>, usize) {
    let Some(end) = mark.find('}') else {
        return bad(mark, mark.len(), Bad::Unclosed);
    };
    let length = end + 1;
    let inner = mark.get(2..end).unwrap_or("");
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    if inner.starts_with("input:") {
        return bad(mark, length, Bad::Input);
    }
    if default.is_some_and(|default| default.contains("${")) {
        return bad(mark, length, Bad::Nested);
    }
    variable(mark, length, name.strip_prefix("env:").unwrap_or(name), default)
}

/// `{{.…}}`; `mark` starts with it.
fn braces(mark: &str) -> (Piece<'_>, usize) {
    match mark.find("}}") {
        Some(end) => variable(mark, end + 2, mark.get(3..end).unwrap_or("").trim(), None),
        None => bad(mark, mark.len(), Bad::Unclosed),
    }
}

fn variable<'t>(mark: &'t str, length: usize, name: &'t str, default: Option<&'t str>) -> (Piece<'t>, usize) {
    if !is_variable_name(name) {
        return bad(mark, length, Bad::Name);
    }
    let written = mark.get(..length).unwrap_or(mark);
    (Piece::Variable { name, default, written }, length)
}

fn bad(mark: &str, length: usize, why: Bad) -> (Piece<'_>, usize) {
    let written = mark.get(..length).unwrap_or(mark);
    (Piece::Bad { written, why }, length)
}

fn is_variable_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env() -> Env<'static> {
        Env::of([
            ("A", "one"),
            ("EMPTY", ""),
            ("TRICK", "${A} $(id) `id`; x"),
            ("B2", "two"),
        ])
    }

    #[test]
    fn every_form_of_a_variable_is_replaced_once() {
        for (written, want) in [
            ("plain", "plain"),
            ("${A}", "one"),
            ("x${A}y${B2}z", "xoneytwoz"),
            ("{{.A}}-{{ .A}}", "one-{{ .A}}"),
            ("{{.A }}", "one"),
            ("${env:A}", "one"),
            ("${NO:-def}", "def"),
            ("${NO:-}", ""),
            ("${A:-def}", "one"),
            ("${EMPTY:-def}", "def"),
            ("[${EMPTY}]", "[]"),
            ("${TRICK}", "${A} $(id) `id`; x"),
            ("$${A}", "${A}"),
            ("a$$b", "a$b"),
            ("$$${A}", "$one"),
            ("$A costs $5", "$A costs $5"),
            ("{\"json\": {}}", "{\"json\": {}}"),
            ("ünï${A}", "ünïone"),
        ] {
            assert_eq!(expand(written, &env()), (want.to_owned(), vec![]), "{written}");
        }
    }

    #[test]
    fn every_trouble_in_a_value_is_named() {
        let (_, troubles) = expand("${X} ${A} {{.Y}} ${input:token} ${a b} ${", &env());
        let bad = |written: &str, why| Trouble::Bad {
            written: written.into(),
            why,
        };
        assert_eq!(
            troubles,
            [
                Trouble::Missing("X".into()),
                Trouble::Missing("Y".into()),
                bad("${input:token}", Bad::Input),
                bad("${a b}", Bad::Name),
                bad("${", Bad::Unclosed),
            ]
        );
        assert_eq!(expand("${X:-${A}}", &env()).1, [bad("${X:-${A}", Bad::Nested)]);
    }

    #[test]
    fn repetition_cannot_make_a_value_of_any_length() {
        let env = Env::of([("BIG", "x".repeat(100_000))]);
        assert_eq!(expand(&"${BIG}".repeat(1000), &env).1, [Trouble::TooLong]);
    }

    proptest::proptest! {
        #[test]
        fn nothing_a_variable_holds_is_read_again(held in ".*", before in "[^${]*", after in "[^${]*") {
            let env = Env::of([("V", held.clone())]);
            let (value, troubles) = expand(&format!("{before}${{V}}{after}"), &env);
            proptest::prop_assert_eq!(value, format!("{before}{held}{after}"));
            proptest::prop_assert!(troubles.is_empty());
        }

        #[test]
        fn any_text_can_be_taken_apart_and_escaped(text in ".*") {
            let _ = expand(&text, &env());
            let escaped = text.replace('$', "$$");
            if !text.contains("{{.") {
                proptest::prop_assert_eq!(expand(&escaped, &env()).0, text);
            }
        }
    }
}
