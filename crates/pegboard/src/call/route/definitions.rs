//! Definitions that were compiled for one provider, without the servers of their tools.

use std::{collections::HashMap, sync::Arc};

use super::resolved::{Precedence, Route};
use pegboard_base::name::ServerName;
use pegboard_tools::{catalog::Tool, provider::Definition};

/// The most definitions that are known at once, at a few kilobytes each.
const MAX_DEFINITIONS: usize = 20_000;

/// The definitions of tools for one provider and schema budget, by server and tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct Definitions {
    by_server: HashMap<ServerName, HashMap<String, Compiled>>,
    count: usize,
}

/// A definition, and the tool that it was compiled from.
type Compiled = (Arc<Tool>, Arc<Definition>);

impl Definitions {
    /// The definition of a tool, if one was compiled from an equal tool.
    pub(super) fn get(&self, tool: &Arc<Tool>) -> Option<Arc<Definition>> {
        let (known, definition) = self.by_server.get(&tool.server)?.get(&tool.name)?;
        is_defined_alike(known, tool).then(|| definition.clone())
    }

    /// These definitions and those of some routes. If there are too many, only those of the routes.
    pub(super) fn with(&self, routes: &[Arc<Route>]) -> Self {
        let mut all = self.clone();
        all.add(routes);
        if all.count > MAX_DEFINITIONS {
            all = Self::default();
            all.add(routes);
        }
        all
    }

    fn add(&mut self, routes: &[Arc<Route>]) {
        for route in routes {
            let Some(definition) = route
                .definition
                .as_ref()
                .filter(|_| route.precedence != Precedence::View)
            else {
                continue;
            };
            let of_server = self.by_server.entry(route.tool.server.clone()).or_default();
            let compiled = (route.tool.clone(), definition.clone());
            let before = of_server.insert(route.tool.name.clone(), compiled);
            self.count += usize::from(before.is_none());
        }
    }
}

/// Returns whether two listings of a tool compile to the same definition.
fn is_defined_alike(old: &Arc<Tool>, new: &Arc<Tool>) -> bool {
    Arc::ptr_eq(old, new)
        || (old.description == new.description && old.title == new.title && old.input_schema == new.input_schema)
}
