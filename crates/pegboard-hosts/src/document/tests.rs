//! Edits keep every comment and every byte around them, and what cannot be edited safely is refused.

mod files;
mod lists;
mod properties;
mod renaming;

use std::path::Path;

use serde_json::{Value, json};

use super::{Document, Format};

fn open(format: Format, text: &str) -> Document {
    Document::parse(Path::new("config"), format, text).unwrap()
}

fn after_set(format: Format, text: &str, path: &[&str], value: &Value) -> String {
    let mut document = open(format, text);
    document.set(path, value).unwrap();
    assert_eq!(document.get(path).as_ref(), Some(value), "{}", document.text());
    document.text()
}

fn after_remove(format: Format, text: &str, path: &[&str]) -> String {
    let mut document = open(format, text);
    assert!(document.remove(path).unwrap(), "{path:?} is not in {text}");
    assert_eq!(document.get(path), None, "{}", document.text());
    document.text()
}

fn refusal(format: Format, text: &str, edit: impl FnOnce(&mut Document) -> Result<(), super::DocumentError>) -> String {
    let mut document = open(format, text);
    let error = edit(&mut document).unwrap_err().to_string();
    assert_eq!(document.text(), text, "a refused edit changes nothing");
    error
}

fn server() -> Value {
    json!({"command": "npx", "args": ["-y", "pkg"], "env": {"TOKEN": "${TOKEN}"}})
}

#[test]
fn a_first_server_makes_a_whole_file() {
    let path = ["servers", "web"];
    let toml = "[servers.web]\ncommand = \"npx\"\nargs = [\"-y\", \"pkg\"]\nenv = { TOKEN = \"${TOKEN}\" }\n";
    assert_eq!(after_set(Format::Toml, "", &path, &server()), toml);
    let json = r#"{
  "servers": {
    "web": {
      "command": "npx",
      "args": ["-y", "pkg"],
      "env": {
        "TOKEN": "${TOKEN}"
      }
    }
  }
}
"#;
    assert_eq!(after_set(Format::Json, "", &path, &server()), json);
    assert_eq!(after_set(Format::Json, "{}", &path, &server()), json.trim_end());
    let yaml = "servers:\n  web:\n    command: npx\n    args: [\"-y\", \"pkg\"]\n    env:\n      TOKEN: \"${TOKEN}\"\n";
    assert_eq!(after_set(Format::Yaml, "", &path, &server()), yaml);
    assert_eq!(after_set(Format::Yaml, "{}\n", &path, &server()), yaml);
    assert_eq!(
        after_set(Format::Yaml, "# mine\n", &path, &server()),
        format!("# mine\n{yaml}")
    );
}

#[test]
fn a_new_section_follows_those_of_its_kind() {
    let text =
        "# top\n[servers.a] # first\ncommand = \"x\" # run\n# args = []\n\n# the gateway\n[serve]\nlisten = \"1\"\n";
    let expected = "# top\n[servers.a] # first\ncommand = \"x\" # run\n# args = []\n\n[servers.b]\nurl = \"https://x\"\n\n# the gateway\n[serve]\nlisten = \"1\"\n";
    let set = after_set(Format::Toml, text, &["servers", "b"], &json!({"url": "https://x"}));
    assert_eq!(set, expected);
    assert_eq!(after_remove(Format::Toml, &set, &["servers", "b"]), text);
}

