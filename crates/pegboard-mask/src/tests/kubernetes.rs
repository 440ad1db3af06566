//! Kubernetes Secrets in the formats that tools print: whole, truncated and broken.

use super::*;
use crate::kubernetes::PLACEHOLDER;

const PASSWORD: &str = "aHVudGVyMmh1bnRlcjI=";
const OTHER: &str = "cGxhaW4tdGV4dC1vbmU=";

fn masked(text: &str) -> String {
    masker(&[]).text(text).text.into_owned()
}

#[track_caller]
fn leaks_nothing(what: &str, text: &str) {
    let masked = masked(text);
    for secret in [PASSWORD, OTHER, "hunter2hunter2"] {
        let shown = &secret[..8];
        assert!(!masked.contains(shown), "{what}:\n{text}\nbecame\n{masked}");
    }
    assert_eq!(masker(&[]).text(&masked).text, masked, "{what}: masked twice");
}

fn secret() -> String {
    format!(
        "apiVersion: v1\ndata:\n  password: {PASSWORD}\n  # a comment\n  user: {OTHER}\nkind: Secret\nmetadata:\n  name: db\ntype: Opaque\n"
    )
}

fn json() -> String {
    format!(
        r#"{{"apiVersion":"v1","data":{{"password":"{PASSWORD}","user":"{OTHER}"}},"kind":"Secret","metadata":{{"name":"db"}}}}"#
    )
}

const CONFIG_MAP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  host: db.example.org\n  mode: fast\n";

#[test]
fn the_section_of_a_secret_is_replaced_as_a_whole_and_the_rest_stays() {
    assert_eq!(
        masked(&secret()),
        "apiVersion: v1\ndata: \"[MASKED_SECRET_DATA]\"\nkind: Secret\nmetadata:\n  name: db\ntype: Opaque\n"
    );
    assert_eq!(
        masked(&json()),
        r#"{"apiVersion":"v1","data":"[MASKED_SECRET_DATA]","kind":"Secret","metadata":{"name":"db"}}"#
    );
    let both = format!(
        "{}---\n{CONFIG_MAP}---\n{}",
        secret(),
        secret().replace("data:", "stringData:")
    );
    let masked = masked(&both);
    assert!(masked.contains(CONFIG_MAP), "{masked}");
    assert_eq!(masked.matches(PLACEHOLDER).count(), 2);
    assert_eq!(
        masker(&[]).text(&both).counts.iter().collect::<Vec<_>>(),
        [("kubernetes_secret", 2)]
    );
}

#[test]
fn config_maps_and_other_kinds_stay_as_they_are() {
    for text in [
        CONFIG_MAP.to_owned(),
        format!("{CONFIG_MAP}---\n{CONFIG_MAP}"),
        r#"{"apiVersion":"v1","data":{"host":"db.example.org"},"kind":"ConfigMap"}"#.to_owned(),
        "kind: SecretStore\ndata:\n  a: b\n".to_owned(),
        "kind: ExternalSecret\nspec:\n  data:\n  - secretKey: x\n".to_owned(),
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: empty\n".to_owned(),
        "apiVersion: v1\nkind: Secret\ndata: {}\n".to_owned(),
        "env:\n- name: X\n  valueFrom:\n    secretKeyRef:\n      name: db\n      key: password\n".to_owned(),
    ] {
        assert_eq!(masked(&text), text);
    }
}

