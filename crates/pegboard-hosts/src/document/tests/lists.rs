//! A value of a list is replaced where it is written, and comments are told from values.

use serde_json::{Value, json};

use super::{Format, after_set, open};

#[test]
fn values_of_a_list_are_replaced_where_they_are() {
    let list = json!(["new", 1, "c"]);
    for (format, text, expected) in [
        (
            Format::Toml,
            "[a]\nb = [ # first\n  'a', # one\n  # off\n  1,\n  \"c\",\n] # end\n",
            "[a]\nb = [ # first\n  \"new\", # one\n  # off\n  1,\n  \"c\",\n] # end\n",
        ),
        (
            Format::Toml,
            "a = { b = ['a', 1, 'x'] } # in\n",
            "a = { b = [\"new\", 1, \"c\"] } # in\n",
        ),
        (
            Format::Json,
            "{\"a\": {\"b\": [\n  \"a\", // one\n  1, /* two */\n  \"c\",\n]}}\n",
            "{\"a\": {\"b\": [\n  \"new\", // one\n  1, /* two */\n  \"c\",\n]}}\n",
        ),
        (
            Format::Yaml,
            "a:\n  b: # first\n    - a # one\n    # off\n    - 1\n    - c\n",
            "a:\n  b: # first\n    - new # one\n    # off\n    - 1\n    - c\n",
        ),
        (
            Format::Yaml,
            "a: {b: [\"a\", 1, # one\n  c]}\n",
            "a: {b: [\"new\", 1, # one\n  c]}\n",
        ),
        // What another part stands for is not touched.
        (
            Format::Yaml,
            "a:\n  b:\n    - a # one\n    - &x 1\n    - c\n",
            "a:\n  b:\n    - new # one\n    - &x 1\n    - c\n",
        ),
    ] {
        assert_eq!(after_set(format, text, &["a", "b"], &list), expected);
    }
}

#[test]
fn lists_in_lists_count_as_one_value() {
    let list = json!([["a", "x"], {"k": "a"}, "new"]);
    for (format, text, expected) in [
        (
            Format::Toml,
            "b = [['a', 'x'], { k = 'a' }, 'a'] # one\n",
            "b = [['a', 'x'], { k = 'a' }, \"new\"] # one\n",
        ),
        (
            Format::Json,
            "{\"b\": [[\"a\", \"x\"], {\"k\": \"a\"}, /* one */ \"a\"]}\n",
            "{\"b\": [[\"a\", \"x\"], {\"k\": \"a\"}, /* one */ \"new\"]}\n",
        ),
        (
            Format::Yaml,
            "b:\n  - [a, x]\n  - {k: a}\n  - a # one\n",
            "b:\n  - [a, x]\n  - {k: a}\n  - new # one\n",
        ),
    ] {
        assert_eq!(after_set(format, text, &["b"], &list), expected);
    }
}

#[test]
fn a_list_of_another_length_or_with_an_alias_is_written_anew_or_refused() {
    let longer = json!(["a", "b"]);
    assert_eq!(
        after_set(Format::Toml, "b = [\n  'a', # one\n]\n", &["b"], &longer),
        "b = [\"a\", \"b\"]\n"
    );
    let text = "a: &x one\nb:\n  - *x\n";
    let mut document = open(Format::Yaml, text);
    assert!(document.set(&["b"], &json!(["two"])).is_err());
    assert_eq!(document.text(), text);
}

#[test]
fn comments_are_told_from_values() {
    for (format, text, expected) in [
        (
            Format::Toml,
            "# top\na = \"# no\" # yes\nb = '''\n# no\n'''\n[c] # head\nd = [ # in\n]\n",
            json!(["# top", "# yes", "# head", "# in"]),
        ),
        (
            Format::Json,
            "\u{feff}{/*/ one */\n \"a\\\\\": \"http://x\", // two\r\n \"b\\\"//\": \"/* no */\" /* three\n more */}",
            json!(["/*/ one */", "// two", "/* three\n more */"]),
        ),
        (
            Format::Yaml,
            "# top\na: \"# no\" # yes\nb: http://x#no\nc: |\n  # no\n  text\n# after\nd: {} # empty\n\"e # no\":\n  - x # ä\n  - 'y ''# no' # é\n",
            json!(["# top", "# yes", "# after", "# empty", "# ä", "# é"]),
        ),
    ] {
        let found = format.comments(text).map(Value::from);
        assert_eq!(found, Some(expected));
    }
    assert_eq!(Format::Json.comments("{"), None);
    assert_eq!(
        Format::Yaml.comments("# only\n").map(Value::from),
        Some(json!(["# only"]))
    );
}
