//! The part of JSONPath that people use: `$.items[0].name`, `[*]`, `[1:3]`, `['a b']`, `..name`. No filters and no scripts.

use serde_json::Value;

/// The most steps of a path, values that it may lead to, and values that may be looked at on the way.
const MAX: (usize, usize, usize) = (64, 10_000, 5_000_000);

/// A path into JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    /// Whether it is looked for at any depth.
    deep: bool,
    pick: Pick,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pick {
    Key(String),
    /// Counted from the end when negative.
    Index(i64),
    Slice(Option<i64>, Option<i64>),
    All,
}

impl JsonPath {
    pub(crate) fn parse(path: &str) -> Result<Self, String> {
        let mut rest = path.trim();
        rest = rest.strip_prefix('$').unwrap_or(rest);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if steps.len() == MAX.0 {
                return Err(format!("the path has more than {} steps", MAX.0));
            }
            let deep = rest.starts_with("..");
            let after = rest
                .strip_prefix("..")
                .or_else(|| rest.strip_prefix('.'))
                .unwrap_or(rest);
            let (pick, after) = if let Some(inside) = after.strip_prefix('[') {
                bracket(inside)
            } else if after.len() < rest.len() || steps.is_empty() {
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
            steps.push(Step { deep, pick });
            rest = after;
        }
        Ok(Self(steps))
    }

    /// The values that the path leads to.
    pub(crate) fn select<'a>(&self, document: &'a Value) -> Result<Vec<&'a Value>, String> {
        let mut found = vec![document];
        let mut looked_at = 0;
        for step in &self.0 {
            let mut next = Vec::new();
            for value in found {
                let mut open = vec![value];
                while let Some(value) = open.pop() {
                    step.pick.of(value, &mut next);
                    let before = open.len();
                    if step.deep {
                        children(value, &mut open);
                        // So that they are looked at in their order.
                        open[before..].reverse();
                    }
                    looked_at += 1 + open.len() - before;
                    if next.len() > MAX.1 || looked_at > MAX.2 {
                        return Err("the path leads to too many values; make it narrower".to_owned());
                    }
                }
            }
            found = next;
        }
        Ok(found)
    }
}

impl Pick {
    fn of<'a>(&self, value: &'a Value, into: &mut Vec<&'a Value>) {
        match (self, value) {
            (Self::Key(key), Value::Object(fields)) => into.extend(fields.get(key)),
            (Self::Index(index), Value::Array(items)) => {
                into.extend(place(*index, items.len()).and_then(|index| items.get(index)));
            }
            (Self::Slice(from, to), Value::Array(items)) => {
                let clamp = |index: i64| place(index, items.len()).unwrap_or(0).min(items.len());
                let (from, to) = (from.map_or(0, clamp), to.map_or(items.len(), clamp));
                into.extend(items.get(from..to.max(from)).into_iter().flatten().take(MAX.1 + 1));
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

/// Where an index points, if not before the start.
fn place(index: i64, len: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

fn name(text: &str) -> Option<(Pick, &str)> {
    if let Some(after) = text.strip_prefix('*') {
        return Some((Pick::All, after));
    }
    let end = text.find(['.', '[', ']', '\'', '"']).unwrap_or(text.len());
    (end > 0).then(|| (Pick::Key(text[..end].to_owned()), &text[end..]))
}

/// What stands between brackets, of which the first was read.
fn bracket(text: &str) -> Option<(Pick, &str)> {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '\'' | '"')) {
        let inside = &text[1..];
        let end = inside.find(quote)?;
        let after = inside[end + 1..].strip_prefix(']')?;
        return Some((Pick::Key(inside[..end].to_owned()), after));
    }
    let (inside, after) = text.split_once(']')?;
    let number = |text: &str| match text.trim() {
        "" => Some(None),
        text => text.parse().ok().map(Some),
    };
    let pick = match (inside.trim(), inside.split_once(':')) {
        ("*", _) => Pick::All,
        (_, Some((from, to))) => Pick::Slice(number(from)?, number(to)?),
        (index, None) => Pick::Index(index.parse().ok()?),
    };
    Some((pick, after))
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
    fn paths_lead_to_values() {
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
    fn what_cannot_be_read_is_quoted() {
        for path in ["$.", "$[", "$[x]", "$['a]", "$.a b[", "$.a]b", "$...a", "$[?(@.n)]"] {
            assert!(JsonPath::parse(path).unwrap_err().contains("cannot be read"), "{path}");
        }
        assert!(JsonPath::parse(&".a".repeat(65)).unwrap_err().contains("more than 64"));
    }

    #[test]
    fn a_path_that_leads_everywhere_is_refused() {
        let wide = json!(vec![json!(vec![0; 200]); 200]);
        let path = JsonPath::parse("$..*").unwrap();
        assert!(path.select(&wide).unwrap_err().contains("too many"));
        let path = JsonPath::parse("$..[0]..[0]..[0]").unwrap();
        assert!(path.select(&wide).is_ok());
    }
}
