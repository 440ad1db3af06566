//! [`Tables`]: the links and visits that are open.

use std::{collections::HashMap, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use pegboard::{Secret, ServerName};
use ring::digest::{SHA256, digest};
use tokio::time::Instant;

use super::page_address::NoSignInPage;
use crate::door::Caller;

/// How long a link can be followed.
pub(super) const LINK_TIME: Duration = Duration::from_secs(10 * 60);
/// A link is given out again while it has this much time left.
const REUSE_TIME: Duration = Duration::from_secs(5 * 60);
/// How long a visit lasts.
const VISIT_TIME: Duration = Duration::from_secs(30 * 60);
/// How long a visit lasts after its last form if the token of its client has expired.
const SIGN_IN_TIME: Duration = Duration::from_secs(10 * 60);
/// The most links of one principal, and the most visits. The oldest one ends for a further one; of the visits, first those without a form.
const MAX_OF_PRINCIPAL: usize = 10;
/// The most links in all, and the most visits. Further ones are refused.
const MAX: usize = 1000;

/// What identifies a link or a visit: the digest of its secret, so that a lookup takes the same time whatever a browser sends.
pub(super) type Key = [u8; 32];

pub(super) fn key_of(secret: &str) -> Key {
    let mut key = [0; 32];
    key.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
    key
}

/// A name for a link from which its code cannot be found.
pub(super) fn public_id(code: &str) -> String {
    URL_SAFE_NO_PAD.encode(&key_of(code)[..16])
}

/// The links and visits that are open.
#[derive(Debug, Default)]
pub(super) struct Tables {
    links: HashMap<Key, Link>,
    visits: HashMap<Key, SignInVisit>,
}

#[derive(Debug)]
struct Link {
    caller: Caller,
    /// The only server that it is for; `None` means all of the caller's.
    server: Option<ServerName>,
    code: Secret,
    expires: Instant,
}

/// The visit of a browser that came with a link, or of the user of a gateway without tokens.
#[derive(Clone, Debug)]
pub struct SignInVisit {
    caller: Caller,
    form_token: Secret,
    rights: Vec<Right>,
    expires: Instant,
    /// When a form of it was sent last: its sign-in may have begun then.
    acted: Option<Instant>,
}

/// What a visit may sign in to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Right {
    /// The only server; `None` means all of the caller's.
    server: Option<ServerName>,
    /// The link that it comes from, until it is used.
    link: Option<Key>,
}

impl SignInVisit {
    /// For whom the browser signs in.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// What every form of the visit must contain, so that no other page can send one.
    pub fn form_token(&self) -> &Secret {
        &self.form_token
    }

    /// Whether a form contains the token of this visit.
    pub fn has_form_token(&self, sent: &str) -> bool {
        key_of(sent) == key_of(self.form_token.expose())
    }

    /// Whether the visit is for all servers of its caller, and not for single ones.
    pub fn is_for_all(&self) -> bool {
        self.rights.iter().any(|right| right.server.is_none())
    }

    /// Whether the visit is for any server. It is for none once its only link was used in another browser.
    pub fn is_for_any(&self) -> bool {
        !self.rights.is_empty()
    }

    /// Whether the visit is for this server, if its caller may use it.
    pub fn is_for(&self, server: &ServerName) -> bool {
        self.rights.iter().any(|right| right.covers(server))
    }

    fn add(&mut self, right: Right) {
        if !self.rights.contains(&right) {
            self.rights.truncate(MAX_OF_PRINCIPAL - 1);
            self.rights.insert(0, right);
        }
    }
}

impl Right {
    fn covers(&self, server: &ServerName) -> bool {
        self.server.as_ref().is_none_or(|only| only == server)
    }
}

impl Tables {
    /// The code of a link, of the last one for the same purpose if that has enough time left. Also returns that time.
    pub(super) fn link(
        &mut self,
        caller: &Caller,
        server: Option<&ServerName>,
        now: Instant,
    ) -> Result<(Secret, Duration), NoSignInPage> {
        self.expire(now);
        let is_same = |link: &&Link| link.caller == *caller && link.server.as_ref() == server;
        let known = self.links.values().filter(is_same).max_by_key(|link| link.expires);
        if let Some(known) = known.filter(|link| link.expires >= now + REUSE_TIME) {
            return Ok((known.code.clone(), known.expires - now));
        }
        make_room(&mut self.links, |link| (&link.caller, (false, link.expires)), caller)?;
        let code = random_secret()?;
        let link = Link {
            caller: caller.clone(),
            server: server.cloned(),
            code: code.clone(),
            expires: now + LINK_TIME,
        };
        self.links.insert(key_of(code.expose()), link);
        Ok((code, LINK_TIME))
    }

