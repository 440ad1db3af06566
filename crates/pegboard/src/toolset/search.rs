//! Search for tools, and the estimated tokens of each server's definitions.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{listing::ListedTool, toolset_handle::Toolset};
use crate::call::RouteTable;
use pegboard_base::name::ServerName;
use pegboard_tools::search::{fuse, nearest};

/// The depth of both rankings before they are fused.
const RANKED: usize = 50;

/// A tool that matches a query.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FoundTool {
    /// The tool.
    pub tool: ListedTool,
    /// The relevance. Only the order is meaningful.
    pub score: f32,
}

/// The cost of one server's definitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServerCost {
    /// The server.
    pub server: ServerName,
    /// How many tools it shows.
    pub tools: usize,
    /// An estimate of the tokens of their definitions.
    pub tokens: usize,
}

impl Toolset {
    /// Searches the known tools by keywords, best match first. Call [`Toolset::list`] first, so that the tools are known.
    pub fn find(&self, question: &str, most: usize) -> Vec<FoundTool> {
        let (routes, index) = self.snapshot(|snapshot| (snapshot.table.clone(), snapshot.index()));
        found(&routes, index.find(question, most))
    }

    /// Searches the known tools by keywords and by meaning, best match first. Meaning counts only with an embedder, see
    /// [`View::embedder`](crate::View::embedder), and if its vectors arrive within a few seconds; otherwise this is the same as
    /// [`Toolset::find`].
    pub async fn search(&self, question: &str, most: usize) -> Vec<FoundTool> {
        let Some(embeddings) = &self.view.embeddings else {
            return self.find(question, most);
        };
        let (routes, index, texts) =
            self.snapshot(|snapshot| (snapshot.table.clone(), snapshot.index(), snapshot.texts()));
        let Some(vectors) = embeddings.of(question, &texts).await else {
            return found(&routes, index.find(question, most));
        };
        let depth = most.max(RANKED);
        let by_words = index.find(question, depth).into_iter().map(|(at, _)| at).collect();
        let by_meaning = nearest(&vectors.question, &vectors.tools, depth);
        found(&routes, fuse(&[by_words, by_meaning], most))
    }

    /// An estimate of the tokens of each server's definitions, by server.
    pub fn cost(&self) -> Vec<ServerCost> {
        let mut costs: BTreeMap<ServerName, ServerCost> = BTreeMap::new();
        for listed in self.all_tools() {
            let server = listed.tool.server.clone();
            let cost = costs.entry(server.clone()).or_insert_with(|| ServerCost {
                server,
                tools: 0,
                tokens: 0,
            });
            cost.tools += 1;
            cost.tokens += listed.tokens();
        }
        costs.into_values().collect()
    }
}

fn found(routes: &RouteTable, ranked: Vec<(usize, f32)>) -> Vec<FoundTool> {
    let found = ranked
        .into_iter()
        .filter_map(|(at, score)| Some((routes.routes().get(at)?, score)));
    let found = found.map(|(route, score)| FoundTool {
        tool: ListedTool::of(route),
        score,
    });
    found.collect()
}
