//! Decides whether a call may be made: runs the view's checks on its arguments, and requests approval where the config requires it.

use super::{
    approval::{Decision, PastApproval, Question},
    approver_or_watcher, audit_trail,
    context::CallContext,
    hook::panic_failure,
    limit_check,
    record::CallRecord,
    verdict::{Denied, Verdict},
    view_rules::Proposed,
};
use crate::{audit::AuditRule, server::tool_policy};
use pegboard_base::sync::{Panicked, catch, catch_now};
use pegboard_config::{Approval, Policy, Taint};
use pegboard_tools::tool_call::ToolCall;
use pegboard_tools::{
    args::Arguments,
    catalog::{Risk, Tool, sanitize::is_invisible},
    filter::{Case, Globs},
    outcome::{Advice, Failure, Kind},
};

/// The most characters of its arguments that a person is shown.
const MAX_SHOWN: usize = 2_000;

/// Returns once the call may be made and the audit log has the decision, or the reason why it may not.
pub(super) async fn obtain(
    context: &CallContext<'_>,
    call: &ToolCall,
    arguments: &Arguments,
    record: &mut CallRecord,
) -> Result<(), Failure> {
    let verdict = decide(context, call, arguments, record).await;
    let recorded = audit_trail::record(context, call, arguments, &verdict).await;
    verdict.map_err(|denied| denied.rule.explain(*denied.failure, Some(context.server().name())))?;
    recorded
}

async fn decide(context: &CallContext<'_>, call: &ToolCall, arguments: &Arguments, record: &mut CallRecord) -> Verdict {
    run_checks(context, arguments).map_err(|failure| Denied::by(AuditRule::Check, failure))?;
    record.repeat_key = limit_check::admit(context, arguments).await?;
    match (requirement(context), taint(context)) {
        (Requirement::Forbidden, _) => Err(Denied::by(
            AuditRule::Never,
            Failure::new(
                Kind::NotPermitted,
                format!("calls of `{}` are not allowed", context.tool_name()),
            )
            .advice(Advice::Leave)
            .hint("`approval` is set to `never` for it"),
        )),
        (_, Taint::Block) => Err(Denied::by(AuditRule::Taint, taint_failure(context))),
        (Requirement::Nothing, Taint::Off) => Ok(None),
        // Boxed, because it is rare and every call would pay for the space.
        (Requirement::Approval, _) | (_, Taint::Ask) => Box::pin(request_approval(context, call, arguments)).await,
    }
}

/// What the view and the config require of this call because the agent has read untrusted output.
fn taint(context: &CallContext<'_>) -> Taint {
    let (rules, policy) = (&context.view.rules, &context.config.policy);
    let rule = rules.on_taint.max(policy.taint);
    if rule != Taint::Off && rules.taint.is_set() && risk(context) == Risk::High {
        rule
    } else {
        Taint::Off
    }
}

fn taint_failure(context: &CallContext<'_>) -> Failure {
    let name = context.tool_name();
    let message = format!(
        "the call of `{name}` is not allowed, because you have read output of servers that are not trusted, and it may do harm"
    );
    let servers: Vec<String> = context
        .view
        .rules
        .taint
        .servers()
        .iter()
        .map(|server| format!("`{server}`"))
        .collect();
    let failure = Failure::new(Kind::NotPermitted, message).advice(Advice::AskUser);
    failure.hint(format!(
        "`taint` is `block`, and the output is of {}; `Toolset::clear_taint` lifts it",
        servers.join(", ")
    ))
}

/// The risk of the call under the settings with which it began.
fn risk(context: &CallContext<'_>) -> Risk {
    context.tool().risk(context.route.is_believed(&context.config.policy))
}

/// Runs the view's checks on the arguments.
fn run_checks(context: &CallContext<'_>, arguments: &Arguments) -> Result<(), Failure> {
    let checks = &context.view.rules.checks;
    if checks.is_empty() {
        return Ok(());
    }
    let refused = |why: &str| {
        let name = context.tool_name();
        Failure::new(
            Kind::NotPermitted,
            format!("the call of `{name}` is not allowed: {why}"),
        )
    };
    // Checks must see what the server parses: duplicate keys are refused.
    let map = arguments.by_name().map_err(|problem| refused(&problem))?;
    let proposed = Proposed {
        server: context.server().name(),
        tool: context.tool(),
        risk: risk(context),
        arguments: &map,
    };
    checks
        .iter()
        .try_for_each(|check| match catch_now(|| check(&proposed)) {
            Ok(checked) => checked.map_err(|why| refused(&why)),
            Err(Panicked) => Err(panic_failure("a check")),
        })
}

/// What the config requires for a call, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Requirement {
    Nothing,
    Approval,
    Forbidden,
}

