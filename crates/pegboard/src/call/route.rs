//! Maps a tool name to its server and tool. Names are looked up, never parsed.

mod alias;
pub(super) mod explain;
mod name_lookup;
mod names;
mod repair;
pub(super) mod resolved;

pub(crate) use explain::{ambiguous, list_names, may_belong_to, tool_part};
pub(crate) use name_lookup::find_by_any_name;
pub(crate) use repair::{fold_name, name_variants};
pub(crate) use resolved::{Route, Routed, Unroutable};

use std::{
    borrow::Borrow,
    collections::{HashMap, HashSet},
    hash::{Hash, Hasher},
    sync::{Arc, OnceLock},
};

use super::{view::View, visibility::Visibility};
use crate::{
    catalog::Tool,
    name::{self, ServerName},
    outcome::Failure,
    provider::{Definition, Provider},
    server::Server,
};
use alias::{Aliases, Lookup, NameIndex};
use names::{Assignment, assign_names};
use repair::Repairs;

/// A route, hashed and compared by its name.
#[derive(Debug)]
struct ByName(Arc<Route>);

impl Borrow<str> for ByName {
    fn borrow(&self) -> &str {
        &self.0.name
    }
}

impl Hash for ByName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl PartialEq for ByName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for ByName {}

/// All tools of a view that can be called now, by the name that models see.
#[derive(Debug, Default)]
pub(crate) struct RouteTable {
    by_name: HashSet<ByName>,
    /// Ordered by server, then by tool.
    routes: Vec<Arc<Route>>,
    /// Server and name of each tool that the view hides.
    hidden: Vec<(ServerName, String)>,
    /// Server and name of each tool that a tool of the view replaces, and the index of that tool's route.
    replaced: Vec<(ServerName, String, usize)>,
    /// The tools that cannot be offered to the view's provider, and why.
    quarantined: Vec<String>,
    /// Built on the first lookup of a name that `by_name` does not have.
    aliases: OnceLock<Aliases>,
    other_views: OnceLock<NameIndex>,
    repairs: OnceLock<Repairs>,
}

impl RouteTable {
    /// Builds the table of the tools that `visibility` shows. Reuses the definitions that the tables `before` have compiled, which must be for
    /// the same provider and budget.
    pub(crate) fn build(servers: &[Server], view: &View, visibility: &Visibility<'_>, before: &[&Self]) -> Self {
        let mut table = Self::default();
        let mut found: Vec<(Server, Arc<Tool>)> = Vec::new();
        for server in servers {
            let Some(catalog) = server.catalog() else { continue };
            let held = server.held_tools().into_iter();
            table
                .hidden
                .extend(held.map(|held| (server.name().clone(), held.tool.name.clone())));
            for tool in &catalog.tools {
                if visibility.sees(tool) {
                    found.push((server.clone(), tool.clone()));
                } else {
                    table.hidden.push((server.name().clone(), tool.name.clone()));
                }
            }
        }
        let names = assign_names(&found, view);
        let known = Self::compiled(before);
        let mut replaced = Vec::new();
        table.by_name.reserve(found.len());
        table.routes.reserve_exact(found.len());
        for ((server, tool), assignment) in found.into_iter().zip(names) {
            let (name, precedence) = match assignment {
                Assignment::Name(name, precedence) => (name, precedence),
                Assignment::ReplacedBy(by) => {
                    replaced.push((server.name().clone(), tool.name.clone(), by));
                    continue;
                }
            };
            let known = match known.is_empty() {
                true => None,
                false => known.get(&(server.name().as_str(), tool.name.as_str())),
            };
            let known = known.filter(|route| is_defined_alike(&route.tool, &tool));
            let definition = match known {
                Some(route) => route.definition.clone(),
                None => table.define(view, &tool),
            };
            let route = Arc::new(Route {
                kind: server.tool_kind(),
                name,
                server,
                tool,
                definition,
                precedence,
            });
            table.by_name.replace(ByName(route.clone()));
            table.routes.push(route);
        }
        for (server, tool, by) in replaced {
            let index = table.routes.iter().position(|route| route.name == by);
            table.replaced.extend(index.map(|index| (server, tool, index)));
        }
        table
    }

    fn define(&mut self, view: &View, tool: &Tool) -> Option<Arc<Definition>> {
        let (provider, budget) = view.dialect();
        if provider == Provider::Mcp {
            return None;
        }
        match provider.define(tool, budget) {
            Ok(definition) => Some(Arc::new(definition)),
            Err(why) => {
                let name = tool.dotted_name();
                self.quarantined
                    .push(format!("tool `{name}` is not offered to {provider}: {why}"));
                None
            }
        }
    }