#[test]
fn keys_go_into_the_section_the_dotted_keys_or_the_inline_table_that_they_belong_to() {
    let cases = [
        (
            "[servers.a]\ncommand = \"x\" # run\n",
            "[servers.a]\ncommand = \"x\" # run\nenabled = false\n",
        ),
        ("[servers.a]", "[servers.a]\nenabled = false"),
        (
            "servers.a.command = \"x\"\n",
            "servers.a.command = \"x\"\nservers.a.enabled = false\n",
        ),
        (
            "[servers]\na.command = \"x\"\nb = 1\n",
            "[servers]\na.command = \"x\"\na.enabled = false\nb = 1\n",
        ),
        (
            "[servers]\na = { command = \"x\" }\n",
            "[servers]\na = { command = \"x\", enabled = false }\n",
        ),
        ("servers = { a = {} }\n", "servers = { a = { enabled = false } }\n"),
        (
            "[servers]\n\"a\" = { command = \"x\" } # one\n",
            "[servers]\n\"a\" = { command = \"x\", enabled = false } # one\n",
        ),
        (
            "[servers.a]\nenabled = true # on\n",
            "[servers.a]\nenabled = false # on\n",
        ),
        (
            "[servers.a.env]\nX = \"1\"\n",
            "[servers.a.env]\nX = \"1\"\n\n[servers.a]\nenabled = false\n",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(
            after_set(Format::Toml, text, &["servers", "a", "enabled"], &json!(false)),
            expected
        );
    }
    let env = after_set(
        Format::Toml,
        "[servers.a]\ncommand = \"x\"\n",
        &["servers", "a", "env", "B C"],
        &json!("1"),
    );
    assert_eq!(env, "[servers.a]\ncommand = \"x\"\nenv = { \"B C\" = \"1\" }\n");
}

#[test]
fn a_key_of_the_root_stays_out_of_the_sections() {
    let set = |text| after_set(Format::Toml, text, &["listen"], &json!("x"));
    assert_eq!(
        set("# head\n\n# about a\n[a]\nb = 1\n"),
        "# head\n\nlisten = \"x\"\n\n# about a\n[a]\nb = 1\n"
    );
    assert_eq!(
        set("z = 1 # one\n[a]\nb = 1\n"),
        "z = 1 # one\nlisten = \"x\"\n[a]\nb = 1\n"
    );
    assert_eq!(set("# only"), "# only\nlisten = \"x\"\n");
}

#[test]
fn removing_takes_all_parts_of_a_table_and_leaves_the_rest() {
    let cases = [
        (
            "# top\n[servers.a]\nx = 1\n\n[servers.a.env]\nK = \"v\"\n\n# b\n[servers.b]\ny = 2\n",
            "# top\n\n# b\n[servers.b]\ny = 2\n",
        ),
        (
            "[servers.b]\ny = 2\n\n[servers.a]\nx = [\n  1, # one\n]\n",
            "[servers.b]\ny = 2\n",
        ),
        (
            "servers.a.x = 1\nservers.b.y = 2\nservers.a.z = 3\n",
            "servers.b.y = 2\n",
        ),
        (
            "servers = { a = { x = 1 }, b = { y = 2 } }\n",
            "servers = { b = { y = 2 } }\n",
        ),
        (
            "servers = { b = 1, a = { x = 1, y = { z = 2 } } }\n",
            "servers = { b = 1 }\n",
        ),
        ("servers = { a = 1 }\n", "servers = { }\n"),
    ];
    for (text, expected) in cases {
        assert_eq!(
            after_remove(Format::Toml, text, &["servers", "a"]),
            expected,
            "from {text}"
        );
    }
}

#[test]
fn json_keeps_its_layout_comments_and_commas() {
    let path = ["servers", "b"];
    let value = json!({"url": "u"});
    let cases = [
        (
            "{\n\t\"servers\": {\n\t\t\"a\": 1 // one\n\t}\n}",
            "{\n\t\"servers\": {\n\t\t\"a\": 1, // one\n\t\t\"b\": {\n\t\t\t\"url\": \"u\"\n\t\t}\n\t}\n}",
        ),
        (
            "{\n    \"servers\": {\n        \"a\": 1, // one\n    },\n}\n",
            "{\n    \"servers\": {\n        \"a\": 1, // one\n        \"b\": {\n            \"url\": \"u\"\n        },\n    },\n}\n",
        ),
        (
            "{\"servers\":{\"a\":1}}",
            "{\"servers\":{\"a\":1, \"b\": {\"url\": \"u\"}}}",
        ),
        (
            "{\"servers\": {}, \"x\": [1]}",
            "{\"servers\": {\"b\": {\"url\": \"u\"}}, \"x\": [1]}",
        ),
        (
            "// c\n{\n  \"servers\": {\n    // none yet\n  }\n}\n",
            "// c\n{\n  \"servers\": {\n    // none yet\n    \"b\": {\n      \"url\": \"u\"\n    }\n  }\n}\n",
        ),
        (
            "{\n  \"x\": 1 /* a */ , /* b */\n  \"servers\": { \"a\": 1 }\n}\n",
            "{\n  \"x\": 1 /* a */ , /* b */\n  \"servers\": { \"a\": 1, \"b\": {\"url\": \"u\"} }\n}\n",
        ),
        (
            "{\n  \"servers\": {\n    \"a\": 1}}\n",
            "{\n  \"servers\": {\n    \"a\": 1,\n    \"b\": {\n      \"url\": \"u\"\n    }}}\n",
        ),
    ];
    for (text, expected) in cases {
        let set = after_set(Format::Json, text, &path, &value);
        assert_eq!(set, expected);
        assert_eq!(
            open(Format::Json, &after_remove(Format::Json, &set, &path)).get(&[]),
            open(Format::Json, text).get(&[])
        );
    }
}

#[test]
fn removing_from_json_leaves_no_comma_behind() {
    let cases = [
        (
            "{\n  \"a\": 1, // one\n  \"b\": 2 // two\n}\n",
            "b",
            "{\n  \"a\": 1 // one\n}\n",
        ),
        (
            "{\n  \"a\": 1, // one\n  \"b\": 2 // two\n}\n",
            "a",
            "{\n  \"b\": 2 // two\n}\n",
        ),
        ("{\n  \"a\": 1,\n  \"b\": 2,\n}\n", "b", "{\n  \"a\": 1,\n}\n"),
        ("{\"a\": 1, \"b\": 2, \"c\": 3}", "b", "{\"a\": 1, \"c\": 3}"),
        ("{\"a\": 1, \"b\": 2}", "b", "{\"a\": 1}"),
        ("{\"a\": 1, \"b\": 2}", "a", "{\"b\": 2}"),
        ("{\n  \"a\": 1\n}\n", "a", "{}\n"),
        ("{\n  // kept\n  \"a\": 1\n}\n", "a", "{\n  // kept\n}\n"),
    ];
    for (text, key, expected) in cases {
        assert_eq!(after_remove(Format::Json, text, &[key]), expected, "{key} from {text}");
    }
}

#[test]
fn yaml_keeps_its_layout_and_comments() {
    let path = ["servers", "b"];
    let value = json!({"url": "https://x"});
    let cases = [
        (
            "# top\nservers: # all\n    a: # one\n        command: x # run\n# end\n",
            "# top\nservers: # all\n    a: # one\n        command: x # run\n    b:\n        url: \"https://x\"\n# end\n",
        ),
        (
            "servers:\n  a: |\n    text\n    more\n\nother: 1\n",
            "servers:\n  a: |\n    text\n    more\n  b:\n    url: \"https://x\"\n\nother: 1\n",
        ),
        (
            "servers: {a: 1} # flow\n",
            "servers: {a: 1, b: {\"url\": \"https://x\"}} # flow\n",
        ),
        (
            "servers: {} # none\nz: 1\n",
            "servers: # none\n  b:\n    url: \"https://x\"\nz: 1\n",
        ),
        ("servers:\nz: 1\n", "servers:\n  b:\n    url: \"https://x\"\nz: 1\n"),
        (
            "servers: # none\nz: 1",
            "servers: # none\n  b:\n    url: \"https://x\"\nz: 1",
        ),
        ("servers: null\n", "servers:\n  b:\n    url: \"https://x\"\n"),
        (
            "---\nservers:\n  a:\n    - 1\n    - 2",
            "---\nservers:\n  a:\n    - 1\n    - 2\n  b:\n    url: \"https://x\"",
        ),
        (
            "servers:\n  a:\nz: 1\n",
            "servers:\n  a:\n  b:\n    url: \"https://x\"\nz: 1\n",
        ),
        (
            "z: ä\nservers:\n  ä: {x: 1}\n",
            "z: ä\nservers:\n  ä: {x: 1}\n  b:\n    url: \"https://x\"\n",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(after_set(Format::Yaml, text, &path, &value), expected);
    }
}

#[test]
fn removing_from_yaml_keeps_what_is_around() {
    let cases = [
        (
            "servers:\n  # about a\n  a:\n    x: 1 # one\n\n  # about b\n  b: 2\n",
            "servers:\n  # about a\n\n  # about b\n  b: 2\n",
        ),
        ("servers:\n  a:\n    x: 1\nz: 1\n", "servers: {}\nz: 1\n"),
        ("servers: # all\n  a: 1\n", "servers: {} # all\n"),
        ("servers: {a: 1, b: 2}\n", "servers: {b: 2}\n"),
        ("servers: {b: 2, a: 1}\n", "servers: {b: 2}\n"),
        ("servers:\n  a: |\n    text\n    more\n  b: 1\n", "servers:\n  b: 1\n"),
    ];
    for (text, expected) in cases {
        assert_eq!(
            after_remove(Format::Yaml, text, &["servers", "a"]),
            expected,
            "from {text}"
        );
    }
}

#[test]
fn values_are_replaced_where_they_are() {
    let set = |format, text, value: Value| after_set(format, text, &["a", "on"], &value);
    assert_eq!(
        set(Format::Yaml, "a:\n  on: true # now\n  z: 1\n", json!(false)),
        "a:\n  on: false # now\n  z: 1\n"
    );
    assert_eq!(
        set(
            Format::Yaml,
            "a:\n  on: \"x\" # now\n  z: 'it''s' # too\n",
            json!("new")
        ),
        "a:\n  on: new # now\n  z: 'it''s' # too\n"
    );
    assert_eq!(
        set(Format::Yaml, "a:\n  on:\n    - 1\n  z: 1\n", json!([2, 3])),
        "a:\n  on: [2, 3]\n  z: 1\n"
    );
    assert_eq!(
        set(Format::Yaml, "a: {on: x, z: 1}\n", json!({"k": "v"})),
        "a: {on: {\"k\": \"v\"}, z: 1}\n"
    );
    assert_eq!(
        set(Format::Json, "{\"a\": {\"on\": true}}", json!([1])),
        "{\"a\": {\"on\": [1]}}"
    );
    assert_eq!(
        set(Format::Toml, "[a]\non = [\n  1,\n] # all\n", json!(["x", "y"])),
        "[a]\non = [\"x\", \"y\"] # all\n"
    );
}

#[test]
fn anchors_are_refused_where_an_edit_would_change_more() {
    let text = "base: &base\n  x: 1\nservers:\n  a: *base\n  b:\n    <<: *base\n    y: 2\n";
    let set = |path: &'static [&'static str]| move |document: &mut Document| document.set(path, &json!(5));
    let take = |path: &'static [&'static str]| move |document: &mut Document| document.remove(path).map(drop);
    for error in [
        refusal(Format::Yaml, text, set(&["servers", "a", "x"])),
        refusal(Format::Yaml, text, set(&["base", "x"])),
        refusal(Format::Yaml, text, take(&["base"])),
        refusal(Format::Yaml, text, take(&["servers", "a", "x"])),
        refusal(Format::Yaml, text, take(&["servers", "b", "x"])),
    ] {
        assert!(error.contains("edit the file by hand"), "{error}");
    }
    assert_eq!(
        after_remove(Format::Yaml, text, &["servers", "a"]),
        text.replace("  a: *base\n", "")
    );
    let more = after_set(Format::Yaml, text, &["servers", "c"], &json!(1));
    assert_eq!(more, format!("{text}  c: 1\n"));
}