    /// Whose link a code is of, and for which server.
    pub(super) fn find_link(&mut self, code: &str, now: Instant) -> Option<(Caller, Option<ServerName>)> {
        self.expire(now);
        let link = self.links.get(&key_of(code))?;
        Some((link.caller.clone(), link.server.clone()))
    }

    /// Begins a visit with the right of a link, or with all rights of a caller. A visit of the same caller that goes on gets the right, and
    /// needs no new cookie: `None`.
    pub(super) fn begin(
        &mut self,
        caller: &Caller,
        (server, code): (Option<ServerName>, Option<&str>),
        cookie: Option<&str>,
        now: Instant,
    ) -> Result<Option<Secret>, NoSignInPage> {
        let right = Right {
            server,
            link: code.map(key_of),
        };
        self.expire(now);
        if let Some(visit) = cookie.and_then(|cookie| self.visits.get_mut(&key_of(cookie)))
            && visit.caller == *caller
        {
            if visit.caller.revoked.has_ended() {
                // A newer token with the same rights: the visit is one of that.
                visit.caller = caller.clone();
            }
            visit.add(right);
            return Ok(None);
        }
        // A program that previews links makes visits too, and must not end that of the person.
        let order = |visit: &SignInVisit| (visit.acted.is_some(), visit.expires);
        make_room(&mut self.visits, |visit| (&visit.caller, order(visit)), caller)?;
        let cookie = random_secret()?;
        let visit = SignInVisit {
            caller: caller.clone(),
            form_token: random_secret()?,
            rights: vec![right],
            expires: now + VISIT_TIME,
            acted: None,
        };
        self.visits.insert(key_of(cookie.expose()), visit);
        Ok(Some(cookie))
    }

    pub(super) fn visit(&mut self, cookie: &str, now: Instant) -> Option<SignInVisit> {
        self.expire(now);
        self.visits.get(&key_of(cookie)).cloned()
    }

    /// Uses up the link that a visit's right to sign in to a server comes from. Returns `false` if another browser has used it, or it has
    /// expired.
    pub(super) fn use_up(&mut self, cookie: &str, server: &ServerName, now: Instant) -> bool {
        self.expire(now);
        let Some(visit) = self.visits.get_mut(&key_of(cookie)) else {
            return false;
        };
        let links = &mut self.links;
        visit.rights.retain_mut(|right| match right.link {
            Some(link) if right.covers(server) => {
                right.link = None;
                links.remove(&link).is_some()
            }
            _ => true,
        });
        let is_good = visit.is_for(server);
        if is_good && !visit.caller.revoked.has_ended() {
            visit.acted = Some(now);
        }
        is_good
    }

    /// Ends the links and visits whose time is over, and those of tokens that were revoked. The access token of a client may live for minutes
    /// only, so its end leaves a person the time for a sign-in that has begun.
    pub(super) fn expire(&mut self, now: Instant) {
        self.links
            .retain(|_, link| now < link.expires && !link.caller.revoked.has_ended());
        self.visits.retain(|_, visit| {
            let revoked = &visit.caller.revoked;
            let is_signing_in = || visit.acted.is_some_and(|acted| now < acted + SIGN_IN_TIME);
            now < visit.expires && (!revoked.has_ended() || (revoked.has_expired() && is_signing_in()))
        });
    }
}

/// Ends the first entry of a principal that has too many, in the order of what `parts` returns with its caller. Fails if there are too many in all.
fn make_room<T>(
    table: &mut HashMap<Key, T>,
    parts: impl Fn(&T) -> (&Caller, (bool, Instant)),
    caller: &Caller,
) -> Result<(), NoSignInPage> {
    let own = table
        .iter()
        .filter(|(_, entry)| parts(entry).0.principal == caller.principal);
    let own: Vec<_> = own.map(|(key, entry)| (*key, parts(entry).1)).collect();
    if own.len() >= MAX_OF_PRINCIPAL
        && let Some((oldest, _)) = own.iter().min_by_key(|(_, order)| *order)
    {
        table.remove(oldest);
    }
    match table.len() < MAX {
        true => Ok(()),
        false => Err(NoSignInPage::TooMany),
    }
}

