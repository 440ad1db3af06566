//! What a server offers, listed: its tools must come, and all the rest may fail without taking them away.

use std::{collections::HashSet, time::Duration};

use tokio::time::Instant;

use super::{Described, Fault, Session, listing::Gathered};
use crate::{
    catalog::{Catalog, ListedTools, sanitize, store::Freshness},
    config::Capabilities,
    deadline::Deadline,
    mask::{LONG, Masker},
};

/// The longest warning about a listing: it may hold the server's own words.
const MAX_WARNING: usize = 1 << 10;

/// What is asked of a server when it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListScope {
    /// Its tools.
    Tools,
    /// Its tools, and of the rest what its config asks for.
    More(Capabilities),
}

impl ListScope {
    /// The part of it that a server's config asks for.
    pub(crate) fn within(self, wanted: Capabilities) -> Self {
        match self {
            Self::Tools => Self::Tools,
            Self::More(all) => Self::More(Capabilities {
                resources: all.resources && wanted.resources,
                prompts: all.prompts && wanted.prompts,
            }),
        }
    }
}

impl Session {
    /// Lists what the server offers, as far as it says that it offers such things at all, and how long that may be kept. Tools that are
    /// described and not listed are added; with such tools the listing of tools may fail. Resources or prompts that cannot be listed stay
    /// as they were `before`, with a warning.
    pub(crate) async fn catalog(
        &self,
        survey: ListScope,
        described: &Described,
        before: Option<&Catalog>,
    ) -> Result<(Catalog, Freshness), Fault> {
        let listed = self.listed(survey, described, before).await;
        listed.map_err(|fault| fault.hidden(self.masker()))
    }

    /// Lists the tools again, within `limit`. All else stays as it was `before`.
    pub(crate) async fn tools_again(
        &self,
        described: &Described,
        before: &Catalog,
        limit: Duration,
    ) -> Result<(Catalog, Freshness), Fault> {
        let started = Instant::now();
        let listing = tokio::time::timeout(limit, self.catalog(ListScope::Tools, described, None)).await;
        let (mut catalog, freshness) = listing.unwrap_or_else(|_| Err(Fault::late(started)))?;
        catalog.keep_resources(Some(before));
        catalog.keep_templates(Some(before));
        catalog.keep_prompts(Some(before));
        Ok((catalog, freshness))
    }

    async fn listed(
        &self,
        survey: ListScope,
        described: &Described,
        before: Option<&Catalog>,
    ) -> Result<(Catalog, Freshness), Fault> {
        let mut all = Gathered::default();
        let masker = Masker::clone(&self.masker().current());
        if self.offers("tools") {
            let deadline = Deadline::within(self.limits.list);
            let tools = ListedTools::new(&self.server, self.header_rule(), Some(masker.clone()));
            match self.list_tools(deadline, tools, &mut all).await {
                Ok(tools) => all.catalog.take_tools(tools),
                Err(fault) if !described.is_empty() && fault.leaves_session() => {
                    all.warn(&format!(
                        "its tools could not be listed, only those that the config describes are known: {fault}"
                    ));
                }
                Err(fault) => return Err(fault),
            }
        }
        all.catalog.add_configured(&self.server, described, self.header_rule());
        if let ListScope::More(wanted) = survey {
            // Side by side, so that one that hangs holds up nothing but itself.
            let (resources, prompts) = tokio::join!(
                self.list_resources(wanted.resources, before),
                self.list_prompts(wanted.prompts, before)
            );
            all.add(resources?);
            all.add(prompts?);
        }
        // The tools that were listed have been masked while they came. A secret may have become known meanwhile.
        let described: HashSet<String> = described.keys().cloned().collect();
        let mut catalog = all.catalog;
        let hide = move |now: &Masker| {
            let has_changed = !now.is(&masker);
            catalog.mask_tools(now, |name| has_changed || described.contains(name));
            catalog.mask_beside_tools(now);
            catalog
        };
        let catalog = if all.bytes > LONG {
            self.hidden_apart(hide).await?
        } else {
            hide(&self.masker().current())
        };
        Ok((catalog, all.freshness.unwrap_or_default()))
    }

    async fn list_resources(&self, wanted: bool, before: Option<&Catalog>) -> Result<Gathered, Fault> {
        let mut listed = Gathered::default();
        if !wanted || !self.offers("resources") {
            return Ok(listed);
        }
        let deadline = Deadline::within(self.limits.list);
        match self.list("resources/list", "resources", deadline, &mut listed).await {
            Ok(items) => {
                listed.catalog.resources = listed.catalog.read_resources(&self.server, items, "uri");
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
        let templates = self.list("resources/templates/list", "resourceTemplates", deadline, &mut listed);
        match templates.await {
            Ok(items) => {
                listed.catalog.templates = listed.catalog.read_resources(&self.server, items, "uriTemplate");
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

    async fn list_prompts(&self, wanted: bool, before: Option<&Catalog>) -> Result<Gathered, Fault> {
        let mut listed = Gathered::default();
        if !wanted || !self.offers("prompts") {
            return Ok(listed);
        }
        let deadline = Deadline::within(self.limits.list);
        match self.list("prompts/list", "prompts", deadline, &mut listed).await {
            Ok(items) => listed.catalog.read_prompts(&self.server, items),
            Err(fault) => {
                listed.warn_of("prompts", &fault, before)?;
                listed.catalog.keep_prompts(before);
            }
        }
        Ok(listed)
    }
}

impl Gathered {
    /// Notes that a part could not be listed. A session that is lost is lost for the other parts too.
    fn warn_of(&mut self, what: &str, fault: &Fault, before: Option<&Catalog>) -> Result<(), Fault> {
        // A server may well let somebody use its tools who may not see the rest.
        if !fault.leaves_session() && !fault.needs_auth() {
            return Err(fault.clone());
        }
        let instead = match before {
            Some(_) => "; those listed before stay",
            None => "",
        };
        self.warn(&format!("the {what} could not be listed{instead}: {fault}"));
        Ok(())
    }

    fn warn(&mut self, warning: &str) {
        let mut warning = sanitize::one_line(warning);
        sanitize::truncate(&mut warning, MAX_WARNING);
        self.catalog.warnings.push(warning);
    }

    fn add(&mut self, part: Self) {
        self.catalog.add(part.catalog);
        self.bytes += part.bytes;
        if let Some(freshness) = part.freshness {
            self.hears(freshness);
        }
    }
}
