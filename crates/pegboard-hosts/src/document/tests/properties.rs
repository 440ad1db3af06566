//! Whatever is in a file: an edit keeps every comment and all other values, and the reverse edit brings back what it said.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Document, Format, open};

/// A file with servers `a0`, `a1`, …, comments and layout of many kinds, and its comments.
fn texts(format: Format) -> impl Strategy<Value = (String, Vec<String>)> {
    let server = (0..6_u8, any::<bool>(), "[ -~äß\u{7f}]{0,12}");
    let layout = (any::<bool>(), any::<bool>(), any::<bool>(), 1..5_usize);
    (prop::collection::vec(server, 0..5), layout).prop_map(move |(servers, layout)| text(format, &servers, layout))
}

fn text(
    format: Format,
    servers: &[(u8, bool, String)],
    (is_crlf, ends_line, has_gap, width): (bool, bool, bool, usize),
) -> (String, Vec<String>) {
    let mut comments = Vec::new();
    let mut comment = |mark: &str| {
        let text = format!("{mark} note {}.", comments.len());
        comments.push(text.clone());
        text
    };
    let gap = if has_gap { "\n" } else { "" };
    let pad = " ".repeat(width);
    let mut text = String::new();
    let mark = if format == Format::Json { "//" } else { "#" };
    text += &format!("{}\n{gap}", comment(mark));
    match format {
        Format::Json => text += &format!("{{\n{pad}\"servers\": {{\n"),
        Format::Yaml => {
            text += if servers.is_empty() {
                "servers: {}\n"
            } else {
                "servers:\n"
            }
        }
        Format::Toml => {}
    }
    for (index, (shape, has_comment, content)) in servers.iter().enumerate() {
        let quoted = Value::from(content.as_str()).to_string().replace('\u{7f}', "\\u007f");
        let end = if *has_comment {
            format!(" {}", comment(mark))
        } else {
            String::new()
        };
        text += &match (format, shape) {
            (Format::Toml, 0..=2) => format!("[servers.a{index}]{end}\nx = {quoted}\n{gap}"),
            (Format::Toml, 3) => format!("[servers.a{index}]\nx = {quoted}{end}\ny = [\n{pad}1,\n]\n{gap}"),
            (Format::Toml, _) => format!("[servers.\"a{index}\".env]\n{pad}x = {quoted}{end}\n"),
            (Format::Json, 0..=2) => {
                let comma = if index + 1 < servers.len() { "," } else { "" };
                format!("{pad}{pad}\"a{index}\": {{\"x\": {quoted}}}{comma}{end}\n{gap}")
            }
            (Format::Json, _) => {
                let comma = if index + 1 < servers.len() || *shape == 4 {
                    " ,"
                } else {
                    ""
                };
                format!("{pad}{pad}\"a{index}\": {{{end}\n{pad}{pad}\"x\": {quoted}\n{pad}{pad}}}{comma}\n")
            }
            (Format::Yaml, 0..=2) => format!("{pad}a{index}:{end}\n{pad}{pad}x: {quoted}\n{gap}"),
            (Format::Yaml, 3) => format!("{pad}a{index}: {{x: {quoted}}}{end}\n"),
            (Format::Yaml, 4) => format!("{pad}a{index}:{end}\n"),
            (Format::Yaml, _) => {
                format!("{pad}\"a{index}\":\n{pad}{pad}x: {quoted}{end}\n{pad}{pad}y: |\n{pad}{pad} t\n")
            }
        };
    }
    match format {
        Format::Json => text += &format!("{pad}}}{gap}\n}}"),
        Format::Yaml => text += "other: 1",
        Format::Toml => text += "[other]\nx = 1",
    }
    if ends_line {
        text += &format!("\n{}\n", comment(mark));
    }
    (if is_crlf { text.replace('\n', "\r\n") } else { text }, comments)
}

fn formats() -> impl Strategy<Value = Format> {
    prop_oneof![Just(Format::Toml), Just(Format::Json), Just(Format::Yaml)]
}

fn files() -> impl Strategy<Value = (Format, (String, Vec<String>))> {
    formats().prop_flat_map(|format| (Just(format), texts(format)))
}

fn values() -> impl Strategy<Value = Value> {
    let text = "[ -~\n\täß\u{7f}\u{2028}]{0,16}";
    let leaf = prop_oneof![
        text.prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        prop::collection::vec(text, 0..3).prop_map(Value::from),
    ];
    let map = prop::collection::btree_map("[a-zA-Z0-9 .\"#:{}=-]{0,8}", leaf.clone(), 0..4);
    prop_oneof![leaf, map.prop_map(|map| Value::Object(Map::from_iter(map)))]
}