#[test]
fn what_is_no_map_is_not_made_one() {
    for (format, text) in [
        (Format::Toml, "servers = 1\n"),
        (Format::Toml, "[[servers]]\nname = \"a\"\n"),
        (Format::Json, "{\"servers\": [1]}"),
        (Format::Json, "[1]"),
        (Format::Yaml, "servers:\n  - a\n"),
        (Format::Yaml, "- a\n"),
        (Format::Yaml, "servers: text\n"),
    ] {
        refusal(format, text, |document| document.set(&["servers", "a", "x"], &json!(1)));
    }
}

#[test]
fn broken_files_are_refused_when_they_are_opened() {
    for (format, text) in [
        (Format::Toml, "a = \n"),
        (Format::Json, "{\"a\": }"),
        (Format::Json, "{\"a\": 1, \"a\": 2}"),
        (Format::Json, "{a: 1}"),
        (Format::Yaml, "a: [1\n"),
        (Format::Yaml, "a: 1\na: 2\n"),
        (Format::Yaml, "a: 1\n---\nb: 2\n"),
    ] {
        let opened = Document::parse(Path::new("here"), format, text);
        assert!(opened.unwrap_err().to_string().starts_with("here: "), "{text}");
    }
}

#[test]
fn line_ends_marks_and_missing_ends_of_lines_are_kept() {
    let mark = "\u{feff}";
    let crlf = |text: &str| text.replace('\n', "\r\n");
    for (format, text) in [
        (Format::Toml, "# c\n[servers.a]\nx = 1\n\n[z]\ny = 1"),
        (
            Format::Json,
            "{\n  // c\n  \"servers\": {\n    \"a\": {}\n  },\n  \"z\": 1\n}",
        ),
        (Format::Yaml, "# c\nservers:\n  a:\n    x: 1\nz: 1"),
    ] {
        let plain = after_set(format, text, &["servers", "b", "on"], &json!(true));
        let windows = after_set(
            format,
            &format!("{mark}{}", crlf(text)),
            &["servers", "b", "on"],
            &json!(true),
        );
        assert_eq!(windows, format!("{mark}{}", crlf(&plain)));
        assert_eq!(after_remove(format, &plain, &["servers", "b"]), text);
        let back = after_remove(format, &windows, &["servers", "b"]);
        assert_eq!(back, format!("{mark}{}", crlf(text)));
    }
}

