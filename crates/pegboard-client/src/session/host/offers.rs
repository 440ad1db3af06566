//! [`Offers`]: what a host offers to servers, and the client capabilities that declare it.

use std::{fmt, sync::Arc};

use pegboard_protocol::capability::{self, extension};
use serde_json::{Map, Value, json};

use super::host_trait::Host;
use crate::session::Era;
use pegboard_base::sync::{Panicked, catch_now};

/// The capabilities that a host offers, as a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::session) struct Offers(u8);

impl Offers {
    const NONE: Self = Self(0);
    pub(in crate::session) const ELICITATION: Self = Self(1);
    pub(in crate::session) const PAGES: Self = Self(1 << 1);
    pub(in crate::session) const SAMPLING: Self = Self(1 << 2);
    pub(super) const SAMPLING_TOOLS: Self = Self(1 << 3);
    pub(super) const SAMPLING_CONTEXT: Self = Self(1 << 4);
    pub(in crate::session) const ROOTS: Self = Self(1 << 5);
    /// How many different sets there are.
    pub(in crate::session) const COUNT: usize = 1 << 6;

    /// Asks the host what it offers.
    fn query(host: &dyn Host) -> Self {
        let mut offers = 0;
        if host.offers_elicitation() {
            offers |= Self::ELICITATION.0;
            if host.offers_pages() {
                offers |= Self::PAGES.0;
            }
        }
        if host.offers_sampling() {
            offers |= Self::SAMPLING.0;
            if host.offers_sampling_tools() {
                offers |= Self::SAMPLING_TOOLS.0;
            }
            if host.offers_sampling_context() {
                offers |= Self::SAMPLING_CONTEXT.0;
            }
        }
        if host.takes_requests() && host.offers_roots() {
            offers |= Self::ROOTS.0;
        }
        Self(offers)
    }

    pub(in crate::session) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns `true` if servers may ask for something.
    pub(in crate::session) fn are_any(self) -> bool {
        self.0 != 0
    }

    /// Returns `true` if servers may ask for something as a task.
    pub(super) fn allow_tasks(self) -> bool {
        self.has(Self::ELICITATION) || self.has(Self::SAMPLING)
    }

    /// A number below [`Offers::COUNT`], different for each set.
    pub(in crate::session) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Returns the client capabilities that declare this set.
    pub(in crate::session) fn capabilities(self, era: Era, has_roots: bool) -> Value {
        let mut capabilities = Map::new();
        if has_roots || self.has(Self::ROOTS) {
            let roots = match era {
                Era::Legacy => json!({ "listChanged": true }),
                Era::Modern => json!({}),
            };
            capabilities.insert("roots".to_owned(), roots);
        }
        if self.has(Self::ELICITATION) {
            let mut modes = json!({ "form": {} });
            if self.has(Self::PAGES) {
                modes["url"] = json!({});
            }
            capabilities.insert("elicitation".to_owned(), modes);
        }
        if self.has(Self::SAMPLING) {
            let mut sampling = json!({});
            if self.has(Self::SAMPLING_TOOLS) {
                sampling["tools"] = json!({});
            }
            if self.has(Self::SAMPLING_CONTEXT) {
                sampling["context"] = json!({});
            }
            capabilities.insert(capability::SAMPLING.to_owned(), sampling);
        }
        match era {
            Era::Legacy if self.allow_tasks() => {
                capabilities.insert(capability::TASKS.to_owned(), self.tasks());
            }
            Era::Legacy => {}
            Era::Modern => {
                // Declares that sessions can poll the server's tasks.
                let extensions = json!({ extension::TASKS: {} });
                capabilities.insert(capability::EXTENSIONS.to_owned(), extensions);
            }
        }
        Value::Object(capabilities)
    }

    /// The requests that may be answered as tasks.
    fn tasks(self) -> Value {
        let mut requests = Map::new();
        if self.has(Self::ELICITATION) {
            requests.insert("elicitation".to_owned(), json!({ "create": {} }));
        }
        if self.has(Self::SAMPLING) {
            requests.insert("sampling".to_owned(), json!({ "createMessage": {} }));
        }
        json!({ "list": {}, "cancel": {}, "requests": requests })
    }
}

/// A host, and what it offers. The host is asked once what it offers, so that declarations and responses agree.
#[derive(Clone)]
pub struct HostHandle {
    pub(super) host: Arc<dyn Host>,
    pub(in crate::session) offers: Offers,
    /// Whether the host takes requests unparsed.
    pub(super) takes_requests: bool,
}

impl HostHandle {
    /// Asks the host what it offers. A host that panics offers nothing.
    pub fn new(host: Arc<dyn Host>) -> Self {
        let asked = catch_now(|| (Offers::query(&*host), host.takes_requests()));
        let (offers, takes_requests) = asked.unwrap_or_else(|Panicked| {
            tracing::error!(
                "the host of the program panicked when it was asked what it offers; it counts as offering nothing"
            );
            (Offers::NONE, false)
        });
        Self {
            offers,
            takes_requests,
            host,
        }
    }

    /// The host itself.
    pub fn host(&self) -> &Arc<dyn Host> {
        &self.host
    }

    /// Returns `true` if both are the same host.
    pub(in crate::session) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.host, &other.host)
    }
}

impl fmt::Debug for HostHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostHandle").field(&self.offers).finish()
    }
}
