//! [`SignIns`]: the sign-ins of a board's servers, and the credentials that come of them.

use std::{
    fmt,
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use pegboard_base::{
    caller::{Principal, login_command},
    name::ServerName,
};
use pegboard_client::credential::{
    CallerToken, CallerTokens, Credential, CredentialError, CredentialReason, CredentialRequest, Credentials,
    PersonTask, Remedy,
};
use pegboard_config::{Auth, OAuthConfig, Transport};
use pegboard_mask::KnownSecrets;
use pegboard_oauth::{FileKey, OAuthAccount, OAuthClient, OAuthError, PlainText, TokenStore, asks_for_token};

/// How long a server without a sign-in is used before the store is looked at again. A refusal ends that time.
const ANONYMOUS: Duration = Duration::from_secs(60);
/// When a request for a token that was refused, and that no person can help, is made again.
const REFUSED: Duration = Duration::from_secs(60);

/// Where a board keeps tokens.
#[derive(Debug, Clone, Default)]
pub(super) struct TokenFolder {
    pub(super) folder: Option<PathBuf>,
    pub(super) key_file: Option<PathBuf>,
    #[cfg(feature = "keyring")]
    pub(super) uses_keyring: bool,
}

/// The sign-ins of a board. Nothing is read before a server needs it.
#[derive(Debug)]
pub(super) struct SignIns {
    /// The folder of the tokens; in memory without one.
    folder: Option<PathBuf>,
    /// The file with the key that the files are encrypted with.
    key_file: Option<PathBuf>,
    /// Whether the files are encrypted with a key in the keyring of the operating system.
    #[cfg(feature = "keyring")]
    uses_keyring: bool,
    opened: OnceLock<Opened>,
    /// The tokens of callers of a gateway.
    caller_tokens: CallerTokens,
    /// What is masked in the messages of servers.
    secrets: KnownSecrets,
    /// The last change of the store that the board has followed.
    followed: AtomicU64,
    /// Called when the store has changed.
    follower: OnceLock<Follower>,
    /// Held while changes of the store are followed: who asks for that meanwhile waits until it is done.
    following: Semaphore,
}

/// Makes the board use what has changed in the store; `None` once there is no board.
type Following = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Follower(Box<dyn Fn() -> Option<Following> + Send + Sync>);

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Follower")
    }
}

#[derive(Debug)]
struct Opened {
    client: OAuthClient,
    /// Set once other processes are noticed.
    watching: OnceLock<DropGuard>,
}

impl SignIns {
    pub(super) fn new(tokens: TokenFolder, caller_tokens: CallerTokens, secrets: KnownSecrets) -> Arc<Self> {
        Arc::new(Self {
            folder: tokens.folder,
            key_file: tokens.key_file,
            #[cfg(feature = "keyring")]
            uses_keyring: tokens.uses_keyring,
            caller_tokens,
            secrets,
            opened: OnceLock::new(),
            followed: AtomicU64::new(0),
            follower: OnceLock::new(),
            following: Semaphore::new(1),
        })
    }

    /// Sets what is called when the store has changed. The first one stays.
    pub(super) fn follow(&self, follower: impl Fn() -> Option<Following> + Send + Sync + 'static) {
        let _ = self.follower.set(Follower(Box::new(follower)));
    }

    /// The last change of the store that the board has followed, and the last one that there is.
    pub(super) fn to_follow(&self) -> (u64, u64) {
        (
            self.followed.load(Ordering::Acquire),
            self.client().store().last_change(),
        )
    }

    /// Notes that the board has followed all changes up to this one.
    pub(super) fn note_followed(&self, last: u64) {
        self.followed.fetch_max(last, Ordering::AcqRel);
    }

