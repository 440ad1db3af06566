//! The metadata documents of protected resources (RFC 9728) and authorization servers (RFC 8414, OpenID Connect Discovery).

use serde_json::{Map, Value};
use url::Url;

use super::{
    challenge::{DPOP_ALG, add_scopes},
    error::OAuthError,
};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// What a server says about itself as a protected resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResourceMetadata {
    /// The resource identifier, exactly as published: authorization servers compare it as a string.
    pub(super) resource: String,
    /// The issuers of its authorization servers, exactly as published.
    pub(super) authorization_servers: Vec<String>,
    pub(super) scopes: Option<Vec<String>>,
    pub(super) dpop: ResourceDpop,
}

/// What a server says about tokens that are bound to a key (RFC 9449).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ResourceDpop {
    #[default]
    NotSaid,
    /// It can check the proofs of this program.
    Offered,
    /// It takes no other tokens.
    Required,
}

impl ResourceDpop {
    fn read(document: &Map<String, Value>) -> Self {
        let is_required = document.get("dpop_bound_access_tokens_required") == Some(&Value::Bool(true));
        let algs = texts(document, "dpop_signing_alg_values_supported").unwrap_or_default();
        match algs.iter().any(|alg| alg == DPOP_ALG) {
            _ if is_required => Self::Required,
            true => Self::Offered,
            false => Self::NotSaid,
        }
    }
}

impl ResourceMetadata {
    /// Reads a document; `None` if it is none.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let document: Map<String, Value> = serde_json::from_slice(body).ok()?;
        Some(Self {
            resource: text(&document, "resource")?,
            authorization_servers: texts(&document, "authorization_servers").unwrap_or_default(),
            scopes: scope_list(&document),
            dpop: ResourceDpop::read(&document),
        })
    }

    /// Whether the document at `found_at` is for the server at `server`: the same origin, and the path of the server. A path that contains the
    /// server's counts only in a well-known document of that origin: a part of a host must not ask for tokens for all of it.
    pub(super) fn is_for(&self, server: &Url, found_at: &Url) -> bool {
        let Ok(resource) = Url::parse(&self.resource) else {
            return false;
        };
        if resource.origin() != server.origin() || resource.fragment().is_some() || !resource.username().is_empty() {
            return false;
        }
        let (whole, part) = (
            resource.path().trim_end_matches('/'),
            server.path().trim_end_matches('/'),
        );
        let is_within = part.strip_prefix(whole).is_some_and(|rest| rest.starts_with('/'));
        let is_well_known = found_at.origin() == server.origin() && found_at.path().starts_with(WELL_KNOWN);
        whole == part || (is_within && is_well_known)
    }
}

/// The issuer that a document at the root of a server states, if it has the origin of that server.
pub(super) fn issuer_of_root(body: &[u8], origin: &Url) -> Option<String> {
    let document: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let published = text(&document, "issuer")?;
    let url = Url::parse(&published).ok()?;
    (url.origin() == origin.origin()).then_some(published)
}

/// What an authorization server says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerMetadata {
    /// The issuer, exactly as published.
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Option<Url>,
    pub(super) token_endpoint: Url,
    pub(super) registration_endpoint: Option<Url>,
    pub(super) revocation_endpoint: Option<Url>,
    pub(super) scopes: Option<Vec<String>>,
    /// The methods of PKCE; `None` if the metadata does not name any.
    pub(super) pkce_methods: Option<Vec<String>>,
    pub(super) auth_methods: Option<Vec<String>>,
    pub(super) signing_algs: Option<Vec<String>>,
    /// The algorithms of proofs of possession (RFC 9449); `None` if the metadata does not name any.
    pub(super) dpop_algs: Option<Vec<String>>,
    /// Whether a client id may be the URL of a metadata document.
    pub(super) takes_client_documents: bool,
    /// Whether its redirects name the issuer (RFC 9207).
    pub(super) sends_iss: bool,
}

impl ServerMetadata {
    /// Reads a document that was found for `issuer`. Its endpoints must not be used if it is for another issuer.
    pub(super) fn parse(body: &[u8], issuer: &str) -> Result<Option<Self>, OAuthError> {
        let Ok(document) = serde_json::from_slice::<Map<String, Value>>(body) else {
            return Ok(None);
        };
        let Some(published) = text(&document, "issuer") else {
            return Ok(None);
        };
        if !is_same_issuer(&published, issuer) {
            return Err(OAuthError::Discovery(format!(
                "the metadata of the authorization server {issuer} is for another issuer, {}, so it must not be used",
                clip(&published)
            )));
        }
        let endpoint = |name: &str| text(&document, name).and_then(|url| Url::parse(&url).ok());
        let Some(token_endpoint) = endpoint("token_endpoint") else {
            return Ok(None);
        };
        let flag = |name: &str| document.get(name).and_then(Value::as_bool).unwrap_or(false);
        Ok(Some(Self {
            authorization_endpoint: endpoint("authorization_endpoint"),
            token_endpoint,
            registration_endpoint: endpoint("registration_endpoint"),
            revocation_endpoint: endpoint("revocation_endpoint"),
            scopes: scope_list(&document),
            pkce_methods: texts(&document, "code_challenge_methods_supported"),
            auth_methods: texts(&document, "token_endpoint_auth_methods_supported"),
            signing_algs: texts(&document, "token_endpoint_auth_signing_alg_values_supported"),
            dpop_algs: texts(&document, "dpop_signing_alg_values_supported"),
            takes_client_documents: flag("client_id_metadata_document_supported"),
            sends_iss: flag("authorization_response_iss_parameter_supported"),
            issuer: published,
        }))
    }

