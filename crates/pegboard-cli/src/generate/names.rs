//! Identifiers made of the names of tools and arguments.

use std::collections::BTreeSet;

/// Words that are no identifiers in one of the languages, or that the generated code uses itself.
const RESERVED: [&str; 83] = [
    "abstract",
    "and",
    "as",
    "assert",
    "async",
    "await",
    "become",
    "box",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "constructor",
    "continue",
    "crate",
    "debugger",
    "def",
    "default",
    "del",
    "delete",
    "do",
    "dyn",
    "elif",
    "else",
    "enum",
    "except",
    "export",
    "extends",
    "extern",
    "false",
    "final",
    "finally",
    "fn",
    "for",
    "from",
    "function",
    "gen",
    "global",
    "if",
    "impl",
    "import",
    "in",
    "is",
    "lambda",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "new",
    "none",
    "nonlocal",
    "not",
    "null",
    "or",
    "override",
    "pass",
    "priv",
    "pub",
    "raise",
    "ref",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "var",
    "virtual",
    "where",
    "while",
    "with",
    "yield",
];

/// The names that are in use, without `_`: `a_2` and `a2` are one name in `CamelCase`.
#[derive(Debug, Default)]
pub(super) struct UsedNames(BTreeSet<String>);

impl UsedNames {
    /// Names that the generated code uses itself.
    pub(super) fn with(names: &[&str]) -> Self {
        Self(names.iter().map(|name| name.replace('_', "")).collect())
    }

    /// The name, or one with a number if it is in use.
    pub(super) fn make_unique(&mut self, name: &str) -> String {
        let mut candidate = name.to_owned();
        let mut number = 2_u32;
        while !self.0.insert(candidate.replace('_', "")) {
            let between = if name.starts_with(|c: char| c.is_ascii_uppercase()) {
                ""
            } else {
                "_"
            };
            candidate = format!("{name}{between}{number}");
            number += 1;
        }
        candidate
    }
}

/// `getSum`, `get-sum` and `Get Sum` are `get_sum`.
pub(super) fn snake(name: &str) -> String {
    let mut snake = String::new();
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() {
            was_lower = false;
            if !snake.is_empty() && !snake.ends_with('_') {
                snake.push('_');
            }
            continue;
        }
        if c.is_ascii_uppercase() && was_lower {
            snake.push('_');
        }
        was_lower = !c.is_ascii_uppercase();
        snake.push(c.to_ascii_lowercase());
    }
    let snake = snake.trim_end_matches('_');
    match snake.chars().next() {
        None => "unnamed".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("n{snake}"),
        Some(_) if RESERVED.contains(&snake) => format!("{snake}_"),
        Some(_) => snake.to_owned(),
    }
}

/// `get_sum` is `GetSum`.
pub(super) fn pascal(snake: &str) -> String {
    let parts = snake.split('_').filter(|part| !part.is_empty());
    parts.map(|part| part[..1].to_ascii_uppercase() + &part[1..]).collect()
}

/// `get_sum` is `getSum`.
pub(super) fn camel(snake: &str) -> String {
    let pascal = pascal(snake);
    let camel = pascal[..1].to_ascii_lowercase() + &pascal[1..];
    if snake.ends_with('_') {
        format!("{camel}_")
    } else {
        camel
    }
}
