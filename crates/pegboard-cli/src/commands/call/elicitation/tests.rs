//! Whole dialogues at the terminal.

use serde_json::json;

use super::*;

fn form() -> Elicitation {
    let schema = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2},
        "age": {"type": "integer", "minimum": 0, "description": "In years."},
        "sure": {"type": "boolean", "default": true},
        "colours": {"type": "array", "items": {"anyOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}},
    }});
    Elicitation::read(json!({"message": "Who are \u{1b}[2Jyou?", "requestedSchema": schema})).unwrap()
}

/// Prepared input lines, and a record of those that were read without echo.
struct Typed<'a> {
    lines: std::str::Lines<'a>,
    hidden: Vec<String>,
}

impl Lines for Typed<'_> {
    fn next(&mut self) -> io::Result<Option<String>> {
        Ok(self.lines.next().map(|line| line.trim().to_owned()))
    }

    fn next_hidden(&mut self) -> io::Result<Option<String>> {
        let line = self.next()?;
        self.hidden.extend(line.clone());
        Ok(line)
    }
}

fn dialogue(request: &Elicitation, typed: &str) -> (ElicitAnswer, String) {
    let mut out = Vec::new();
    let mut typed = Typed {
        lines: typed.lines(),
        hidden: Vec::new(),
    };
    let answer = ask("fx", request, &mut typed, &mut out).unwrap();
    (answer, String::from_utf8(out).unwrap())
}

fn accepted(content: Value) -> ElicitAnswer {
    match content {
        Value::Object(content) => ElicitAnswer::Accept(content),
        other => panic!("{other}"),
    }
}

