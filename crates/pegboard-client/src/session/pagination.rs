//! Lists all pages of a paginated list, with bounds on pages, items and cursors.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;
use pegboard_protocol::method;
use serde_json::{Map, Value};
use tokio::task::JoinHandle;

use super::{
    connection::{InFlight, RpcConnection},
    fault::{Fault, Flaw},
    json_rpc::Params,
    patience::Patience,
    peer_info::PeerInfo,
    request::Request,
    response::Response,
};
use pegboard_base::{deadline::Deadline, diagnosis::Code, json_scan::Scan, name::ServerName};
use pegboard_config::Limits;
use pegboard_mask::LONG;
use pegboard_tools::catalog::{Catalog, Item, ListWarning, ListedTools, store::Freshness};

/// The longest cursor that is accepted.
const MAX_CURSOR: usize = 64 << 10;

/// How deeply the items are nested in a result.
const DEPTH_OF_ITEMS: usize = 2;

/// Pages with more tools than this, and [long](LONG) pages, are parsed on blocking threads, this many tools at a time.
const CHUNK: usize = 250;

/// Lists the catalog of one server.
pub(super) struct Lister<'a> {
    pub(super) connection: &'a RpcConnection,
    pub(super) peer: &'a PeerInfo,
    pub(super) server: &'a ServerName,
    pub(super) limits: &'a Limits,
}

impl Lister<'_> {
    /// Lists the items of all pages.
    pub(super) async fn list(
        &self,
        method: &'static str,
        key: &'static str,
        deadline: Deadline,
        partial: &mut PartialCatalog,
    ) -> Result<Vec<Item>, Fault> {
        let (mut items, mut pages) = (Vec::new(), self.pages(method, key, deadline));
        while let Some(page) = pages.next(partial).await? {
            items.extend(page);
        }
        Ok(items)
    }

    /// Lists all tools. Pages are parsed while the server sends further ones.
    pub(super) async fn list_tools(
        &self,
        deadline: Deadline,
        mut tools: ListedTools,
        partial: &mut PartialCatalog,
    ) -> Result<ListedTools, Fault> {
        let mut pages = self.pages(method::TOOLS_LIST, "tools", deadline);
        let mut chunks = ParsingChunks::default();
        while let Some(mut items) = pages.next(partial).await? {
            if items.len() <= CHUNK && pages.bytes <= LONG && chunks.queue.is_empty() {
                tools.read(items);
                continue;
            }
            while !items.is_empty() {
                let rest = items.split_off(items.len().min(CHUNK));
                chunks.make_room(&mut tools).await?;
                chunks.spawn(tools.empty_part(), items);
                items = rest;
            }
        }
        while !chunks.queue.is_empty() {
            chunks.finish_one(&mut tools).await?;
        }
        Ok(tools)
    }

    fn pages(&self, method: &'static str, key: &'static str, deadline: Deadline) -> Pages<'_> {
        let mut pages = Pages {
            lister: self,
            method,
            key,
            deadline,
            in_flight: None,
            seen: HashSet::new(),
            count: 0,
            items: 0,
            bytes: 0,
        };
        pages.send(None);
        pages
    }
}

/// Chunks of a tool list that are being parsed on blocking threads, so that the async threads stay free for messages.
#[derive(Default)]
struct ParsingChunks {
    queue: VecDeque<JoinHandle<ListedTools>>,
}

impl ParsingChunks {
    fn spawn(&mut self, mut chunk: ListedTools, items: Vec<Item>) {
        self.queue.push_back(tokio::task::spawn_blocking(move || {
            chunk.read(items);
            chunk
        }));
    }

    /// Waits for the oldest chunk if as many chunks are queued as the runtime has worker threads.
    async fn make_room(&mut self, tools: &mut ListedTools) -> Result<(), Fault> {
        if self.queue.len() >= tokio::runtime::Handle::current().metrics().num_workers() {
            self.finish_one(tools).await?;
        }
        Ok(())
    }

    /// Waits for the oldest chunk and adds its tools.
    async fn finish_one(&mut self, tools: &mut ListedTools) -> Result<(), Fault> {
        if let Some(chunk) = self.queue.pop_front() {
            tools.add(chunk.await.map_err(|error| Fault::unreadable(error.to_string()))?);
        }
        Ok(())
    }
}