    /// A server without metadata, of which only the endpoints are known.
    pub(super) fn new(issuer: String, authorization_endpoint: Option<Url>, token_endpoint: Url) -> Self {
        Self {
            issuer,
            authorization_endpoint,
            token_endpoint,
            registration_endpoint: None,
            revocation_endpoint: None,
            scopes: None,
            pkce_methods: Some(vec!["S256".to_owned()]),
            auth_methods: None,
            signing_algs: None,
            dpop_algs: None,
            takes_client_documents: false,
            sends_iss: false,
        }
    }

    #[cfg(test)]
    pub(super) fn at_endpoints(issuer: &str, authorize: &str, token: &str) -> Self {
        Self::new(
            issuer.to_owned(),
            Some(authorize.parse().unwrap()),
            token.parse().unwrap(),
        )
    }
}

/// Whether two issuers have the same metadata URL. They may differ in the slash of an empty path, which many servers add on one side only; all
/// other differences count.
fn is_same_issuer(a: &str, b: &str) -> bool {
    a == b || a.trim_end_matches('/') == b.trim_end_matches('/')
}

/// A server's text, short enough for an error.
pub(super) fn clip(text: &str) -> String {
    let end = text.floor_char_boundary(200);
    text[..end].escape_debug().to_string()
}

fn text(document: &Map<String, Value>, name: &str) -> Option<String> {
    document.get(name)?.as_str().map(str::to_owned)
}

fn texts(document: &Map<String, Value>, name: &str) -> Option<Vec<String>> {
    let values = document.get(name)?.as_array()?;
    Some(
        values
            .iter()
            .filter_map(Value::as_str)
            .take(256)
            .map(str::to_owned)
            .collect(),
    )
}

fn scope_list(document: &Map<String, Value>) -> Option<Vec<String>> {
    let listed = texts(document, "scopes_supported")?;
    let mut scopes = Vec::new();
    add_scopes(&mut scopes, listed.iter().map(String::as_str));
    Some(scopes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_the_server_or_in_a_well_known_document_a_path_above_it() {
        let check = |resource: &str, server: &str| {
            let metadata = ResourceMetadata {
                resource: resource.to_owned(),
                authorization_servers: Vec::new(),
                scopes: None,
                dpop: ResourceDpop::NotSaid,
            };
            let at = |place: &str| Url::parse(&format!("https://mcp.example{place}")).unwrap();
            let server = Url::parse(server).unwrap();
            (
                metadata.is_for(&server, &at("/.well-known/oauth-protected-resource/a/mcp")),
                metadata.is_for(&server, &at("/a/metadata")),
            )
        };
        for (resource, is_exact) in [
            ("https://mcp.example/a/mcp", true),
            ("https://mcp.example/a/mcp/", true),
            ("https://mcp.example/a/", false),
            ("https://mcp.example/a", false),
            ("https://mcp.example", false),
            ("https://mcp.example:443/", false),
        ] {
            assert_eq!(
                check(resource, "https://mcp.example/a/mcp"),
                (true, is_exact),
                "{resource}"
            );
        }
        for resource in [
            "https://evil.example/a/mcp",
            "http://mcp.example/a/mcp",
            "https://mcp.example:8443/a/mcp",
            "https://mcp.example/a/mcp/more",
            "https://mcp.example/a/mc",
            "https://mcp.example/b",
            "https://mcp.example/a/mcp#part",
            "https://me@mcp.example/a/mcp",
            "urn:x",
            "",
        ] {
            assert_eq!(
                check(resource, "https://mcp.example/a/mcp"),
                (false, false),
                "{resource}"
            );
        }
    }

    #[test]
    fn metadata_of_another_issuer_is_an_error_and_of_none_is_none() {
        let document = |issuer: &str| format!(r#"{{"issuer":"{issuer}","token_endpoint":"https://as.example/t"}}"#);
        let parse = |body: &str| ServerMetadata::parse(body.as_bytes(), "https://as.example/tenant");
        assert!(parse(&document("https://as.example/tenant")).unwrap().is_some());
        assert!(parse(&document("https://as.example/tenant/")).unwrap().is_some());
        for other in [
            "https://as.example",
            "https://evil.example/tenant",
            "https://AS.example/tenant",
            "",
        ] {
            assert!(parse(&document(other)).is_err(), "{other}");
        }
        for body in ["", "[]", "{}", "<html>", r#"{"issuer":"https://as.example/tenant"}"#] {
            assert_eq!(parse(body).unwrap(), None, "{body}");
        }
    }
}
