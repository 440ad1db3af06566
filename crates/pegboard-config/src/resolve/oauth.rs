//! Resolves the settings of sign-in with OAuth, and refuses those that contradict each other.

use url::Url;

use super::context::Context;
use crate::{
    choice::{AuthKind, GrantKind},
    field::Field,
    fields::{ServerTable, auth, identity_provider, oauth, server},
    from_setting::FromSetting as _,
    key::{Key, Table},
    oauth::{
        ClientKey, IdentityProvider, JwtBearer, OAuthConfig, OAuthGrant, RedirectConfig, TokenExchange, TokenInput,
    },
    owned_file::{self, Links},
    problem::join,
    secret_detection,
    setting::{Found, Setting, Text, Values},
    tree::Location,
};
use pegboard_base::secret::{SafeUrl, Secret};

/// The longest file with a secret.
const MAX_SECRET_FILE: usize = 64 << 10;

/// Whether the config asks for a sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    /// By this setting.
    On {
        at: Location,
        key: String,
    },
    Off,
    NotSaid,
}

impl Wish {
    pub(super) fn read(values: ServerTable<'_>, table: Table<'_, auth::In>) -> Self {
        let tables = [values.find(&server::oauth), table.find(&auth::oauth)];
        let switch = |found: &Found| match &found.setting {
            Setting::Bool(on) => *on,
            Setting::Table(table) => Table::<oauth::In>::new(table).get(&oauth::enabled),
            _ => true,
        };
        if tables.into_iter().flatten().any(|found| !switch(found)) {
            return Self::Off;
        }
        let in_auth = oauth::SECTION.fields().filter_map(|field| table.find_field(field));
        let short = [values.find(&server::scopes), values.find(&server::oauth_resource)];
        let mut found = tables.into_iter().chain(short).flatten().chain(in_auth);
        found.next().map_or(Self::NotSaid, |found| Self::On {
            at: found.at,
            key: found.key.clone(),
        })
    }
}

/// The settings of sign-in, wherever they are written. `client_credentials` says that the kind of credentials names that grant.
pub(super) fn settings(
    context: &mut Context<'_>,
    values: ServerTable<'_>,
    table: Table<'_, auth::In>,
    client_credentials: bool,
) -> Option<OAuthConfig> {
    let at = values
        .at(&server::oauth)
        .or(values.at(&server::auth))
        .unwrap_or(context.at);
    if !cfg!(feature = "oauth") {
        let hint = "build it with the feature `oauth` of the crate `pegboard`, or give it a token: `auth = { bearer = \"${TOKEN}\" }`";
        let message =
            "this program was built without sign-in with OAuth, so that the server would be asked without credentials";
        let key = find_setting_name(values);
        context.report.error_with(at, &join(context.path, key), message, hint);
        return None;
    }
    let written = gather(context, values, table)?;
    let settings = Settings {
        values: Table::new(&written),
        at,
    };
    settings.resolve(context, client_credentials)
}

/// The setting that asks for the sign-in.
fn find_setting_name(values: ServerTable<'_>) -> &'static str {
    let is_oauth = |found: &Found| AuthKind::from_setting(&found.setting).is_some();
    match values.find(&server::auth_type).is_some_and(is_oauth) {
        true => server::auth_type.name,
        false if values.find(&server::auth).is_some() => server::auth.name,
        false => server::oauth.name,
    }
}

/// Gathers the settings from `oauth`, `auth.oauth`, `auth` and their short forms into one table.
fn gather(context: &mut Context<'_>, values: ServerTable<'_>, table: Table<'_, auth::In>) -> Option<Values> {
    let nothing = Values::default();
    let own = values.table(&server::oauth).unwrap_or(Table::new(&nothing));
    let inner = table.table(&auth::oauth).unwrap_or(Table::new(&nothing));
    let mut all = Values::default();
    let mut good = true;
    for field in oauth::SECTION.fields() {
        let short = match field.name {
            name if name == oauth::scopes.name => values.find(&server::scopes),
            name if name == oauth::resource.name => values.find(&server::oauth_resource),
            _ => None,
        };
        // The fields of `auth` have the names of those of `oauth`.
        let places = [
            own.find_field(field),
            inner.find_field(field),
            table.find_field(field),
            short,
        ];
        let mut found = places.into_iter().flatten();
        let Some(first) = found.next() else { continue };
        if let Some(second) = found.next() {
            good = false;
            let message = format!("`{}` is set in two places; keep one", field.name);
            context.report.error(second.at, &join(context.path, "oauth"), message);
        }
        all.insert(field, first.clone());
    }
    good.then_some(all)
}

/// The gathered settings.
struct Settings<'a> {
    values: Table<'a, oauth::In>,
    /// Where the sign-in is asked for.
    at: Location,
}