#[test]
fn lists_hide_their_secrets_and_only_those() {
    let indented = |text: &str| -> String {
        let lines = text.lines().map(|line| format!("  {line}\n"));
        lines.collect::<String>().replacen("  ", "- ", 1)
    };
    let list = format!(
        "apiVersion: v1\nitems:\n{}{}kind: List\n",
        indented(&secret()),
        indented(CONFIG_MAP)
    );
    let masked_list = masked(&list);
    assert!(masked_list.contains("host: db.example.org"), "{masked_list}");
    leaks_nothing("a list", &list);
    let nameless = secret().replace("kind: Secret\n", "");
    leaks_nothing(
        "a list of Secrets whose items do not say so",
        &format!("apiVersion: v1\nitems:\n{}kind: SecretList\n", indented(&nameless)),
    );
    let item = json().replace(r#""kind":"Secret","#, "");
    leaks_nothing(
        "the same in JSON",
        &format!(r#"{{"kind":"SecretList","items":[{item},{item}]}}"#),
    );
    let map = r#"{"kind":"ConfigMap","data":{"host":"db.example.org"}}"#;
    let list = format!(r#"{{"items":[{},{map}],"kind":"List"}}"#, json());
    assert!(masked(&list).contains(map));
    leaks_nothing("a list in JSON", &list);
}

#[test]
fn what_was_last_applied_is_hidden_too() {
    let quoted = serde_json::to_string(&json()).unwrap();
    let twice = serde_json::to_string(&quoted).unwrap();
    let key = "kubectl.kubernetes.io/last-applied-configuration";
    for (what, text) in [
        (
            "a block",
            format!("metadata:\n  annotations:\n    {key}: |\n      {}\n", json()),
        ),
        (
            "single quotes",
            format!("metadata:\n  annotations:\n    {key}: '{}'\n", json()),
        ),
        (
            "double quotes",
            format!("metadata:\n  annotations:\n    {key}: {quoted}\n"),
        ),
        (
            "JSON",
            format!(r#"{{"metadata":{{"annotations":{{"{key}":{quoted}}}}}}}"#),
        ),
        ("quoted twice", format!("the log says {twice} and more")),
    ] {
        leaks_nothing(what, &text);
        let full = secret().replace("metadata:\n", &text);
        leaks_nothing(what, &full);
    }
    let text = format!(r#"{{"metadata":{{"annotations":{{"{key}":{quoted}}}}}}}"#);
    let value: serde_json::Value = serde_json::from_str(&masked(&text)).unwrap();
    let inner = value["metadata"]["annotations"][key].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(inner).unwrap()["data"],
        PLACEHOLDER
    );
}

#[test]
fn broken_cut_and_embedded_manifests_leak_nothing() {
    let yaml = secret();
    let json = json();
    let pretty = serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(&json).unwrap()).unwrap();
    let each_line = |before: &str| yaml.lines().map(|line| format!("{before}{line}\n")).collect::<String>();
    let cut = |text: &str, at: &str| text[..text.find(at).unwrap() + at.len()].to_owned();
    for (what, text) in [
        (
            "prose around it",
            format!("Here is the secret:\n\n{yaml}\nThat was it."),
        ),
        ("a fence around it", format!("```yaml\n{yaml}```\n")),
        ("prose before JSON", format!("the answer is {json} as you see")),
        ("a stray quote before JSON", format!("he said \"look: {json}")),
        ("a stray brace before JSON", format!("{{oops {json}")),
        ("a broken document before it", format!("a: [b\n---\n{yaml}")),
        ("a broken document after it", format!("{yaml}---\n\t: {{]\n")),
        ("a broken line in it", yaml.replace("metadata:", "metadata\n  : [")),
        ("cut in the section", cut(&yaml, "user: cGxh")),
        ("cut after the kind", cut(&yaml, "kind: Secret")),
        ("cut in the first value", cut(&yaml, "password: aHVudGVyMmh1")),
        ("JSON cut in the section", cut(&json, r#""user":"cGxhaW4t"#)),
        ("JSON cut after the kind", cut(&json, r#""kind":"Secret""#)),
        ("pretty JSON", pretty.clone()),
        ("pretty JSON cut", cut(&pretty, "\"user\": \"cGxhaW")),
        (
            "the kind first",
            "kind: Secret\napiVersion: v1\nstringData:\n  p: hunter2hunter2\n".to_owned(),
        ),
        (
            "the kind first, cut",
            "kind: Secret\nstringData:\n  p: hunter2hunter".to_owned(),
        ),
        (
            "quoted keys",
            yaml.replace("data:", "\"data\":")
                .replace("kind: Secret", "'kind': \"Secret\""),
        ),
        (
            "a comment after the kind",
            yaml.replace("kind: Secret", "kind: Secret # yes"),
        ),
        ("Windows line ends", yaml.replace('\n', "\r\n")),
        (
            "flow style",
            format!("{{apiVersion: v1, kind: Secret, data: {{password: {PASSWORD}}}}}"),
        ),
        (
            "flow style in a block",
            format!("kind: Secret\ndata: {{password: {PASSWORD}, user: {OTHER}}}\n"),
        ),
        (
            "flow style over lines",
            format!("kind: Secret\ndata: {{\n  password: {PASSWORD}\n}}\ntype: x\n"),
        ),
        ("a difference", each_line("+")),
        ("a removal", each_line("-")),
        ("a quotation", each_line("> ")),
        ("a log", each_line("2026-08-01T12:00:00Z INFO ")),
        ("data too far in", yaml.replace("\ndata:", "\n  data:")),
        ("the kind too far in", yaml.replace("kind:", "   kind:")),
        (
            "a block value",
            format!("kind: Secret\nstringData:\n  p: |\n    {OTHER}\n\n    hunter2hunter2\ntype: x\n"),
        ),
        ("a comma missing", json.replace("},\"kind\"", "}\"kind\"")),
        ("a quote missing", json.replace("\"password\":\"", "\"password\":")),
        (
            "a brace missing",
            json.replace("\"}},\"kind\"", "\"},\"kind\"")
                .replace("\"},\"kind\"", "\",\"kind\""),
        ),
        ("two in one line", format!("{json}{json}")),
        (
            "in a JSON text",
            serde_json::to_string(&serde_json::json!({"output": yaml, "more": [json]})).unwrap(),
        ),
    ] {
        leaks_nothing(what, &text);
    }
}

#[test]
fn structured_manifests_are_hidden_by_their_structure() {
    let mut value: serde_json::Value = serde_json::from_str(&json()).unwrap();
    let mut list =
        serde_json::json!({"kind": "SecretList", "items": [{"data": {"p": PASSWORD}}], "other": value.clone()});
    assert_eq!(masker(&[]).value(&mut value).total(), 1);
    assert_eq!(value["data"], PLACEHOLDER);
    assert_eq!(masker(&[]).value(&mut list).total(), 2);
    assert_eq!(list["items"][0]["data"], PLACEHOLDER);
    let mut map = serde_json::json!({"kind": "ConfigMap", "data": {"host": "db"}});
    assert_eq!(masker(&[]).value(&mut map).total(), 0);
}

#[test]
fn hostile_manifests_take_no_longer_than_others() {
    let started = std::time::SystemTime::now();
    for part in [
        "kind: Secret\n",
        "data:\n",
        "kind: Secret\ndata:\n",
        "{\"kind\":\"Secret\"",
        "INFO kind: Secret data: x\n",
        "{\"data\":{",
        "apiVersion: v1\n",
        "- kind: Secret\n",
        " kind: Secret\n  kind: Secret\n",
        "\\\"kind\\\":\\\"Secret\\\"{",
    ] {
        let text = format!(
            "apiVersion: v1\ndata: x\nkind: Secret\n{}",
            part.repeat(200_000 / part.len())
        );
        masked(&text);
    }
    let took = started.elapsed().unwrap();
    assert!(took.as_secs() < 20, "{took:?}");
}

#[test]
fn a_key_or_value_that_only_resembles_the_kind_makes_no_secret() {
    for text in [
        r#"{"x-kind":"Secret","data":{"a":"b"}}"#,
        r#"{"n":[{"kind":"Secret-like","data":{"a":"b"}}]}"#,
        r#"{"items":[{"§kind":"Secret","data":{"a":"b"}}],"n":1}"#,
    ] {
        assert_eq!(masked(text), text);
    }
}