/// A paginated list, one page at a time.
struct Pages<'a> {
    lister: &'a Lister<'a>,
    method: &'static str,
    key: &'static str,
    deadline: Deadline,
    /// The request for the next page; `None` after the last.
    in_flight: Option<Result<InFlight<'a>, Fault>>,
    /// All cursors so far.
    seen: HashSet<String>,
    /// The number of pages and items so far.
    count: usize,
    items: usize,
    /// The size of the last page.
    bytes: usize,
}

impl Pages<'_> {
    fn send(&mut self, cursor: Option<&str>) {
        let params = Params::default().with_some("cursor", cursor);
        let request = Request::new(self.method, params);
        self.in_flight = Some(self.lister.connection.send_request(&request, |_| ()));
    }

    /// Returns the items of the next page, or `None` after the last one that fits. A list with too many items or pages gets a warning, because
    /// it would look complete otherwise. Fails if the list repeats a cursor.
    async fn next(&mut self, partial: &mut PartialCatalog) -> Result<Option<Vec<Item>>, Fault> {
        let Some(in_flight) = self.in_flight.take() else {
            return Ok(None);
        };
        let ListPage {
            mut items,
            next,
            freshness,
        } = {
            let response = in_flight?.response(Patience::until(self.deadline)).await?;
            self.bytes = response.unverified_result().len();
            ListPage::parse(&response, self.key, self.method)?
        };
        self.count += 1;
        self.items += items.len();
        partial.bytes += self.bytes;
        partial.restrict_freshness(freshness);
        match next {
            Some(_) if self.items > self.lister.limits.max_items => {
                self.truncate_surplus(&mut items);
                partial.catalog.warnings.push(self.rest_warning());
            }
            Some(_) if self.count >= self.lister.limits.max_pages => {
                partial.catalog.warnings.push(self.pages_warning());
            }
            None => {
                let (surplus, all) = (self.truncate_surplus(&mut items), self.items);
                let warning = (surplus > 0).then(|| self.left_out_warning(&format!("{surplus} of {all} {}", self.key)));
                partial.catalog.warnings.extend(warning);
            }
            Some(cursor) => {
                self.check_cursor(&cursor)?;
                // Sent before this page is parsed, so that the server works meanwhile.
                self.send(Some(&cursor));
            }
        }
        Ok(Some(items))
    }

    /// Fails if the cursor of the next page is invalid.
    fn check_cursor(&mut self, cursor: &str) -> Result<(), Fault> {
        let (method, count) = (self.method, self.count);
        let problem = if cursor.len() > MAX_CURSOR {
            format!("{method} gave a cursor of {} bytes", cursor.len())
        } else if !self.seen.insert(cursor.to_owned()) {
            format!("{method} gave the same cursor twice, on page {count}")
        } else {
            return Ok(());
        };
        Err(Fault::flawed(Flaw::EndlessList, problem))
    }

    /// Truncates the last page to the item limit. Returns how many items that dropped.
    fn truncate_surplus(&self, items: &mut Vec<Item>) -> usize {
        let surplus = self.items.saturating_sub(self.lister.limits.max_items);
        items.truncate(items.len().saturating_sub(surplus));
        surplus
    }

    /// The warning about a list with further pages.
    fn rest_warning(&self) -> ListWarning {
        let (key, limit) = (self.key, self.lister.limits.max_items);
        self.left_out_warning(&format!("the {key} after the first {limit}"))
    }

    /// The warning about a list with more pages than are listed.
    fn pages_warning(&self) -> ListWarning {
        let (key, count, items) = (self.key, self.count, self.items);
        let message = format!(
            "the {key} after the first {items} were left out: the list has further pages, and the limit is {count} (`max_pages` of the server)"
        );
        ListWarning::new(Code::ListWarning, message)
    }

    fn left_out_warning(&self, what: &str) -> ListWarning {
        let limit = self.lister.limits.max_items;
        let message = format!("{what} were left out: the limit is {limit} (`max_items` of the server)");
        ListWarning::new(Code::ListWarning, message)
    }
}

/// The catalog as listed so far.
#[derive(Debug, Default)]
pub(super) struct PartialCatalog {
    pub(super) catalog: Catalog,
    /// How long it may be cached, by the pages so far.
    pub(super) freshness: Option<Freshness>,
    /// The size of its pages so far.
    pub(super) bytes: usize,
}

