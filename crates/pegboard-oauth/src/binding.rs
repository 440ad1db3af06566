//! [`Binding`]: whether the tokens of an account are bound to a key, and to which.

use std::sync::Arc;

use super::{
    account::OAuthAccount,
    challenge::DPOP_ALG,
    discovery::Discovered,
    dpop::{DpopKey, DpopKeys},
    error::OAuthError,
    metadata::{ResourceDpop, clip},
    stored::Session,
};
use pegboard_config::Dpop;

/// The key that a token request proves to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binding {
    pub(super) key: Arc<DpopKey>,
    /// Whether a token that is not bound to it is refused.
    pub(super) is_required: bool,
}

impl Binding {
    /// The binding of tokens that are requested from `found`. `is_offered` says that the server asked for a bound token when it refused a request.
    ///
    /// By default a token is bound only if both servers know how: many authorization servers bind each token whose request has a proof, also for
    /// servers that then do not understand it.
    pub(super) fn choose(
        keys: &DpopKeys,
        account: &OAuthAccount,
        found: &Discovered,
        is_offered: bool,
        session: Option<&Session>,
    ) -> Result<Option<Self>, OAuthError> {
        let known = session.filter(|session| session.issuer == found.server.issuer);
        if let Some(binding) = known
            .map(|session| Self::for_session(keys, account, session))
            .transpose()?
            .flatten()
        {
            return Ok(Some(binding));
        }
        let algs = found.server.dpop_algs.as_deref();
        let is_supported = algs.is_some_and(|algs| algs.iter().any(|alg| alg == DPOP_ALG));
        let is_required = account.settings.dpop == Dpop::Required;
        let is_bound = match account.settings.dpop {
            Dpop::Off => false,
            Dpop::Required if algs.is_some() && !is_supported => {
                return Err(OAuthError::NotBound(format!(
                    "`oauth.dpop` is `required`, but the authorization server {} does not list {DPOP_ALG} in `dpop_signing_alg_values_supported`",
                    clip(&found.server.issuer)
                )));
            }
            Dpop::Required => true,
            Dpop::Auto => match found.resource_dpop {
                ResourceDpop::Required => true,
                ResourceDpop::Offered => is_supported,
                ResourceDpop::NotSaid => is_supported && is_offered,
            },
        };
        if !is_bound {
            return Ok(None);
        }
        let key = keys.generate().map_err(OAuthError::Setting)?;
        Ok(Some(Self { key, is_required }))
    }

    /// The binding of a session's tokens.
    pub(super) fn for_session(
        keys: &DpopKeys,
        account: &OAuthAccount,
        session: &Session,
    ) -> Result<Option<Self>, OAuthError> {
        let Some(stored) = &session.proof_key else {
            return Ok(None);
        };
        Ok(Some(Self {
            key: keys.get(stored).map_err(OAuthError::needs_another_sign_in)?,
            is_required: account.settings.dpop == Dpop::Required,
        }))
    }

    /// Keeps the key with the session that its proof began.
    pub(super) fn keep_in(binding: Option<&Self>, session: &mut Session) {
        session.proof_key = binding.map(|binding| binding.key.stored().clone());
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::{metadata::ServerMetadata, stored::StoredClient, token_answer::TokenAnswer};
    use pegboard_base::secret::Secret;
    use pegboard_config::OAuthConfig;

    fn account(dpop: Dpop) -> OAuthAccount {
        let settings = OAuthConfig {
            dpop,
            ..OAuthConfig::default()
        };
        let url = Url::parse("https://mcp.example/mcp").unwrap();
        OAuthAccount::new("fx".parse().unwrap(), url, Arc::new(settings))
    }

    fn found(algs: Option<&[&str]>, resource_dpop: ResourceDpop) -> Discovered {
        let mut server =
            ServerMetadata::at_endpoints("https://as.example", "https://as.example/a", "https://as.example/t");
        server.dpop_algs = algs.map(|algs| algs.iter().map(|alg| (*alg).to_owned()).collect());
        Discovered {
            resource: "https://mcp.example/mcp".to_owned(),
            resource_scopes: None,
            resource_dpop,
            server,
            is_guessed: false,
        }
    }

    #[test]
    fn a_token_is_bound_if_both_servers_take_that_or_the_config_demands_it() {
        use ResourceDpop::{NotSaid, Offered, Required};
        let es256: Option<&[&str]> = Some(&["RS256", "ES256"]);
        let other: Option<&[&str]> = Some(&["RS256"]);
        for (dpop, algs, resource, is_offered, expected) in [
            (Dpop::Auto, es256, NotSaid, false, Some(false)),
            (Dpop::Auto, es256, NotSaid, true, Some(true)),
            (Dpop::Auto, es256, Offered, false, Some(true)),
            (Dpop::Auto, None, Offered, true, Some(false)),
            (Dpop::Auto, other, NotSaid, true, Some(false)),
            (Dpop::Auto, None, Required, false, Some(true)),
            (Dpop::Off, es256, Required, true, Some(false)),
            (Dpop::Required, es256, NotSaid, false, Some(true)),
            (Dpop::Required, None, NotSaid, false, Some(true)),
            (Dpop::Required, other, Required, true, None),
        ] {
            let keys = DpopKeys::default();
            let chosen = Binding::choose(&keys, &account(dpop), &found(algs, resource), is_offered, None);
            let is_bound = chosen.as_ref().ok().map(Option::is_some);
            assert_eq!(is_bound, expected, "{dpop:?} {algs:?} {resource:?} {is_offered}");
            if let Ok(Some(binding)) = chosen {
                assert_eq!(binding.is_required, dpop == Dpop::Required);
            }
        }
    }

    #[test]
    fn the_key_of_a_session_is_used_again_at_its_issuer_only() {
        let (keys, account) = (DpopKeys::default(), account(Dpop::Auto));
        let mut found = found(Some(&["ES256"]), ResourceDpop::Offered);
        let first = Binding::choose(&keys, &account, &found, false, None).unwrap();
        let answer = TokenAnswer::parse(200, br#"{"access_token":"t","token_type":"DPoP"}"#, &[]).unwrap();
        let mut session = Session::new(&found, StoredClient::anonymous(), Vec::new(), answer);
        assert!(session.is_bound);
        Binding::keep_in(first.as_ref(), &mut session);
        let again = Binding::choose(&keys, &account, &found, false, Some(&session)).unwrap();
        assert_eq!(again, first);
        found.server.issuer = "https://other.example".to_owned();
        let elsewhere = Binding::choose(&keys, &account, &found, false, Some(&session)).unwrap();
        assert_ne!(elsewhere, first);
        session.proof_key = Some(Secret::new("broken"));
        assert!(
            Binding::for_session(&keys, &account, &session)
                .unwrap_err()
                .needs_sign_in()
        );
    }
}
