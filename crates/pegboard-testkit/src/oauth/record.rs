//! The requests that an authorization server received, and the tokens it issued.

use std::{collections::BTreeMap, sync::Mutex};

use tokio::sync::watch;

use crate::server::lock;

/// One request to an authorization server, or to the metadata of a server behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthRequest {
    /// The HTTP method.
    pub method: String,
    /// The path.
    pub path: String,
    /// The query as it came, without `?`.
    pub query: String,
    /// The headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body as it came.
    pub body: String,
    /// The parameters of the query and of a form in the body. The last one of a name counts.
    pub parameters: BTreeMap<String, String>,
}

impl AuthRequest {
    /// A parameter of the query or of the form.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// A header by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Returns `true` if this text is anywhere in the request.
    #[must_use]
    pub fn contains(&self, text: &str) -> bool {
        let parts = [&self.path, &self.query, &self.body];
        parts
            .into_iter()
            .chain(self.headers.values())
            .chain(self.parameters.values())
            .any(|part| part.contains(text))
    }
}

/// A token or a code that the server issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedToken {
    /// What it is.
    pub kind: TokenKind,
    /// Its text.
    pub value: String,
    /// Whom it stands for: the user, or the client itself.
    pub subject: String,
    /// The client that it was issued to.
    pub client: String,
    /// The resource it is for.
    pub resource: Option<String>,
    /// Its scopes, separated by spaces.
    pub scope: String,
}

/// What an [`IssuedToken`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// An authorization code.
    Code,
    /// An access token.
    Access,
    /// A refresh token.
    Refresh,
}

/// A request that reached a protected server, and how its token was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The method of the JSON-RPC message, or of the HTTP request if there is none.
    pub method: String,
    /// The tool of a call.
    pub tool: Option<String>,
    /// The token that it carried.
    pub token: Option<String>,
    /// The proof of the key that the token is bound to.
    pub proof: Option<String>,
    /// The subject of an accepted token.
    pub subject: Option<String>,
    /// The status it was refused with; `None` for an accepted one.
    pub refused: Option<u16>,
}

/// A list that grows, and wakes the tests that wait for more.
#[derive(Debug)]
pub(super) struct Record<T> {
    kept: Mutex<Vec<T>>,
    count: watch::Sender<usize>,
}

/// The limit on entries, so that a client in a loop does not fill the memory.
const KEPT: usize = 100_000;

impl<T> Default for Record<T> {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            count: watch::Sender::new(0),
        }
    }
}

impl<T: Clone> Record<T> {
    pub(super) fn push(&self, entry: T) {
        let mut kept = lock(&self.kept);
        if kept.len() < KEPT {
            kept.push(entry);
        }
        self.count.send_replace(kept.len());
    }

    pub(super) fn all(&self) -> Vec<T> {
        lock(&self.kept).clone()
    }

    pub(super) fn count(&self, wanted: impl Fn(&T) -> bool) -> usize {
        lock(&self.kept).iter().filter(|entry| wanted(entry)).count()
    }

    /// Returns once this many entries are wanted ones.
    pub(super) async fn wait_for(&self, count: usize, wanted: impl Fn(&T) -> bool) {
        let mut changes = self.count.subscribe();
        // The sender lives as long as the record, so the wait cannot fail.
        let _ = changes.wait_for(|_| self.count(&wanted) >= count).await;
    }
}
