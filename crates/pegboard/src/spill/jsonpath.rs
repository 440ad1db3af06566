//! A subset of JSONPath: `$.items[0].name`, `[*]`, `[1:3]`, `['a b']`, `..name`. Filters and scripts are not supported.

use serde_json::Value;

/// The most segments of a path.
const MAX_SEGMENTS: usize = 64;
/// The most values that a path may select.
const MAX_SELECTED: usize = 10_000;
/// The most values that a selection may visit.
const MAX_VISITED: usize = 5_000_000;

/// A parsed JSONPath.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonPath(Vec<Segment>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment {
    /// Whether it applies to all descendants (`..`).
    is_recursive: bool,
    selector: Selector,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Selector {
    Key(String),
    /// An array index, counted from the end if negative.
    Index(i64),
    Slice(Option<i64>, Option<i64>),
    All,
}

impl JsonPath {
    pub(crate) fn parse(path: &str) -> Result<Self, String> {
        let mut rest = path.trim();
        rest = rest.strip_prefix('$').unwrap_or(rest);
        let mut segments = Vec::new();
        while !rest.is_empty() {
            if segments.len() == MAX_SEGMENTS {
                return Err(format!("the path has more than {} steps", MAX_SEGMENTS));
            }
            let is_recursive = rest.starts_with("..");
            let after = rest
                .strip_prefix("..")
                .or_else(|| rest.strip_prefix('.'))
                .unwrap_or(rest);
            let (selector, after) = if let Some(inside) = after.strip_prefix('[') {
                bracket(inside)
            } else if after.len() < rest.len() || segments.is_empty() {
                name(after)
            } else {
                None
            }
            .ok_or_else(|| {
                format!(
                    "the path cannot be read from `{}` on; write `$.items[0].name`",
                    rest.escape_debug()
                )
            })?;
            segments.push(Segment { is_recursive, selector });
            rest = after;
        }
        Ok(Self(segments))
    }

    /// The selected values.
    pub(crate) fn select<'a>(&self, document: &'a Value) -> Result<Vec<&'a Value>, String> {
        let mut found = vec![document];
        let mut visited = 0;
        for segment in &self.0 {
            let mut next = Vec::new();
            for value in found {
                let mut open = vec![value];
                while let Some(value) = open.pop() {
                    segment.selector.select(value, &mut next);
                    let before = open.len();
                    if segment.is_recursive {
                        children(value, &mut open);
                        // The stack is popped from its end, so this keeps document order.
                        open[before..].reverse();
                    }
                    visited += 1 + open.len() - before;
                    if next.len() > MAX_SELECTED || visited > MAX_VISITED {
                        return Err("the path leads to too many values; make it narrower".to_owned());
                    }
                }
            }
            found = next;
        }
        Ok(found)
    }
}

impl Selector {
    fn select<'a>(&self, value: &'a Value, into: &mut Vec<&'a Value>) {
        match (self, value) {
            (Self::Key(key), Value::Object(fields)) => into.extend(fields.get(key)),
            (Self::Index(index), Value::Array(items)) => {
                into.extend(position(*index, items.len()).and_then(|index| items.get(index)));
            }
            (Self::Slice(from, to), Value::Array(items)) => {
                let clamp = |index: i64| position(index, items.len()).unwrap_or(0).min(items.len());
                let (from, to) = (from.map_or(0, clamp), to.map_or(items.len(), clamp));
                into.extend(
                    items
                        .get(from..to.max(from))
                        .into_iter()
                        .flatten()
                        .take(MAX_SELECTED + 1),
                );
            }
            (Self::All, value) => children(value, into),
            (Self::Key(_) | Self::Index(_) | Self::Slice(..), _) => {}
        }
    }
}

fn children<'a>(value: &'a Value, into: &mut Vec<&'a Value>) {
    match value {
        Value::Array(items) => into.extend(items),
        Value::Object(fields) => into.extend(fields.values()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Resolves an index that counts from the end if negative. Returns `None` before the start.
fn position(index: i64, len: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

/// Parses a name selector, or `*`.
fn name(text: &str) -> Option<(Selector, &str)> {
    if let Some(after) = text.strip_prefix('*') {
        return Some((Selector::All, after));
    }
    let end = text.find(['.', '[', ']', '\'', '"']).unwrap_or(text.len());
    (end > 0).then(|| (Selector::Key(text[..end].to_owned()), &text[end..]))
}

/// Parses a bracket selector after its opening bracket.
fn bracket(text: &str) -> Option<(Selector, &str)> {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '\'' | '"')) {
        let inside = &text[1..];
        let end = inside.find(quote)?;
        let after = inside[end + 1..].strip_prefix(']')?;
        return Some((Selector::Key(inside[..end].to_owned()), after));
    }
    let (inside, after) = text.split_once(']')?;
    let number = |text: &str| match text.trim() {
        "" => Some(None),
        text => text.parse().ok().map(Some),
    };
    let selector = match (inside.trim(), inside.split_once(':')) {
        ("*", _) => Selector::All,
        (_, Some((from, to))) => Selector::Slice(number(from)?, number(to)?),
        (index, None) => Selector::Index(index.parse().ok()?),
    };
    Some((selector, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(path: &str, expected: &Value) {
        let document =
            json!({"items": [{"n": 1, "a b": "x"}, {"n": 2}, {"n": 3, "deep": {"n": 4}}], "n": 0, "t": "text"});
        let found = JsonPath::parse(path).unwrap().select(&document).unwrap();
        assert_eq!(json!(found), *expected, "{path}");
    }

    #[test]
    fn paths_select_values() {
        check("$.items[0].n", &json!([1]));
        check("items[0].n", &json!([1]));
        check("$['items'][-1][\"n\"]", &json!([3]));
        check("$.items[0]['a b']", &json!(["x"]));
        check("$.items[*].n", &json!([1, 2, 3]));
        check("$.items.*.n", &json!([1, 2, 3]));
        check("$.items[1:].n", &json!([2, 3]));
        check("$.items[-2:-1].n", &json!([2]));
        check("$.items[5:9].n", &json!([]));
        check("$..n", &json!([0, 1, 2, 3, 4]));
        check("$..deep..n", &json!([4]));
        check("$.t.n", &json!([]));
        check("$.t", &json!(["text"]));
    }

    #[test]
    fn invalid_paths_are_quoted() {
        for path in ["$.", "$[", "$[x]", "$['a]", "$.a b[", "$.a]b", "$...a", "$[?(@.n)]"] {
            assert!(JsonPath::parse(path).unwrap_err().contains("cannot be read"), "{path}");
        }
        assert!(JsonPath::parse(&".a".repeat(65)).unwrap_err().contains("more than 64"));
    }

    #[test]
    fn a_path_that_selects_too_much_is_refused() {
        let wide = json!(vec![json!(vec![0; 200]); 200]);
        let path = JsonPath::parse("$..*").unwrap();
        assert!(path.select(&wide).unwrap_err().contains("too many"));
        let path = JsonPath::parse("$..[0]..[0]..[0]").unwrap();
        assert!(path.select(&wide).is_ok());
    }
}
