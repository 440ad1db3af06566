//! Maps a tool name to its server and tool. Names are looked up, never parsed.

mod alias;
mod definitions;
pub(super) mod explain;
mod name_lookup;
mod names;
mod repair;
pub(super) mod resolved;

pub(crate) use definitions::Definitions;
pub(crate) use explain::{ambiguous_name_failure, list_names, may_belong_to, tool_part};
pub(crate) use name_lookup::find_by_any_name;
pub(crate) use repair::{fold_name, name_variants};
pub(crate) use resolved::{Route, Routed, Unroutable};

use std::{
    borrow::Borrow,
    collections::HashSet,
    hash::{Hash, Hasher},
    sync::{Arc, OnceLock},
};

use super::{audience::Audience, view::View, visibility::Visibility};
use crate::server::Server;
use alias::{Aliases, Lookup, NameIndex};
use explain::KnownName;
use names::{Assignment, assign_names};
use pegboard_base::name::{self, ServerName};
use pegboard_tools::{
    catalog::Tool,
    outcome::Failure,
    provider::{Definition, Provider},
};
use repair::Repairs;
use resolved::Precedence;

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
    /// Whether a definition was not known.
    has_compiled: bool,
    /// Built on the first lookup of a name that `by_name` does not have.
    aliases: OnceLock<Aliases>,
    other_views: OnceLock<NameIndex>,
    repairs: OnceLock<Repairs>,
}

impl RouteTable {
    /// Builds the table of the tools that `visibility` shows. Reuses definitions that are `known` for the view's provider and
    /// schema budget.
    pub(crate) fn build(servers: &[Server], view: &View, visibility: &Visibility<'_>, known: &Definitions) -> Self {
        let mut table = Self::default();
        let mut found: Vec<(Server, Arc<Tool>)> = Vec::new();
        for server in servers {
            let Some(catalog) = server.catalog() else { continue };
            let held = server.listing().held_tools().into_iter();
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
            let definition = known.get(&tool).or_else(|| {
                // The tools of one view are no use to others.
                table.has_compiled |= precedence != Precedence::View;
                table.define(view, &tool)
            });
            let route = Arc::new(Route {
                kind: server.spec().target.tool_kind(),
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

    /// The definitions that are `known` and those of this table, if it had to compile some.
    pub(crate) fn new_definitions(&self, known: &Definitions) -> Option<Definitions> {
        let is_used = self.has_compiled && self.routes.iter().any(|route| route.definition.is_some());
        is_used.then(|| known.with(&self.routes))
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
            Lookup::Many(indices) => match self.highest_precedence(&indices) {
                Some(route) => Routed::To(route.clone()),
                None => Routed::Ambiguous(self.select_shown(&indices)),
            },
            Lookup::Nothing => self.find_in_other_views(name),
        }
    }

    /// Returns the one route of the highest precedence among several, if there is exactly one.
    fn highest_precedence(&self, indices: &[usize]) -> Option<&Arc<Route>> {
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
            Lookup::Many(indices) => Routed::Ambiguous(self.select_shown(&indices)),
            Lookup::Nothing => Routed::Nowhere,
        }
    }

    /// Looks `name` up like `find`, but also tolerates misspellings, and recognises hidden tools unless they do not exist for the audience.
    pub(crate) fn find_forgiving(&self, name: &str, audience: Audience) -> Routed {
        for variant in name_variants(name) {
            match self.find(&variant) {
                Routed::To(route) if variant == name => return Routed::To(route),
                Routed::To(route) => return Routed::Repaired(route),
                Routed::Nowhere => {}
                found => return found,
            }
            if audience.may_know_hidden()
                && let Some(at) = self.aliases().find_hidden(&variant)
            {
                return self.route_to_hidden(at);
            }
            match self.find_repaired(&variant, audience) {
                Routed::Nowhere => {}
                found => return found,
            }
        }
        Routed::Nowhere
    }

    /// Looks up what a misspelled name means.
    fn find_repaired(&self, name: &str, audience: Audience) -> Routed {
        match (self.repairs().find(name), audience) {
            (Lookup::One(at), _) if at < self.routes.len() => Routed::Repaired(self.routes[at].clone()),
            (Lookup::One(at), Audience::Agent | Audience::Model) => self.route_to_hidden(at - self.routes.len()),
            (Lookup::Many(indices), Audience::Client) => match self.select_shown(&indices).as_slice() {
                [] => Routed::Nowhere,
                [one] => Routed::Repaired(one.clone()),
                many => Routed::Ambiguous(many.to_vec()),
            },
            (Lookup::Many(indices), Audience::Agent | Audience::Model) => {
                Routed::Ambiguous(self.select_shown(&indices))
            }
            (Lookup::One(_), Audience::Client) | (Lookup::Nothing, _) => Routed::Nowhere,
        }
    }

    fn route_to_hidden(&self, at: usize) -> Routed {
        let (server, tool) = &self.hidden[at];
        Routed::Hidden(name::format_dotted(server.as_str(), tool))
    }

    /// Some routes, without the hidden tools among them.
    fn select_shown(&self, indices: &[usize]) -> Vec<Arc<Route>> {
        let shown = indices.iter().filter_map(|at| self.routes.get(*at));
        shown.cloned().collect()
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
    pub(crate) fn explain(&self, name: &str, servers: &[Server], audience: Audience) -> Failure {
        let servers: Vec<&ServerName> = servers.iter().map(Server::name).collect();
        let tools = self.routes.iter().map(|route| KnownName {
            server: route.server.name().as_str(),
            tool: &route.tool.name,
            listed: audience.knows_listed_names().then_some(&route.name),
        });
        explain::unknown_name_failure(name, &tools.collect::<Vec<_>>(), &servers)
    }
}
