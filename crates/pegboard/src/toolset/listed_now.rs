//! What a view lists now, as fingerprints, to notice that its lists have changed.

use std::hash::{DefaultHasher, Hash, Hasher};

use tokio::sync::watch;

use super::toolset_handle::Toolset;

/// The fingerprints of a view's lists. They differ if the lists do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ListedNow {
    pub(super) tools: u64,
    /// Resources and resource templates.
    pub(super) resources: u64,
    pub(super) prompts: u64,
}

impl Toolset {
    /// The fingerprints of the view's lists, without starting a server.
    pub(super) fn listed_now(&self) -> ListedNow {
        let (mut tools, mut resources, mut prompts) = <(DefaultHasher, DefaultHasher, DefaultHasher)>::default();
        for listed in self.tools().0 {
            (&listed.name, listed.tool.definition_hash()).hash(&mut tools);
        }
        // A gateway lists a tool for each of them.
        self.awaiting_sign_in().hash(&mut tools);
        for catalog in self.known_catalogs() {
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
        ListedNow {
            tools: tools.finish(),
            resources: resources.finish(),
            prompts: prompts.finish(),
        }
    }

    /// Notices changes of the board's servers.
    pub(super) fn server_changes(&self) -> watch::Receiver<()> {
        self.servers.registry().events().server_changes()
    }
}
