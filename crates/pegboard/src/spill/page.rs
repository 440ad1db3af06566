//! Reads one page of an output: a range of lines, the lines that match a pattern, or the values at a JSONPath. A page is bounded and starts
//! with a header that says what was left out.

use regex::Regex;
use serde_json::Value;

use super::{
    jsonpath::JsonPath,
    output::{Output, OutputFormat},
    pretty_print::pretty_print,
};
use pegboard_tools::outcome::truncate;

/// The default number of lines on a page.
const LINES: usize = 200;
/// The longest pattern in bytes.
const MAX_PATTERN: usize = 1000;
/// The largest compiled pattern in bytes.
const MAX_COMPILED: usize = 1 << 20;
/// The most lines around a match.
const MAX_CONTEXT: usize = 20;

/// The part of an output to read.
#[derive(Debug)]
pub(crate) enum Query {
    /// A range of lines, inclusive and counted from one.
    Lines { from: usize, to: usize },
    /// The lines that match, with `context` lines around each.
    Grep { pattern: Regex, context: usize },
    /// The values at a JSONPath.
    Path(JsonPath),
}

impl Query {
    /// The first page.
    pub(crate) fn start() -> Self {
        Self::Lines { from: 1, to: LINES }
    }

    /// Parses a range of lines: `120-180`, `120-` or `120`. Without an end it has the default number of lines.
    pub(crate) fn range(text: &str) -> Result<Self, String> {
        let bad = || format!("`{}` is not a range of lines, such as `120-180`", text.escape_debug());
        let (from, to) = text.split_once('-').unwrap_or((text, ""));
        let from: usize = from.trim().parse().map_err(|_| bad())?;
        let from = from.max(1);
        let to = match to.trim() {
            "" => from.saturating_add(LINES - 1),
            to => to.parse().map_err(|_| bad())?,
        };
        if to < from {
            return Err(bad());
        }
        Ok(Self::Lines { from, to })
    }

    /// Compiles a regular expression. Matching takes linear time.
    pub(crate) fn grep(pattern: &str, context: usize) -> Result<Self, String> {
        if pattern.len() > MAX_PATTERN {
            return Err(format!(
                "the pattern has {} bytes, and {} are allowed",
                pattern.len(),
                MAX_PATTERN
            ));
        }
        let built = regex::RegexBuilder::new(pattern)
            .size_limit(MAX_COMPILED)
            .dfa_size_limit(MAX_COMPILED)
            .build();
        match built {
            Ok(pattern) => Ok(Self::Grep {
                pattern,
                context: context.min(MAX_CONTEXT),
            }),
            Err(error) => Err(format!("the pattern cannot be used: {error}")),
        }
    }

    pub(crate) fn path(path: &str) -> Result<Self, String> {
        JsonPath::parse(path).map(Self::Path)
    }
}

/// The single value at a JSONPath in an output. Fails if there is none or more than one.
pub(crate) fn select(text: &str, path: &str) -> Result<Value, String> {
    let path = JsonPath::parse(path)?;
    let document: Value = serde_json::from_str(text).map_err(|_| "the output is not JSON".to_owned())?;
    match path.select(&document)?.as_slice() {
        [value] => Ok((*value).clone()),
        [] => Err("nothing is there".to_owned()),
        several => Err(format!("it leads to {} values", several.len())),
    }
}

/// Reads the queried part in at most `limit` bytes.
pub(super) fn page(handle: &str, output: &Output, query: &Query, limit: usize) -> Result<String, String> {
    if let OutputFormat::Bytes { mime_type } = &output.format {
        return Err(format!(
            "`{handle}` is {mime_type}, not text; it can only be handed to another tool as {{\"$handle\": \"{handle}\"}}"
        ));
    }
    match query {
        Query::Path(path) => values(&output.text, path, limit),
        Query::Lines { from, to } => Ok(lines(&pretty_print(&output.text), *from, *to, limit)),
        Query::Grep { pattern, context } => Ok(matches(&pretty_print(&output.text), pattern, *context, limit)),
    }
}

/// Bytes reserved for the header line.
const HEADER: usize = 160;

fn lines(text: &str, from: usize, to: usize, limit: usize) -> String {
    let all = truncate::lines(text);
    if from > all {
        return format!("[the output has {all} lines, and line {from} is not one of them]");
    }
    let room = limit.saturating_sub(HEADER);
    let mut body = String::new();
    let mut last = from - 1;
    for line in text.lines().skip(from - 1).take(to - from + 1) {
        if body.len() + line.len() + 1 > room && last >= from {
            break;
        }
        body.push_str(&line[..line.floor_char_boundary(room)]);
        body.push('\n');
        last += 1;
    }
    let more = if last < all {
        format!("; go on with range \"{}-\"", last + 1)
    } else {
        String::new()
    };
    format!("[lines {from}-{last} of {all}{more}]\n{body}")
}

fn matches(text: &str, pattern: &Regex, context: usize, limit: usize) -> String {
    let room = limit.saturating_sub(HEADER);
    let lines: Vec<&str> = text.lines().collect();
    let hits: Vec<usize> = (0..lines.len()).filter(|at| pattern.is_match(lines[*at])).collect();
    let mut body = String::new();
    // The first line that is not written yet, and the number of matches written so far.
    let (mut next, mut shown) = (0, 0);
    for hit in &hits {
        let first = hit.saturating_sub(context).max(next);
        let last = (hit + context).min(lines.len() - 1);
        let mut part = String::new();
        if context > 0 && first > next && next > 0 {
            part.push_str("--\n");
        }
        for (at, line) in lines.iter().enumerate().take(last + 1).skip(first) {
            let mark = if hits.binary_search(&at).is_ok() { ':' } else { '-' };
            part.push_str(&format!("{}{mark} {line}\n", at + 1));
        }
        if body.len() + part.len() > room {
            if shown == 0 {
                body.push_str(&part[..part.floor_char_boundary(room)]);
                shown = 1;
            }
            break;
        }
        body.push_str(&part);
        (next, shown) = (next.max(last + 1), shown + 1);
    }
    let more = if shown < hits.len() {
        "; narrow the pattern, or read on by range"
    } else {
        ""
    };
    format!(
        "[{shown} of {} matching lines, of {} lines{more}]\n{body}",
        hits.len(),
        lines.len()
    )
}

