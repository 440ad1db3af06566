//! Listings to their last page, with a guard against those that have none.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::task::JoinHandle;

use super::{Fault, Patience, Request, Session, connection::InFlight, json_rpc::Params, response::Response};
use crate::{
    catalog::{Catalog, Item, ListedTools, store::Freshness},
    deadline::Deadline,
    json_scan::Scan,
    mask::LONG,
};

/// The longest cursor that is sent back.
const MAX_CURSOR: usize = 64 << 10;

/// A page with more tools, or with a [long](LONG) text, is read off the async threads, so many tools at a time: others wait for those threads.
const MANY: usize = 250;

impl Session {
    /// All items of a listing, from all its pages.
    pub(super) async fn list(
        &self,
        method: &'static str,
        key: &'static str,
        deadline: Deadline,
        gathered: &mut Gathered,
    ) -> Result<Vec<Item>, Fault> {
        let (mut items, mut pages) = (Vec::new(), self.pages(method, key, deadline));
        while let Some(page) = pages.next(gathered).await? {
            items.extend(page);
        }
        Ok(items)
    }

    /// All tools, read while their server writes further pages.
    pub(super) async fn list_tools(
        &self,
        deadline: Deadline,
        mut tools: ListedTools,
        gathered: &mut Gathered,
    ) -> Result<ListedTools, Fault> {
        let mut pages = self.pages("tools/list", "tools", deadline);
        let mut reading = Reading::default();
        while let Some(mut items) = pages.next(gathered).await? {
            if items.len() <= MANY && pages.bytes <= LONG && reading.parts.is_empty() {
                tools.read(items);
                continue;
            }
            while !items.is_empty() {
                let rest = items.split_off(items.len().min(MANY));
                reading.make_room(&mut tools).await?;
                reading.begin(tools.empty_part(), items);
                items = rest;
            }
        }
        while !reading.parts.is_empty() {
            reading.finish_one(&mut tools).await?;
        }
        Ok(tools)
    }

    fn pages(&self, method: &'static str, key: &'static str, deadline: Deadline) -> Pages<'_> {
        let mut pages = Pages {
            session: self,
            method,
            key,
            deadline,
            asking: None,
            seen: HashSet::new(),
            count: 0,
            items: 0,
            bytes: 0,
        };
        pages.ask(None);
        pages
    }
}

/// Parts of a listing that are read off the async threads, which are needed for the messages that come meanwhile.
#[derive(Default)]
struct Reading {
    parts: VecDeque<JoinHandle<ListedTools>>,
}

impl Reading {
    fn begin(&mut self, mut part: ListedTools, items: Vec<Item>) {
        self.parts.push_back(tokio::task::spawn_blocking(move || {
            part.read(items);
            part
        }));
    }

    /// As many parts are read at once as there are threads for everything else.
    async fn make_room(&mut self, tools: &mut ListedTools) -> Result<(), Fault> {
        if self.parts.len() >= tokio::runtime::Handle::current().metrics().num_workers() {
            self.finish_one(tools).await?;
        }
        Ok(())
    }

    /// Adds the part that was begun first.
    async fn finish_one(&mut self, tools: &mut ListedTools) -> Result<(), Fault> {
        if let Some(part) = self.parts.pop_front() {
            tools.add(part.await.map_err(|error| Fault::unreadable(error.to_string()))?);
        }
        Ok(())
    }
}

/// A listing, a page at a time.
struct Pages<'a> {
    session: &'a Session,
    method: &'static str,
    key: &'static str,
    deadline: Deadline,
    /// The next page on its way; none after the last.
    asking: Option<Result<InFlight<'a>, Fault>>,
    /// The cursors so far.
    seen: HashSet<String>,
    /// How many pages and items have come.
    count: usize,
    items: usize,
    /// How many bytes the last page had.
    bytes: usize,
}

impl Pages<'_> {
    fn ask(&mut self, cursor: Option<&str>) {
        let params = Params::default().with_some("cursor", cursor);
        let request = Request::new(self.method, params);
        self.asking = Some(self.session.connection.ask(&request, |_| ()));
    }

    /// The items of the next page; none after the last. A listing that does not end, or whose cursor comes twice, is an error: half a list
    /// would look like a whole one.
    async fn next(&mut self, gathered: &mut Gathered) -> Result<Option<Vec<Item>>, Fault> {
        let Some(asking) = self.asking.take() else {
            return Ok(None);
        };
        let Page {
            mut items,
            next,
            freshness,
        } = {
            let answer = asking?.answer(Patience::until(self.deadline)).await?;
            self.bytes = answer.presumed().len();
            Page::of(&answer, self.key, self.method)?
        };
        self.count += 1;
        self.items += items.len();
        gathered.bytes += self.bytes;
        gathered.hears(freshness);
        match next {
            None => gathered.catalog.warnings.extend(self.leave_out_surplus(&mut items)),
            Some(cursor) => {
                self.check(&cursor)?;
                // It is sent before this page is looked at, so that its server need not wait for us.
                self.ask(Some(&cursor));
            }
        }
        Ok(Some(items))
    }

    /// Whether there may be a further page, under this cursor.
    fn check(&mut self, cursor: &str) -> Result<(), Fault> {
        let (method, count, limits) = (self.method, self.count, &self.session.limits);
        let problem = if count >= limits.pages || self.items > limits.items {
            format!("{method} did not end after {count} pages with {} items", self.items)
        } else if cursor.len() > MAX_CURSOR {
            format!("{method} gave a cursor of {} bytes", cursor.len())
        } else if !self.seen.insert(cursor.to_owned()) {
            format!("{method} gave the same cursor twice, on page {count}")
        } else {
            return Ok(());
        };
        Err(Fault::unreadable(problem))
    }

    /// Takes what is too much from the end of the last page, and says so.
    fn leave_out_surplus(&self, items: &mut Vec<Item>) -> Option<String> {
        let (all, limit) = (self.items, self.session.limits.items);
        let surplus = all.checked_sub(limit).filter(|surplus| *surplus > 0)?;
        items.truncate(items.len().saturating_sub(surplus));
        let key = self.key;
        Some(format!("{surplus} of {all} {key} were left out: the limit is {limit}"))
    }
}

/// What has been listed so far, and how long the server lets us keep it.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) catalog: Catalog,
    pub(super) freshness: Option<Freshness>,
    /// How many bytes its pages had.
    pub(super) bytes: usize,
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
    pub(super) fn of(answer: &Response, key: &str, method: &str) -> Result<Self, Fault> {
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
