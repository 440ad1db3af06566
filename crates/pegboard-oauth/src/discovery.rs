//! Finds the authorization server of a server: protected-resource metadata (RFC 9728), then the metadata of the authorization server (RFC 8414 or
//! OpenID Connect Discovery), and for servers of 2025-03-26 the server's own root.

use url::Url;

use super::{
    account::{OAuthAccount, server_uri},
    challenge::Challenge,
    checked_http::{CheckedHttp, ConfiguredOrigins, HttpError, show},
    error::{OAuthError, RETRY_AFTER},
    metadata::{ResourceDpop, ResourceMetadata, ServerMetadata, clip, issuer_of_root},
    stored::StoredChallenge,
};

/// What a sign-in needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Discovered {
    /// The resource that tokens are requested for.
    pub(super) resource: String,
    /// The scopes that the resource lists.
    pub(super) resource_scopes: Option<Vec<String>>,
    /// What the resource says about tokens that are bound to a key.
    pub(super) resource_dpop: ResourceDpop,
    pub(super) server: ServerMetadata,
    /// Whether nothing names an authorization server, so that it is the server itself by the rules of 2025-03-26.
    pub(super) is_guessed: bool,
}

/// How a server answers a request without a token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Probed {
    pub(super) challenge: Challenge,
    /// Whether it answers without asking for one.
    pub(super) is_open: bool,
}

/// Finds the authorization server of an account. `resource_metadata` is the URL in the challenge with which the server refused a request.
pub(super) async fn discover(
    http: &CheckedHttp,
    account: &OAuthAccount,
    resource_metadata: Option<&str>,
) -> Result<Discovered, OAuthError> {
    let settings = &account.settings;
    let trust = ConfiguredOrigins::new(account);
    let own_uri = || server_uri(&account.url);
    if let Some(server) = configured_endpoints(account) {
        let resource = settings.resource.clone().unwrap_or_else(own_uri);
        return Ok(Discovered {
            resource,
            resource_scopes: None,
            resource_dpop: ResourceDpop::NotSaid,
            server,
            is_guessed: false,
        });
    }
    let resource = resource(http, &trust, account, resource_metadata).await?;
    let named = settings.issuer.clone();
    let listed = resource
        .as_ref()
        .and_then(|found| found.authorization_servers.first().cloned());
    let is_legacy = resource.is_none() && named.is_none();
    let issuer = named
        .or(listed)
        .unwrap_or_else(|| account.url.origin().ascii_serialization());
    let mut is_guessed = false;
    let found = match authorization_server(http, &trust, &issuer, is_legacy).await? {
        Some(server) => server,
        None if is_legacy => {
            is_guessed = true;
            default_endpoints(&account.url, issuer)?
        }
        None => {
            return Err(OAuthError::Discovery(format!(
                "the authorization server {} publishes no metadata",
                clip(&issuer)
            )));
        }
    };
    let published = resource.as_ref().map(|found| found.resource.clone());
    Ok(Discovered {
        resource: settings.resource.clone().or(published).unwrap_or_else(own_uri),
        resource_dpop: resource.as_ref().map(|found| found.dpop).unwrap_or_default(),
        resource_scopes: resource.and_then(|found| found.scopes),
        server: with_configured_endpoints(found, account),
        is_guessed,
    })
}

