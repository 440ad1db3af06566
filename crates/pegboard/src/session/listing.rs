//! Listings to their last page, with a guard against those that have none.

use std::collections::HashSet;

use serde_json::Value;

use super::{Fault, Patience, Request, Session, frame::Params};
use crate::{
    catalog::{Catalog, store::Freshness},
    deadline::Deadline,
};

/// The longest cursor that is sent back.
const MAX_CURSOR: usize = 64 << 10;

impl Session {
    /// All items of a listing, from all its pages. A listing that does not end, or whose cursor comes twice, is an error: half a
    /// list would look like a whole one.
    pub(super) async fn list(
        &self,
        method: &'static str,
        key: &str,
        deadline: Deadline,
        gathered: &mut Gathered,
    ) -> Result<Vec<Value>, Fault> {
        let mut items = Vec::new();
        let mut seen = HashSet::new();
        let mut cursor: Option<String> = None;
        for page in 1.. {
            let params = Params::default().with_some("cursor", cursor.as_deref());
            let request = Request::new(method, params);
            let answer = self.line.request(request, Patience::until(deadline), None).await?;
            let part = read_page(&answer, key).map_err(|problem| Fault::unreadable(format!("{method}: {problem}")))?;
            items.extend(part.items);
            gathered.hears(part.freshness);
            let Some(next) = part.next else { break };
            if page >= self.limits.pages || items.len() > self.limits.items {
                let text = format!("{method} did not end after {page} pages with {} items", items.len());
                return Err(Fault::unreadable(text));
            }
            if next.len() > MAX_CURSOR {
                return Err(Fault::unreadable(format!(
                    "{method} gave a cursor of {} bytes",
                    next.len()
                )));
            }
            if !seen.insert(next.clone()) {
                return Err(Fault::unreadable(format!(
                    "{method} gave the same cursor twice, on page {page}"
                )));
            }
            cursor = Some(next);
        }
        if items.len() > self.limits.items {
            let surplus = items.len() - self.limits.items;
            gathered.catalog.warnings.push(format!(
                "{surplus} of {} {key} were left out: the limit is {}",
                items.len(),
                self.limits.items
            ));
            items.truncate(self.limits.items);
        }
        Ok(items)
    }
}

/// What has been listed so far, and how long the server lets us keep it.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) catalog: Catalog,
    pub(super) freshness: Option<Freshness>,
}

impl Gathered {
    /// The strictest word of all pages counts.
    fn hears(&mut self, freshness: Freshness) {
        self.freshness = Some(match self.freshness {
            Some(before) => before.and(freshness),
            None => freshness,
        });
    }
}

/// One page of a listing.
#[derive(Debug, PartialEq)]
struct Page {
    items: Vec<Value>,
    next: Option<String>,
    freshness: Freshness,
}

fn read_page(answer: &[u8], key: &str) -> Result<Page, String> {
    let mut page: Value = serde_json::from_slice(answer).map_err(|error| error.to_string())?;
    let next = match page.get_mut("nextCursor").map(Value::take) {
        Some(Value::String(cursor)) => Some(cursor),
        None | Some(Value::Null) => None,
        Some(_) => return Err("`nextCursor` is no text".to_owned()),
    };
    let freshness = Freshness::read(&page);
    match page.get_mut(key).map(Value::take) {
        Some(Value::Array(items)) => Ok(Page { items, next, freshness }),
        Some(_) => Err(format!("`{key}` is no list")),
        None => Err(format!("`{key}` is missing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_items_and_perhaps_a_cursor() {
        let page = read_page(br#"{"tools":[1,2],"nextCursor":"a","ttlMs":5}"#, "tools").unwrap();
        assert_eq!(
            (page.items, page.next.as_deref()),
            (vec![1.into(), 2.into()], Some("a"))
        );
        assert_eq!(page.freshness.ttl, Some(std::time::Duration::from_millis(5)));
        let last = read_page(br#"{"tools":[],"nextCursor":null}"#, "tools").unwrap();
        assert_eq!((last.items, last.next), (vec![], None));
        assert_eq!(read_page(b"{}", "tools").unwrap_err(), "`tools` is missing");
        assert_eq!(
            read_page(br#"{"tools":{}}"#, "tools").unwrap_err(),
            "`tools` is no list"
        );
        assert!(read_page(b"[]", "tools").is_err());
    }
}
