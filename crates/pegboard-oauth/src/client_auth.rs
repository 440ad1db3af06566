//! [`ClientAuth`]: how a client proves to the authorization server who it is.

use serde::{Deserialize, Serialize};

/// A method of client authentication at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClientAuth {
    /// A public client: it sends only its id.
    None,
    ClientSecretBasic,
    ClientSecretPost,
    PrivateKeyJwt,
}

impl ClientAuth {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        [
            Self::None,
            Self::ClientSecretBasic,
            Self::ClientSecretPost,
            Self::PrivateKeyJwt,
        ]
        .into_iter()
        .find(|auth| auth.as_str() == name)
    }

    /// Chooses a method for what the client has, among those that the authorization server supports; `None` if it does not say.
    pub(super) fn choose(has_key: bool, has_secret: bool, supported: Option<&[String]>) -> Self {
        let is_supported = |auth: Self| {
            supported.is_none_or(|names| names.is_empty() || names.iter().any(|name| name == auth.as_str()))
        };
        if has_key {
            return Self::PrivateKeyJwt;
        }
        if has_secret {
            for auth in [Self::ClientSecretBasic, Self::ClientSecretPost, Self::None] {
                if is_supported(auth) {
                    return auth;
                }
            }
            // Servers that support other methods of secrets (JWT with a shared key) usually take this one too.
            return Self::ClientSecretBasic;
        }
        Self::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_follows_what_the_client_has_and_the_server_supports() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let check = |has_secret, supported: Option<&[&str]>, expected| {
            let supported = supported.map(names);
            assert_eq!(ClientAuth::choose(false, has_secret, supported.as_deref()), expected);
        };
        check(true, None, ClientAuth::ClientSecretBasic);
        check(true, Some(&[]), ClientAuth::ClientSecretBasic);
        check(true, Some(&["client_secret_post"]), ClientAuth::ClientSecretPost);
        check(
            true,
            Some(&["client_secret_post", "client_secret_basic"]),
            ClientAuth::ClientSecretBasic,
        );
        check(true, Some(&["none"]), ClientAuth::None);
        check(true, Some(&["client_secret_jwt"]), ClientAuth::ClientSecretBasic);
        check(false, Some(&["client_secret_basic"]), ClientAuth::None);
        assert_eq!(ClientAuth::choose(true, true, None), ClientAuth::PrivateKeyJwt);
    }
}
