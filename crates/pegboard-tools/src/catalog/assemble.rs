//! Assembles a catalog from separate listings, or from parts of an earlier catalog.

use super::{Catalog, Resource};

impl Catalog {
    /// Adds the items of another listing of the same server.
    #[doc(hidden)]
    pub fn add(&mut self, other: Self) {
        self.tools.extend(other.tools);
        self.resources.extend(other.resources);
        self.templates.extend(other.templates);
        self.prompts.extend(other.prompts);
        self.warnings.extend(other.warnings);
        self.hidden.extend(other.hidden);
    }

    /// Copies the resources of an earlier catalog.
    #[doc(hidden)]
    pub fn keep_resources(&mut self, before: Option<&Self>) {
        if let Some(before) = before {
            self.resources.clone_from(&before.resources);
            self.keep_original_uris(before, &before.resources);
        }
    }

    /// Copies the templates of an earlier catalog.
    #[doc(hidden)]
    pub fn keep_templates(&mut self, before: Option<&Self>) {
        if let Some(before) = before {
            self.templates.clone_from(&before.templates);
            self.keep_original_uris(before, &before.templates);
        }
    }

    /// Copies the prompts of an earlier catalog.
    #[doc(hidden)]
    pub fn keep_prompts(&mut self, before: Option<&Self>) {
        if let Some(before) = before {
            self.prompts.clone_from(&before.prompts);
        }
    }

    /// A masked URI must still resolve to its original.
    fn keep_original_uris(&mut self, before: &Self, shown: &[Resource]) {
        for resource in shown {
            if let Some((shown, address)) = before.hidden.get_key_value(&resource.uri) {
                self.hidden.insert(shown.clone(), address.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use pegboard_base::{name::ServerName, secret::Secret};
    use pegboard_mask::{Masker, Masking};

    #[test]
    fn what_is_kept_can_still_be_reached_and_is_not_masked_twice() {
        let masker = Masker::new(&Masking::default(), [Secret::new("hunter2hunter2")]).unwrap();
        let server = ServerName::parse("fx").unwrap();
        let mut before = Catalog::default();
        let items = vec![json!({"uri": "db://u:hunter2hunter2@h/x"}), json!({"uri": "a:1"})];
        before.resources = before.read_resources(&server, items, "uri");
        let templates = vec![json!({"uriTemplate": "db://hunter2hunter2/{a}"})];
        before.templates = before.read_resources(&server, templates, "uriTemplate");
        before.read_prompts(&server, vec![json!({"name": "p"})]);
        before.mask(&masker);

        let mut part = Catalog::default();
        part.keep_resources(Some(&before));
        part.keep_templates(Some(&before));
        part.keep_prompts(Some(&before));
        let mut after = Catalog::default();
        after.add(part);
        after.mask(&masker);
        assert_eq!(after, before);
        assert_eq!(after.original_uri(&after.resources[1].uri), "db://u:hunter2hunter2@h/x");
        assert_eq!(after.original_uri(&after.templates[0].uri), "db://hunter2hunter2/{a}");
    }
}