/// Finds the authorization server where the last refusal says it is. If that leads nowhere, the server is asked again: it may have moved since.
/// Returns with it what a sign-in has to ask for.
pub(super) async fn find(
    http: &CheckedHttp,
    account: &OAuthAccount,
    stored: Option<StoredChallenge>,
) -> Result<(StoredChallenge, Discovered), OAuthError> {
    let mut dead = None;
    if let Some(challenge) = stored {
        match discover(http, account, challenge.resource_metadata.as_deref()).await {
            Ok(found) => return Ok((challenge, found)),
            Err(error) if challenge.resource_metadata.is_none() => return Err(error),
            Err(error) => dead = Some((challenge, error)),
        }
    }
    // A server that does not answer may still have metadata, so a failure here is none of the sign-in.
    let probed = probe(http, account).await;
    let mut challenge: StoredChallenge = match &probed {
        Ok(probed) => probed.challenge.clone().into(),
        Err(_) => StoredChallenge::default(),
    };
    if let Some((wanted, error)) = dead {
        if challenge.resource_metadata == wanted.resource_metadata {
            return Err(error);
        }
        // What the refusal asked for is still wanted.
        challenge = StoredChallenge {
            resource_metadata: challenge.resource_metadata,
            ..wanted
        };
    }
    match (
        discover(http, account, challenge.resource_metadata.as_deref()).await,
        &probed,
    ) {
        (Ok(found), Ok(probed)) if probed.is_open && found.is_guessed => Err(OAuthError::NotNeeded),
        (Ok(found), _) => Ok((challenge, found)),
        (Err(error), Err(down)) if error.is_temporary() => Err(OAuthError::down(account, down)),
        (Err(error), _) => Err(error),
    }
}

/// Asks the server for a challenge, with a request without a token.
pub(super) async fn probe(http: &CheckedHttp, account: &OAuthAccount) -> Result<Probed, HttpError> {
    let response = http.probe(&ConfiguredOrigins::new(account), &account.url).await?;
    let challenge = response
        .challenge
        .as_deref()
        .filter(|_| matches!(response.status, 401 | 403));
    Ok(Probed {
        challenge: challenge.map(Challenge::parse).unwrap_or_default(),
        // A server with a handshake refuses the request for another reason.
        is_open: matches!(response.status, 200..=299 | 400 | 405 | 406),
    })
}

/// A server whose endpoints the config names. Nothing has to be found then.
fn configured_endpoints(account: &OAuthAccount) -> Option<ServerMetadata> {
    let settings = &account.settings;
    let token = settings.token_url.as_ref()?.expose().clone();
    let authorization = settings.authorization_url.as_ref().map(|url| url.expose().clone());
    if authorization.is_none() && settings.grant.needs_person() {
        return None;
    }
    let issuer = settings.issuer.clone();
    let issuer = issuer.unwrap_or_else(|| token.origin().ascii_serialization());
    Some(ServerMetadata::new(issuer, authorization, token))
}

fn with_configured_endpoints(mut server: ServerMetadata, account: &OAuthAccount) -> ServerMetadata {
    if let Some(url) = &account.settings.token_url {
        server.token_endpoint = url.expose().clone();
    }
    if let Some(url) = &account.settings.authorization_url {
        server.authorization_endpoint = Some(url.expose().clone());
    }
    server
}

/// Reads the metadata of the server as a protected resource; `None` if it has none.
async fn resource(
    http: &CheckedHttp,
    trust: &ConfiguredOrigins<'_>,
    account: &OAuthAccount,
    from_challenge: Option<&str>,
) -> Result<Option<ResourceMetadata>, OAuthError> {
    let mut candidates = Vec::new();
    if let Some(url) = from_challenge {
        let url = account.url.join(url).map_err(|_| {
            OAuthError::Discovery(format!(
                "the server names {} as its metadata, which is no URL",
                clip(url)
            ))
        })?;
        candidates.push(url);
    }
    candidates.push(well_known_url(
        &account.url,
        "oauth-protected-resource",
        WellKnownPosition::BeforePath,
    ));
    candidates.push(well_known_url(
        &root(&account.url),
        "oauth-protected-resource",
        WellKnownPosition::BeforePath,
    ));
    // The challenge may name one of the others.
    let mut seen = Vec::new();
    candidates.retain(|url| {
        !seen.contains(url) && {
            seen.push(url.clone());
            true
        }
    });
    let parse = |body: &[u8]| Ok(ResourceMetadata::parse(body));
    let Some((metadata, found_at)) = first(http, trust, &candidates, parse).await? else {
        return Ok(None);
    };
    let is_configured = account.settings.resource.as_ref() == Some(&metadata.resource);
    if !is_configured && !metadata.is_for(&account.url, &found_at) {
        return Err(OAuthError::Discovery(format!(
            "the metadata of the server is for another resource, {}, so it must not be used",
            clip(&metadata.resource)
        )));
    }
    Ok(Some(metadata))
}

