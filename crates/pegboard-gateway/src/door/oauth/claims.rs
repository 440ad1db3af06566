//! [`Claims`]: what an access token, or the introspection of one, says of its holder.

use std::{
    borrow::Cow,
    time::{Duration, SystemTime},
};

use pegboard::credential::CallerRights;
use ring::digest;
use serde_json::{Map, Value};

use super::unique_names::UniqueNames;

/// Claims of ID tokens that access tokens do not have.
const OF_ID_TOKENS: [&str; 3] = ["nonce", "at_hash", "c_hash"];
/// The values of `typ` and `token_use` for ID tokens, and for other tokens that some servers make besides access tokens.
const ID: [&str; 2] = ["id", "id_token"];
const OTHERS: [&str; 4] = ["refresh", "refresh_token", "offline", "logout"];

/// Claims that differ between two tokens of one client with the same rights: times and numbers, and what Entra ID adds to each token.
const OF_ONE_TOKEN: [&str; 9] = ["active", "aio", "auth_time", "exp", "iat", "jti", "nbf", "rh", "uti"];

/// The claims of a token.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Claims {
    fields: Map<String, Value>,
    /// Whether the authorization server was asked about the token. Then it need not say when it expires.
    pub(super) is_introspected: bool,
    /// Whether the header of the JWT says that it is an access token.
    is_access_token: bool,
}

impl Claims {
    /// The claims of a JWT; `None` if they are no JSON object, or one is there twice: others might take the other one.
    pub(super) fn parse(json: &[u8], is_access_token: bool) -> Option<Self> {
        serde_json::from_slice::<UniqueNames>(json).ok()?;
        let fields = serde_json::from_slice(json).ok()?;
        Some(Self {
            fields,
            is_introspected: false,
            is_access_token,
        })
    }

    /// The claims in the response of an introspection endpoint, which may leave out the issuer.
    pub(super) fn from_introspection(mut fields: Map<String, Value>, issuer: &str) -> Self {
        fields.entry("iss").or_insert_with(|| issuer.into());
        Self {
            fields,
            is_introspected: true,
            is_access_token: false,
        }
    }

    /// The claim that shows a token to be something else than an access token, or an ID token if those will do.
    pub(super) fn other_kind(&self, takes_id_tokens: bool) -> Option<&'static str> {
        let is = |kinds: &[&str], value: &str| kinds.iter().any(|kind| kind.eq_ignore_ascii_case(value));
        let is_other = |value: &str| is(&OTHERS, value) || !takes_id_tokens && is(&ID, value);
        let names_other = |claim: &&str| self.text(claim).is_some_and(is_other);
        let is_certain = takes_id_tokens || self.is_access_token || self.is_introspected;
        let is_of_id_token = |claim: &&str| !is_certain && self.fields.contains_key(*claim);
        let kind = ["token_use", "typ"].into_iter().find(names_other);
        kind.or_else(|| OF_ID_TOKENS.into_iter().find(is_of_id_token))
    }

    /// Whether the token may be used only with a proof of possession (RFC 7800): of a certificate, or of a key (DPoP).
    pub(super) fn is_bound(&self) -> bool {
        match self.fields.get("cnf") {
            None => false,
            // Some servers answer with all fields that they know.
            Some(Value::Null) => !self.is_introspected,
            Some(_) => true,
        }
    }

    /// Tells it apart from tokens with other rights. Any claim may be one, so all count but those that are different in every token.
    pub(super) fn rights(&self) -> CallerRights {
        let mut lasting: Vec<(&String, &Value)> = self.fields.iter().collect();
        lasting.retain(|(name, _)| !OF_ONE_TOKEN.contains(&name.as_str()));
        lasting.sort_by_key(|(name, _)| *name);
        let mut digest = digest::Context::new(&digest::SHA256);
        for (name, value) in lasting {
            for text in [name.clone(), value.to_string()] {
                digest.update(&(text.len() as u64).to_le_bytes());
                digest.update(text.as_bytes());
            }
        }
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.finish().as_ref());
        CallerRights::new(bytes)
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
            false,
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
    fn tokens_that_differ_in_time_and_number_have_the_same_rights() {
        let rights = |json: &str| Claims::parse(json.as_bytes(), false).unwrap().rights();
        let token = rights(r#"{"sub":"ada","scope":"read","azp":"app","exp":10,"iat":1,"jti":"a"}"#);
        let newer = r#"{"jti":"b","iat":5,"exp":15,"nbf":5,"azp":"app","scope":"read","sub":"ada"}"#;
        assert_eq!(token, rights(newer));
        for other in [
            r#"{"sub":"ada","scope":"read write","azp":"app"}"#,
            r#"{"sub":"ada","scope":"read","azp":"other"}"#,
            r#"{"sub":"ada","scope":"read","azp":"app","acr":"2"}"#,
            r#"{"sub":"ada","scope":"read"}"#,
        ] {
            assert_ne!(token, rights(other), "{other}");
        }
    }

    #[test]
    fn a_time_is_a_number_of_seconds() {
        let claims = Claims::parse(br#"{"a":10,"b":10.5,"c":"10","d":-1,"e":1e300,"f":null}"#, false).unwrap();
        let at = |seconds| Ok(Some(SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds)));
        assert_eq!(claims.time("a"), at(10.0));
        assert_eq!(claims.time("b"), at(10.5));
        assert_eq!(claims.time("missing"), Ok(None));
        for wrong in ["c", "d", "e", "f"] {
            assert_eq!(claims.time(wrong), Err(()), "{wrong}");
        }
    }
}
