//! Every field that is in effect changes the resolved config when it is set to something else than its default.

use serde_json::{Map, Value as Json, json};

use super::*;
use crate::field::{Effect, Field, Section, ValueKind};
use pegboard_mask::Masker;

/// Fields whose effect is to refuse servers.
const REFUSING: &[&str] = &["transports", "servers.x.transports"];

/// One step into a config: a key of a table, or the first element of a list.
#[derive(Clone, Copy)]
enum Step {
    Key(&'static str),
    First,
}

/// A field that is in effect: its path, its section, the way to it, and the field.
type Place = (String, &'static str, Vec<Step>, &'static Field);

/// The fields that are in effect, each with its path and its section.
pub(super) fn fields_in_effect() -> Vec<(String, &'static str, &'static Field)> {
    let places = places().into_iter();
    places.map(|(path, section, _, field)| (path, section, field)).collect()
}

fn places() -> Vec<Place> {
    let mut places = Vec::new();
    collect(fields::TOP, &mut Vec::new(), &mut places);
    let mut server = vec![Step::Key("servers"), Step::Key("x")];
    collect(fields::SERVER, &mut server, &mut places);
    places
}

fn collect(section: &'static Section, at: &mut Vec<Step>, places: &mut Vec<Place>) {
    for field in section.fields().filter(|field| field.effect == Effect::Now) {
        at.push(Step::Key(field.name));
        let names = at.iter().filter_map(|step| match step {
            Step::Key(name) => Some(*name),
            Step::First => None,
        });
        // A table alone means nothing; its fields do.
        if !is_table(&field.kind) {
            places.push((names.collect::<Vec<_>>().join("."), section.name, at.clone(), field));
        }
        descend(&field.kind, at, places);
        at.pop();
    }
}

fn is_table(kind: &ValueKind) -> bool {
    match kind {
        ValueKind::Table(_) => true,
        ValueKind::List(kind) | ValueKind::Map(kind) => is_table(kind),
        _ => false,
    }
}

fn descend(kind: &ValueKind, at: &mut Vec<Step>, places: &mut Vec<Place>) {
    let inside = |step, kind: &ValueKind, at: &mut Vec<Step>, places: &mut Vec<_>| {
        at.push(step);
        descend(kind, at, places);
        at.pop();
    };
    match kind {
        ValueKind::Table(section) => collect(section, at, places),
        ValueKind::Map(kind) => inside(Step::Key("t"), kind, at, places),
        ValueKind::List(kind) => inside(Step::First, kind, at, places),
        ValueKind::Either(kinds) => kinds.iter().for_each(|kind| descend(kind, at, places)),
        _ => {}
    }
}

/// Values that a kind accepts, so many that one of them is not the default.
fn candidates(kind: &ValueKind) -> Vec<Json> {
    match kind {
        ValueKind::Bool => vec![true.into(), false.into()],
        ValueKind::Text | ValueKind::Secret => ["zz", "https://zz.example/v1", "ZONE"].map(Json::from).into(),
        ValueKind::Count { min, max } => vec![(*min).into(), (min + 1).into(), (*max).into()],
        ValueKind::Duration { .. } => vec!["7s".into(), "90s".into(), "45m".into()],
        ValueKind::Size { .. } => vec!["20MiB".into(), "17MiB".into()],
        ValueKind::Word(words) => words.iter().map(|word| word.name.into()).collect(),
        ValueKind::List(kind) => candidates(kind).into_iter().map(|one| json!([one])).collect(),
        ValueKind::Map(kind) => candidates(kind).into_iter().map(|one| json!({"K": one})).collect(),
        ValueKind::Table(_) => vec![json!({})],
        ValueKind::Either(kinds) => kinds.iter().flat_map(candidates).collect(),
        ValueKind::Any => vec!["object".into()],
    }
}

/// What a field needs beside it to have an effect.
fn companions(path: &str) -> Json {
    let server = match path.strip_prefix("servers.x.") {
        Some("auth.password") => json!({"auth": {"user": "u"}}),
        Some("auth.header") => json!({"auth": {"api_key": "k"}}),
        Some("auth") => json!({"auth_type": "bearer", "bearer_token": "t"}),
        Some("auth.type" | "auth_type") => json!({"auth": {"bearer": "t"}}),
        Some("headers_helper_ttl") => json!({"headers_helper": "a"}),
        Some(path) if path.starts_with("auth.oauth.") || path.starts_with("oauth.") => {
            let (_, field) = path.split_once("oauth.").unwrap_or_default();
            let beside = beside_in_oauth(field);
            match path.starts_with("auth.") {
                true => json!({"auth": {"oauth": beside}}),
                false => json!({"oauth": beside}),
            }
        }
        Some(path) if path.starts_with("auth.") => {
            let (_, field) = path.split_once('.').unwrap_or_default();
            json!({"auth": beside_in_oauth(field)})
        }
        Some("tls.cert") => json!({"tls": {"key": "k"}}),
        Some("tls.key") => json!({"tls": {"cert": "k"}}),
        Some("tls.server_id") => json!({"tls": {"ca": "ca.pem"}}),
        Some("allow_loader_env") => json!({"env": {"LD_PRELOAD": "x"}}),
        Some("summarise.model" | "summarise.api_key") => json!({"summarise": {"url": "https://m.example/v1"}}),
        Some("masking.custom.replacement" | "masking.custom.description") => {
            json!({"masking": {"custom": [{"pattern": "x"}]}})
        }
        _ => json!({}),
    };
    let token = || json!({"serve": {"tokens": {"t": {"sha256": "1".repeat(64)}}}});
    let top = match path {
        "serve.tokens.t.view" => merged(token(), json!({"views": {"zz": {}}})),
        "serve.tokens.t.rate" | "serve.tokens.t.concurrent" | "serve.tokens.t.expires" | "serve.tokens.t.scopes" => {
            token()
        }
        path if path.starts_with("serve.oauth") => oauth(path),
        "serve.tls.cert" => json!({"serve": {"tls": {"key": "k"}}}),
        "serve.tls.key" => json!({"serve": {"tls": {"cert": "k"}}}),
        "audit.required" | "audit.max_size" | "audit.max_files" => json!({"audit": {"file": "calls.jsonl"}}),
        "summarise.model" | "summarise.api_key" => json!({"summarise": {"url": "https://m.example/v1"}}),
        "masking.custom.replacement" | "masking.custom.description" => {
            json!({"masking": {"custom": [{"pattern": "x"}]}})
        }
        _ => json!({}),
    };
    merged(json!({"servers": {"x": server}}), top)
}

/// The settings of an authorization server, with what a field of them needs beside it.
fn oauth(path: &str) -> Json {
    let mut oauth = json!({"issuer": "https://base.example", "audience": "base", "rules": [{}]});
    match path.strip_prefix("serve.oauth.") {
        Some("rules.has") => oauth["rules"] = json!([{"claim": "base"}]),
        Some(path) if path.starts_with("introspection") => {
            oauth["introspection"] =
                json!({"url": "https://base.example/i", "client_id": "base", "client_secret": "base"});
        }
        _ => {}
    }
    json!({"views": {"zz": {}}, "serve": {"oauth": oauth}})
}

/// What a field of `oauth` needs beside it.
fn beside_in_oauth(field: &str) -> Json {
    match field {
        "client_secret" | "client_secret_file" | "private_key" | "private_key_file" => json!({"client_id": "c"}),
        "grant" => json!({"client_id": "c", "client_secret": "s"}),
        "key_id" | "algorithm" => json!({"client_id": "c", "private_key": PEM}),
        "subject_token" | "subject_token_file" | "subject_token_type" | "requested_token_type" => {
            json!({"grant": "token_exchange", "issuer": "https://base.example"})
        }
        "identity_provider.token_url" | "assertion" | "assertion_file" => {
            json!({"grant": "jwt_bearer", "issuer": "https://base.example"})
        }
        "token_url" | "authorization_url" => json!({"issuer": "https://base.example"}),
        "identity_provider.client_id" | "identity_provider.client_secret" | "identity_provider.client_secret_file" => {
            json!({"grant": "jwt_bearer", "identity_provider": {"token_url": "https://idp.example/t"}})
        }
        _ => json!({}),
    }
}

const PEM: &str = "-----BEGIN PRIVATE KEY-----\nzz\n-----END PRIVATE KEY-----";

fn merged(mut base: Json, over: Json) -> Json {
    match (&mut base, over) {
        (Json::Object(base), Json::Object(over)) => {
            for (key, value) in over {
                let old = base.remove(&key).unwrap_or(Json::Null);
                base.insert(key, merged(old, value));
            }
        }
        (Json::Array(base), Json::Array(over)) if base.len() == over.len() => {
            for (old, new) in base.iter_mut().zip(over) {
                *old = merged(old.take(), new);
            }
        }
        (base, over) => *base = over,
    }
    base
}

/// A config with one value at a place.
fn placed(at: &[Step], value: Json) -> Json {
    at.iter().rev().fold(value, |value, step| match step {
        Step::Key(name) => Json::Object(Map::from_iter([((*name).to_owned(), value)])),
        Step::First => json!([value]),
    })
}

fn load(config: &Json) -> Loaded {
    Config::from_text(&config.to_string(), Format::Json, &env())
}

#[test]
#[cfg_attr(not(feature = "oauth"), ignore = "the settings of sign-in have no effect without it")]
fn every_field_in_effect_changes_the_resolved_config() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.env");
    std::fs::write(&file, "A=1\n").unwrap();
    let key = folder.path().join("key.pem");
    std::fs::write(&key, PEM).unwrap();
    let group = Masker::group_names().next().unwrap();
    let pattern = Masker::pattern_names().next().unwrap();
    let bases = [json!({"command": "a"}), json!({"url": "https://base.example/mcp"})];
    let mut idle = Vec::new();
    for (path, _, at, field) in places() {
        let mut values = candidates(&field.kind);
        values.extend(match path.rsplit('.').next() {
            Some("env_file" | "client_secret_file") => Some(json!(file)),
            Some("private_key_file") => Some(json!(key)),
            Some("private_key") => Some(json!(PEM)),
            Some("redirect_uri") => Some(json!("http://localhost:99/x")),
            Some("server_id") => Some(json!("spiffe://zz.example/zz")),
            Some("callback_host") => Some(json!("localhost")),
            Some("callback_path") => Some(json!("/zz")),
            Some("groups") => Some(json!([group])),
            Some("rate") => Some(json!("60/min")),
            Some("to") => Some(json!("stdout")),
            Some("ratio") => Some(json!("0.5")),
            Some("sha256") => Some(json!("0".repeat(64))),
            Some("state_key" | "previous_state_key") => Some(json!("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8=")),
            Some("store") => Some(json!("file:/zz")),
            Some("address") if path.contains("replicas") => Some(json!("a.example:7338")),
            Some("expires") => Some(json!("2900-01-01T00:00:00Z")),
            Some("listen") if path.contains("replicas") => Some(json!("127.0.0.1:8000")),
            Some("listen") => Some(json!(["127.0.0.1:8000"])),
            Some("origins") => Some(json!(["https://zz.example"])),
            Some("patterns") => Some(json!([pattern])),
            _ => None,
        });
        let has_effect = bases.iter().any(|base| {
            let base = merged(json!({"servers": {"x": base}}), companions(&path));
            // The table around the field is written in both, since an empty one may mean something too.
            let base = match at.split_last() {
                Some((_, around)) if !around.is_empty() => {
                    merged(base.clone(), merged(placed(around, json!({})), base))
                }
                _ => base,
            };
            let before = load(&base).config;
            values.iter().any(|value| {
                let after = load(&merged(base.clone(), placed(&at, value.clone())));
                let is_accepted = after.errors().count() == 0 || REFUSING.contains(&path.as_str());
                is_accepted && after.config != before
            })
        });
        if !has_effect {
            idle.push(path);
        }
    }
    assert!(idle.is_empty(), "without effect: {idle:#?}");
}