#[test]
fn keys_are_in_the_order_of_the_file() {
    let texts = [
        (Format::Toml, "[s.z]\nx = 1\n[s]\nc.d = 1\nb = { k = 1 }\n[s.a]\n"),
        (Format::Json, "{\"s\": {\"z\": 1, \"c\": 2, \"b\": 3, \"a\": 4}}"),
        (Format::Yaml, "s:\n  z: 1\n  c: 2\n  b: 3\n  a: 4\n"),
    ];
    for (format, text) in texts {
        assert_eq!(open(format, text).keys(&["s"]), ["z", "c", "b", "a"]);
    }
}

#[test]
fn many_servers_are_set_in_one_edit_that_looks_like_one_edit_each() {
    let (one, two) = (server(), json!({"url": "https://a.example"}));
    let entries = [("old", &one), ("b", &two), ("a", &one)];
    for (format, text) in [
        (Format::Toml, ""),
        (
            Format::Toml,
            "# top\n[servers.old]\nx = 1\n\n[servers.kept] # note\ny = 2\n\n[other]\nz = 3\n",
        ),
        (Format::Toml, "servers.old.x = 1\n"),
        (Format::Toml, "[servers]\nold = { x = 1 }\n"),
        (Format::Json, ""),
        (Format::Json, "{}"),
        (Format::Json, "{\"servers\": {\"old\": {}}}"),
        (
            Format::Json,
            "{\n  // top\n  \"servers\": {\n    \"old\": {}, // old\n    \"kept\": {} // note\n  }\n}\n",
        ),
        (Format::Yaml, ""),
        (Format::Yaml, "servers: {old: {x: 1}}\n"),
        (
            Format::Yaml,
            "# top\nservers:\n  old: # old\n    x: 1\n  kept:\n    y: 2 # note\nother: 3\n",
        ),
    ] {
        let mut each = open(format, text);
        for (key, value) in entries {
            each.set(&["servers", key], value).unwrap();
        }
        let mut all = open(format, text);
        all.set_all(&["servers"], &entries).unwrap();
        assert_eq!(all.text(), each.text(), "{text}");
    }
}
