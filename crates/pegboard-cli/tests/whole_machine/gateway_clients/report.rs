//! What a client was given, and whether that is what its plan says.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::gateway_clients::{
    client::{Client, Feature},
    plan::Plan,
};

/// The document that the programs in `tests/peers/clients` print.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Report {
    /// The negotiated version of the protocol; empty if the client does not tell.
    pub(crate) protocol: String,
    pub(crate) tools: Vec<String>,
    pub(crate) calls: Vec<Called>,
    pub(crate) resource: Option<String>,
    pub(crate) prompt: Option<String>,
    /// The questions that the client was asked.
    pub(crate) asked: Vec<String>,
    /// The number of progress notifications by tool.
    pub(crate) progress: BTreeMap<String, u64>,
}

/// The result of one call.
#[derive(Debug, Deserialize)]
pub(crate) struct Called {
    pub(crate) tool: String,
    pub(crate) text: String,
    pub(crate) failed: bool,
}

impl Report {
    /// Every difference between the plan and what the client was given.
    pub(crate) fn differences(&self, plan: &Plan, client: &Client, protocol: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut check = |is_so: bool, what: String| {
            if !is_so {
                found.push(what);
            }
        };
        let knows_version = !self.protocol.is_empty();
        check(
            self.protocol == protocol || (!knows_version && !client.has(&Feature::Version)),
            format!("it speaks {:?} instead of {protocol}", self.protocol),
        );
        let listed: BTreeSet<String> = self.tools.iter().cloned().collect();
        let expected = plan.tools();
        check(listed.len() == self.tools.len(), "a tool is listed twice".to_owned());
        let missing: Vec<_> = expected.difference(&listed).collect();
        let surplus: Vec<_> = listed.difference(&expected).collect();
        check(missing.is_empty(), format!("these tools are not listed: {missing:?}"));
        check(
            surplus.is_empty(),
            format!("these tools are listed as well: {surplus:?}"),
        );

        check(self.calls.len() == plan.calls().count(), "calls are missing".to_owned());
        for ((tool, call), called) in plan.calls().zip(&self.calls) {
            let is_good = called.tool == tool && called.text.contains(&call.expect) && called.failed == call.fails;
            check(
                is_good,
                format!("{tool} must give {:?} and gives {called:?}", call.expect),
            );
            let told = self.progress.get(&tool).copied().unwrap_or(0);
            let must_tell = call.progress && client.has(&Feature::Progress);
            check(told > 0 || !must_tell, format!("{tool} reports no progress"));
        }
        let questions: Vec<_> = plan.calls().filter_map(|(_, call)| call.asks.clone()).collect();
        check(self.asked == questions, format!("it was asked {:?}", self.asked));

        if plan.resource().is_some() {
            let resource = self.resource.as_deref().unwrap_or_default();
            check(resource.contains("Features"), format!("the resource is {resource:?}"));
        }
        if plan.prompt().is_some() && client.has(&Feature::Prompts) {
            let prompt = self.prompt.as_deref().unwrap_or_default();
            check(prompt.contains("simple prompt"), format!("the prompt is {prompt:?}"));
        }
        found
    }
}
