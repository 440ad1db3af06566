//! How words become arguments.

use super::*;
use serde_json::json;

fn schema() -> Value {
    json!({"required": ["to"], "properties": {"to": {}, "a": {}, "b": {}}})
}

fn read(words: &[&str]) -> Request {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    Request::read(&words[0], &words[1..], &|name| name == "fx").unwrap()
}

fn assigned(words: &[&str]) -> Result<Vec<(String, Given)>, String> {
    let assigned = assign(&read(words).words, &schema(), None)?;
    Ok(assigned.into_iter().map(|one| (one.key, one.value)).collect())
}

fn text(key: &str, value: &str) -> (String, Given) {
    (key.to_owned(), Given::Text(value.to_owned()))
}

#[test]
fn a_server_and_a_tool_may_be_two_words() {
    assert_eq!(read(&["fx", "send", "n=1"]).tool, "fx.send");
    assert_eq!(read(&["fx", "send(1)"]), read(&["fx.send(1)"]));
    assert_eq!(read(&["fx", "n=1"]).tool, "fx");
    assert_eq!(read(&["send", "fx"]).tool, "send");
}

#[test]
fn values_without_a_key_fill_the_required_arguments_first() {
    assert_eq!(assigned(&["t", "x", "5"]), Ok(vec![text("to", "x"), text("a", "5")]));
    assert_eq!(
        assigned(&["t", "x", "to=y", "5"]),
        Ok(vec![text("to", "y"), text("a", "x"), text("b", "5")])
    );
    assert_eq!(
        assigned(&["t", "x", "a.b=1", "5"]),
        Ok(vec![text("a.b", "1"), text("to", "x"), text("b", "5")])
    );
    let problem = assigned(&["t", "1", "2", "3", "4"]).unwrap_err();
    assert!(problem.contains("with one of to, a, b"), "{problem}");
}

#[test]
fn values_without_a_key_follow_the_order_of_the_server() {
    let schema = json!({"required": ["source", "destination"], "properties": {"destination": {}, "mode": {}, "force": {}, "source": {}}});
    let order = ["mode", "source", "destination", "force"].map(str::to_owned);
    let keys = |words: &[&str]| {
        let assigned = assign(&read(words).words, &schema, Some(&order)).unwrap();
        assigned.into_iter().map(|one| one.key).collect::<Vec<_>>()
    };
    assert_eq!(keys(&["cp", "a", "b"]), ["source", "destination"]);
    assert_eq!(keys(&["cp(\"a\", \"b\", \"c\")"]), ["source", "destination", "mode"]);
    assert_eq!(
        keys(&["cp", "a", "mode=x", "b", "c"]),
        ["mode", "source", "destination", "force"]
    );
}

/// If the order of the server is not known, none is guessed: a copy in the wrong direction destroys data.
#[test]
fn values_are_not_assigned_by_guessing() {
    let words = [Word::read("x"), Word::read("y")];
    for (names, is_clear) in [
        (["source", "target"], false),
        (["a", "b"], true),
        (["arg1", "arg2"], true),
        (["arg", "arg2"], false),
        (["x", "total"], false),
    ] {
        let properties: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        let assigned = assign(&words, &json!({"properties": properties, "required": names}), None);
        assert_eq!(assigned.is_ok(), is_clear, "{names:?}: {assigned:?}");
        let one = assign(
            &[Word::read("x"), Word::read(&format!("{}=y", names[0]))],
            &json!({"properties": properties}),
            None,
        );
        assert!(one.is_ok(), "{names:?}");
    }
}

#[test]
fn a_colon_makes_a_pair_only_with_a_declared_key() {
    assert_eq!(
        assigned(&["t", "to:x", "https://a.example"]),
        Ok(vec![text("to", "x"), text("a", "https://a.example")])
    );
    assert_eq!(assigned(&["t", "12:30"]), Ok(vec![text("to", "12:30")]));
}

#[test]
fn an_at_sign_names_a_file_and_two_stand_for_one() {
    let value = |word: &str| match Word::read(word) {
        Word::Named { value, .. } | Word::Positional(value) => value,
        other @ Word::Colon { .. } => panic!("{other:?}"),
    };
    assert_eq!(value("a=@f.txt"), Given::File("f.txt".to_owned()));
    assert_eq!(value("a=@@f"), Given::Text("@f".to_owned()));
    assert_eq!(value("@f"), Given::File("f".to_owned()));
    assert_eq!(value("a=@"), Given::Text("@".to_owned()));
    assert_eq!(value("a:=@f"), Given::JsonFile("f".to_owned()));
    assert_eq!(value("a:=[1]"), Given::JsonText("[1]".to_owned()));
    assert_eq!(
        assigned(&["t", "a:@f"]),
        Ok(vec![("a".to_owned(), Given::File("f".to_owned()))])
    );
}

#[test]
fn a_value_is_put_where_its_key_says() {
    let mut arguments = Map::new();
    for (key, is_declared, value) in [
        ("a.b", true, json!(1)),
        ("f.g", false, json!(2)),
        ("rows.0.id", false, json!(3)),
        ("rows.1", false, json!(4)),
    ] {
        put(&mut arguments, key, is_declared, value).unwrap();
    }
    assert_eq!(
        Value::Object(arguments.clone()),
        json!({"a.b": 1, "f": {"g": 2}, "rows": [{"id": 3}, 4]})
    );
    assert!(put(&mut arguments, "rows.9", false, json!(1)).is_err());
    assert!(put(&mut arguments, "f.g.h", false, json!(1)).is_err());
}

#[test]
fn one_json_object_is_all_arguments_if_the_tool_declares_its_keys() {
    let schema = json!({"properties": {"zone": {"type": "string"}, "text": {"type": "string"}}});
    let whole = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let request = Request::read("x", &words, &|_| false).unwrap();
        request.whole_arguments(&schema).cloned().map(Value::Object)
    };
    assert_eq!(whole(&[r#" {"zone": "UTC"}"#]), Some(json!({"zone": "UTC"})));
    // What else looks like an object is a text.
    for words in [
        &[r#"{"other": 1}"#][..],
        &["{}"],
        &["{zone}"],
        &[r#"{"zone": 1}"#, "text=a"],
        &[r#"text={"zone": 1}"#],
    ] {
        assert_eq!(whole(words), None, "{words:?}");
    }
}
