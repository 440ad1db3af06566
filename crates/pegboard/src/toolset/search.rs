//! Finding tools by what they are for, and what each server's definitions cost a model.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{listing::ListedTool, toolset_handle::Toolset};
use crate::{
    call::RouteTable,
    name::ServerName,
    search::{fuse, nearest},
};

/// How far down both rankings are looked at before they become one.
const RANKED: usize = 50;

/// A tool that fits a question.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FoundTool {
    /// The tool.
    pub tool: ListedTool,
    /// How well it fits. Only the order means something.
    pub score: f32,
}

/// What the definitions of one server cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServerCost {
    /// The server.
    pub server: ServerName,
    /// How many tools it shows.
    pub tools: usize,
    /// About how many tokens their definitions take.
    pub tokens: usize,
}

impl Toolset {
    /// The tools that share the most words with a question, the best first, among those that are known now. [`Toolset::list`] makes them
    /// known.
    pub fn find(&self, question: &str, most: usize) -> Vec<FoundTool> {
        let (routes, index) = self.snapshot(|snapshot| (snapshot.table.clone(), snapshot.index()));
        found(&routes, index.find(question, most))
    }

    /// The tools that fit a question best, by their words and by their meaning, the best first, among those that are known now. Meaning
    /// counts where somebody knows it: see [`View::embedder`](crate::View::embedder). It is waited for a few seconds at most; without it this
    /// is the same as [`Toolset::find`].
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

    /// About how many tokens the definitions of each server's tools take, by server.
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