/// Reads the metadata of the authorization server with this issuer; `None` if it has none. Of a legacy server only the origin is known, and its
/// issuer may have a path there.
async fn authorization_server(
    http: &CheckedHttp,
    trust: &ConfiguredOrigins<'_>,
    issuer: &str,
    is_legacy: bool,
) -> Result<Option<ServerMetadata>, OAuthError> {
    let url = Url::parse(issuer)
        .ok()
        .filter(|url| matches!(url.scheme(), "https" | "http") && url.query().is_none() && url.fragment().is_none());
    let Some(url) = url else {
        return Err(OAuthError::Discovery(format!(
            "{} is not the issuer of an authorization server",
            clip(issuer)
        )));
    };
    let mut candidates = vec![
        well_known_url(&url, "oauth-authorization-server", WellKnownPosition::BeforePath),
        well_known_url(&url, "openid-configuration", WellKnownPosition::BeforePath),
        well_known_url(&url, "openid-configuration", WellKnownPosition::AfterPath),
    ];
    candidates.dedup();
    let parse = |body: &[u8]| {
        let own = issuer_of_root(body, &url).filter(|_| is_legacy);
        ServerMetadata::parse(body, own.as_deref().unwrap_or(issuer))
    };
    Ok(first(http, trust, &candidates, parse).await?.map(|(found, _)| found))
}

/// The endpoints of a server of 2025-03-26 without metadata.
fn default_endpoints(server: &Url, issuer: String) -> Result<ServerMetadata, OAuthError> {
    let endpoint = |path: &str| {
        let joined = root(server).join(path);
        joined.map_err(|error| OAuthError::Discovery(format!("the server's URL has no root: {error}")))
    };
    let mut metadata = ServerMetadata::new(issuer, Some(endpoint("/authorize")?), endpoint("/token")?);
    metadata.registration_endpoint = Some(endpoint("/register")?);
    Ok(metadata)
}

/// Reads the first document that exists and is one, and returns it with its URL. A server that fails now may have one later, so its failure is not "none".
async fn first<T>(
    http: &CheckedHttp,
    trust: &ConfiguredOrigins<'_>,
    candidates: &[Url],
    parse: impl Fn(&[u8]) -> Result<Option<T>, OAuthError>,
) -> Result<Option<(T, Url)>, OAuthError> {
    let mut failure: Option<OAuthError> = None;
    for url in candidates {
        match http.get(trust, url).await {
            Ok(response) if response.is_success() => {
                if let Some(found) = parse(&response.body)? {
                    return Ok(Some((found, url.clone())));
                }
            }
            Ok(response) if response.is_temporary() => {
                failure = Some(OAuthError::Temporary {
                    reason: format!("{} answered with status {}", show(url), response.status),
                    retry_after: RETRY_AFTER,
                });
            }
            Ok(_) => {}
            // What does not answer at one path does not answer at the next.
            Err(error) => return Err(error.into()),
        }
    }
    match failure {
        Some(failure) => Err(failure),
        None => Ok(None),
    }
}

/// Where the well-known part of a URL is.
#[derive(Clone, Copy)]
enum WellKnownPosition {
    BeforePath,
    AfterPath,
}

fn well_known_url(url: &Url, name: &str, place: WellKnownPosition) -> Url {
    let path = url.path().trim_end_matches('/');
    let path = match place {
        WellKnownPosition::BeforePath => format!("/.well-known/{name}{path}"),
        WellKnownPosition::AfterPath => format!("{path}/.well-known/{name}"),
    };
    let mut url = root(url);
    url.set_path(&path);
    url
}

fn root(url: &Url) -> Url {
    let mut root = url.clone();
    root.set_path("/");
    root.set_query(None);
    root.set_fragment(None);
    let _ = root.set_username("");
    let _ = root.set_password(None);
    root
}

#[cfg(test)]
mod tests;