fn servers(document: &Document) -> Map<String, Value> {
    match document.get(&["servers"]) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn setting_many_values_says_the_same_as_setting_each((format, (text, comments)) in files(), values in prop::collection::btree_map("a[0-5]|[a-z][a-z .\"'#:]{0,6}", values(), 0..6)) {
        // A value in the place of another may take the comments in it along; those around it stay.
        let is_new = |key: &str| !(key.len() == 2 && key.starts_with('a'));
        let mut each = open(format, &text);
        let is_each = values.iter().all(|(key, value)| each.set(&["servers", key], value).is_ok());
        let mut all = open(format, &text);
        let entries: Vec<(&str, &Value)> = values.iter().map(|(key, value)| (key.as_str(), value)).collect();
        let is_all = all.set_all(&["servers"], &entries).is_ok();
        prop_assert!(is_all || !is_each, "{}", text);
        if is_each && is_all {
            prop_assert_eq!(servers(&all), servers(&each), "{}\n---\n{}", all.text(), each.text());
        }
        if is_all && values.keys().all(|key| is_new(key)) {
            for comment in comments {
                prop_assert!(all.text().contains(&comment), "{} is not in {}", comment, all.text());
            }
        }
    }

    #[test]
    fn setting_a_value_keeps_every_line_and_comment((format, (text, comments)) in files(), value in values(), key in "[a-z][a-z .\"'#:]{0,6}") {
        let mut document = open(format, &text);
        let before = servers(&document);
        document.set(&["servers", &key], &value).unwrap();
        prop_assert_eq!(document.get(&["servers", &key]).unwrap(), value.clone(), "{}", document.text());
        let edited = document.text();
        for comment in &comments {
            prop_assert!(edited.contains(comment.as_str()), "{} is not in {}", comment, edited);
        }
        // Only the line that gets a comma, or `{}` that gets an entry, may differ.
        let lost = text.lines().filter(|line| !edited.lines().any(|kept| kept == *line)).count();
        prop_assert!(lost <= 1, "{text}\n->\n{edited}");
        prop_assert_eq!(text.contains("\r\n"), edited.contains("\r\n"));
        prop_assert_eq!(edited.replace("\r\n", "").contains('\n') && text.contains("\r\n"), false, "mixed: {:?}", edited);
        let mut after = servers(&document);
        after.remove(&key);
        prop_assert_eq!(&after, &before);

        prop_assert!(document.remove(&["servers", &key]).unwrap());
        prop_assert_eq!(servers(&document), before);
        prop_assert!(!document.remove(&["servers", &key]).unwrap());
        prop_assert_eq!(document.get(&["other"]), open(format, &text).get(&["other"]));
    }

    #[test]
    fn removing_a_server_keeps_the_others_and_their_comments((format, (text, _)) in files(), index in 0..5_usize) {
        let name = format!("a{index}");
        let mut document = open(format, &text);
        let mut before = servers(&document);
        let was_there = before.remove(&name).is_some();
        prop_assert_eq!(document.remove(&["servers", &name]).unwrap(), was_there);
        prop_assert_eq!(servers(&document), before);
        let edited = document.text();
        let lines: Vec<&str> = text.lines().collect();
        prop_assert!(edited.lines().all(|line| lines.iter().any(|known| known.replace(',', "").trim_end() == line.replace(',', "").trim_end()) || line.contains("{}") || line.trim_matches([' ', '{', '}']).is_empty()), "{text}\n->\n{edited}");
        prop_assert!(edited.contains("note 0."));
    }

    #[test]
    fn a_key_of_a_server_changes_nothing_but_that((format, (text, comments)) in files(), index in 0..5_usize, value in values()) {
        let name = format!("a{index}");
        let mut document = open(format, &text);
        let mut before = servers(&document);
        document.set(&["servers", &name, "enabled"], &value).unwrap();
        let entry = before.entry(name.as_str()).or_insert_with(|| json!({}));
        if entry.is_null() {
            *entry = json!({});
        }
        entry["enabled"] = value;
        prop_assert_eq!(servers(&document), before, "{}", document.text());
        let edited = document.text();
        prop_assert!(comments.iter().all(|comment| edited.contains(comment.as_str())), "{edited}");
    }

    #[test]
    fn strict_json_stays_strict(value in values(), keys in prop::collection::btree_set("[a-c]{1,2}", 0..4), pretty in any::<bool>(), key in "[a-c]{1,2}") {
        let map: Map<String, Value> = keys.into_iter().map(|key| (key, json!({"x": 1}))).collect();
        let text = if pretty { serde_json::to_string_pretty(&map) } else { serde_json::to_string(&map) }.unwrap();
        let mut document = open(Format::Json, &text);
        document.set(&[&key, "y"], &value).unwrap();
        let mut expected = Value::Object(map);
        if expected.get(&key).is_none() {
            expected[&key] = json!({});
        }
        expected[&key]["y"] = value;
        prop_assert_eq!(serde_json::from_str::<Value>(&document.text()).unwrap(), expected.clone());
        document.remove(&[&key]).unwrap();
        expected.as_object_mut().unwrap().remove(&key);
        prop_assert_eq!(serde_json::from_str::<Value>(&document.text()).unwrap(), expected);
    }
}
