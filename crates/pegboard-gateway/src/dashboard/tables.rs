//! [`Tables`]: the sessions of browsers and the one-time links that are open.

use std::{collections::HashMap, time::Duration};

use pegboard::Secret;
use tokio::time::Instant;

use super::session::{BrowserSession, Key, NoSession, key_of, random_secret};
use crate::door::{Caller, Scope};

/// How long a session lasts: a working day.
pub(super) const SESSION_TIME: Duration = Duration::from_secs(12 * 60 * 60);
/// How long a link can be followed. The command that makes it opens the browser at once.
pub(super) const LINK_TIME: Duration = Duration::from_secs(5 * 60);
/// The most sessions of one principal. One with fewer rights ends for a further one, and the oldest of those.
const MAX_OF_PRINCIPAL: usize = 32;
/// The most sessions in all, and the most links. Further ones are refused.
const MAX: usize = 1000;

/// The sessions and links that are open.
#[derive(Debug, Default)]
pub(super) struct Tables {
    sessions: HashMap<Key, (BrowserSession, Instant)>,
    links: HashMap<Key, (Caller, Instant)>,
}

impl Tables {
    /// Begins a session. Returns the value of its cookie.
    pub(super) fn begin(&mut self, caller: &Caller, now: Instant) -> Result<(Secret, BrowserSession), NoSession> {
        self.expire(now);
        let own = self
            .sessions
            .iter()
            .filter(|(_, (session, _))| session.caller().principal == caller.principal);
        let rank =
            |session: &BrowserSession, expires: Instant| (session.caller().scopes.contains(Scope::Admin), expires);
        let own: Vec<(Key, _)> = own
            .map(|(key, (session, expires))| (*key, rank(session, *expires)))
            .collect();
        if own.len() >= MAX_OF_PRINCIPAL
            && let Some((first, _)) = own.iter().min_by_key(|(_, rank)| *rank)
        {
            self.sessions.remove(first);
        }
        if self.sessions.len() >= MAX {
            return Err(NoSession::TooMany);
        }
        let cookie = random_secret()?;
        let session = BrowserSession::new(caller.clone(), random_secret()?);
        self.sessions
            .insert(key_of(cookie.expose()), (session.clone(), now + SESSION_TIME));
        Ok((cookie, session))
    }

    pub(super) fn find(&mut self, cookie: &str, now: Instant) -> Option<BrowserSession> {
        self.expire(now);
        self.sessions.get(&key_of(cookie)).map(|(session, _)| session.clone())
    }

    pub(super) fn end(&mut self, cookie: &str) {
        self.sessions.remove(&key_of(cookie));
    }

    /// The code of a new link.
    pub(super) fn link(&mut self, caller: &Caller, now: Instant) -> Result<Secret, NoSession> {
        self.expire(now);
        if self.links.len() >= MAX {
            return Err(NoSession::TooMany);
        }
        let code = random_secret()?;
        self.links
            .insert(key_of(code.expose()), (caller.clone(), now + LINK_TIME));
        Ok(code)
    }

    /// Uses a link up. Returns whom it is for.
    pub(super) fn follow(&mut self, code: &str, now: Instant) -> Option<Caller> {
        self.expire(now);
        self.links.remove(&key_of(code)).map(|(caller, _)| caller)
    }

    /// Ends what is too old, and what was opened with tokens that are good no longer.
    pub(super) fn expire(&mut self, now: Instant) {
        self.sessions
            .retain(|_, (session, expires)| now < *expires && !session.caller().revoked.has_ended());
        self.links
            .retain(|_, (caller, expires)| now < *expires && !caller.revoked.has_ended());
    }
}

#[cfg(test)]
mod tests {
    use pegboard::Principal;

    use super::*;

    fn caller(name: &str) -> Caller {
        Caller {
            principal: Some(Principal::new(name)),
            ..Caller::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_is_followed_once_and_for_a_few_minutes() {
        let mut tables = Tables::default();
        let code = tables.link(&caller("ada"), Instant::now()).unwrap();
        assert_eq!(code.expose().len(), 43, "256 bits");
        assert!(tables.follow("made up", Instant::now()).is_none());
        assert_eq!(tables.follow(code.expose(), Instant::now()), Some(caller("ada")));
        assert!(tables.follow(code.expose(), Instant::now()).is_none());
        let late = tables.link(&caller("ada"), Instant::now()).unwrap();
        tokio::time::advance(LINK_TIME).await;
        assert!(tables.follow(late.expose(), Instant::now()).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_with_its_time_its_token_or_the_sign_out() {
        let mut tables = Tables::default();
        let (ada, bob) = (caller("ada"), caller("bob"));
        let begin = |tables: &mut Tables, caller: &Caller| tables.begin(caller, Instant::now()).unwrap().0;
        let is_open = |tables: &mut Tables, cookie: &Secret| tables.find(cookie.expose(), Instant::now()).is_some();
        let (of_ada, of_bob, signed_out) = (
            begin(&mut tables, &ada),
            begin(&mut tables, &bob),
            begin(&mut tables, &bob),
        );
        tables.end(signed_out.expose());
        assert!(!is_open(&mut tables, &signed_out) && is_open(&mut tables, &of_bob));
        bob.revoked.revoke();
        assert!(!is_open(&mut tables, &of_bob) && is_open(&mut tables, &of_ada));
        tokio::time::advance(SESSION_TIME).await;
        assert!(!is_open(&mut tables, &of_ada));
    }

    #[tokio::test(start_paused = true)]
    async fn page_loads_with_fewer_rights_end_no_session_with_more() {
        let mut tables = Tables::default();
        let reader = Caller {
            scopes: [Scope::Read].into_iter().collect(),
            ..Caller::default()
        };
        let owner = tables.begin(&Caller::default(), Instant::now()).unwrap().0;
        for _ in 0..2 * MAX_OF_PRINCIPAL {
            tokio::time::advance(Duration::from_secs(1)).await;
            tables.begin(&reader, Instant::now()).unwrap();
        }
        assert!(tables.find(owner.expose(), Instant::now()).is_some());
        assert_eq!(tables.sessions.len(), MAX_OF_PRINCIPAL);
    }

    #[tokio::test(start_paused = true)]
    async fn a_principal_keeps_its_newest_sessions_and_there_is_a_bound_for_all() {
        let mut tables = Tables::default();
        let first = tables.begin(&caller("ada"), Instant::now()).unwrap().0;
        for _ in 0..MAX_OF_PRINCIPAL {
            tokio::time::advance(Duration::from_secs(1)).await;
            tables.begin(&caller("ada"), Instant::now()).unwrap();
        }
        assert!(tables.find(first.expose(), Instant::now()).is_none());
        assert_eq!(tables.sessions.len(), MAX_OF_PRINCIPAL);
        for number in MAX_OF_PRINCIPAL..MAX {
            tables.begin(&caller(&format!("p{number}")), Instant::now()).unwrap();
        }
        let further = tables.begin(&caller("eve"), Instant::now());
        assert_eq!(further.unwrap_err(), NoSession::TooMany);
    }
}
