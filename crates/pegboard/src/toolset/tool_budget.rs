//! Fits the listed tools into the view's budget of tokens.

use super::{listing::ListedTool, open_view::OpenView};
use pegboard_tools::filter::fits;

/// How many tools a warning names.
const NAMED: usize = 5;

/// Selects the tools to list for a model: all of them if they fit into the view's budget, otherwise the discovery tools and those that are always
/// to be listed. Returns a warning if not all of the latter fit.
pub(super) fn fit_budget(open: &OpenView, tools: Vec<ListedTool>) -> (Vec<ListedTool>, Option<String>) {
    let Some(budget) = open.view.tool_budget else {
        return (tools, None);
    };
    let tokens = |tools: &[ListedTool]| tools.iter().map(ListedTool::tokens).sum::<usize>();
    if tokens(&tools) <= budget {
        return (tools, None);
    }
    let discovery = open.read_snapshot(|snapshot| snapshot.discovery.clone());
    let mut listed: Vec<ListedTool> = discovery.all().into_iter().cloned().collect();
    let mut left = budget.saturating_sub(tokens(&listed));
    let mut left_out = Vec::new();
    for tool in tools.into_iter().filter(|tool| is_always_listed(open, tool)) {
        let cost = tool.tokens();
        if cost <= left {
            left -= cost;
            listed.push(tool);
        } else {
            left_out.push(tool.name);
        }
    }
    (listed, warn_of_no_room(budget, &left_out))
}

fn is_always_listed(open: &OpenView, listed: &ListedTool) -> bool {
    let servers = open.servers();
    let server = servers.iter().find(|server| *server.name() == listed.tool.server);
    // Built-in tools have no server.
    server.is_none_or(|server| {
        let always = &server.config().policy.always_load;
        always.iter().any(|glob| fits(glob, &listed.tool.name))
    })
}

/// A warning about tools that are always to be listed and do not fit into the budget, if there are any.
fn warn_of_no_room(budget: usize, left_out: &[String]) -> Option<String> {
    let named = left_out.iter().take(NAMED).map(|name| format!("`{name}`"));
    let named: Vec<String> = named.collect();
    let more = match left_out.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!left_out.is_empty()).then(|| {
        format!(
            "a budget of {budget} tokens has no room for tools that are always to be listed: {}{more}",
            named.join(", ")
        )
    })
}
