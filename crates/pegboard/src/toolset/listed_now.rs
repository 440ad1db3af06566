//! What a view lists now, as fingerprints, to notice that its lists have changed.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{lister::Lister, open_view::OpenView};

/// The fingerprints of a view's lists. They differ if the lists do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ListedNow {
    pub(super) tools: u64,
    /// Resources and resource templates.
    pub(super) resources: u64,
    pub(super) prompts: u64,
}

impl ListedNow {
    /// Reads the fingerprints of the view's lists, without starting a server.
    pub(super) fn read(open: &OpenView) -> Self {
        let lister = Lister::new(open);
        let (mut tools, mut resources, mut prompts) = <(DefaultHasher, DefaultHasher, DefaultHasher)>::default();
        for listed in lister.list_tools().0 {
            (&listed.name, listed.tool.definition_hash()).hash(&mut tools);
        }
        // A gateway lists a tool for each of them.
        open.awaiting_sign_in().hash(&mut tools);
        for catalog in lister.find_catalogs() {
            for resource in catalog.resources.iter().chain(&catalog.templates) {
                (&resource.server, &resource.uri, &resource.name).hash(&mut resources);
                (&resource.title, &resource.description).hash(&mut resources);
                (&resource.mime_type, resource.size).hash(&mut resources);
            }
            for prompt in &catalog.prompts {
                (&prompt.server, &prompt.name, &prompt.title, &prompt.description).hash(&mut prompts);
                prompt
                    .arguments
                    .iter()
                    .for_each(|argument| argument.to_string().hash(&mut prompts));
            }
        }
        Self {
            tools: tools.finish(),
            resources: resources.finish(),
            prompts: prompts.finish(),
        }
    }
}
