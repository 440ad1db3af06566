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
    Who are \u{1b}[2Jyou?
    press Enter to answer, or type n to refuse:
    Your name:
      In years.
    age (a whole number) [nothing]:
      `age` must be at least 0
    age (a whole number) [nothing]:
        r  Red
        g  Green
    colours (some of these, with commas) [nothing]:
    sure (yes or no) [true]:
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
        "token": {"type": "string", "format": "password"},
        "user": {"type": "string"},
    }});
    let request = Elicitation::read(json!({"message": "Sign in.", "requestedSchema": schema})).unwrap();
    let mut typed = Typed {
        lines: "\n1234\nabc\nada\n".lines(),
        hidden: Vec::new(),
    };
    let mut out = Vec::new();
    let answer = ask("fx", &request, &mut typed, &mut out).unwrap();
    assert_eq!(answer, accepted(json!({"pin": 1234, "token": "abc", "user": "ada"})));
    assert_eq!(typed.hidden, ["1234", "abc"]);
    let shown = String::from_utf8(out).unwrap();
    assert!(
        shown.contains("pin (not shown) [what the server knows]: token (not shown) [nothing]: user [nothing]: "),
        "{shown}"
    );
}
