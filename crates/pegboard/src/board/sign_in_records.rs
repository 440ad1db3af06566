//! [`SignInRecord`]: a sign-in or sign-out in the log and in the audit log, whoever has asked for it.

use super::Pegboard;
use crate::audit::{AdminChange, ChangeOutcome};
use pegboard_base::{caller::Principal, log_event, name::ServerName};
use pegboard_oauth::OAuthAccount;
use pegboard_tools::outcome::Failure;

/// A sign-in or sign-out that has begun. It is recorded when this is dropped, so also if the caller goes away.
#[derive(Debug)]
pub(super) struct SignInRecord {
    board: Pegboard,
    action: &'static str,
    /// `None` if the config does not have the server any more.
    server: Option<ServerName>,
    principal: Option<Principal>,
    /// `None` if nothing is to be recorded.
    outcome: Option<ChangeOutcome>,
}

impl SignInRecord {
    pub(super) const SIGN_IN: &str = "sign_in";
    pub(super) const SIGN_OUT: &str = "sign_out";

    /// Begins a record. Fails if the audit log is required and cannot be written: nothing should be changed then.
    pub(super) async fn begin(board: &Pegboard, action: &'static str, account: &OAuthAccount) -> Result<Self, Failure> {
        let server = Some(account.server.clone());
        Self::begin_for(board, action, server, account.principal.clone()).await
    }

    /// Like [`begin`](Self::begin), for a server that the config may not have any more.
    pub(super) async fn begin_for(
        board: &Pegboard,
        action: &'static str,
        server: Option<ServerName>,
        principal: Option<Principal>,
    ) -> Result<Self, Failure> {
        let mut record = Self {
            board: board.clone(),
            action,
            server,
            principal,
            outcome: Some(ChangeOutcome::Refused),
        };
        board.begin_change(&record.change(ChangeOutcome::Begun)).await?;
        record.outcome = Some(ChangeOutcome::Unknown);
        Ok(record)
    }

    /// Says how it ended; `None` if nothing has changed.
    pub(super) fn end(mut self, outcome: Option<ChangeOutcome>) {
        self.outcome = outcome;
    }

    fn change(&self, outcome: ChangeOutcome) -> AdminChange {
        let mut change = AdminChange::new(self.action, outcome);
        if let Some(server) = &self.server {
            change = change.server(server.clone());
        }
        match &self.principal {
            Some(principal) => change.principal(principal.clone()),
            None => change,
        }
    }
}

impl Drop for SignInRecord {
    fn drop(&mut self) {
        let Some(outcome) = self.outcome else { return };
        let principal = self.principal.as_ref().map(Principal::as_str);
        let server = self.server.as_ref().map(ServerName::as_str);
        tracing::info!(
            name: log_event::SIGN_IN_CHANGED,
            server,
            principal,
            action = self.action,
            ?outcome,
            "a sign-in has changed"
        );
        self.board.record_change(self.change(outcome));
    }
}
