//! Expands variables in values: `${VAR}`, `${VAR:-default}`, `${env:VAR}` and `{{.VAR}}` or `{{ .VAR }}`, and references to a keyring: `${keyring:SERVICE/USER}`,
//! and to the secrets that the user has stored in it: `${secret:NAME}`.
//!
//! Values are expanded once, after parsing: the value of a variable is neither expanded again nor split. `$$` is an escaped `$`.

use std::{collections::BTreeMap, fmt};

use super::keyring_references::{self, KeyringProblem, KeyringReferences};

/// The longest expanded value. Variables can be repeated, so a small file could otherwise expand to gigabytes.
const MAX_VALUE: usize = 1 << 20;

/// Why a secret of the user cannot be read that is in no place.
const NOT_STORED: &str = "no secret of this name is stored";

/// Looks up the value of a variable.
type Lookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// The source of variables, and how missing ones are handled.
pub struct Env<'a> {
    lookup: Box<Lookup<'a>>,
    keyring: Option<KeyringReferences>,
    lenient: bool,
}

impl<'a> Env<'a> {
    /// Looks variables up with a function.
    pub fn new(lookup: impl Fn(&str) -> Option<String> + 'a) -> Self {
        Self {
            lookup: Box::new(lookup),
            keyring: None,
            lenient: false,
        }
    }

    /// Uses the environment of this process, and the keyring of the operating system for `${keyring:SERVICE/USER}` and `${secret:NAME}`. Without the
    /// feature `keyring`, such a reference is an error. The keyring is asked only if a config has one.
    pub fn process() -> Self {
        Self {
            keyring: Some(KeyringReferences::for_system()),
            ..Self::new(|name| std::env::var(name).ok())
        }
    }

    /// Looks up `${keyring:SERVICE/USER}` with a function of the service and the user, which returns why there is no secret.
    #[must_use]
    pub fn keyring(mut self, lookup: impl Fn(&str, &str) -> Result<String, String> + Send + Sync + 'static) -> Self {
        let hint = "add it to the keyring, or put the secret in a variable";
        self.keyring = Some(KeyringReferences::new(move |service, user| {
            lookup(service, user).map_err(|problem| KeyringProblem::new(problem, hint))
        }));
        self
    }

    /// Looks up `${secret:NAME}` with a function, which returns `None` if there is no secret of this name, or why that cannot be told. Without it,
    /// the entry `pegboard-secret/NAME` of the keyring is looked up.
    #[must_use]
    pub fn secrets(mut self, lookup: impl Fn(&str) -> Result<Option<String>, String> + Send + Sync + 'static) -> Self {
        let keyring = self.keyring.take().unwrap_or_else(KeyringReferences::absent);
        self.keyring = Some(keyring.with_secrets(move |name| match lookup(name) {
            Ok(Some(secret)) => Ok(secret),
            Ok(None) => Err(KeyringProblem::new(NOT_STORED, keyring_references::set_hint(name))),
            Err(problem) => Err(KeyringProblem::new(problem, "`pegboard secret list` shows where it is")),
        }));
        self
    }

    /// Uses the keyring of another one.
    #[must_use]
    pub(super) fn keyring_of(mut self, other: &Env<'_>) -> Self {
        self.keyring.clone_from(&other.keyring);
        self
    }

    /// Why the keyring has no secret for a reference.
    pub(super) fn keyring_problem(&self, name: &str) -> Option<KeyringProblem> {
        if !keyring_references::is_meant(name) {
            return None;
        }
        match &self.keyring {
            Some(keyring) => keyring.get(name)?.err(),
            None => KeyringReferences::absent().get(name)?.err(),
        }
    }

    /// Uses these variables and no others.
    pub fn from_pairs<K: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        let pairs: BTreeMap<String, String> = pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        Self::new(move |name| pairs.get(name).cloned())
    }

    /// Keeps references to missing variables as written and warns, instead of reporting an error.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    pub(super) fn is_lenient(&self) -> bool {
        self.lenient
    }

    /// The value of a variable, or the secret that `keyring:SERVICE/USER` or `secret:NAME` names.
    pub fn get(&self, name: &str) -> Option<String> {
        match self.keyring.as_ref().and_then(|keyring| keyring.get(name)) {
            Some(found) => found.ok(),
            None => (self.lookup)(name),
        }
    }
}

impl fmt::Debug for Env<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env")
            .field("lenient", &self.lenient)
            .finish_non_exhaustive()
    }
}

/// A part of a value, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    Literal(&'t str),
    Variable {
        name: &'t str,
        default: Option<&'t str>,
        written: &'t str,
    },
    /// A malformed reference.
    Malformed {
        written: &'t str,
        why: Malformed,
    },
}

/// Why a reference is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("has no closing brace")]
    Unclosed,
    #[error("is not the name of a variable")]
    Name,
    #[error("asks a person for a value, which is not possible here")]
    Input,
    #[error("has a default that holds another variable")]
    Nested,
    #[error("does not name a secret; write `${{keyring:SERVICE/USER}}`")]
    Keyring,
    #[error("does not name a secret; write `${{secret:NAME}}`, of letters, digits, `_`, `-` and `.`")]
    Secret,
}

/// Splits `text` into literals and references.
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

/// Whether `text` refers to a variable.
pub(super) fn has_variables(text: &str) -> bool {
    pieces(text).iter().any(|piece| !matches!(piece, Piece::Literal(_)))
}

/// Why a value could not be expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ExpandError {
    Missing(String),
    Malformed { written: String, why: Malformed },
    TooLong,
}