/// Which settings require the agreement.
fn how_to_exempt(context: &CallContext<'_>) -> String {
    let (policy, tool) = (&context.config.policy, context.tool());
    let only_reads = tool.is_read_only(context.route.is_believed(policy));
    let former = context.server().listing().former_names();
    let former = former.get(&tool.name);
    let of_view = requirement_in(context.view.rules.approval, only_reads) != Requirement::Nothing;
    let of_server = requirement_for(tool, only_reads, policy, former) != Requirement::Nothing;
    let server = &tool.server;
    let of_server = match of_server.then(|| tool_policy(policy, &tool.name, former).approval.is_some()) {
        None => None,
        Some(true) => Some(format!(
            "`approval` in `tools` of server `{server}` requires it for this tool"
        )),
        Some(false) => Some(format!(
            "`approval_exempt` of server `{server}` lists the tools that need no agreement"
        )),
    };
    match (of_view, of_server) {
        (true, None) => {
            "`approval` of the view requires it; `approval_exempt` of a server changes nothing about that".to_owned()
        }
        (true, Some(of_server)) => format!("`approval` of the view requires it, and so does the server: {of_server}"),
        (false, of_server) => of_server.unwrap_or_default(),
    }
}

fn requirement(context: &CallContext<'_>) -> Requirement {
    let (policy, of_view) = (&context.config.policy, context.view.rules.approval);
    if policy.approval == Approval::Auto && policy.tools.is_empty() && of_view == Approval::Auto {
        return Requirement::Nothing;
    }
    let former = context.server().listing().former_names();
    let only_reads = context.tool().is_read_only(context.route.is_believed(policy));
    let of_server = requirement_for(context.tool(), only_reads, policy, former.get(&context.tool().name));
    of_server.max(requirement_in(of_view, only_reads))
}

/// The setting for the tool takes precedence over the list of exempt tools, and that list over the server's setting.
fn requirement_for(tool: &Tool, only_reads: bool, policy: &Policy, former: &[String]) -> Requirement {
    let for_tool = tool_policy(policy, &tool.name, former).approval;
    let exempt = || Globs::new(&policy.approval_exempt, Case::Matters).fit(&tool.name);
    let mode = match for_tool {
        Some(mode) => mode,
        None if exempt() => Approval::Auto,
        None => policy.approval,
    };
    requirement_in(mode, only_reads)
}

/// What a mode requires for a call of a tool that reads only, or of one that may write.
fn requirement_in(mode: Approval, only_reads: bool) -> Requirement {
    match mode {
        Approval::Auto => Requirement::Nothing,
        Approval::Writes if only_reads => Requirement::Nothing,
        Approval::Writes | Approval::Always => Requirement::Approval,
        Approval::Never => Requirement::Forbidden,
    }
}

/// The arguments as a person is shown them. Written anew, so that space between them cannot hide any. Only known secrets are masked: what a
/// pattern matches may be a part of what the person decides about.
fn show(context: &CallContext<'_>, arguments: &Arguments) -> String {
    let text = match serde_json::from_str::<serde_json::Value>(arguments.as_str()) {
        Ok(value) => value.to_string(),
        Err(_) => arguments.as_str().to_owned(),
    };
    let masked = context
        .server()
        .masker()
        .current()
        .without_patterns()
        .text(&text)
        .text
        .chars()
        .map(to_visible)
        .collect::<String>();
    match masked.char_indices().nth(MAX_SHOWN) {
        None => masked,
        Some((end, _)) => format!("{}… (of {} bytes)", &masked[..end], text.len()),
    }
}

/// A character, or its escape if it is invisible or changes how others appear.
fn to_visible(c: char) -> String {
    if is_invisible(c) {
        c.escape_unicode().to_string()
    } else {
        c.to_string()
    }
}