    /// Waits until nobody else follows changes of the store.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.following.acquire().await.ok()
    }

    pub(super) fn client(&self) -> &OAuthClient {
        &self.get_or_open().client
    }

    fn get_or_open(&self) -> &Opened {
        self.opened.get_or_init(|| {
            let store = match (&self.folder, &self.key_file) {
                (Some(folder), Some(key)) => TokenStore::open(folder.clone(), Arc::new(FileKey(key.clone()))),
                #[cfg(feature = "keyring")]
                (Some(folder), None) if self.uses_keyring => {
                    TokenStore::open(folder.clone(), Arc::new(pegboard_oauth::KeyringKey::for_system(folder)))
                }
                (Some(folder), None) => TokenStore::open(folder.clone(), Arc::new(PlainText)),
                (None, _) => TokenStore::in_memory(),
            };
            Opened {
                client: OAuthClient::new(store, self.secrets.clone()),
                watching: OnceLock::new(),
            }
        })
    }

    /// Notices sign-ins and sign-outs of other processes from now on, while the board lives.
    fn watch(self: &Arc<Self>) {
        let opened = self.get_or_open();
        opened.watching.get_or_init(|| {
            let stop = CancellationToken::new();
            let (store, stopped) = (opened.client.store().clone(), stop.clone());
            let (mut changes, sign_ins) = (store.changes(), Arc::downgrade(self));
            let following = async move {
                while changes.changed().await.is_ok() {
                    let follower = sign_ins.upgrade();
                    let follower = follower.as_ref().and_then(|sign_ins| sign_ins.follower.get());
                    let Some(following) = follower.and_then(|follower| (follower.0)()) else {
                        return;
                    };
                    following.await;
                }
            };
            tokio::spawn(async move {
                tokio::select! {
                    () = stopped.cancelled() => {}
                    () = store.watch_folder() => {}
                    () = following => {}
                }
            });
            stop.drop_guard()
        });
    }

    /// Waits for renewals of tokens that are under way.
    pub(super) async fn close(&self) {
        if let Some(opened) = self.opened.get() {
            opened.client.close().await;
        }
    }

    /// The provider of a server that signs in, or may have to.
    pub(super) fn provider(self: &Arc<Self>, name: &ServerName, transport: &Transport) -> Option<Arc<dyn Credentials>> {
        let (account, is_configured) = account_of(name, transport)?;
        if account.settings.grant.exchanges_caller() {
            self.caller_tokens.enable_exchange();
        }
        Some(Arc::new(SignInCredentials {
            sign_ins: self.clone(),
            account,
            is_configured,
        }))
    }
}

/// The account of a server, and whether its config asks for one. A server without any credentials in its config may turn out to need one.
pub(super) fn account_of(name: &ServerName, transport: &Transport) -> Option<(OAuthAccount, bool)> {
    let endpoint = transport.endpoint()?;
    let settings = match &endpoint.auth {
        Auth::OAuth(settings) => Some(settings.clone()),
        Auth::None => None,
        Auth::Anonymous | Auth::Bearer(_) | Auth::BearerFile(_) | Auth::Basic { .. } | Auth::HeadersHelper(_) => {
            return None;
        }
    };
    let url = http_form(endpoint.url.expose());
    let is_configured = settings.is_some();
    if !is_configured && endpoint.has_credentials() {
        return None;
    }
    let settings = settings.unwrap_or_else(|| Arc::new(OAuthConfig::default()));
    let account = OAuthAccount {
        tls: endpoint.tls.clone(),
        ..OAuthAccount::new(name.clone(), url, settings)
    };
    Some((account, is_configured))
}

/// The URL as requests of HTTP have it: a WebSocket begins with one. Metadata and tokens are for this URL.
fn http_form(url: &Url) -> Url {
    let mut url = url.clone();
    let scheme = match url.scheme() {
        "ws" => "http",
        "wss" => "https",
        _ => return url,
    };
    // All four are schemes with a host, so it cannot fail.
    let _ = url.set_scheme(scheme);
    url
}

/// The credentials of one server, for each principal its own.
struct SignInCredentials {
    sign_ins: Arc<SignIns>,
    account: OAuthAccount,
    /// Whether the config asks for a sign-in. If it does not, only a challenge for tokens leads to one.
    is_configured: bool,
}

impl SignInCredentials {
    fn account(&self, principal: Option<&Principal>) -> OAuthAccount {
        OAuthAccount {
            principal: principal.cloned(),
            ..self.account.clone()
        }
    }

    /// The token of the caller that is exchanged.
    fn subject(&self, request: &CredentialRequest<'_>) -> Option<CallerToken> {
        let principal = request
            .principal
            .filter(|_| self.account.settings.grant.exchanges_caller())?;
        self.sign_ins.caller_tokens.get(principal, request.rights?)
    }

