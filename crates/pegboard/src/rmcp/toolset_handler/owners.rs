//! Finds the server that offers a resource, a template or a prompt.

use ::rmcp::ErrorData;

use crate::toolset::{PromptListing, ResourceListing};
use pegboard_base::name::ServerName;
use pegboard_tools::catalog::Prompt;

/// The server that lists the URI; otherwise the one whose template has the longest fixed beginning that the URI has too.
pub(super) fn owner_of_uri<'a>(listing: &'a ResourceListing, uri: &str) -> Option<&'a ServerName> {
    let listed = listing.resources.iter().find(|resource| resource.uri == uri);
    let owner = listed.or_else(|| {
        let fixed = |template: &str| template.find('{').unwrap_or(template.len());
        let fits = listing.templates.iter().filter(|template| {
            let end = fixed(&template.uri);
            end > 0 && uri.starts_with(&template.uri[..end])
        });
        fits.max_by_key(|template| fixed(&template.uri))
    });
    owner.map(|resource| &resource.server)
}

/// The server that lists the URI template.
pub(super) fn owner_of_template<'a>(listing: &'a ResourceListing, uri: &str) -> Result<&'a ServerName, ErrorData> {
    let template = listing.templates.iter().find(|template| template.uri == uri);
    template.map(|template| &template.server).ok_or_else(|| {
        let message = format!("no server offers the resource template {}", uri.escape_debug());
        ErrorData::invalid_params(message, None)
    })
}

/// The name of a prompt for clients. Servers may have prompts of the same name.
pub(super) fn exposed_prompt_name(prompt: &Prompt) -> String {
    format!("{}__{}", prompt.server, prompt.name)
}

/// The server of the prompt that clients call `name`, and its server's name for it.
pub(super) fn owner_of_prompt<'a>(
    listing: &'a PromptListing,
    name: &str,
) -> Result<(&'a ServerName, &'a str), ErrorData> {
    let prompt = listing
        .prompts
        .iter()
        .find(|prompt| exposed_prompt_name(prompt) == name);
    prompt
        .map(|prompt| (&prompt.server, prompt.name.as_str()))
        .ok_or_else(|| {
            let message = format!("there is no prompt `{}`", name.escape_debug());
            ErrorData::invalid_params(message, None)
        })
}
