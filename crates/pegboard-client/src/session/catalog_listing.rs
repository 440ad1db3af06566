//! Lists a server's catalog. Tools are required; resources, templates and prompts may fail without losing the tools.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use pegboard_protocol::method;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    fault::Fault,
    mcp_session::{Session, mask_blocking},
    pagination::{Lister, PartialCatalog},
    patience::Patience,
};
use pegboard_base::{deadline::Deadline, diagnosis::Code};
use pegboard_config::Capabilities;
use pegboard_mask::{LONG, Masker};
use pegboard_tools::catalog::{Catalog, ListWarning, ListedTools, sanitize, store::Freshness};

/// The longest warning about a list: it may contain text from the server.
const MAX_WARNING: usize = 1 << 10;

/// Tools that are described in the config, by name.
pub type ConfiguredTools = BTreeMap<String, Value>;

/// Which parts of the catalog are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListScope {
    /// Only tools.
    Tools,
    /// Tools, and these other capabilities.
    More(Capabilities),
}

impl ListScope {
    /// Restricts the scope to the capabilities that a server's config enables.
    pub fn within(self, enabled: Capabilities) -> Self {
        match self {
            Self::Tools => Self::Tools,
            Self::More(all) => Self::More(Capabilities {
                resources: all.resources && enabled.resources,
                prompts: all.prompts && enabled.prompts,
            }),
        }
    }
}

impl Session {
    /// Lists the parts of the catalog that the server declares, and returns how long they may be cached. Configured tools that are not
    /// listed are added; if there are any, listing the tools may fail. Resources or prompts that cannot be listed stay as they were
    /// `before`, with a warning. A session for questions lists nothing.
    pub async fn catalog(
        &self,
        scope: ListScope,
        configured: &ConfiguredTools,
        before: Option<&Catalog>,
    ) -> Result<(Catalog, Freshness), Fault> {
        if self.is_for_questions {
            return Ok(Default::default());
        }
        let lister = Lister {
            connection: &self.connection,
            peer: &self.peer,
            server: &self.server,
            limits: &self.limits,
        };
        let listed = lister.list_catalog(scope, configured, before).await;
        listed.map_err(|fault| fault.into_masked(self.masker()))
    }

    /// Lists only the tools, within `limit`. The rest of the catalog stays as it was `before`.
    pub async fn relist_tools(
        &self,
        configured: &ConfiguredTools,
        before: &Catalog,
        limit: Duration,
    ) -> Result<(Catalog, Freshness), Fault> {
        let started = Instant::now();
        let listing = tokio::time::timeout(limit, self.catalog(ListScope::Tools, configured, None)).await;
        let (mut catalog, freshness) = listing.unwrap_or_else(|_| Err(Fault::timed_out(started)))?;
        catalog.keep_resources(Some(before));
        catalog.keep_templates(Some(before));
        catalog.keep_prompts(Some(before));
        Ok((catalog, freshness))
    }
}