    /// The routes of some tables that have a compiled definition, by server and tool.
    fn compiled<'t>(tables: &[&'t Self]) -> HashMap<(&'t str, &'t str), &'t Arc<Route>> {
        let routes = tables.iter().flat_map(|table| &table.routes);
        let compiled = routes.filter(|route| route.definition.is_some());
        let compiled = compiled.map(|route| ((route.server.name().as_str(), route.tool.name.as_str()), route));
        compiled.collect()
    }

    /// The routes in a stable order.
    pub(crate) fn routes(&self) -> &[Arc<Route>] {
        &self.routes
    }

    /// The tools that cannot be offered to the view's provider, and why.
    pub(crate) fn quarantined(&self) -> &[String] {
        &self.quarantined
    }

    /// Looks `name` up: first as models see it, then in the other styles with the server's name, then as the tool's own name.
    pub(crate) fn find(&self, name: &str) -> Routed {
        if let Some(ByName(route)) = self.by_name.get(name) {
            return Routed::To(route.clone());
        }
        match self.aliases().find(name) {
            Lookup::One(at) => Routed::To(self.routes[at].clone()),
            Lookup::Many(indices) => match self.of_highest_precedence(&indices) {
                Some(route) => Routed::To(route.clone()),
                None => Routed::Ambiguous(self.dotted(&indices)),
            },
            Lookup::Nothing => self.find_in_other_views(name),
        }
    }

    /// Returns the one route of the highest precedence among several, if there is exactly one.
    fn of_highest_precedence(&self, indices: &[usize]) -> Option<&Arc<Route>> {
        let routes = || indices.iter().filter_map(|at| self.routes.get(*at));
        let highest = routes().map(|route| route.precedence).max()?;
        let mut highest = routes().filter(|route| route.precedence == highest);
        let first = highest.next();
        first.filter(|_| highest.next().is_none())
    }

    /// Looks `name` up among the names that other views give to tools.
    fn find_in_other_views(&self, name: &str) -> Routed {
        let other_views = self.other_views.get_or_init(|| alias::other_views(&self.pairs()));
        match other_views.find(name) {
            Lookup::One(at) => Routed::To(self.routes[at].clone()),
            Lookup::Many(indices) => Routed::Ambiguous(self.dotted(&indices)),
            Lookup::Nothing => Routed::Nowhere,
        }
    }

    /// Looks `name` up like `find`, but also tolerates misspellings and recognises hidden tools.
    pub(crate) fn find_forgiving(&self, name: &str) -> Routed {
        for variant in name_variants(name) {
            match self.find(&variant) {
                Routed::To(route) if variant == name => return Routed::To(route),
                Routed::To(route) => return Routed::Repaired(route),
                Routed::Nowhere => {}
                found => return found,
            }
            if let Some(at) = self.aliases().hidden(&variant) {
                return self.hidden(at);
            }
            match self.repairs().find(&variant) {
                Lookup::One(at) if at < self.routes.len() => return Routed::Repaired(self.routes[at].clone()),
                Lookup::One(at) => return self.hidden(at - self.routes.len()),
                Lookup::Many(indices) => return Routed::Ambiguous(self.dotted(&indices)),
                Lookup::Nothing => {}
            }
        }
        Routed::Nowhere
    }

    fn hidden(&self, at: usize) -> Routed {
        let (server, tool) = &self.hidden[at];
        Routed::Hidden(name::dotted(server.as_str(), tool))
    }

    /// The `server.tool` names of some routes, without the hidden ones.
    fn dotted(&self, indices: &[usize]) -> Vec<String> {
        let shown = indices.iter().filter_map(|at| self.routes.get(*at));
        shown.map(|route| route.tool.dotted_name()).collect()
    }

    fn aliases(&self) -> &Aliases {
        self.aliases.get_or_init(|| {
            let replaced = self.replaced.iter();
            let replaced = replaced.map(|(server, tool, by)| (server.as_str(), tool.as_str(), *by));
            Aliases::new(&self.pairs(), &self.hidden_pairs()).with(replaced)
        })
    }

    fn repairs(&self) -> &Repairs {
        self.repairs.get_or_init(|| {
            let names: Vec<&str> = self.routes.iter().map(|route| route.name.as_str()).collect();
            Repairs::new(&self.pairs(), &names, &self.hidden_pairs())
        })
    }

    fn pairs(&self) -> Vec<(&str, &str)> {
        let routes = self.routes.iter();
        routes
            .map(|route| (route.server.name().as_str(), route.tool.name.as_str()))
            .collect()
    }

    fn hidden_pairs(&self) -> Vec<(&str, &str)> {
        let hidden = self.hidden.iter();
        hidden.map(|(server, tool)| (server.as_str(), tool.as_str())).collect()
    }

    /// Explains why `name` cannot be resolved, with the closest names.
    pub(crate) fn explain(&self, name: &str, servers: &[Server]) -> Failure {
        let servers: Vec<&ServerName> = servers.iter().map(Server::name).collect();
        explain::unknown(name, &self.pairs(), &servers)
    }
}

/// Returns whether two listings of a tool compile to the same definition.
fn is_defined_alike(old: &Arc<Tool>, new: &Arc<Tool>) -> bool {
    Arc::ptr_eq(old, new)
        || (old.description == new.description && old.title == new.title && old.input_schema == new.input_schema)
}
