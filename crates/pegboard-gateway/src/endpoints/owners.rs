//! Which server a resource, a template or a prompt of a merged list belongs to.
//!
//! A URI is listed as it is, unless several servers list it: then each gets a prefix with the server's name, which leads back.

use std::collections::HashMap;

use pegboard::{
    Toolset,
    catalog::{Prompt, Resource},
    toolset::ResourceListing,
};

/// The scheme of URIs that several servers list: `pegboard:SERVER/URI`.
const SCHEME: &str = "pegboard:";

/// A server's resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) server: String,
    /// The server's own URI.
    pub(super) uri: String,
    /// Whether the URI was listed with a prefix.
    pub(super) has_prefix: bool,
}

/// The URIs that these resources are listed under, in the same order.
pub(super) fn listed_uris(resources: &[Resource]) -> Vec<String> {
    let mut servers: HashMap<&str, (&str, bool)> = HashMap::new();
    for resource in resources {
        let (first, is_shared) = servers
            .entry(&resource.uri)
            .or_insert((resource.server.as_str(), false));
        *is_shared |= *first != resource.server.as_str();
    }
    let listed = resources
        .iter()
        .map(|resource| match servers.get(resource.uri.as_str()) {
            Some((_, true)) => prefix(resource.server.as_str(), &resource.uri),
            _ => resource.uri.clone(),
        });
    listed.collect()
}

/// The URI with the name of its server.
pub(super) fn prefix(server: &str, uri: &str) -> String {
    format!("{SCHEME}{server}/{uri}")
}

/// The server that a URI belongs to: the one it names, the one that lists it, or the one with the template that fits best.
pub(super) fn owner_of_uri(listing: &ResourceListing, uri: &str) -> Option<Owned> {
    let all = || listing.resources.iter().chain(&listing.templates);
    if let Some((server, own)) = uri.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/'))
        && all().any(|resource| resource.server.as_str() == server)
    {
        return Some(Owned {
            server: server.to_owned(),
            uri: own.to_owned(),
            has_prefix: true,
        });
    }
    let listed = listing.resources.iter().find(|resource| resource.uri == uri);
    let owner = listed.or_else(|| {
        let fixed = |template: &str| template.find('{').unwrap_or(template.len());
        let fits = listing.templates.iter().filter(|template| {
            let end = fixed(&template.uri);
            template.uri == uri || (end > 0 && uri.starts_with(&template.uri[..end]))
        });
        fits.max_by_key(|template| fixed(&template.uri))
    });
    owner.map(|resource| Owned {
        server: resource.server.to_string(),
        uri: uri.to_owned(),
        has_prefix: false,
    })
}

/// The names that these prompts are listed under, in the same order.
pub(super) fn listed_prompts(toolset: &Toolset, prompts: &[Prompt]) -> Vec<String> {
    let pairs: Vec<(&str, &str)> = prompts
        .iter()
        .map(|prompt| (prompt.server.as_str(), prompt.name.as_str()))
        .collect();
    toolset.exposed_names(&pairs)
}
