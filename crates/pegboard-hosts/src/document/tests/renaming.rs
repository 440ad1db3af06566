//! A key gets another name where it is written, and everything else keeps its bytes.

use super::{Format, open};

#[test]
fn the_key_is_replaced_wherever_it_is_written() {
    for (format, text, expected) in [
        (
            Format::Toml,
            "# top\n[servers.a] # head\n# inside\ncommand = 'x' # run\n\n[servers.b]\nurl = 'a'\n\n[servers . 'a' . env]\n# why\nA = 'a'\n",
            "# top\n[servers.new] # head\n# inside\ncommand = 'x' # run\n\n[servers.b]\nurl = 'a'\n\n[servers . new . env]\n# why\nA = 'a'\n",
        ),
        (
            Format::Toml,
            "servers.a.command = 'a' # dotted\nservers.b = { a = { a = 1 } }\n",
            "servers.new.command = 'a' # dotted\nservers.b = { a = { a = 1 } }\n",
        ),
        (
            Format::Toml,
            "servers = { b = { x = 1 }, a = { x = 2 } } # inline\n",
            "servers = { b = { x = 1 }, new = { x = 2 } } # inline\n",
        ),
        (
            Format::Toml,
            "[servers]\n\"a\".args = ['a']\n[[servers.a.tools]]\nname = 'a'\n",
            "[servers]\nnew.args = ['a']\n[[servers.new.tools]]\nname = 'a'\n",
        ),
        (
            Format::Json,
            "{\n  // all\n  \"servers\": {\n    \"a\": { // here\n      \"command\": \"a\", /* why */\n    },\n  },\n}\n",
            "{\n  // all\n  \"servers\": {\n    \"new\": { // here\n      \"command\": \"a\", /* why */\n    },\n  },\n}\n",
        ),
        (
            Format::Yaml,
            "servers:\n  # first\n  'a': # here\n    command: a # run\n  b: {a: 1}\n",
            "servers:\n  # first\n  new: # here\n    command: a # run\n  b: {a: 1}\n",
        ),
        (
            Format::Yaml,
            "servers: {b: {x: 1}, a: {x: 2}}\n",
            "servers: {b: {x: 1}, new: {x: 2}}\n",
        ),
    ] {
        let mut document = open(format, text);
        document.rename(&["servers", "a"], "new").unwrap();
        assert_eq!(document.text(), expected);
    }
}

#[test]
fn what_comes_from_an_anchor_is_written_anew_or_refused() {
    let text = "base: &base\n  a: {x: 1}\nservers:\n  <<: *base\n  b: {x: 2}\n";
    let mut document = open(Format::Yaml, text);
    assert!(document.rename(&["servers", "a"], "new").is_err());
    assert!(document.rename(&["servers", "missing"], "n").is_err());
    assert_eq!(document.text(), text);
}