/// Asks for approval, unless it was given before. While one question about a tool is pending, further calls of it wait: the answer may
/// cover them too.
async fn request_approval(context: &CallContext<'_>, call: &ToolCall, arguments: &Arguments) -> Verdict {
    let (rules, tool) = (&context.view.rules, context.tool());
    let principal = context.view.principal.as_ref();
    let past = || {
        [
            rules.approved.past(tool, principal),
            rules.approved_for_all.past(tool, principal),
        ]
    };
    if past().contains(&PastApproval::Approved) {
        return Ok(Some(AuditRule::EarlierApproval));
    }
    let name = context.tool_name();
    let refused =
        |rule, advice, message: String| Denied::by(rule, Failure::new(Kind::NotPermitted, message).advice(advice));
    let Some(approver) = &rules.approver else {
        let message = format!("a person must agree to calls of `{name}`, and nobody can be asked");
        let failure = Failure::new(Kind::NotPermitted, message).advice(Advice::Leave);
        return Err(Denied::by(AuditRule::NoApprover, failure.hint(how_to_exempt(context))));
    };
    let shown = show(context, arguments);
    let limit = rules.approval_timeout().min(context.deadline.remaining());
    let deciding = async {
        let _permit = match approver.asks_one_at_a_time() {
            true => rules.open_questions.permit(tool).await,
            false => None,
        };
        let past = past();
        if past.contains(&PastApproval::Approved) {
            return Ok((Decision::Once, AuditRule::EarlierApproval));
        }
        let question = Question {
            caller: context.view.caller(call),
            server: context.server().name(),
            tool,
            name: &name,
            arguments,
            shown: &shown,
            risk: risk(context),
            has_changed: past.contains(&PastApproval::Changed),
            is_tainted: rules.taint.is_set(),
        };
        let decision = catch(async { approver_or_watcher::decide(context, approver.as_ref(), question).await }).await?;
        // Stored before the permit is released, so that the next waiting call sees it.
        let rule = match decision {
            Decision::ForView => {
                rules.approved.remember(tool, principal);
                AuditRule::ForView
            }
            Decision::Always => {
                rules.approved_for_all.remember(tool, principal);
                AuditRule::Always
            }
            Decision::Once => AuditRule::Once,
            Decision::Refused(_) => AuditRule::Refused,
        };
        Ok((decision, rule))
    };
    match tokio::time::timeout(limit, deciding).await {
        Ok(Ok((Decision::Refused(why), rule))) => Err(refused(
            rule,
            Advice::Stop,
            format!(
                "the call of `{name}` was not approved: {}",
                why.trim_end().trim_end_matches('.')
            ),
        )),
        Ok(Ok((_, rule))) => Ok(Some(rule)),
        Ok(Err(Panicked)) => Err(Denied::by(AuditRule::ApproverFailed, panic_failure("the approver"))),
        Err(_) => {
            let waited = limit.as_secs_f64().round();
            let message = format!("the call of `{name}` was not approved: nobody answered within {waited} s");
            Err(refused(AuditRule::NoAnswer, Advice::AskUser, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use pegboard_base::name::ServerName;
    use pegboard_config::ToolPolicy;
    use pegboard_tools::catalog::Catalog;

    fn tool(hints: &Value) -> Tool {
        let mut catalog = Catalog::default();
        let item = json!({"name": "t", "annotations": hints});
        let server = ServerName::parse("fx").unwrap();
        catalog.read_tools(&server, vec![item], pegboard_tools::catalog::HeaderRule::Ignored);
        Tool::clone(&catalog.tools[0])
    }

    fn policy(approval: Approval) -> Policy {
        Policy {
            approval,
            ..Policy::default()
        }
    }

    fn tool_with(approval: Approval) -> ToolPolicy {
        ToolPolicy {
            approval: Some(approval),
            ..ToolPolicy::default()
        }
    }

    /// Every mode against every kind of tool.
    #[test]
    fn each_mode_asks_about_the_calls_that_it_names() {
        use Requirement::{Approval as Needed, Forbidden, Nothing};
        let (auto, writes, always, never) = (Approval::Auto, Approval::Writes, Approval::Always, Approval::Never);
        for (hints, expected) in [
            (json!(null), [Nothing, Needed, Needed, Forbidden]),
            (json!({"readOnlyHint": true}), [Nothing, Nothing, Needed, Forbidden]),
            (json!({"readOnlyHint": false}), [Nothing, Needed, Needed, Forbidden]),
            (json!({"destructiveHint": false}), [Nothing, Needed, Needed, Forbidden]),
            (json!({"destructiveHint": true}), [Nothing, Needed, Needed, Forbidden]),
            (json!({"openWorldHint": false}), [Nothing, Needed, Needed, Forbidden]),
            (
                json!({"readOnlyHint": true, "destructiveHint": true}),
                [Nothing, Needed, Needed, Forbidden],
            ),
        ] {
            let requirements = |trusted: bool| {
                let tool = tool(&hints);
                let only_reads = tool.is_read_only(trusted);
                [auto, writes, always, never].map(|mode| requirement_for(&tool, only_reads, &policy(mode), &[]))
            };
            assert_eq!(requirements(true), expected, "{hints}");
            assert_eq!(requirements(false), [Nothing, Needed, Needed, Forbidden], "{hints}");
        }
    }

    #[test]
    fn a_tools_setting_comes_before_the_exempt_list_and_that_before_the_servers() {
        let tool = tool(&json!(null));
        for mode in [Approval::Writes, Approval::Always, Approval::Never] {
            let mut policy = policy(mode);
            policy.approval_exempt = vec!["t*".to_owned()];
            assert_eq!(
                requirement_for(&tool, false, &policy, &[]),
                Requirement::Nothing,
                "{mode:?}"
            );
            policy.tools.insert("?".to_owned(), tool_with(Approval::Always));
            assert_eq!(
                requirement_for(&tool, false, &policy, &[]),
                Requirement::Approval,
                "{mode:?}"
            );
            policy.tools.insert("t".to_owned(), tool_with(Approval::Never));
            assert_eq!(
                requirement_for(&tool, false, &policy, &[]),
                Requirement::Forbidden,
                "{mode:?}"
            );
        }
    }

    #[test]
    fn a_renamed_tool_needs_what_it_needed_before() {
        let mut policy = policy(Approval::Auto);
        policy.tools.insert("delete".to_owned(), tool_with(Approval::Never));
        assert_eq!(
            requirement_for(&tool(&json!(null)), false, &policy, &[]),
            Requirement::Nothing
        );
        assert_eq!(
            requirement_for(&tool(&json!(null)), false, &policy, &["delete".to_owned()]),
            Requirement::Forbidden
        );
    }
}
