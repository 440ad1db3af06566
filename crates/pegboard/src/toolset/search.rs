//! [`ToolSearch`]: finds tools by keywords and by meaning.

use futures_util::future::BoxFuture;
use serde::Serialize;

use super::{listing::ListedTool, open_view::OpenView};
use crate::call::RouteTable;
use pegboard_base::name::ServerName;
use pegboard_tools::search::{find_nearest, fuse};

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

/// Searches the known tools of a view.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolSearch<'a> {
    open: &'a OpenView,
}

impl<'a> ToolSearch<'a> {
    pub(super) fn new(open: &'a OpenView) -> Self {
        Self { open }
    }

    /// Searches by keywords, best match first.
    pub(super) fn find(self, question: &str, most: usize) -> Vec<FoundTool> {
        let (routes, index) = self
            .open
            .read_snapshot(|snapshot| (snapshot.table.clone(), snapshot.index()));
        list_found(&routes, index.find(question, most))
    }

    /// Searches by keywords and by meaning, best match first. Without an embedder, or if its vectors arrive too late, only keywords count.
    pub(super) fn search(self, question: &'a str, most: usize) -> BoxFuture<'a, Vec<FoundTool>> {
        Box::pin(async move {
            let Some(embeddings) = &self.open.view.embeddings else {
                return self.find(question, most);
            };
            let (routes, index, texts) = self
                .open
                .read_snapshot(|snapshot| (snapshot.table.clone(), snapshot.index(), snapshot.texts()));
            let Some(vectors) = embeddings.embed(question, &texts).await else {
                return list_found(&routes, index.find(question, most));
            };
            let depth = most.max(RANKED);
            let by_words = index.find(question, depth).into_iter().map(|(at, _)| at).collect();
            let by_meaning = find_nearest(&vectors.question, &vectors.tools, depth);
            list_found(&routes, fuse(&[by_words, by_meaning], most))
        })
    }
}

fn list_found(routes: &RouteTable, ranked: Vec<(usize, f32)>) -> Vec<FoundTool> {
    let found = ranked
        .into_iter()
        .filter_map(|(at, score)| Some((routes.routes().get(at)?, score)));
    let found = found.map(|(route, score)| FoundTool {
        tool: ListedTool::from_route(route),
        score,
    });
    found.collect()
}
