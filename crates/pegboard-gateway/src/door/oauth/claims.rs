//! [`Claims`]: what an access token, or the introspection of one, says of its holder.

use std::{
    borrow::Cow,
    time::{Duration, SystemTime},
};

use serde_json::{Map, Value};

/// The claims of a token.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Claims {
    fields: Map<String, Value>,
    /// Whether the authorization server was asked about the token. Then it need not say when it expires.
    pub(super) is_introspected: bool,
}

impl Claims {
    pub(super) fn parse(json: &[u8]) -> Option<Self> {
        let fields = serde_json::from_slice(json).ok()?;
        Some(Self {
            fields,
            is_introspected: false,
        })
    }

    /// The claims in the response of an introspection endpoint, which may leave out the issuer.
    pub(super) fn of_introspection(mut fields: Map<String, Value>, issuer: &str) -> Self {
        fields.entry("iss").or_insert_with(|| issuer.into());
        Self {
            fields,
            is_introspected: true,
        }
    }

    /// A claim that is a text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Value::as_str)
    }

    /// A claim that is a time. `Err` means that it is something else.
    pub(super) fn time(&self, name: &str) -> Result<Option<SystemTime>, ()> {
        let Some(value) = self.fields.get(name) else {
            return Ok(None);
        };
        let seconds = value.as_f64().ok_or(())?;
        let since = Duration::try_from_secs_f64(seconds).map_err(|_| ())?;
        SystemTime::UNIX_EPOCH.checked_add(since).map(Some).ok_or(())
    }

    /// A claim by its name; dots lead into objects, unless the name itself has them.
    pub(super) fn find(&self, name: &str) -> Option<&Value> {
        if let Some(value) = self.fields.get(name) {
            return Some(value);
        }
        let mut parts = name.split('.');
        let first = self.fields.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    }

    /// The values of a claim: those of a list, the words of a scope, or the one that it is.
    pub(super) fn values(&self, name: &str) -> Vec<Cow<'_, str>> {
        match self.find(name) {
            Some(Value::Array(items)) => items.iter().filter_map(one).collect(),
            Some(Value::String(text)) if is_scope(name) => text.split_whitespace().map(Cow::from).collect(),
            Some(value) => one(value).into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// Returns `true` if the token has a scope, in either claim that servers use for it.
    pub(super) fn has_scope(&self, scope: &str) -> bool {
        ["scope", "scp"]
            .iter()
            .any(|claim| self.values(claim).iter().any(|own| own == scope))
    }
}

fn is_scope(name: &str) -> bool {
    matches!(name, "scope" | "scp")
}

/// A single value as a text.
fn one(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_in_lists_scopes_and_objects() {
        let claims = Claims::parse(
            br#"{"groups":["a","b c",7],"scope":"read  call","scp":["x"],"realm_access":{"roles":["ops"]},
                 "https://example.com/roles":["admin"],"a.b":"literal","a":{"b":"nested"},"name":"b c","no":null,"yes":true}"#,
        )
        .unwrap();
        for (name, expected) in [
            ("groups", &["a", "b c", "7"][..]),
            ("scope", &["read", "call"]),
            ("scp", &["x"]),
            ("realm_access.roles", &["ops"]),
            ("https://example.com/roles", &["admin"]),
            ("a.b", &["literal"]),
            ("name", &["b c"]),
            ("yes", &["true"]),
            ("no", &[]),
            ("realm_access", &[]),
            ("realm_access.x.y", &[]),
            ("missing", &[]),
        ] {
            assert_eq!(claims.values(name), expected, "{name}");
        }
        assert!(claims.has_scope("call") && claims.has_scope("x") && !claims.has_scope("rea"));
    }

    #[test]
    fn a_time_is_a_number_of_seconds() {
        let claims = Claims::parse(br#"{"a":10,"b":10.5,"c":"10","d":-1,"e":1e300,"f":null}"#).unwrap();
        let at = |seconds| Ok(Some(SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds)));
        assert_eq!(claims.time("a"), at(10.0));
        assert_eq!(claims.time("b"), at(10.5));
        assert_eq!(claims.time("missing"), Ok(None));
        for wrong in ["c", "d", "e", "f"] {
            assert_eq!(claims.time(wrong), Err(()), "{wrong}");
        }
    }
}