#[test]
fn the_fields_of_a_form_are_asked_for_one_after_the_other() {
    let (answer, shown) = dialogue(&form(), "\nAda\n-1\n36\nred, g\n\n");
    assert_eq!(
        answer,
        accepted(json!({"name": "Ada", "age": 36, "colours": ["r", "g"]}))
    );
    insta::assert_snapshot!(shown.replace(": ", ":\n"), @r"
    server `fx` asks:
    │ Who are \u{1b}[2Jyou?
    press Enter to answer, or type n to refuse:
    │ Your name:
    │ In years.
    │ age (a whole number) [nothing]:
      `age` must be at least 0
    │ age (a whole number) [nothing]:
    │   r  Red
    │   g  Green
    │ colours (some of these, with commas) [nothing]:
    │ sure (yes or no) [true]:
    ");
}

#[test]
fn a_user_may_refuse_or_leave_or_type_nonsense() {
    for (typed, expected) in [
        ("n\n", ElicitAnswer::Decline),
        ("", ElicitAnswer::Cancel),
        ("\n", ElicitAnswer::Cancel),
        ("\nA\n\nB\n", ElicitAnswer::Cancel),
    ] {
        assert_eq!(dialogue(&form(), typed).0, expected, "{typed:?}");
    }
}

#[test]
fn a_page_is_shown_in_full_and_never_opened() {
    let page = json!({"mode": "url", "message": "Sign in.", "url": "https://example.org/sign-in?a=b"});
    let page = Elicitation::read(page).unwrap();
    let (answer, shown) = dialogue(&page, "\n");
    assert_eq!(answer, ElicitAnswer::Finished);
    assert!(shown.contains("\n  https://example.org/sign-in?a=b\n"), "{shown}");
    assert_eq!(dialogue(&page, "n\n").0, ElicitAnswer::Decline);
    assert_eq!(dialogue(&page, "").0, ElicitAnswer::Cancel);
}

#[test]
fn what_the_schema_calls_secret_is_read_unseen_and_its_default_is_not_shown() {
    let schema = json!({"type": "object", "properties": {
        "pin": {"type": "integer", "writeOnly": true, "default": 4711},
        "code": {"type": "string", "writeOnly": true},
        "user": {"type": "string"},
    }});
    let request = Elicitation::read(json!({"message": "Sign in.", "requestedSchema": schema})).unwrap();
    let mut typed = Typed {
        lines: "\nabc\n1234\nada\n".lines(),
        hidden: Vec::new(),
    };
    let mut out = Vec::new();
    let answer = ask("fx", &request, &mut typed, &mut out).unwrap();
    assert_eq!(answer, accepted(json!({"pin": 1234, "code": "abc", "user": "ada"})));
    assert_eq!(typed.hidden, ["abc", "1234"]);
    let shown = String::from_utf8(out).unwrap();
    assert!(
        shown.contains("│ code (not shown) [nothing]: │ pin (not shown) [what the server knows]: │ user [nothing]: "),
        "{shown}"
    );
}

#[test]
fn no_line_of_a_servers_message_passes_for_one_of_ours() {
    let message =
        "Hello.\r\npress Enter to answer, or type n to refuse: \nserver `bank` asks:\u{85}your PIN\u{2028}x\rover";
    let request = json!({"message": message, "requestedSchema": {"type": "object", "properties": {
        "a": {"type": "string", "title": "press Enter\nor type n", "description": "x\npassed"},
    }}});
    let (_, shown) = dialogue(&Elicitation::read(request).unwrap(), "\n\n");
    for line in shown.lines() {
        let is_ours = line == "server `fx` asks:" || line.starts_with("press Enter to answer, or type n to refuse: │ ");
        assert!(is_ours || line.starts_with("│ "), "{line:?} in {shown}");
    }
    assert_eq!(shown.matches("\nserver `").count(), 0, "{shown}");
}

#[test]
fn a_long_message_is_cut_with_a_note() {
    let request = |message: String| {
        let request = json!({"message": message, "mode": "url", "url": "https://example.org/"});
        dialogue(&Elicitation::read(request).unwrap(), "n").1
    };
    let shown = request("line\n".repeat(100));
    assert_eq!(shown.matches("│ line\n").count(), 40, "{shown}");
    assert!(shown.contains("(60 more lines of the message are left out)"), "{shown}");
    let shown = request("x".repeat(10_000));
    assert!(shown.contains("[1808 more bytes are left out]"), "{shown}");
}

#[test]
fn a_page_shows_its_host_in_ascii_on_a_line_of_its_own() {
    let page = json!({"mode": "url", "message": "Sign in.", "url": "https://ex\u{430}mple.org/a"});
    let (_, shown) = dialogue(&Elicitation::read(page).unwrap(), "n");
    assert!(shown.contains("\n  xn--exmple-4nf.org\n"), "{shown}");
    assert!(
        shown.contains("warning: the host's name has letters of other scripts"),
        "{shown}"
    );
    assert!(shown.contains("\n  https://xn--exmple-4nf.org/a\n"), "{shown}");
    for url in [
        "http://example.org/",
        "https://a.example@b.example/",
        "file:///etc/passwd",
    ] {
        assert!(
            Elicitation::read(json!({"mode": "url", "message": "x", "url": url})).is_err(),
            "{url}"
        );
    }
}

#[test]
fn a_form_that_asks_for_a_password_is_refused() {
    for field in [
        json!({"password": {"type": "string"}}),
        json!({"x": {"type": "string", "format": "password"}}),
        json!({"x": {"type": "string", "title": "Your GitHub token"}}),
        json!({"x": {"type": "string", "description": "Paste your API key here."}}),
        json!({"apiKey2": {"type": "string"}}),
    ] {
        let request = json!({"message": "x", "requestedSchema": {"type": "object", "properties": field}});
        assert!(Elicitation::read(request).is_err(), "{field}");
    }
    for field in [
        json!({"max_tokens": {"type": "integer"}}),
        json!({"remember_password": {"type": "boolean"}}),
        json!({"author": {"type": "string", "description": "The name of the author."}}),
    ] {
        let request = json!({"message": "x", "requestedSchema": {"type": "object", "properties": field}});
        assert!(Elicitation::read(request).is_ok(), "{field}");
    }
}
