//! Texts: variables replaced, with every trouble reported.

use super::Check;
use crate::config::{
    expand::{self, Bad, Trouble},
    setting::Text,
    tree::{Node, Place, Value},
};

/// The most that all expanded values of one file may hold together.
const MAX_EXPANDED: usize = 64 << 20;

impl Check<'_> {
    /// A text with its variables replaced, or nothing after a problem.
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
            Value::Null | Value::List(_) | Value::Map(_) => return self.wrong(node, path, "a text"),
        };
        if secret && self.waits_for_session(&written) {
            self.report.warn_with(
                node.at,
                path,
                "not in effect yet",
                "values that differ per session are left out",
            );
            return None;
        }
        let (value, troubles) = expand::expand(&written, self.env);
        self.expanded = self.expanded.saturating_add(value.len());
        let mut good = true;
        for trouble in troubles {
            good &= self.trouble(&trouble, node.at, path);
        }
        if self.expanded > MAX_EXPANDED {
            good &= self.trouble(&Trouble::TooLong, node.at, path);
        }
        self.hidden_spaces(&value, node.at, path);
        good.then_some(Text {
            value,
            written,
            at: node.at,
        })
    }

    /// Whether a value needs a variable that only an agent's session will have.
    fn waits_for_session(&self, written: &str) -> bool {
        expand::pieces(written).iter().any(
            |piece| matches!(piece, expand::Piece::Variable { name: "SESSION_ID", default: None, .. } if self.env.get("SESSION_ID").is_none()),
        )
    }

    fn trouble(&mut self, trouble: &Trouble, at: Place, path: &str) -> bool {
        match trouble {
            Trouble::Missing(name) if self.lenient => {
                self.report.warn(at, path, format!("variable `{name}` is not set"));
                return true;
            }
            Trouble::Missing(name) => self.report.error_with(
                at,
                path,
                format!("variable `{name}` is not set"),
                format!("set it, or write `${{{name}:-default}}`"),
            ),
            Trouble::Bad {
                written,
                why: Bad::Input,
            } => self.report.error_with(
                at,
                path,
                format!("`{written}` {}", Bad::Input),
                "put the value in a variable and write `${NAME}`",
            ),
            Trouble::Bad { written, why } => {
                let shown: String = written.chars().take(40).collect();
                self.report
                    .error_with(at, path, format!("`{shown}` {why}"), "write `$$` for a plain `$`");
            }
            Trouble::TooLong => self.report.error(at, path, "its variables make it too long"),
        }
        false
    }

    fn hidden_spaces(&mut self, value: &str, at: Place, path: &str) {
        let prose = path.ends_with(".instructions") || path.ends_with(".description");
        if !prose && value.trim() != value {
            self.report.warn(at, path, "has spaces at its start or end");
        }
    }
}