    async fn token(&self, request: CredentialRequest<'_>) -> Result<Credential, CredentialError> {
        let account = OAuthAccount {
            subject: self.subject(&request),
            ..self.account(request.principal)
        };
        if account.subject.is_none() && account.settings.grant.exchanges_caller() {
            // Also if an older token is stored: it is of a caller whose own token has expired.
            return Err(without_caller_token(&account));
        }
        let client = self.sign_ins.client();
        self.sign_ins.watch();
        let refused = match request.reason {
            CredentialReason::Refused { challenge } => Some(challenge),
            CredentialReason::FirstUse | CredentialReason::Refresh => None,
        };
        if let Some(challenge) = refused
            && !self.is_configured
            && !challenge.is_some_and(asks_for_token)
            && !client.is_signed_in(&account).await.unwrap_or(false)
        {
            // The server wants something else, and its own answer says what.
            return Ok(Credential::none().valid_for(ANONYMOUS));
        }
        if refused.is_none() && account.settings.grant.needs_person() && !client.has_session(&account).await {
            // Not every server needs a token for everything, and one that does says which.
            return Ok(Credential::none().valid_for(ANONYMOUS));
        }
        match client
            .access_token_after(&account, request.reason, request.refused_token.cloned())
            .await
        {
            Ok(token) => client.credential(&token).map_err(|error| failure(&error, &account)),
            // The server's refusal says what the next sign-in needs.
            Err(error) if error.needs_sign_in() && refused.is_none() => Ok(Credential::none().valid_for(ANONYMOUS)),
            Err(error) => Err(failure(&error, &account)),
        }
    }
}

impl Credentials for SignInCredentials {
    fn credential<'a>(
        &'a self,
        request: CredentialRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<Credential, CredentialError>> + Send + 'a>> {
        Box::pin(self.token(request))
    }

    fn wait_for_renewal<'a>(
        &'a self,
        _server: &'a ServerName,
        principal: Option<&'a Principal>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            if self.account.settings.grant.exchanges_caller() {
                // The next call brings another token.
                return std::future::pending().await;
            }
            let account = self.account(principal);
            self.sign_ins.watch();
            self.sign_ins.client().newly_signed_in(&account).await;
        })
    }
}

fn without_caller_token(account: &OAuthAccount) -> CredentialError {
    let hint = "call it through a gateway with `serve.oauth`, with a valid access token";
    let text = format!(
        "`{}` gets its token in exchange for the access token of the caller, and this caller has none",
        account.server
    );
    CredentialError::new(text).with_remedy(Remedy::Person {
        task: PersonTask::Correct,
        hint: Some(hint.to_owned()),
    })
}

/// What a person has to do about an error that no retry mends.
fn task(error: &OAuthError) -> PersonTask {
    match error {
        OAuthError::NeedsSignIn { has_ended: true, .. } | OAuthError::UnknownClient(_) => PersonTask::SignInAgain,
        OAuthError::NeedsSignIn { .. } | OAuthError::NoAuthorizationServer => PersonTask::SignIn,
        _ => PersonTask::Correct,
    }
}

fn failure(error: &OAuthError, account: &OAuthAccount) -> CredentialError {
    use pegboard_base::hint::Hint as _;
    let remedy = match error {
        OAuthError::NeedsSignIn { .. } => Remedy::Person {
            task: task(error),
            hint: Some(format!(
                "sign in with `{}`",
                login_command(
                    account.server.as_str(),
                    account.principal.as_ref().map(Principal::as_str)
                )
            )),
        },
        error => match error.retry_after() {
            Some(after) => Remedy::Wait {
                after,
                hint: error.hint(),
            },
            // Nobody can sign in, and what is exchanged may be another token next time.
            None if matches!(error, OAuthError::Refused(_)) && !account.settings.grant.needs_person() => Remedy::Wait {
                after: REFUSED,
                hint: error.hint(),
            },
            None => Remedy::Person {
                task: task(error),
                hint: error.hint(),
            },
        },
    };
    let text = match error {
        OAuthError::NeedsSignIn { why, .. } => why.clone(),
        error => error.to_string(),
    };
    CredentialError::new(text).with_remedy(remedy)
}
