//! Masks secrets in a catalog. Names stay unchanged, because calls use them.

use std::sync::Arc;

use super::{
    Catalog, Prompt, Resource, argument_order::ArgumentOrder, other_fields::mask_more, schema::Schema, tool::Tool,
};
use pegboard_base::secret::Secret;
use pegboard_mask::{Counts, Masker};

impl Catalog {
    /// Masks all text except names. Keeps the original of each masked URI, so that the resource can still be read.
    #[doc(hidden)]
    pub fn mask(&mut self, masker: &Masker) {
        self.mask_tools(masker, |_| true);
        self.mask_beside_tools(masker);
    }

    /// Masks the tools whose names `is_one` selects.
    #[doc(hidden)]
    pub fn mask_tools(&mut self, masker: &Masker, is_one: impl Fn(&str) -> bool) {
        for tool in self.tools.iter_mut().filter(|tool| is_one(&tool.name)) {
            mask_tool(Arc::make_mut(tool), masker);
        }
    }

    /// Masks everything but the tools.
    #[doc(hidden)]
    pub fn mask_beside_tools(&mut self, masker: &Masker) {
        for resource in self.resources.iter_mut().chain(&mut self.templates) {
            let shown = masker.text(&resource.uri);
            if !shown.counts.is_empty() {
                let address = Secret::new(resource.uri.as_str());
                self.hidden.insert(shown.text.to_string(), address);
                resource.uri = shown.text.into_owned();
            }
            mask_resource(resource, masker);
        }
        self.prompts.iter_mut().for_each(|prompt| mask_prompt(prompt, masker));
        let mut counts = Counts::default();
        self.warnings
            .iter_mut()
            .for_each(|warning| masker.mask(&mut warning.message, &mut counts));
    }

    /// Returns the original of a masked URI.
    #[doc(hidden)]
    pub fn original_uri<'a>(&'a self, shown: &'a str) -> &'a str {
        self.hidden.get(shown).map_or(shown, Secret::expose)
    }
}

pub(super) fn mask_tool(tool: &mut Tool, masker: &Masker) {
    let mut counts = Counts::default();
    mask_text(&mut tool.title, masker);
    mask_text(&mut tool.description, masker);
    if mask_schema(&mut tool.input_schema, masker) {
        // A name that is masked may be sorted elsewhere.
        tool.order = ArgumentOrder::default();
    }
    if let Some(schema) = &mut tool.output_schema {
        mask_schema(schema, masker);
    }
    if let Some(annotations) = &mut tool.annotations {
        masker.mask_map(annotations, &mut counts);
    }
}

/// Returns whether there was something to mask.
fn mask_schema(schema: &mut Schema, masker: &Masker) -> bool {
    if masker.is_surely_clean(schema.as_str()) {
        return false;
    }
    let mut tree = schema.value();
    let is_masked = !masker.value(&mut tree).is_empty();
    if is_masked {
        *schema = tree.into();
    }
    is_masked
}

fn mask_resource(resource: &mut Resource, masker: &Masker) {
    mask_text(&mut resource.name, masker);
    mask_text(&mut resource.title, masker);
    mask_text(&mut resource.description, masker);
    mask_more(&mut resource.more, masker);
}

fn mask_prompt(prompt: &mut Prompt, masker: &Masker) {
    mask_text(&mut prompt.title, masker);
    mask_text(&mut prompt.description, masker);
    mask_more(&mut prompt.more, masker);
    let mut counts = Counts::default();
    prompt
        .arguments
        .iter_mut()
        .for_each(|argument| masker.mask_value(argument, &mut counts));
}

fn mask_text(text: &mut Option<String>, masker: &Masker) {
    if let Some(text) = text {
        masker.mask(text, &mut Counts::default());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalog::{HeaderRule, ListWarning};
    use pegboard_base::{diagnosis::Code, name::ServerName};
    use pegboard_mask::Masking;

    #[test]
    fn secrets_are_gone_and_addresses_can_still_be_reached() {
        let masker = Masker::new(&Masking::default(), [Secret::new("hunter2hunter2")]).unwrap();
        let server = ServerName::parse("fx").unwrap();
        let mut catalog = Catalog::default();
        let tool = json!({
            "name": "t", "title": "hunter2hunter2", "description": "use hunter2hunter2", "annotations": {"x": "hunter2hunter2"},
            "inputSchema": {"type": "object", "properties": {"a": {"default": "hunter2hunter2"}}},
        });
        catalog.read_tools(&server, vec![tool], HeaderRule::Ignored);
        let resource = json!({"uri": "db://u:hunter2hunter2@h/x", "name": "hunter2hunter2"});
        catalog.resources = catalog.read_resources(&server, vec![resource, json!({"uri": "a:1"})], "uri");
        catalog.read_prompts(&server, vec![json!({"name": "p", "description": "hunter2hunter2"})]);
        catalog
            .warnings
            .push(ListWarning::new(Code::ListWarning, "hunter2hunter2"));
        catalog.mask(&masker);
        assert!(!format!("{catalog:?}").contains("hunter2"), "{catalog:?}");
        let shown = &catalog.resources[1].uri;
        assert_eq!(catalog.original_uri(shown), "db://u:hunter2hunter2@h/x");
        assert_eq!(catalog.original_uri("a:1"), "a:1");
    }
}
