//! Validates texts: expands their variables and reports what is wrong with them.

use pegboard_base::secret::names_secret;

use super::TableChecker;
use crate::{
    expand::{self, ExpandError, Malformed},
    keyring_references,
    setting::Text,
    tree::{Location, Node, Value},
};

/// The most bytes of all expanded values of one server's table, or of the top of one file.
const MAX_EXPANDED: usize = 64 << 20;

impl TableChecker<'_> {
    /// Reads a text and expands its variables. Returns `None` after reporting a problem.
    pub(super) fn text(&mut self, node: &Node, path: &str, secret: bool) -> Option<Text> {
        let written = match &node.value {
            Value::Text(text) => text.clone(),
            Value::Int(number) => number.to_string(),
            Value::Bool(value) => value.to_string(),
            Value::Float(_) => {
                self.report
                    .error_with(node.at, path, "must be a text, not a number", "put it in quotes");
                return None;
            }
            Value::Null | Value::List(_) | Value::Map(_) => return self.report_wrong_type(node, path, "a text"),
        };
        let waits_for_session = self.waits_for_session(&written);
        if secret && waits_for_session && !is_template(path) {
            self.report.warn_with(
                node.at,
                path,
                "not in effect yet",
                "values that differ per session are left out",
            );
            return None;
        }
        let (value, errors) = match waits_for_session && is_template(path) {
            // A template of ours, as the programs that write Go templates mean it.
            true => expand::expand(&for_each_view(&written), self.env),
            false => expand::expand(&written, self.env),
        };
        self.expanded = self.expanded.saturating_add(value.len());
        let mut good = true;
        for error in errors {
            good &= self.expand_error(&error, node.at, path);
        }
        if self.expanded > MAX_EXPANDED {
            good &= self.expand_error(&ExpandError::TooLong, node.at, path);
        }
        self.warn_of_outer_spaces(&value, node.at, path);
        good.then_some(Text {
            value,
            written,
            at: node.at,
        })
    }

    /// Whether a value refers to a variable that is set only within an agent's session.
    fn waits_for_session(&self, written: &str) -> bool {
        expand::pieces(written).iter().any(
            |piece| matches!(piece, expand::Piece::Variable { name: "SESSION_ID", default: None, .. } if self.env.get("SESSION_ID").is_none()),
        )
    }

    /// Reports an error of expansion. Returns whether the value can be used all the same.
    fn expand_error(&mut self, error: &ExpandError, at: Location, path: &str) -> bool {
        if let ExpandError::Missing(name) = error
            && let Some(problem) = self.env.keyring_problem(name)
        {
            let message = format!("`${{{name}}}` cannot be read: {}", problem.message);
            // Like a variable that is not set, it keeps no server that is switched off from being configured.
            if self.lenient {
                self.report.warn_with(at, path, message, problem.hint);
                return true;
            }
            self.report.error_with(at, path, message, problem.hint);
            if keyring_references::secret_name(name).is_some() {
                self.report.name_variable(name);
            }
            return false;
        }
        match error {
            ExpandError::Missing(name) if self.lenient => {
                self.report.warn(at, path, format!("variable `{name}` is not set"));
                self.report.name_variable(name);
                return true;
            }
            ExpandError::Missing(name) => {
                self.report.error_with(
                    at,
                    path,
                    format!("variable `{name}` is not set"),
                    match names_secret(name) {
                        true => format!("`pegboard secret set {name}` stores it, and `${{secret:{name}}}` reads it; or set the variable"),
                        false => "set it in the environment that Pegboard starts in".to_owned(),
                    },
                );
                self.report.name_variable(name);
            }
            ExpandError::Malformed {
                written,
                why: Malformed::Input,
            } => self.report.error_with(
                at,
                path,
                format!("`{written}` {}", Malformed::Input),
                "put the value in a variable and write `${NAME}`",
            ),
            ExpandError::Malformed { written, why } => {
                let shown: String = written.chars().take(40).collect();
                self.report
                    .error_with(at, path, format!("`{shown}` {why}"), "write `$$` for a plain `$`");
            }
            ExpandError::TooLong => self.report.error(at, path, "its variables make it too long"),
        }
        false
    }

    fn warn_of_outer_spaces(&mut self, value: &str, at: Location, path: &str) {
        let prose = path.ends_with(".instructions") || path.ends_with(".description");
        if !prose && value.trim() != value {
            self.report.warn(at, path, "has spaces at its start or end");
        }
    }
}

/// Whether the variables of views are replaced in a field.
fn is_template(path: &str) -> bool {
    const HEADERS: [&str; 4] = ["headers", "http_headers", "custom_headers", "request_headers"];
    let mut parts = path.rsplit('.');
    let (last, parent) = (parts.next(), parts.next());
    last == Some("session_cleanup_url") || parent.is_some_and(|parent| HEADERS.contains(&parent))
}

/// Turns `{{.SESSION_ID}}` into `{{SESSION_ID}}`.
fn for_each_view(written: &str) -> String {
    let pieces = expand::pieces(written);
    let as_written = pieces.iter().map(|piece| match piece {
        expand::Piece::Variable {
            name: "SESSION_ID",
            default: None,
            ..
        } => "{{SESSION_ID}}",
        // An escaped `$` stays escaped.
        expand::Piece::Literal("$") => "$$",
        expand::Piece::Literal(text) => text,
        expand::Piece::Variable { written, .. } | expand::Piece::Malformed { written, .. } => written,
    });
    as_written.collect()
}