/// 256 random bits as text.
fn random_secret() -> Result<Secret, NoSignInPage> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| NoSignInPage::NoRandomNumbers)?;
    Ok(Secret::from(URL_SAFE_NO_PAD.encode(bytes)))
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

    fn server(name: &str) -> ServerName {
        ServerName::parse(name).unwrap()
    }

    /// The code of a new link for one server.
    fn link(tables: &mut Tables, who: &str, to: &str) -> Secret {
        tables.link(&caller(who), Some(&server(to)), Instant::now()).unwrap().0
    }

    /// Follows a link in a fresh browser. Returns its cookie.
    fn follow(tables: &mut Tables, code: &Secret) -> Secret {
        let now = Instant::now();
        let (caller, server) = tables.find_link(code.expose(), now).unwrap();
        let begun = tables.begin(&caller, (server, Some(code.expose())), None, now);
        begun.unwrap().unwrap()
    }

    #[tokio::test]
    async fn a_link_can_be_looked_at_often_and_used_by_one_browser() {
        let mut tables = Tables::default();
        let code = link(&mut tables, "ada", "wiki");
        assert_eq!(code.expose().len(), 43, "256 bits");
        let (first, second) = (follow(&mut tables, &code), follow(&mut tables, &code));
        assert_ne!(first, second);
        let now = Instant::now();
        assert!(!tables.use_up(first.expose(), &server("mail"), now));
        assert!(tables.use_up(second.expose(), &server("wiki"), now));
        assert!(
            tables.use_up(second.expose(), &server("wiki"), now),
            "the visit goes on"
        );
        assert!(!tables.use_up(first.expose(), &server("wiki"), now));
        assert!(tables.find_link(code.expose(), now).is_none());
        assert!(!tables.use_up("made up", &server("wiki"), now));
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_is_the_same_for_a_while_and_expires() {
        let mut tables = Tables::default();
        let code = link(&mut tables, "ada", "wiki");
        assert_eq!(code, link(&mut tables, "ada", "wiki"));
        assert_ne!(code, link(&mut tables, "bob", "wiki"));
        assert_ne!(code, link(&mut tables, "ada", "mail"));
        let cookie = follow(&mut tables, &code);
        tokio::time::advance(REUSE_TIME + Duration::from_secs(1)).await;
        let newer = link(&mut tables, "ada", "wiki");
        assert_ne!(code, newer);
        tokio::time::advance(REUSE_TIME).await;
        let now = Instant::now();
        assert!(tables.find_link(code.expose(), now).is_none());
        assert!(tables.find_link(newer.expose(), now).is_some());
        assert!(!tables.use_up(cookie.expose(), &server("wiki"), now));
        assert!(tables.visit(cookie.expose(), now).is_some());
        tokio::time::advance(VISIT_TIME).await;
        assert!(tables.visit(cookie.expose(), Instant::now()).is_none());
    }

    #[tokio::test]
    async fn a_principal_has_ten_links_and_all_have_a_thousand() {
        let mut tables = Tables::default();
        let first = link(&mut tables, "ada", "s0");
        for number in 1..=MAX_OF_PRINCIPAL {
            link(&mut tables, "ada", &format!("s{number}"));
        }
        assert!(tables.find_link(first.expose(), Instant::now()).is_none());
        assert_eq!(tables.links.len(), MAX_OF_PRINCIPAL);
        for number in MAX_OF_PRINCIPAL..MAX {
            link(&mut tables, &format!("p{number}"), "wiki");
        }
        let further = tables.link(&caller("eve"), None, Instant::now());
        assert_eq!(further.unwrap_err(), NoSignInPage::TooMany);
        // One that has links gets another in the place of an old one.
        link(&mut tables, "ada", "further");
        let of_ada = tables.links.values().filter(|link| link.caller == caller("ada"));
        of_ada.for_each(|link| link.caller.revoked.revoke());
        assert!(tables.link(&caller("eve"), None, Instant::now()).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_sign_in_that_has_begun_outlives_a_token_that_expires_but_not_one_that_is_removed() {
        let mut tables = Tables::default();
        let (now, wiki) = (Instant::now(), server("wiki"));
        let open = |tables: &mut Tables, caller: &Caller| {
            let code = tables.link(caller, Some(&wiki), now).unwrap().0;
            (follow(tables, &code), follow(tables, &code))
        };
        let (short, removed, other) = (caller("ada"), caller("bob"), caller("ada"));
        let (begun, looked) = open(&mut tables, &short);
        assert!(tables.use_up(begun.expose(), &wiki, now));
        let (of_removed, _) = open(&mut tables, &removed);
        assert!(tables.use_up(of_removed.expose(), &wiki, now));
        short.revoked.expire();
        removed.revoked.revoke();
        let (of_other, _) = open(&mut tables, &other);
        tables.expire(now);
        let is_open = |tables: &mut Tables, cookie: &Secret| tables.visit(cookie.expose(), Instant::now()).is_some();
        assert!(is_open(&mut tables, &begun) && is_open(&mut tables, &of_other));
        assert!(!is_open(&mut tables, &looked) && !is_open(&mut tables, &of_removed));
        tokio::time::advance(SIGN_IN_TIME / 2).await;
        assert!(tables.use_up(begun.expose(), &wiki, Instant::now()), "still of use");
        tokio::time::advance(SIGN_IN_TIME / 2).await;
        assert!(!is_open(&mut tables, &begun), "a further form gives no more time");
        assert!(is_open(&mut tables, &of_other), "the other token is good");
    }

    #[tokio::test(start_paused = true)]
    async fn a_newer_token_goes_on_with_the_visit_of_one_that_has_expired() {
        let mut tables = Tables::default();
        let (short, wiki) = (caller("ada"), server("wiki"));
        let code = tables.link(&short, Some(&wiki), Instant::now()).unwrap().0;
        let cookie = follow(&mut tables, &code);
        assert!(tables.use_up(cookie.expose(), &wiki, Instant::now()));
        short.revoked.expire();
        let code = link(&mut tables, "ada", "mail");
        let right = (Some(server("mail")), Some(code.expose()));
        let begun = tables.begin(&caller("ada"), right, Some(cookie.expose()), Instant::now());
        assert!(begun.unwrap().is_none(), "the browser keeps its cookie");
        tokio::time::advance(SIGN_IN_TIME).await;
        assert!(tables.visit(cookie.expose(), Instant::now()).is_some());
    }

    #[tokio::test]
    async fn previews_of_a_link_do_not_end_a_sign_in_that_has_begun() {
        let mut tables = Tables::default();
        let (wiki, mail) = (link(&mut tables, "ada", "wiki"), link(&mut tables, "ada", "mail"));
        let cookie = follow(&mut tables, &wiki);
        assert!(tables.use_up(cookie.expose(), &server("wiki"), Instant::now()));
        for _ in 0..3 * MAX_OF_PRINCIPAL {
            follow(&mut tables, &mail);
        }
        assert_eq!(tables.visits.len(), MAX_OF_PRINCIPAL);
        assert!(tables.visit(cookie.expose(), Instant::now()).is_some());
    }

    #[tokio::test]
    async fn a_browser_with_two_links_of_one_person_stays_one_visit() {
        let mut tables = Tables::default();
        let (wiki, mail) = (link(&mut tables, "ada", "wiki"), link(&mut tables, "ada", "mail"));
        let cookie = follow(&mut tables, &wiki);
        let now = Instant::now();
        let mut follow_with = |who: &str, code: &Secret| {
            let right = (Some(server("mail")), Some(code.expose()));
            tables.begin(&caller(who), right, Some(cookie.expose()), now).unwrap()
        };
        assert!(follow_with("ada", &mail).is_none());
        assert!(follow_with("bob", &mail).is_some(), "another person has another visit");
        let visit = tables.visit(cookie.expose(), now).unwrap();
        assert!(visit.is_for(&server("wiki")) && visit.is_for(&server("mail")) && !visit.is_for_all());
        assert!(!visit.is_for(&server("other")));
        assert!(visit.has_form_token(visit.form_token().expose()) && !visit.has_form_token(cookie.expose()));
        let printed = format!("{tables:?}");
        for secret in [&wiki, &mail, &cookie, visit.form_token()] {
            assert!(!printed.contains(secret.expose()));
        }
    }
}