impl Settings<'_> {
    fn resolve(&self, context: &mut Context<'_>, client_credentials: bool) -> Option<OAuthConfig> {
        let values = self.values;
        let grant_kind = self.grant_kind(context, client_credentials)?;
        let client_secret = self.resolve_secret(context, &oauth::client_secret, &oauth::client_secret_file);
        let private_key = self.private_key(context);
        let client_metadata_url = self.url(context, &oauth::client_metadata_url);
        let issuer = self.url(context, &oauth::issuer);
        let authorization_url = self.url(context, &oauth::authorization_url);
        let token_url = self.url(context, &oauth::token_url);
        let redirect = self.redirect(context);
        let grant = self.grant(context, grant_kind);
        let settings = OAuthConfig {
            client_id: values.get(&oauth::client_id),
            client_secret: client_secret?,
            private_key: private_key?,
            client_metadata_url: client_metadata_url?,
            scopes: values.get(&oauth::scopes),
            grant: grant?,
            issuer: issuer?.map(|url| issuer_of(url.expose())),
            authorization_url: authorization_url?,
            token_url: token_url?,
            redirect: redirect?,
            resource: values.get(&oauth::resource),
            audience: values.get(&oauth::audience),
            dpop: values.get(&oauth::dpop),
        };
        self.check_client(context, &settings)?;
        self.warn_of_idle(context, grant_kind);
        Some(settings)
    }

    fn grant_kind(&self, context: &mut Context<'_>, client_credentials: bool) -> Option<GrantKind> {
        match self.values.get(&oauth::grant) {
            Some(kind) if client_credentials && kind != GrantKind::ClientCredentials => self.refuse(
                context,
                &oauth::grant,
                "`auth` names the grant `client_credentials`; keep one",
            ),
            Some(kind) => Some(kind),
            None if client_credentials => Some(GrantKind::ClientCredentials),
            None => Some(GrantKind::AuthorizationCode),
        }
    }

    fn grant(&self, context: &mut Context<'_>, kind: GrantKind) -> Option<OAuthGrant> {
        match kind {
            GrantKind::AuthorizationCode => Some(OAuthGrant::AuthorizationCode),
            GrantKind::ClientCredentials => Some(OAuthGrant::ClientCredentials),
            GrantKind::TokenExchange => {
                let subject = self.input(context, &oauth::subject_token, &oauth::subject_token_file)?;
                let mut exchange = TokenExchange::new(subject);
                if let Some(subject_type) = self.values.get(&oauth::subject_token_type) {
                    exchange.subject_type = subject_type;
                }
                exchange.requested_type = self.values.get(&oauth::requested_token_type);
                Some(OAuthGrant::TokenExchange(exchange))
            }
            GrantKind::JwtBearer => {
                let mut grant = JwtBearer::new(self.input(context, &oauth::assertion, &oauth::assertion_file)?);
                grant.identity_provider = self.identity_provider(context)?;
                Some(OAuthGrant::JwtBearer(grant))
            }
        }
    }

    /// A token that is exchanged: a value, a file, or that of the caller.
    fn input(
        &self,
        context: &mut Context<'_>,
        value: &Key<oauth::In, Option<Text>>,
        file: &Key<oauth::In, Option<String>>,
    ) -> Option<TokenInput> {
        match (self.values.get(value), self.values.get(file)) {
            (Some(_), Some(_)) => {
                let message = format!("`{}` and `{}` are the same; keep one", value.name, file.name);
                self.refuse(context, file, &message)
            }
            (Some(text), None) => Some(TokenInput::Value(Secret::new(text.value))),
            (None, Some(path)) => Some(TokenInput::File(context.resolve_path(&path))),
            (None, None) => Some(TokenInput::Caller),
        }
    }

    #[expect(clippy::option_option, reason = "the outer one is a problem that was reported")]
    fn identity_provider(&self, context: &mut Context<'_>) -> Option<Option<IdentityProvider>> {
        let Some(table) = self.values.table(&oauth::identity_provider) else {
            return Some(None);
        };
        let path = join(&join(context.path, "oauth"), oauth::identity_provider.name);
        let Some(written) = table.get(&identity_provider::token_url) else {
            let at = self.values.at(&oauth::identity_provider).unwrap_or(self.at);
            context.report.error(at, &path, "needs `token_url`");
            return None;
        };
        let mut provider = IdentityProvider::new(url(context, &written, &join(&path, "token_url"))?);
        provider.client_id = table.get(&identity_provider::client_id);
        provider.client_secret = read_secret(
            context,
            table.get(&identity_provider::client_secret),
            table.get(&identity_provider::client_secret_file),
            &join(&path, "client_secret"),
        )?;
        Some(Some(provider))
    }

    #[expect(clippy::option_option, reason = "the outer one is a problem that was reported")]
    fn resolve_secret(
        &self,
        context: &mut Context<'_>,
        value: &Key<oauth::In, Option<Text>>,
        file: &Key<oauth::In, Option<Text>>,
    ) -> Option<Option<Secret>> {
        let path = join(&join(context.path, "oauth"), value.name);
        read_secret(context, self.values.get(value), self.values.get(file), &path)
    }

    #[expect(clippy::option_option, reason = "the outer one is a problem that was reported")]
    fn private_key(&self, context: &mut Context<'_>) -> Option<Option<ClientKey>> {
        let (kid, alg) = (self.values.get(&oauth::key_id), self.values.get(&oauth::algorithm));
        let Some(pem) = self.resolve_secret(context, &oauth::private_key, &oauth::private_key_file)? else {
            return match kid.is_some() || alg.is_some() {
                true => self.refuse(context, &oauth::key_id, "belongs to a `private_key`, which is not set"),
                false => Some(None),
            };
        };
        if !(pem.expose().contains("-----BEGIN ") && pem.expose().contains("PRIVATE KEY-----")) {
            let message = "is not a private key in PEM, which starts with `-----BEGIN PRIVATE KEY-----`";
            return self.refuse(context, &oauth::private_key, message);
        }
        let mut key = ClientKey::new(pem);
        key.kid = kid;
        key.alg = alg;
        Some(Some(key))
    }

    #[expect(clippy::option_option, reason = "the outer one is a problem that was reported")]
    fn url(&self, context: &mut Context<'_>, key: &Key<oauth::In, Option<Text>>) -> Option<Option<SafeUrl>> {
        let Some(text) = self.values.get(key) else {
            return Some(None);
        };
        let path = join(&join(context.path, "oauth"), key.name);
        url(context, &text, &path).map(Some)
    }

    fn redirect(&self, context: &mut Context<'_>) -> Option<RedirectConfig> {
        let values = self.values;
        let parts = (
            values.get(&oauth::callback_host),
            values.get(&oauth::callback_port),
            values.get(&oauth::callback_path),
        );
        let mut redirect = RedirectConfig::default();
        if let Some(text) = values.get(&oauth::redirect_uri) {
            if parts.0.is_some() || parts.1.is_some() || parts.2.is_some() {
                let message = "says the same as `callback_host`, `callback_port` and `callback_path`; keep one";
                return self.refuse(context, &oauth::redirect_uri, message);
            }
            let parsed = Url::parse(text.value.trim()).ok();
            let local = parsed.filter(|url| url.scheme() == "http" && url.host_str().is_some_and(is_this_machine));
            let Some(url) = local else {
                let message = "must be an address of this machine, such as `http://127.0.0.1:8976/callback`";
                return self.refuse(context, &oauth::redirect_uri, message);
            };
            redirect.host = url.host_str().unwrap_or_default().to_owned();
            redirect.port = url.port();
            redirect.path = url.path().to_owned();
            return Some(redirect);
        }
        if let Some(host) = parts.0 {
            if !is_this_machine(&host.value) {
                let message = "must be `127.0.0.1`, `localhost` or `[::1]`: the browser returns to this machine";
                return self.refuse(context, &oauth::callback_host, message);
            }
            redirect.host = host.value;
        }
        redirect.port = parts.1;
        if let Some(path) = parts.2 {
            let is_path = path.value.starts_with('/') && !path.value.contains(['?', '#']) && path.value.is_ascii();
            if !is_path || path.value.contains(char::is_whitespace) {
                let message = "must be a path that starts with `/`, such as `/callback`";
                return self.refuse(context, &oauth::callback_path, message);
            }
            redirect.path = path.value;
        }
        Some(redirect)
    }

    /// Refuses a client that cannot authenticate itself as the settings say.
    fn check_client(&self, context: &mut Context<'_>, settings: &OAuthConfig) -> Option<()> {
        let has_proof = settings.client_secret.is_some() || settings.private_key.is_some();
        if settings.client_secret.is_some() && settings.private_key.is_some() {
            return self.refuse(
                context,
                &oauth::private_key,
                "a client has either a secret or a private key; keep one",
            );
        }
        if settings.client_id.is_some() && settings.client_metadata_url.is_some() {
            let message = "is a client id itself; leave out `client_id` or this";
            return self.refuse(context, &oauth::client_metadata_url, message);
        }
        if settings.client_secret.is_some() && settings.client_id.is_none() {
            return self.refuse(
                context,
                &oauth::client_secret,
                "belongs to a `client_id`, which is not set",
            );
        }
        if settings.private_key.is_some() && settings.client_id.is_none() && settings.client_metadata_url.is_none() {
            return self.refuse(
                context,
                &oauth::private_key,
                "belongs to a `client_id`, which is not set",
            );
        }
        if settings.grant == OAuthGrant::ClientCredentials && !(settings.client_id.is_some() && has_proof) {
            let message = "`client_credentials` needs `client_id` and `client_secret` or `private_key`";
            return self.refuse(context, &oauth::grant, message);
        }
        if let Some((name, message)) = settings.open_destination() {
            let at = match name {
                "authorization_url" => self.values.at(&oauth::authorization_url),
                "token_url" => self.values.at(&oauth::token_url),
                _ => self.values.at(&oauth::grant),
            };
            return context.refuse(at.unwrap_or(self.at), &join("oauth", name), message);
        }
        Some(())
    }

    /// Refuses nothing, but says which settings belong to another grant.
    fn warn_of_idle(&self, context: &mut Context<'_>, grant: GrantKind) {
        let of_person: &[&Field] = &[
            &oauth::authorization_url,
            &oauth::redirect_uri,
            &oauth::callback_host,
            &oauth::callback_port,
            &oauth::callback_path,
        ];
        let of_exchange: &[&Field] = &[
            &oauth::subject_token,
            &oauth::subject_token_file,
            &oauth::subject_token_type,
            &oauth::requested_token_type,
        ];
        let of_assertion: &[&Field] = &[&oauth::assertion, &oauth::assertion_file, &oauth::identity_provider];
        for (kind, fields) in [
            (GrantKind::AuthorizationCode, of_person),
            (GrantKind::TokenExchange, of_exchange),
            (GrantKind::JwtBearer, of_assertion),
        ] {
            let fields = fields.iter().filter(|_| kind != grant);
            for found in fields.filter_map(|field| self.values.find_field(field)) {
                let path = join(&join(context.path, "oauth"), &found.key);
                context.report.warn(found.at, &path, "has no effect with this `grant`");
            }
        }
    }

    fn refuse<T, U>(&self, context: &mut Context<'_>, key: &Key<oauth::In, U>, message: &str) -> Option<T> {
        let at = self.values.at(key).unwrap_or(self.at);
        context.refuse(at, &join("oauth", key.name), message)
    }
}

