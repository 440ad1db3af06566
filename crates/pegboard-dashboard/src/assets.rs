//! The style sheet and the scripts, which are a part of the program. Their address has their digest, so browsers keep them.

use std::sync::LazyLock;

use axum::{
    body::Body,
    extract::Path,
    response::{IntoResponse as _, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH},
};
use sha2::{Digest as _, Sha256};

/// A file that pages load.
struct Asset {
    name: &'static str,
    media_type: &'static str,
    content: &'static str,
}

const ASSETS: &[Asset] = &[
    Asset {
        name: "dashboard.css",
        media_type: "text/css; charset=utf-8",
        content: include_str!("assets/dashboard.css"),
    },
    Asset {
        name: "dashboard.js",
        media_type: "text/javascript; charset=utf-8",
        content: include_str!("assets/dashboard.js"),
    },
    Asset {
        name: "morph.js",
        media_type: "text/javascript; charset=utf-8",
        content: include_str!("assets/morph.js"),
    },
    Asset {
        name: "icon.svg",
        media_type: "image/svg+xml",
        content: include_str!("assets/icon.svg"),
    },
];

/// The digest of all assets: one changes with the program, and they refer to each other.
static DIGEST: LazyLock<String> = LazyLock::new(|| {
    let mut digest = Sha256::new();
    for asset in ASSETS {
        digest.update(asset.name);
        digest.update(asset.content);
    }
    let digest = digest.finalize();
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
});

/// The address of an asset.
pub(crate) fn url(name: &str) -> String {
    format!("/ui/assets/{}/{name}", *DIGEST)
}

/// `GET /ui/assets/{digest}/{name}`. It needs no rights: the files are the same for everyone.
pub(crate) async fn get(Path((digest, name)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name && digest == *DIGEST) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let etag = format!("\"{digest}\"");
    let is_known = headers
        .get(IF_NONE_MATCH)
        .is_some_and(|known| known.as_bytes() == etag.as_bytes());
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Response::new(Body::from(asset.content)),
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=31536000, immutable"),
    );
    if let Ok(etag) = HeaderValue::try_from(etag) {
        headers.insert(ETAG, etag);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_asset_is_kept_by_browsers_under_the_address_of_its_content() {
        let digest = || DIGEST.clone();
        let response = get(Path((digest(), "dashboard.css".to_owned())), HeaderMap::new()).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert!(
            response.headers()[CACHE_CONTROL]
                .to_str()
                .unwrap()
                .contains("immutable")
        );
        let known = HeaderMap::from_iter([(IF_NONE_MATCH, response.headers()[ETAG].clone())]);
        let again = get(Path((digest(), "dashboard.css".to_owned())), known).await;
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        for (digest, name) in [("0".to_owned(), "dashboard.css"), (digest(), "other.css")] {
            let missing = get(Path((digest, name.to_owned())), HeaderMap::new()).await;
            assert_eq!(missing.status(), StatusCode::NOT_FOUND);
        }
    }

    #[test]
    fn no_asset_asks_another_origin_for_anything() {
        for asset in ASSETS {
            let content = asset.content.replace("http://www.w3.org/2000/svg", "");
            assert!(!content.contains("//") || !content.contains("http"), "{}", asset.name);
            assert!(
                !content.contains("@import") && !content.contains("url("),
                "{}",
                asset.name
            );
        }
    }
}
