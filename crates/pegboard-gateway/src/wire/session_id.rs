//! [`SessionId`]: the id of a legacy session as its client sends it: a secret, and after a dot what the handshake has settled, sealed.

use std::fmt;

use http::HeaderValue;

use super::secret_id::SecretId;

/// The longest id that is looked at.
const MAX_LENGTH: usize = 4096;

/// The id of a session. It is never printed.
#[derive(Clone, Copy)]
pub(super) struct SessionId<'a> {
    pub(super) secret: SecretId,
    /// `None` if the client has said too much about itself to keep it in an id.
    pub(super) sealed: Option<&'a str>,
}

impl<'a> SessionId<'a> {
    pub(super) fn parse(text: &'a [u8]) -> Option<Self> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        let (secret, rest) = text.split_at_checked(SecretId::LENGTH)?;
        let sealed = match rest {
            [] => None,
            [b'.', sealed @ ..] => Some(std::str::from_utf8(sealed).ok()?),
            _ => return None,
        };
        Some(Self {
            secret: SecretId::parse(secret)?,
            sealed,
        })
    }

    /// The id as a header.
    pub(super) fn header(self) -> Option<HeaderValue> {
        let mut text = self.secret.text();
        if let Some(sealed) = self.sealed {
            text.push('.');
            text.push_str(sealed);
        }
        let mut value = HeaderValue::try_from(text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for SessionId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionId(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written() {
        let secret = SecretId::random().unwrap();
        for sealed in [None, Some("abc-_9")] {
            let header = SessionId { secret, sealed }.header().unwrap();
            assert!(header.is_sensitive());
            let read = SessionId::parse(header.as_bytes()).unwrap();
            assert_eq!((read.secret, read.sealed), (secret, sealed));
        }
    }

    #[test]
    fn anything_else_is_no_id() {
        let secret = SecretId::random().unwrap().text();
        let long = format!("{secret}.{}", "a".repeat(MAX_LENGTH));
        for text in ["", ".", "abc", &secret[1..], &format!("{secret}x"), &long] {
            assert!(SessionId::parse(text.as_bytes()).is_none(), "{text}");
        }
    }
}