fn values(text: &str, path: &JsonPath, limit: usize) -> Result<String, String> {
    let document: Value =
        serde_json::from_str(text).map_err(|_| "the output is not JSON; use range or grep".to_owned())?;
    let found = path.select(&document)?;
    let room = limit.saturating_sub(HEADER);
    let mut body = String::new();
    let mut shown = 0;
    for value in &found {
        let part = serde_json::to_string_pretty(value).unwrap_or_default();
        if body.len() + part.len() + 1 > room {
            if shown == 0 {
                body.push_str(&part[..part.floor_char_boundary(room)]);
            }
            break;
        }
        body.push_str(&part);
        body.push('\n');
        shown += 1;
    }
    let note = match (shown, found.len()) {
        (0, 0) => "; nothing is at that path".to_owned(),
        (0, _) => "; the first one is cut, take a longer path".to_owned(),
        (shown, all) if shown < all => format!("; the first {shown} are shown"),
        _ => String::new(),
    };
    Ok(format!("[{} values{note}]\n{body}", found.len()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    fn read(text: &str, query: Result<Query, String>, limit: usize) -> String {
        let output = Output {
            format: OutputFormat::Text,
            text: Arc::new(text.to_owned()),
        };
        page("out_1", &output, &query.unwrap(), limit).unwrap()
    }

    fn numbered(count: usize) -> String {
        (1..=count).map(|n| format!("line {n}\n")).collect()
    }

    #[test]
    fn a_range_says_which_lines_it_has_and_how_to_go_on() {
        assert_eq!(
            read(&numbered(5), Query::range("2-3"), 1000),
            "[lines 2-3 of 5; go on with range \"4-\"]\nline 2\nline 3\n"
        );
        assert_eq!(
            read(&numbered(2), Ok(Query::start()), 1000),
            "[lines 1-2 of 2]\nline 1\nline 2\n"
        );
        assert_eq!(
            read(&numbered(2), Query::range("9-"), 1000),
            "[the output has 2 lines, and line 9 is not one of them]"
        );
        let page = read(&numbered(1000), Query::range("10-900"), 260);
        assert!(
            page.starts_with("[lines 10-21 of 1000; go on with range \"22-\"]"),
            "{page}"
        );
    }

    #[test]
    fn matches_come_with_line_numbers_and_context() {
        let text = numbered(30);
        assert_eq!(
            read(&text, Query::grep("line [12]0", 0), 1000),
            "[2 of 2 matching lines, of 30 lines]\n10: line 10\n20: line 20\n"
        );
        assert_eq!(
            read(&text, Query::grep("line (5|7|20)$", 1), 1000),
            "[3 of 3 matching lines, of 30 lines]\n4- line 4\n5: line 5\n6- line 6\n7: line 7\n8- line 8\n--\n19- line 19\n20: line 20\n21- line 21\n"
        );
        assert!(read(&text, Query::grep("line", 0), 200).starts_with("[4 of 30 matching lines, of 30 lines; narrow"));
        assert_eq!(
            read(&text, Query::grep("nothing", 2), 200),
            "[0 of 0 matching lines, of 30 lines]\n"
        );
    }

    #[test]
    fn json_is_searched_line_by_line_and_by_path() {
        let text = r#"{"items":[{"name":"a","n":1},{"name":"b","n":2}]}"#;
        assert_eq!(
            read(text, Query::grep("\"b\"", 1), 1000),
            "[1 of 1 matching lines, of 12 lines]\n7-     {\n8:       \"name\": \"b\",\n9-       \"n\": 2\n"
        );
        assert_eq!(
            read(text, Query::path("$.items[*].name"), 1000),
            "[2 values]\n\"a\"\n\"b\"\n"
        );
        assert_eq!(
            read(text, Query::path("$.none"), 1000),
            "[0 values; nothing is at that path]\n"
        );
    }

    #[test]
    fn invalid_queries_are_explained() {
        assert!(Query::range("x").unwrap_err().contains("120-180"));
        assert!(Query::range("9-3").is_err());
        assert!(Query::grep("(", 0).unwrap_err().contains("cannot be used"));
        assert!(
            Query::grep(&"x".repeat(2000), 0)
                .unwrap_err()
                .contains("1000 are allowed")
        );
        assert!(
            Query::grep(r"(\w{1000}){1000}", 0).is_err(),
            "a pattern that compiles to too much is refused"
        );
        let picture = Output {
            format: OutputFormat::Bytes {
                mime_type: "image/png".into(),
            },
            text: Arc::default(),
        };
        let problem = page("out_1", &picture, &Query::start(), 100).unwrap_err();
        assert!(
            problem.contains("image/png") && problem.contains("$handle"),
            "{problem}"
        );
    }

    proptest! {
        #[test]
        fn no_page_exceeds_its_limit(text in "(\\PC|\n){0,400}", from in 1usize..50, context in 0usize..5, limit in 200usize..600) {
            let range = read(&text, Query::range(&format!("{from}-")), limit);
            prop_assert!(range.len() <= limit, "{range}");
            let grep = read(&text, Query::grep("[a-f]", context), limit);
            prop_assert!(grep.len() <= limit, "{grep}");
        }
    }
}
