//! Listings to their last page, with a guard against those that have none.

use std::{
    collections::HashSet,
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use bytes::Bytes;
use serde_json::{Map, Value};

use super::{Fault, Patience, Request, Session, answer::Answer, frame::Params};
use crate::{
    catalog::{Catalog, Item, store::Freshness},
    deadline::Deadline,
    scan::Scan,
};

/// The longest cursor that is sent back.
const MAX_CURSOR: usize = 64 << 10;

impl Session {
    /// All items of a listing, from all its pages.
    pub(super) async fn list(
        &self,
        method: &'static str,
        key: &str,
        deadline: Deadline,
        gathered: &mut Gathered,
    ) -> Result<Vec<Item>, Fault> {
        let mut items = Vec::new();
        let take = |page| items.extend(page);
        self.list_each(method, key, deadline, gathered, take).await?;
        Ok(items)
    }

    /// Hands on the items of a listing, a page at a time. A listing that does not end, or whose cursor comes twice, is an error: half a
    /// list would look like a whole one.
    pub(super) async fn list_each(
        &self,
        method: &'static str,
        key: &str,
        deadline: Deadline,
        gathered: &mut Gathered,
        mut take: impl FnMut(Vec<Item>),
    ) -> Result<(), Fault> {
        let mut seen = HashSet::new();
        let (mut pages, mut count) = (0, 0);
        let mut answer = self.page(method, None, deadline).await?;
        loop {
            let Page {
                mut items,
                next,
                freshness,
            } = Page::of(&answer, key, method)?;
            pages += 1;
            count += items.len();
            gathered.hears(freshness);
            let Some(next) = next else {
                if let Some(warning) = self.leave_out_surplus(key, count, &mut items) {
                    gathered.catalog.warnings.push(warning);
                }
                take(items);
                return Ok(());
            };
            if pages >= self.limits.pages || count > self.limits.items {
                let text = format!("{method} did not end after {pages} pages with {count} items");
                return Err(Fault::unreadable(text));
            }
            if next.len() > MAX_CURSOR {
                let text = format!("{method} gave a cursor of {} bytes", next.len());
                return Err(Fault::unreadable(text));
            }
            if !seen.insert(next.clone()) {
                let text = format!("{method} gave the same cursor twice, on page {pages}");
                return Err(Fault::unreadable(text));
            }
            // The next page is asked for first, so that its server writes it while this one is read.
            let mut asking = pin!(self.page(method, Some(&next), deadline));
            let early = poll_fn(|cx| Poll::Ready(asking.as_mut().poll(cx))).await;
            take(items);
            answer = match early {
                Poll::Ready(answer) => answer?,
                Poll::Pending => asking.await?,
            };
        }
    }

    async fn page(&self, method: &'static str, cursor: Option<&str>, deadline: Deadline) -> Result<Answer, Fault> {
        let params = Params::default().with_some("cursor", cursor);
        let request = Request::new(method, params);
        self.line.exchange(request, Patience::until(deadline), |_| ()).await
    }

    /// Takes what is too much from the end of the last page, and says so.
    fn leave_out_surplus(&self, key: &str, count: usize, items: &mut Vec<Item>) -> Option<String> {
        let limit = self.limits.items;
        let surplus = count.checked_sub(limit).filter(|surplus| *surplus > 0)?;
        items.truncate(items.len().saturating_sub(surplus));
        Some(format!(
            "{surplus} of {count} {key} were left out: the limit is {limit}"
        ))
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
    pub(super) fn hears(&mut self, freshness: Freshness) {
        self.freshness = Some(match self.freshness {
            Some(before) => before.and(freshness),
            None => freshness,
        });
    }
}

/// One page of a listing.
#[derive(Debug, PartialEq)]
pub(super) struct Page {
    pub(super) items: Vec<Item>,
    next: Option<String>,
    freshness: Freshness,
}

impl Page {
    pub(super) fn of(answer: &Answer, key: &str, method: &str) -> Result<Self, Fault> {
        if let Some(page) = plain_page(&answer.presumed_bytes(), key) {
            return Ok(page);
        }
        read_page(&answer.proven()?, key).map_err(|problem| Fault::unreadable(format!("{method}: {problem}")))
    }
}

/// Reads a page and leaves its items as they came, unless anything else about the page is unusual.
fn plain_page(answer: &Bytes, key: &str) -> Option<Page> {
    let mut scan = Scan::new(answer);
    let (mut items, mut next, mut rest) = (None, None, Map::new());
    scan.fields(|scan, field| {
        let is_first = match field {
            _ if field == key => {
                let mut found = Vec::new();
                scan.items(|scan| {
                    scan.peek()?;
                    let start = scan.at();
                    scan.skip()?;
                    found.push(Item::Text(answer.slice(start..scan.at())));
                    Some(())
                })?;
                items.replace(found).is_none()
            }
            "nextCursor" => next.replace(scan.text()?.into_owned()).is_none(),
            _ => rest.insert(field.to_owned(), scan.value(1)?).is_none(),
        };
        is_first.then_some(())
    })?;
    Some(Page {
        items: items.filter(|_| scan.is_at_end())?,
        next,
        freshness: Freshness::read(&Value::Object(rest)),
    })
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
        Some(Value::Array(items)) => Ok(Page {
            items: items.into_iter().map(Item::Tree).collect(),
            next,
            freshness,
        }),
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
            (vec![Item::Tree(1.into()), Item::Tree(2.into())], Some("a"))
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

    #[test]
    fn a_plain_page_says_the_same_and_leaves_its_items_unread() {
        let text = |text: &'static str| Item::Text(Bytes::from_static(text.as_bytes()));
        let page = plain_page(
            &Bytes::from_static(br#" {"tools" : [ {"a": 1} , "x"],"nextCursor":"a","ttlMs":5,"cacheScope":"public"} "#),
            "tools",
        )
        .unwrap();
        assert_eq!(page.items, [text(r#"{"a": 1}"#), text(r#""x""#)]);
        let read = read_page(
            br#"{"tools":[],"nextCursor":"a","ttlMs":5,"cacheScope":"public"}"#,
            "tools",
        )
        .unwrap();
        assert_eq!((page.next, page.freshness), (read.next, read.freshness));
        for unusual in [
            "[]",
            "{}",
            r#"{"tools":{}}"#,
            r#"{"tools":[],"tools":[]}"#,
            r#"{"tools":[],"nextCursor":null}"#,
            r#"{"tools":[1,]}"#,
            r#"{"tools":[]} x"#,
        ] {
            assert_eq!(
                plain_page(&Bytes::from_static(unusual.as_bytes()), "tools"),
                None,
                "{unusual}"
            );
        }
    }
}
