//! User and password in URLs.

use url::Url;

/// Takes user and password out of a URL, so that they do not show up in logs. They are decoded.
pub fn take_userinfo(url: &mut Url) -> Option<(Vec<u8>, Vec<u8>)> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let pair = (
        percent_decode(url.username()),
        percent_decode(url.password().unwrap_or_default()),
    );
    // A URL with a host takes both, so these cannot fail.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Some(pair)
}

/// Percent-decodes a part of a URL. Invalid escapes are kept as they are.
fn percent_decode(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut decoded = Vec::new();
    while let [first, after @ ..] = rest {
        let byte = match after {
            [high, low, ..] if *first == b'%' => std::str::from_utf8(&[*high, *low])
                .ok()
                .and_then(|hex| u8::from_str_radix(hex, 16).ok()),
            _ => None,
        };
        decoded.push(byte.unwrap_or(*first));
        rest = &rest[if byte.is_some() { 3 } else { 1 }..];
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_are_taken_and_decoded() {
        for (url, user, password) in [
            ("http://me:pw@h/", "me", "pw"),
            ("http://me@h/", "me", ""),
            ("http://a%40b:p%3a%C3%A9%25@h/", "a@b", "p:é%"),
            ("http://me:100%@h/", "me", "100%"),
        ] {
            let mut url = Url::parse(url).unwrap();
            assert_eq!(take_userinfo(&mut url), Some((user.into(), password.into())));
            assert_eq!(url.as_str(), "http://h/");
        }
        assert_eq!(take_userinfo(&mut Url::parse("http://h/").unwrap()), None);
    }
}
