//! Which test covers what a board does with a field, beyond the resolved config.
//!
//! The settings of servers at the top of a file are not listed: they reach servers by the same keys.

mod calls;
mod gateway;
mod lifecycle;
mod remote;
mod results;
mod server;
mod top;

use std::{collections::BTreeSet, path::Path};

use super::{in_effect::fields_in_effect, *};
use crate::{field::Field, spelling::camel};

/// The file of a test under `tests`, the test, and the fields whose effect it shows, as `section.field`.
type Row = (&'static str, &'static str, &'static [&'static str]);

fn rows() -> impl Iterator<Item = &'static Row> {
    let tables = [
        top::ROWS,
        server::ROWS,
        remote::ROWS,
        lifecycle::ROWS,
        calls::ROWS,
        results::ROWS,
        gateway::ROWS,
    ];
    tables.into_iter().flatten()
}

/// The fields in effect, by `section.field`.
fn known_fields() -> BTreeMap<String, &'static Field> {
    let in_server = |path: &String| path.starts_with("servers.x.");
    let of_servers: BTreeSet<&str> = fields::SERVER.fields().map(|field| field.name).collect();
    let own = ["preset", "masking"];
    let name = |(path, section, field): (String, &'static str, &'static Field)| {
        let first = path.split('.').next().unwrap_or_default();
        let is_of_server =
            !in_server(&path) && of_servers.contains(first) && !(own.contains(&first) && section == "config");
        (!is_of_server).then(|| (format!("{section}.{}", field.name), field))
    };
    fields_in_effect().into_iter().filter_map(name).collect()
}

#[test]
fn every_field_names_the_test_of_its_effect() {
    let listed: Vec<&str> = rows().flat_map(|(_, _, fields)| fields.iter().copied()).collect();
    let fields = known_fields();
    let missing: Vec<&String> = fields.keys().filter(|name| !listed.contains(&name.as_str())).collect();
    assert!(missing.is_empty(), "fields without a test: {missing:#?}");
    let unknown: Vec<&&str> = listed.iter().filter(|name| !fields.contains_key(**name)).collect();
    assert!(unknown.is_empty(), "there are no such fields: {unknown:#?}");
    let once: BTreeSet<&&str> = listed.iter().collect();
    assert_eq!(once.len(), listed.len(), "a field is listed once");
}

/// A test that does not contain the name of a field does not set it.
#[test]
fn the_tests_that_are_named_set_their_fields() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pegboard/tests");
    let known = known_fields();
    for (file, test, fields) in rows() {
        let text = std::fs::read_to_string(tests.join(file)).unwrap_or_default();
        let body = text.split_once(&format!("fn {test}(")).map(|(_, rest)| rest);
        let body = body.unwrap_or_else(|| panic!("{file} has no test {test}"));
        // The end of a function is the first brace without indentation.
        let body = body.split("\n}").next().unwrap_or_default();
        // A line break within a string would be part of the next word.
        let body = body.replace("\\n", " ");
        let words: BTreeSet<&str> = body.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        for field in *fields {
            let is_set = known[*field]
                .names()
                .any(|name| words.contains(name) || words.contains(camel(name).as_str()));
            assert!(is_set, "{file}: {test} does not set {field}");
        }
    }
}
