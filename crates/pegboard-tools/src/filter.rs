//! Filters names by globs that allow and globs that deny; deny wins. Layers of filters intersect.

mod selection;

pub use selection::{BadSelection, Selected, Selection};

use std::borrow::Cow;

/// Globs that allow and globs that deny. In a glob `*` matches any text and `?` any character; the glob `any` matches every name. A literal
/// name matches itself. Without allow globs every name is allowed. The caller checks both, and deny wins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    allow: Globs,
    deny: Globs,
}

/// A list of globs, and whether they are case-sensitive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Globs {
    globs: Vec<String>,
    case: Case,
}

/// Case sensitivity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Case {
    /// Upper and lower case differ.
    #[default]
    Matters,
    /// Upper and lower case are equal.
    Ignored,
}

impl Case {
    fn fold<'a>(self, text: &'a str) -> Cow<'a, str> {
        match self {
            Self::Matters => text.into(),
            Self::Ignored => text.to_lowercase().into(),
        }
    }
}

impl Filter {
    /// Creates a filter from both lists of globs.
    pub fn new(allow: &[String], deny: &[String], case: Case) -> Self {
        Self {
            allow: Globs::new(allow, case),
            deny: Globs::new(deny, case),
        }
    }

    /// Whether the allow globs match `name`. The deny globs are not checked.
    pub fn allows(&self, name: &str) -> bool {
        self.allow.globs.is_empty() || self.allow.fit(name)
    }

    /// Like [`Filter::allows`], with the caller's own matching of a glob.
    pub fn allows_where(&self, fits: impl Fn(&str) -> bool) -> bool {
        self.allow.globs.is_empty() || self.allow.globs.iter().any(|glob| fits(glob))
    }

    /// Whether it has deny globs.
    pub fn denies_any(&self) -> bool {
        !self.deny.globs.is_empty()
    }

    /// Whether a deny glob matches `name`.
    pub fn denies(&self, name: &str) -> bool {
        self.deny.fit(name)
    }
}

impl Globs {
    /// Creates a list of globs with this case sensitivity.
    pub fn new(globs: &[String], case: Case) -> Self {
        Self {
            globs: globs.iter().map(|glob| case.fold(glob).into_owned()).collect(),
            case,
        }
    }

    /// Whether one of the globs matches `name`. An empty list matches nothing.
    pub fn fit(&self, name: &str) -> bool {
        !self.globs.is_empty() && {
            let name = self.case.fold(name);
            self.globs.iter().any(|glob| fits(glob, &name))
        }
    }
}

/// Whether `name` matches one glob.
pub fn fits(glob: &str, name: &str) -> bool {
    glob == name || glob.eq_ignore_ascii_case("any") || matches(glob.as_bytes(), name.as_bytes())
}

/// Matches `name` against `glob`. The worst case takes time proportional to the product of the lengths.
fn matches(glob: &[u8], name: &[u8]) -> bool {
    let (mut g, mut n) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while n < name.len() {
        match glob.get(g) {
            Some(b'*') => {
                last_star = Some((g, n));
                g += 1;
            }
            Some(b'?') => (g, n) = (g + 1, after_char(name, n)),
            Some(byte) if *byte == name[n] => (g, n) = (g + 1, n + 1),
            _ => match last_star {
                // Backtrack: the last star matches one character more.
                Some((star, from)) => {
                    let from = after_char(name, from);
                    last_star = Some((star, from));
                    (g, n) = (star + 1, from);
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|byte| *byte == b'*')
}

/// The start of the next character after the one at `at`.
fn after_char(text: &[u8], at: usize) -> usize {
    let rest = text.get(at + 1..).unwrap_or_default();
    at + 1 + rest.iter().take_while(|byte| **byte & 0xc0 == 0x80).count()
}

#[cfg(test)]
mod tests;