/// Expands the variables in `text`. Returns every problem, not only the first.
pub(super) fn expand(text: &str, env: &Env<'_>) -> (String, Vec<ExpandError>) {
    let mut value = String::with_capacity(text.len());
    let mut errors = Vec::new();
    for piece in pieces(text) {
        match piece {
            Piece::Literal(literal) => value.push_str(literal),
            Piece::Variable { name, default, written } => match (env.get(name), default) {
                (Some(found), None) => value.push_str(&found),
                (Some(found), Some(_)) if !found.is_empty() => value.push_str(&found),
                (_, Some(default)) => value.push_str(default),
                (None, None) => {
                    value.push_str(written);
                    errors.push(ExpandError::Missing(name.to_owned()));
                }
            },
            Piece::Malformed { written, why } => {
                value.push_str(written);
                errors.push(ExpandError::Malformed {
                    written: written.to_owned(),
                    why,
                });
            }
        }
        if value.len() > MAX_VALUE.max(text.len()) {
            errors.push(ExpandError::TooLong);
            return (String::new(), errors);
        }
    }
    (value, errors)
}

/// The offset of the next `$$`, `${` or `{{.`, which may have spaces before the dot.
fn next_mark(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr::memchr2_iter(b'$', b'{', bytes).find(|at| {
        let next = bytes.get(at + 1..).unwrap_or(&[]);
        match bytes.get(*at) {
            Some(b'$') => matches!(next.first(), Some(b'$' | b'{')),
            _ => next
                .strip_prefix(b"{")
                .is_some_and(|inner| inner.trim_ascii_start().starts_with(b".")),
        }
    })
}

/// Parses the `${…}` at the start of `mark`; returns its length too.
fn dollar(mark: &str) -> (Piece<'_>, usize) {
    let Some(end) = mark.find('}') else {
        return malformed_piece(mark, mark.len(), Malformed::Unclosed);
    };
    let length = end + 1;
    let inner = mark.get(2..end).unwrap_or("");
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    if inner.starts_with("input:") {
        return malformed_piece(mark, length, Malformed::Input);
    }
    if default.is_some_and(|default| default.contains("${")) {
        return malformed_piece(mark, length, Malformed::Nested);
    }
    variable(mark, length, name.strip_prefix("env:").unwrap_or(name), default)
}

/// Parses the `{{ .… }}` at the start of `mark`; returns its length too.
fn braces(mark: &str) -> (Piece<'_>, usize) {
    let Some(end) = mark.find("}}") else {
        return malformed_piece(mark, mark.len(), Malformed::Unclosed);
    };
    let inner = mark.get(2..end).unwrap_or("").trim();
    variable(mark, end + 2, inner.strip_prefix('.').unwrap_or(inner), None)
}

fn variable<'t>(mark: &'t str, length: usize, name: &'t str, default: Option<&'t str>) -> (Piece<'t>, usize) {
    if keyring_references::is_meant(name) {
        if keyring_references::entry(name).is_none() {
            let why = match keyring_references::secret_name(name) {
                Some(_) => Malformed::Secret,
                None => Malformed::Keyring,
            };
            return malformed_piece(mark, length, why);
        }
    } else if !is_variable_name(name) {
        return malformed_piece(mark, length, Malformed::Name);
    }
    let written = mark.get(..length).unwrap_or(mark);
    (Piece::Variable { name, default, written }, length)
}

fn malformed_piece(mark: &str, length: usize, why: Malformed) -> (Piece<'_>, usize) {
    let written = mark.get(..length).unwrap_or(mark);
    (Piece::Malformed { written, why }, length)
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
        Env::from_pairs([
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
            ("{{.A}}-{{ .A}}-{{ .A }}", "one-one-one"),
            ("{{.A }}-{{\t.A\t}}", "one-one"),
            ("{{A}} {{ A }} { {.A}}", "{{A}} {{ A }} { {.A}}"),
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
    fn every_error_in_a_value_is_reported() {
        let (_, errors) = expand("${X} ${A} {{.Y}} ${input:token} ${a b} ${", &env());
        let bad = |written: &str, why| ExpandError::Malformed {
            written: written.into(),
            why,
        };
        assert_eq!(
            errors,
            [
                ExpandError::Missing("X".into()),
                ExpandError::Missing("Y".into()),
                bad("${input:token}", Malformed::Input),
                bad("${a b}", Malformed::Name),
                bad("${", Malformed::Unclosed),
            ]
        );
        assert_eq!(expand("${X:-${A}}", &env()).1, [bad("${X:-${A}", Malformed::Nested)]);
    }

    #[test]
    fn repetition_cannot_make_a_value_of_any_length() {
        let env = Env::from_pairs([("BIG", "x".repeat(100_000))]);
        assert_eq!(expand(&"${BIG}".repeat(1000), &env).1, [ExpandError::TooLong]);
    }

    proptest::proptest! {
        #[test]
        fn nothing_a_variable_holds_is_read_again(held in ".*", before in "[^${]*", after in "[^${]*") {
            let env = Env::from_pairs([("V", held.clone())]);
            let (value, errors) = expand(&format!("{before}${{V}}{after}"), &env);
            proptest::prop_assert_eq!(value, format!("{before}{held}{after}"));
            proptest::prop_assert!(errors.is_empty());
        }

        #[test]
        fn any_text_can_be_taken_apart_and_escaped(text in ".*") {
            let _ = expand(&text, &env());
            let escaped = text.replace('$', "$$");
            if !text.contains("{{") {
                proptest::prop_assert_eq!(expand(&escaped, &env()).0, text);
            }
        }
    }
}
