//! Pages of a listing. A cursor is the number of items before the page.

use ::rmcp::{ErrorData, model::PaginatedRequestParams};

/// The most items of a page. The definitions of a thousand tools are about a megabyte, and rmcp's clients accept 16 MiB.
const PAGE: usize = 1000;

/// The requested page, and the cursor of the next one.
pub(super) fn page<T>(
    items: &[T],
    request: Option<PaginatedRequestParams>,
) -> Result<(&[T], Option<String>), ErrorData> {
    let start = match request.and_then(|request| request.cursor) {
        None => 0,
        Some(cursor) => cursor.parse().map_err(|_| {
            let message = format!("`{}` is not a cursor of this server", cursor.escape_debug());
            ErrorData::invalid_params(message, None)
        })?,
    };
    // The list may have become shorter since the cursor was given.
    let rest = items.get(start..).unwrap_or_default();
    let next = (rest.len() > PAGE).then(|| (start + PAGE).to_string());
    Ok((&rest[..rest.len().min(PAGE)], next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(cursor: &str) -> Option<PaginatedRequestParams> {
        Some(PaginatedRequestParams::default().with_cursor(Some(cursor.to_owned())))
    }

    #[test]
    fn the_pages_join_to_the_list() {
        for len in [0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE] {
            let items: Vec<usize> = (0..len).collect();
            let (mut joined, mut request) = (Vec::new(), None);
            loop {
                let (part, next) = page(&items, request).unwrap();
                assert!(part.len() <= PAGE);
                joined.extend_from_slice(part);
                let Some(next) = next else { break };
                request = at(&next);
            }
            assert_eq!(joined, items);
        }
    }

    #[test]
    fn a_cursor_behind_the_end_is_an_empty_page_and_a_word_is_an_error() {
        assert_eq!(page(&[1, 2], at("9")).unwrap(), (&[][..], None));
        assert!(page(&[1, 2], at("next")).unwrap_err().message.contains("`next`"));
    }
}
