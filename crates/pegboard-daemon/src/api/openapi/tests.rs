//! The document as a whole.

use std::time::Duration;

use pegboard::{Answer, ListedTool, Outcome, Reply};

use super::*;

fn tool(name: &str, schema: Value) -> ListedTool {
    ListedTool::new(name, "Does something.", schema).unwrap()
}

/// The document's references must lead somewhere.
fn check_references(document: &Value, at: &Value) {
    match at {
        Value::Object(fields) => {
            if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                let pointer = reference.strip_prefix('#').unwrap();
                assert!(document.pointer(pointer).is_some(), "{reference}");
            }
            fields.values().for_each(|value| check_references(document, value));
        }
        Value::Array(items) => items.iter().for_each(|item| check_references(document, item)),
        _ => {}
    }
}

#[test]
fn it_is_the_same_each_time_and_its_references_lead_somewhere() {
    let tools = [
        tool(
            "read",
            json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "string"}}}),
        ),
        tool("odd name/ä{x}", json!({"type": "object"})),
        tool("odd_name__äx_", json!({"type": "object"})),
    ];
    let first = document(&tools, true);
    assert_eq!(first.to_string(), document(&tools, true).to_string());
    check_references(&first, &first);
    let paths = first["paths"].as_object().unwrap();
    assert!(
        paths.contains_key("/api/v1/mcp/tools/local/odd%20name%2F%C3%A4%7Bx%7D"),
        "{:?}",
        paths.keys()
    );
    let ids = paths.values().flat_map(|methods| methods.as_object().unwrap().values());
    let mut ids: Vec<&str> = ids.filter_map(|operation| operation["operationId"].as_str()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "every operation has an id of its own");
}

#[test]
fn no_two_types_have_the_same_name_for_a_generator() {
    let titled = json!({"type": "object", "title": "Input", "properties": {"at": {"type": "object", "title": "Place", "properties": {}}}});
    let tools = [
        tool("get_item", titled.clone()),
        tool("getItem", titled.clone()),
        tool("get.item", titled),
    ];
    let document = document(&tools, true);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let ours: Vec<_> = schemas.iter().filter(|(name, _)| name.starts_with("tool.")).collect();
    assert_eq!(ours.len(), 3, "{ours:?}");
    assert!(
        ours.iter().all(|(_, schema)| !schema.to_string().contains("\"title\"")),
        "{ours:?}"
    );
    let letters = |name: &str| {
        name.to_ascii_lowercase()
            .replace(|c: char| !c.is_ascii_alphanumeric(), "")
    };
    let mut names: Vec<String> = schemas.keys().map(|name| letters(name)).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "{names:?}");
}

/// Writes a document of so many tools. Returns its length and the processor time that it took, which other programs do not lengthen.
#[cfg(unix)]
fn write_document(count: usize) -> (usize, Duration) {
    use rustix::time::{ClockId, clock_gettime};

    let schema = json!({"type": "object", "properties": {"x": {"type": "string"}}});
    let tools: Vec<ListedTool> = (0..count).map(|n| tool(&format!("tool_{n}"), schema.clone())).collect();
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let started = now();
    let written = document(&tools, false).to_string();
    (written.len(), now() - started)
}

#[cfg(unix)]
#[test]
fn the_cost_of_ten_thousand_tools_grows_with_their_number() {
    let (few, few_took) = write_document(MAX_TOOLS / 10);
    let (many, many_took) = write_document(MAX_TOOLS);
    assert!(many < few * 11 && many < 64 << 20, "{few} and {many} bytes");
    assert!(many_took < few_took * 40, "{few_took:?} and {many_took:?}");
}

#[test]
fn replies_and_listings_have_the_shape_that_it_describes() {
    let listed = tool("read", json!({"type": "object"}));
    let document = document(std::slice::from_ref(&listed), false);
    let done = Reply::unanswered(
        "1",
        "a.b",
        Outcome::Done(Answer::from_text("hi")),
        Duration::from_millis(3),
    );
    let refused = pegboard::Failure::new(pegboard::Kind::LimitExceeded, "too many").retry_after(Duration::from_secs(2));
    let refused = Reply::unanswered("2", "c", Outcome::Refused(refused), Duration::ZERO);
    let listing = pegboard::Listing::from_tools([listed]);
    for (name, written) in [
        ("Reply", serde_json::to_value(done).unwrap()),
        ("Reply", serde_json::to_value(refused).unwrap()),
        ("Tools", serde_json::to_value(listing).unwrap()),
    ] {
        // Validated as part of the document, so that its references are found.
        let mut schema = document.clone();
        schema["$ref"] = format!("#/components/schemas/{name}").into();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let errors: Vec<String> = validator.iter_errors(&written).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?} in {written}");
        let unknown = serde_json::json!(7);
        assert!(!validator.is_valid(&unknown));
    }
}
