//! Finds the limits that apply to a call, and admits it within them.

use tokio::time::Instant;

use super::{call_limits::RepeatKey, context::CallContext, rates::Limited, verdict::Denied};
use crate::server::tool_policy;
use pegboard_config::ToolPolicy;
use pegboard_tools::args::Arguments;

/// Admits a call within its limits. Returns the key under which its outcome is to be reported, if repeated calls are limited.
pub(super) async fn admit(context: &CallContext<'_>, arguments: &Arguments) -> Result<Option<RepeatKey>, Denied> {
    let (view, policy) = (context.view, &context.config.policy);
    let (server, tool) = (context.server().name(), &context.tool().name);
    let has_own_limit = |tool: &ToolPolicy| tool.rate.is_some() || tool.loop_limit.is_some();
    let of_tool = policy
        .tools
        .values()
        .any(has_own_limit)
        .then(|| tool_policy(policy, tool, context.server().listing().former_names().get(tool)));
    let of_tool = of_tool.unwrap_or_default();
    if view.rate.is_some() || policy.rate.is_some() || of_tool.rate.is_some() {
        let limited = [
            view.rate.map(|rate| (Limited::View, rate)),
            policy.rate.map(|rate| (Limited::Server(server.clone()), rate)),
            of_tool
                .rate
                .map(|rate| (Limited::Tool(server.clone(), tool.clone()), rate)),
        ];
        view.usage.spend(limited, || context.tool_name().into_owned()).await?;
    }
    match of_tool.loop_limit.unwrap_or(policy.loop_limit) {
        0 => Ok(None),
        limit => {
            let key = RepeatKey::new(context.server().number(), tool, arguments);
            let name = || context.tool_name().into_owned();
            view.call_limits.repeat(key, limit, Instant::now(), name)?;
            Ok(Some(key))
        }
    }
}