impl Lister<'_> {
    async fn list_catalog(
        &self,
        scope: ListScope,
        configured: &ConfiguredTools,
        before: Option<&Catalog>,
    ) -> Result<(Catalog, Freshness), Fault> {
        let mut all = PartialCatalog::default();
        let server_masker = self.connection.dispatcher().masker();
        let masker = Masker::clone(&server_masker.current());
        if self.peer.offers("tools") {
            let deadline = Deadline::within(self.limits.list_timeout);
            let tools = ListedTools::new(self.server, self.peer.header_rule(), Some(masker.clone()));
            match self.list_tools(deadline, tools, &mut all).await {
                Ok(tools) => all.catalog.take_tools(tools),
                Err(fault) if !configured.is_empty() && fault.spares_session() => {
                    all.warn(&format!(
                        "its tools could not be listed, only those that the config describes are known: {fault}"
                    ));
                }
                Err(fault) => return Err(fault),
            }
        }
        all.catalog
            .add_configured(self.server, configured, self.peer.header_rule());
        if let ListScope::More(enabled) = scope {
            // Concurrently, so that a list that hangs does not delay the other.
            let (resources, prompts) = tokio::join!(
                self.list_resources(enabled.resources, before),
                self.list_prompts(enabled.prompts, before)
            );
            all.add(resources?);
            all.add(prompts?);
        }
        // Listed tools were masked when they were parsed, but a secret may have become known meanwhile.
        let configured: HashSet<String> = configured.keys().cloned().collect();
        let mut catalog = all.catalog;
        let mask = move |now: &Masker| {
            let has_changed = !now.is(&masker);
            catalog.mask_tools(now, |name| has_changed || configured.contains(name));
            catalog.mask_beside_tools(now);
            catalog
        };
        let catalog = if all.bytes > LONG {
            mask_blocking(server_masker, Patience::for_call(self.limits).total, mask).await?
        } else {
            mask(&server_masker.current())
        };
        Ok((catalog, all.freshness.unwrap_or_default()))
    }

    async fn list_resources(&self, is_enabled: bool, before: Option<&Catalog>) -> Result<PartialCatalog, Fault> {
        let mut listed = PartialCatalog::default();
        if !is_enabled || !self.peer.offers("resources") {
            return Ok(listed);
        }
        let deadline = Deadline::within(self.limits.list_timeout);
        match self
            .list(method::RESOURCES_LIST, "resources", deadline, &mut listed)
            .await
        {
            Ok(items) => {
                listed.catalog.resources = listed.catalog.read_resources(self.server, items, "uri");
            }
            Err(fault) => {
                listed.warn_of("resources", &fault, before)?;
                listed.catalog.keep_resources(before);
                if deadline.has_passed() {
                    listed.catalog.keep_templates(before);
                    return Ok(listed);
                }
            }
        }
        let templates = self.list(
            method::RESOURCES_TEMPLATES_LIST,
            "resourceTemplates",
            deadline,
            &mut listed,
        );
        match templates.await {
            Ok(items) => {
                listed.catalog.templates = listed.catalog.read_resources(self.server, items, "uriTemplate");
            }
            // Templates are part of the resources capability, but not every server has them.
            Err(fault) if fault.is_unknown_method() => {}
            Err(fault) => {
                listed.warn_of("resource templates", &fault, before)?;
                listed.catalog.keep_templates(before);
            }
        }
        Ok(listed)
    }

    async fn list_prompts(&self, is_enabled: bool, before: Option<&Catalog>) -> Result<PartialCatalog, Fault> {
        let mut listed = PartialCatalog::default();
        if !is_enabled || !self.peer.offers("prompts") {
            return Ok(listed);
        }
        let deadline = Deadline::within(self.limits.list_timeout);
        match self.list(method::PROMPTS_LIST, "prompts", deadline, &mut listed).await {
            Ok(items) => listed.catalog.read_prompts(self.server, items),
            Err(fault) => {
                listed.warn_of("prompts", &fault, before)?;
                listed.catalog.keep_prompts(before);
            }
        }
        Ok(listed)
    }
}

impl PartialCatalog {
    /// Adds a warning that a part could not be listed. Fails if the session is lost.
    fn warn_of(&mut self, what: &str, fault: &Fault, before: Option<&Catalog>) -> Result<(), Fault> {
        // A server may grant access to its tools only.
        if !fault.spares_session() && !fault.needs_auth() {
            return Err(fault.clone());
        }
        let instead = match before {
            Some(_) => "; those listed before stay",
            None => "",
        };
        self.warn(&format!("the {what} could not be listed{instead}: {fault}"));
        Ok(())
    }

    /// Adds a warning that something could not be listed.
    fn warn(&mut self, warning: &str) {
        let mut message = sanitize::one_line(warning);
        sanitize::truncate(&mut message, MAX_WARNING);
        self.catalog.warnings.push(ListWarning::new(Code::ListFailed, message));
    }

    fn add(&mut self, part: Self) {
        self.catalog.add(part.catalog);
        self.bytes += part.bytes;
        if let Some(freshness) = part.freshness {
            self.restrict_freshness(freshness);
        }
    }
}
