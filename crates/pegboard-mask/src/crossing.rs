//! Finds the secrets of other servers in what is sent to a server.

use super::{
    counts::Counts,
    server_masker::ServerMasker,
    span::{Span, replace},
};
use pegboard_base::name::ServerName;

/// The shortest word that counts as another server's secret. A password such as `postgres` is also a word of ordinary arguments.
const MIN_WORD: usize = 12;

/// Whether a text for a server contains secrets that are not its own.
#[derive(Debug)]
pub enum Crossing {
    /// It contains none.
    Clean,
    /// It contains some.
    Found(Crossed),
    /// The text could not be searched.
    Unknown,
}

/// The secrets in a text for a server that are not its own.
#[derive(Debug)]
pub struct Crossed {
    /// The other servers whose secrets are in the text. The server itself, if they are those of another user of it.
    pub owners: Vec<ServerName>,
    spans: Vec<Span>,
}

impl ServerMasker {
    /// Searches a text for this server. Costs one pass over the text unless it contains a known secret.
    pub fn find_crossing(&self, text: &str) -> Crossing {
        match self.owned.known.values().find(text) {
            Ok(spans) if spans.is_empty() => Crossing::Clean,
            Ok(spans) => self.classify(text, spans),
            Err(_) => Crossing::Unknown,
        }
    }

    /// Sorts out which of the secrets are this server's own, and finds the owners of the others.
    fn classify(&self, text: &str, mut spans: Vec<Span>) -> Crossing {
        let Ok(own) = self.owned.matcher().find(text) else {
            return Crossing::Unknown;
        };
        let is_own = |span: &Span| {
            own.iter()
                .any(|own| own.range.start <= span.range.start && span.range.end <= own.range.end)
        };
        spans.retain(|span| !is_own(span));
        let mut owners = Vec::new();
        for other in self.owned.known.owners() {
            let Some(owner) = other.owner.get().filter(|owner| self.owned.owner.get() != Some(owner)) else {
                continue;
            };
            let Ok(mut found) = other.matcher().find(text) else {
                return Crossing::Unknown;
            };
            found.retain(|span| !is_own(span));
            if found.iter().any(|span| !is_word(&text[span.range.clone()])) && !owners.contains(&owner.server) {
                owners.push(owner.server.clone());
            }
            spans.extend(found);
        }
        if spans.is_empty() {
            return Crossing::Clean;
        }
        Crossing::Found(Crossed { owners, spans })
    }
}

impl Crossed {
    /// Replaces the secrets in the text by placeholders.
    pub fn mask(self, text: &str) -> String {
        replace(text, self.spans, &mut Counts::default()).map_or_else(|| text.to_owned(), |replaced| replaced.text)
    }
}

fn is_word(found: &str) -> bool {
    found.len() < MIN_WORD && found.chars().all(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KnownSecrets, Masking};
    use pegboard_base::secret::Secret;

    fn masker(known: &KnownSecrets, name: &str, secrets: &[&str]) -> ServerMasker {
        let masker = ServerMasker::new(&Masking::default(), known.clone());
        masker.set_server(&ServerName::parse(name).unwrap());
        masker.own_secrets(secrets.iter().map(|secret| Secret::new(*secret)));
        masker
    }

    #[track_caller]
    fn check(masker: &ServerMasker, text: &str, want: Option<&[&str]>) {
        let owners = match masker.find_crossing(text) {
            Crossing::Clean => None,
            Crossing::Found(found) => Some(found.owners),
            Crossing::Unknown => panic!("{text} was not searched"),
        };
        let owners: Option<Vec<&str>> = owners
            .as_ref()
            .map(|owners| owners.iter().map(ServerName::as_str).collect());
        assert_eq!(owners.as_deref(), want, "{text}");
    }

    #[test]
    fn a_secret_crosses_unless_it_is_the_servers_own() {
        let known = KnownSecrets::default();
        known.learn([Secret::new("n0b0dys-secret")]);
        let a = masker(&known, "a", &["t0ken-of-a", "shared-t0ken", "postgres"]);
        let b = masker(&known, "b", &["t0ken-of-b", "shared-t0ken"]);
        check(&b, "nothing here", None);
        check(&b, "it is t0ken-of-a.", Some(&["a"]));
        check(&b, "it is dDBrZW4tb2YtYQ==.", Some(&["a"]));
        check(&b, "mine: t0ken-of-b, both: shared-t0ken", None);
        check(&a, "t0ken-of-b and t0ken-of-a", Some(&["b"]));
        check(&b, "n0b0dys-secret", Some(&[]));
        check(&b, "the postgres database", Some(&[]));
        drop(a);
        check(&b, "it is t0ken-of-a.", None);
    }

    #[test]
    fn a_token_of_one_user_of_a_server_crosses_to_another() {
        let known = KnownSecrets::default();
        let board = masker(&known, "a", &["config-t0ken"]);
        let (alice, bob) = (board.for_user(1), board.for_user(2));
        alice.add_issued(&[Secret::new("t0ken-of-alice")].into());
        bob.add_issued(&[Secret::new("t0ken-of-bob")].into());
        check(&alice, "t0ken-of-alice and config-t0ken", None);
        check(&bob, "t0ken-of-alice", Some(&["a"]));
        check(&board, "t0ken-of-alice", Some(&["a"]));
        assert_eq!(
            bob.text("t0ken-of-alice, config-t0ken"),
            "[MASKED_SECRET], [MASKED_SECRET]"
        );
    }

    #[test]
    fn a_secret_that_is_part_of_the_servers_own_does_not_cross_but_a_longer_one_does() {
        let known = KnownSecrets::default();
        let _a = masker(&known, "a", &["abc123xyz"]);
        let b = masker(&known, "b", &["prefix-abc123xyz-suffix"]);
        let _c = masker(&known, "c", &["prefix-abc123xyz-suffix-and-more"]);
        check(&b, "prefix-abc123xyz-suffix", None);
        check(&b, "abc123xyz", Some(&["a"]));
        check(&b, "prefix-abc123xyz-suffix-and-more", Some(&["c"]));
    }
}
