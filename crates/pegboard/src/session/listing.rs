//! Listings to their last page, with a guard against those that have none.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::Value;

use super::{Fault, Patience, Request, Session, frame::Params};
use crate::deadline::Deadline;

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
        warnings: &mut Vec<String>,
    ) -> Result<Vec<Value>, Fault> {
        let mut items = Vec::new();
        let mut seen = HashSet::new();
        let mut cursor: Option<String> = None;
        for page in 1.. {
            let params = Params::default().with_some("cursor", cursor.as_deref());
            let request = Request::new(method, params);
            let answer = self.line.request(request, Patience::until(deadline), None).await?;
            let (part, next) =
                read_page(&answer, key).map_err(|problem| Fault::unreadable(format!("{method}: {problem}")))?;
            items.extend(part);
            let Some(next) = next else { break };
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
            warnings.push(format!(
                "{surplus} of {} {key} were left out: the limit is {}",
                items.len(),
                self.limits.items
            ));
            items.truncate(self.limits.items);
        }
        Ok(items)
    }
}

/// The items of one page and the cursor of the next.
fn read_page(answer: &[u8], key: &str) -> Result<(Vec<Value>, Option<String>), String> {
    #[derive(Deserialize)]
    struct Page {
        #[serde(rename = "nextCursor", default)]
        next: Option<String>,
        #[serde(flatten)]
        rest: serde_json::Map<String, Value>,
    }
    let mut page: Page = serde_json::from_slice(answer).map_err(|error| error.to_string())?;
    match page.rest.remove(key) {
        Some(Value::Array(items)) => Ok((items, page.next)),
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
        assert_eq!(page, (vec![1.into(), 2.into()], Some("a".to_owned())));
        let last = read_page(br#"{"tools":[],"nextCursor":null}"#, "tools").unwrap();
        assert_eq!(last, (vec![], None));
        assert_eq!(read_page(b"{}", "tools").unwrap_err(), "`tools` is missing");
        assert_eq!(
            read_page(br#"{"tools":{}}"#, "tools").unwrap_err(),
            "`tools` is no list"
        );
        assert!(read_page(b"[]", "tools").is_err());
    }
}