impl PartialCatalog {
    /// Keeps the strictest freshness of all pages.
    pub(super) fn restrict_freshness(&mut self, freshness: Freshness) {
        self.freshness = Some(match self.freshness {
            Some(before) => before.and(freshness),
            None => freshness,
        });
    }
}

/// One page of a list.
#[derive(Debug, PartialEq)]
pub(super) struct ListPage {
    pub(super) items: Vec<Item>,
    next: Option<String>,
    freshness: Freshness,
}

impl ListPage {
    pub(super) fn parse(response: &Response, key: &str, method: &str) -> Result<Self, Fault> {
        if let Some(page) = fast_parse_page(&response.unverified_bytes(), key) {
            return Ok(page);
        }
        parse_page(&response.result()?, key).map_err(|problem| Fault::unreadable(format!("{method}: {problem}")))
    }
}

/// Parses a page and leaves its items raw. Returns `None` if anything about the page is unusual.
fn fast_parse_page(result: &Bytes, key: &str) -> Option<ListPage> {
    let mut scan = Scan::new(result);
    let (mut items, mut next, mut rest) = (None, None, Map::new());
    scan.fields(|scan, field| {
        let is_first = match field {
            _ if field == key => {
                let mut found = Vec::new();
                scan.items(|scan| {
                    scan.peek()?;
                    let start = scan.at();
                    // What is malformed inside of its strings is found when the item is read.
                    scan.skip_checked(DEPTH_OF_ITEMS)?;
                    found.push(Item::Text(result.slice(start..scan.at())));
                    Some(())
                })?;
                items.replace(found).is_none()
            }
            "nextCursor" => next.replace(scan.text()?.into_owned()).is_none(),
            _ => rest.insert(field.to_owned(), scan.value(1)?).is_none(),
        };
        is_first.then_some(())
    })?;
    Some(ListPage {
        items: items.filter(|_| scan.is_at_end())?,
        next,
        freshness: Freshness::read(&Value::Object(rest)),
    })
}

fn parse_page(result: &[u8], key: &str) -> Result<ListPage, String> {
    let mut page: Value = serde_json::from_slice(result).map_err(|error| error.to_string())?;
    let next = match page.get_mut("nextCursor").map(Value::take) {
        Some(Value::String(cursor)) => Some(cursor),
        None | Some(Value::Null) => None,
        Some(_) => return Err("`nextCursor` is no text".to_owned()),
    };
    let freshness = Freshness::read(&page);
    match page.get_mut(key).map(Value::take) {
        Some(Value::Array(items)) => Ok(ListPage {
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
    fn a_page_has_items_and_an_optional_cursor() {
        let page = parse_page(br#"{"tools":[1,2],"nextCursor":"a","ttlMs":5}"#, "tools").unwrap();
        assert_eq!(
            (page.items, page.next.as_deref()),
            (vec![Item::Tree(1.into()), Item::Tree(2.into())], Some("a"))
        );
        assert_eq!(page.freshness.ttl, Some(std::time::Duration::from_millis(5)));
        let last = parse_page(br#"{"tools":[],"nextCursor":null}"#, "tools").unwrap();
        assert_eq!((last.items, last.next), (vec![], None));
        assert_eq!(parse_page(b"{}", "tools").unwrap_err(), "`tools` is missing");
        assert_eq!(
            parse_page(br#"{"tools":{}}"#, "tools").unwrap_err(),
            "`tools` is no list"
        );
        assert!(parse_page(b"[]", "tools").is_err());
    }

    #[test]
    fn the_fast_path_parses_the_same_page_and_leaves_its_items_raw() {
        let text = |text: &'static str| Item::Text(Bytes::from_static(text.as_bytes()));
        let page = fast_parse_page(
            &Bytes::from_static(br#" {"tools" : [ {"a": 1} , "x"],"nextCursor":"a","ttlMs":5,"cacheScope":"public"} "#),
            "tools",
        )
        .unwrap();
        assert_eq!(page.items, [text(r#"{"a": 1}"#), text(r#""x""#)]);
        let read = parse_page(
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
                fast_parse_page(&Bytes::from_static(unusual.as_bytes()), "tools"),
                None,
                "{unusual}"
            );
        }
    }
}
