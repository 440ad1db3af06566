//! Pages of listings. A cursor is the position of the next page, in a form that clients must not read anything into.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use crate::protocol::{Params, RpcError};

/// The most items of one page.
const PAGE: usize = 1000;

/// The items of the page that the params name, and the cursor of the next page.
pub(super) fn page<'a, T>(items: &'a [T], params: &Params) -> Result<(&'a [T], Option<String>), RpcError> {
    let start = match params.text("cursor") {
        None => 0,
        Some(cursor) => parse(&cursor).filter(|start| *start < items.len()).ok_or_else(|| {
            RpcError::invalid_params(
                "`cursor` is not one of this list, or the list has changed; begin again without it",
            )
        })?,
    };
    let end = items.len().min(start + PAGE);
    let next = (end < items.len()).then(|| BASE64_URL_SAFE_NO_PAD.encode(end.to_string()));
    Ok((&items[start..end], next))
}

fn parse(cursor: &str) -> Option<usize> {
    // Longer than any position.
    if cursor.len() > 40 {
        return None;
    }
    let text = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
    std::str::from_utf8(&text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use pegboard_protocol::code;
    use serde_json::json;

    use super::*;

    fn params(cursor: Option<&str>) -> Params {
        let json = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        Params::from_text(Bytes::from(json.to_string())).unwrap()
    }

    #[test]
    fn pages_together_are_the_list() {
        let items: Vec<usize> = (0..2500).collect();
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let (page, next) = page(&items, &params(cursor.as_deref())).unwrap();
            seen.extend_from_slice(page);
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, items);
        assert_eq!(page(&[] as &[u8], &params(None)).unwrap(), (&[][..], None));
    }

    #[test]
    fn a_cursor_of_no_page_is_an_error() {
        let items = [1, 2, 3];
        for cursor in ["", "x", "MA==", "Mw", &"A".repeat(1000)] {
            let error = page(&items, &params(Some(cursor))).unwrap_err();
            assert_eq!(error.code, code::INVALID_PARAMS, "{cursor}");
        }
    }
}
