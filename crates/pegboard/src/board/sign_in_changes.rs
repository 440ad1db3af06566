//! Uses the sign-ins and sign-outs that other programs make in the token store.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::future::join_all;

use super::{
    Pegboard,
    sign_in_provider::{SignIns, account_of},
};
use crate::server::{Registry, Server};
use pegboard_base::{caller::Principal, deadline::Deadline};
use pegboard_client::credential::CallerToken;
use pegboard_oauth::{AccountKey, OAuthAccount, StoreChange};

/// How long a server that is connected again may take to be ready or to fail.
const SETTLE: Duration = Duration::from_secs(10);

/// An account, and the servers that use its tokens.
struct AccountUse {
    account: OAuthAccount,
    known: Vec<Server>,
    /// Those that are connected again if the tokens change.
    in_use: Vec<Server>,
}

impl Pegboard {
    /// Reads the token store and uses what other programs have changed there: servers that wait for a sign-in are connected again, and
    /// connections whose sign-in was removed end. Returns when these servers are ready or have failed, or after 10 s.
    ///
    /// A board does this by itself shortly after a change. A program calls it to have it done now.
    #[doc(hidden)]
    pub async fn follow_sign_ins(&self) {
        SignInFollower::new(self).follow().await;
    }
}

/// Follows changes of the store while the board lives.
pub(super) fn watch_sign_ins(board: &Pegboard) {
    let inner = Arc::downgrade(&board.0);
    board.0.factory.sign_ins.follow(move || {
        let board = Pegboard(inner.upgrade()?);
        Some(Box::pin(async move { board.follow_sign_ins().await }))
    });
}

/// Forgets what tokens of callers were exchanged for when these tokens end, while the board lives.
pub(super) fn watch_caller_tokens(board: &Pegboard) {
    let inner = Arc::downgrade(&board.0);
    board.0.factory.caller_tokens.on_end(move |principal, token| {
        if let Some(board) = inner.upgrade() {
            SignInFollower::new(&Pegboard(board)).forget_exchanged(principal, token);
        }
    });
}

/// Lets the servers of a board follow changes of the token store.
#[derive(Clone, Copy)]
struct SignInFollower<'a> {
    registry: &'a Registry,
    sign_ins: &'a SignIns,
}

impl<'a> SignInFollower<'a> {
    fn new(board: &'a Pegboard) -> Self {
        Self {
            registry: &board.0.registry,
            sign_ins: &board.0.factory.sign_ins,
        }
    }

    fn forget_exchanged(self, principal: &Principal, token: &CallerToken) {
        for server in self.registry.configured_servers().iter() {
            let account = account_of(server.name(), &server.config().transport);
            let Some((account, _)) = account.filter(|(account, _)| account.settings.grant.exchanges_caller()) else {
                continue;
            };
            let account = OAuthAccount {
                principal: Some(principal.clone()),
                subject: Some(token.clone()),
                ..account
            };
            self.sign_ins.client().forget_exchanged(&account);
            let instances = self.registry.instances(server.name());
            let of_principal = instances
                .iter()
                .filter(|server| server.owner().principal() == Some(principal));
            of_principal.for_each(|server| server.spec().outdate_credential());
        }
    }

    /// Uses what other programs have changed in the token store.
    async fn follow(self) {
        let sign_ins = self.sign_ins;
        sign_ins.client().store().look().await;
        let (since, last) = sign_ins.to_follow();
        // A change is found once, so the second of two callers would return before the first has used it.
        let _turn = self.sign_ins.turn().await;
        let servers = self.registry.configured_servers();
        let mut uses: HashMap<AccountKey, AccountUse> = HashMap::new();
        for server in servers.iter().filter(|server| server.spec().target.is_configured()) {
            let account = account_of(server.name(), &server.config().transport);
            if let Some((account, _)) = account.filter(|(account, _)| !account.settings.grant.exchanges_caller()) {
                self.add_uses(&account, &mut uses);
            }
        }
        join_all(uses.into_values().map(|used| self.follow_account(used, since))).await;
        sign_ins.note_followed(last);
    }

    /// Adds the instances of a server, by the tokens that they use.
    fn add_uses(self, account: &OAuthAccount, uses: &mut HashMap<AccountKey, AccountUse>) {
        let registry = self.registry;
        let all = registry.instances(&account.server).into_iter();
        let shared = registry.get(&account.server);
        let in_use = registry.instances_to_restart(&account.server);
        let known = all.chain(shared).map(|server| (server, false));
        for (server, is_in_use) in known.chain(in_use.into_iter().map(|server| (server, true))) {
            let account = OAuthAccount {
                principal: server.owner().principal().cloned(),
                ..account.clone()
            };
            let used = uses.entry(account.key()).or_insert_with(|| AccountUse {
                account,
                known: Vec::new(),
                in_use: Vec::new(),
            });
            if is_in_use {
                used.in_use.push(server.clone());
            }
            used.known.push(server);
        }
    }

    /// Follows the changes of an account: all servers that use its tokens.
    async fn follow_account(self, used: AccountUse, since: u64) {
        let AccountUse { account, known, in_use } = used;
        let change = self.sign_ins.client().store_change(&account, since);
        let Some(change) = change.await else { return };
        let principal = account.principal.as_ref().map(Principal::as_str);
        tracing::info!(server = %account.server, principal, ?change, "a sign-in was changed elsewhere");
        known.iter().for_each(|server| server.spec().outdate_credential());
        let to_connect: Vec<&Server> = in_use
            .iter()
            .filter(|server| match change {
                StoreChange::SignedOut => !server.phase().is_idle(),
                StoreChange::SignedIn => server.phase().may_await_sign_in(),
            })
            .collect();
        join_all(to_connect.iter().map(|server| server.reconnect())).await;
        let settled = Deadline::within(SETTLE);
        join_all(to_connect.iter().map(|server| server.ensure_live(settled))).await;
    }
}