/// A secret from a value or a file, which is read now.
#[expect(clippy::option_option, reason = "the outer one is a problem that was reported")]
fn read_secret(
    context: &mut Context<'_>,
    value: Option<Text>,
    file: Option<Text>,
    path: &str,
) -> Option<Option<Secret>> {
    match (value, file) {
        (Some(text), Some(_)) => {
            let message = "is set here and in a file; keep one";
            context.report.error(text.at, path, message);
            None
        }
        (Some(text), None) => Some(Some(Secret::new(text.value))),
        (None, Some(file)) => {
            let found = owned_file::read(&context.resolve_path(&file.value), MAX_SECRET_FILE, Links::Follow);
            let problem = match found {
                Ok(text) if text.len() > MAX_SECRET_FILE => "the file is too long for a secret".to_owned(),
                Ok(text) if text.trim().is_empty() => "the file is empty".to_owned(),
                Ok(text) => return Some(Some(Secret::new(text.trim()))),
                Err(error) => format!("`{}` {}", file.written, error.message),
            };
            context.report.error(file.at, &format!("{path}_file"), problem);
            None
        }
        (None, None) => Some(None),
    }
}

/// A URL that tokens and secrets are sent to.
fn url(context: &mut Context<'_>, text: &Text, path: &str) -> Option<SafeUrl> {
    let shown = secret_detection::redact_url(&text.written);
    let url = match SafeUrl::parse(text.value.trim()) {
        Ok(url) => url,
        Err(error) => {
            let message = format!("`{shown}` is not a URL: {}", error.reason());
            context.report.error(text.at, path, message);
            return None;
        }
    };
    let is_local = url.expose().host_str().is_some_and(is_this_machine);
    match url.expose().scheme() {
        "https" => Some(url),
        "http" if is_local => Some(url),
        _ => {
            let message = format!("`{shown}` must start with https://, because secrets are sent there");
            context.report.error(text.at, path, message);
            None
        }
    }
}

fn is_this_machine(host: &str) -> bool {
    let is_loopback = |address: std::net::Ipv4Addr| address.is_loopback();
    matches!(host, "localhost" | "[::1]" | "::1") || host.parse().is_ok_and(is_loopback)
}

/// The issuer whose metadata is at this URL; the URL itself if it is an issuer.
fn issuer_of(url: &Url) -> String {
    const WELL_KNOWN: [&str; 2] = [
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ];
    let path = url.path();
    let issuer_path = WELL_KNOWN.iter().find_map(|known| {
        let before = path.strip_suffix(known);
        before.or_else(|| path.strip_prefix(known).filter(|rest| rest.starts_with('/')))
    });
    let mut issuer = url.clone();
    if let Some(issuer_path) = issuer_path {
        issuer.set_path(issuer_path);
        issuer.set_query(None);
    }
    let text = issuer.to_string();
    match issuer.path() {
        "/" if issuer.query().is_none() => text.trim_end_matches('/').to_owned(),
        _ => text,
    }
}
