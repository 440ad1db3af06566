//! [`ModernMeta`]: the fields of `_meta` with which the newest era declares client and capabilities in every message.

use std::sync::{Arc, OnceLock};

use pegboard_protocol::meta;
use serde_json::json;

use super::{connect_spec::ClientInfo, host::Offers};
use crate::session::Era;

/// The fields of `_meta` in every message, as JSON without braces. They differ by what the host offers that answers for the caller.
#[derive(Debug)]
pub(super) struct ModernMeta {
    version: &'static str,
    client: Arc<ClientInfo>,
    has_roots: bool,
    /// What the host of the connection offers.
    default: Offers,
    /// Built when first used, by [`Offers::index`].
    texts: [OnceLock<Box<str>>; Offers::COUNT],
    without_capabilities: OnceLock<Box<str>>,
}

impl ModernMeta {
    pub(super) fn new(version: &'static str, client: Arc<ClientInfo>, default: Offers, has_roots: bool) -> Self {
        Self {
            version,
            client,
            has_roots,
            default,
            texts: [const { OnceLock::new() }; Offers::COUNT],
            without_capabilities: OnceLock::new(),
        }
    }

    /// The fields for a caller whose host offers this; without a host of its own, that of the connection answers.
    pub(super) fn text(&self, offers: Option<Offers>) -> &str {
        let offers = offers.unwrap_or(self.default);
        self.texts[offers.index()].get_or_init(|| {
            let meta = json!({
                meta::PROTOCOL_VERSION: self.version,
                meta::CLIENT_INFO: &*self.client,
                meta::CLIENT_CAPABILITIES: offers.capabilities(Era::Modern, self.has_roots),
            })
            .to_string();
            meta[1..meta.len() - 1].into()
        })
    }

    /// The fields but the capabilities, which are those of a client of the program.
    pub(super) fn text_without_capabilities(&self) -> &str {
        self.without_capabilities.get_or_init(|| {
            let meta = json!({
                meta::PROTOCOL_VERSION: self.version,
                meta::CLIENT_INFO: &*self.client,
            })
            .to_string();
            meta[1..meta.len() - 1].into()
        })
    }
}
