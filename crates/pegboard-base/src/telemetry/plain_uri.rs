//! [`plain_uri`]: the URI of a resource as telemetry has it.

use std::borrow::Cow;

/// A URI without user, password, query and fragment, which may be secrets.
pub fn plain_uri(uri: &str) -> Cow<'_, str> {
    let end = uri.find(['?', '#']).unwrap_or(uri.len());
    let uri = &uri[..end];
    let Some((scheme, rest)) = uri.split_once("://") else {
        return Cow::Borrowed(uri);
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        Some((_, host)) => Cow::Owned(format!("{scheme}://{host}{path}")),
        None => Cow::Borrowed(uri),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_secret_is_left_out() {
        for (uri, expected) in [
            ("file:///a/b.txt", "file:///a/b.txt"),
            ("https://u:pw@h:1/p@q?token=x#y", "https://h:1/p@q"),
            ("https://a@b@c", "https://c"),
            ("memo:x?y", "memo:x"),
            ("", ""),
        ] {
            assert_eq!(plain_uri(uri), expected, "{uri}");
        }
    }
}
