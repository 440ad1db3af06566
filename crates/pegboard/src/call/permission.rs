//! Decides whether a call may be made: the view's checks look at its arguments, and an approver is asked where the config says so.

use super::{
    CallContext, ToolCall,
    approval::{Decision, Question, Remembered},
    hook::panicked,
    rules::Proposed,
    visibility::said_about,
};
use crate::{
    args::Arguments,
    catalog::{Risk, Tool},
    config::{Approval, Policy},
    filter::{Case, Globs},
    outcome::{Failure, Kind},
    sync::{Panicked, caught},
};

/// Returns once the call may be made, or the reason why it may not.
pub(super) async fn ask(job: &CallContext<'_>, call: &ToolCall, arguments: &Arguments) -> Result<(), Failure> {
    check(job, arguments)?;
    let need = match need(job) {
        Need::Nothing if job.view.rules.is_tainted() && risk(job) == Risk::High => Need::Agreement,
        need => need,
    };
    match need {
        Need::Nothing => Ok(()),
        Need::Refusal => Err(Failure::new(
            Kind::NotPermitted,
            format!(
                "calls of `{}` are not allowed. Go on without it.",
                job.tool().dotted_name()
            ),
        )
        .hint("`approval` is set to `never` for it")),
        // Boxed, because it is rare and every call would pay for the space.
        Need::Agreement => Box::pin(agreement(job, call, arguments)).await,
    }
}

/// The risk of the call under the settings with which it began.
fn risk(job: &CallContext<'_>) -> Risk {
    job.tool().risk(job.route.is_believed(&job.config.policy))
}

/// Runs the view's checks on the arguments.
fn check(job: &CallContext<'_>, arguments: &Arguments) -> Result<(), Failure> {
    let checks = &job.view.rules.checks;
    if checks.is_empty() {
        return Ok(());
    }
    let refused = |why: &str| {
        let name = job.tool().dotted_name();
        Failure::new(
            Kind::NotPermitted,
            format!("the call of `{name}` is not allowed: {why}"),
        )
    };
    // Checks must see what the server parses: duplicate keys are refused.
    let map = arguments.by_name().map_err(|problem| refused(&problem))?;
    let proposed = Proposed {
        server: job.server().name(),
        tool: job.tool(),
        risk: risk(job),
        arguments: &map,
    };
    checks
        .iter()
        .try_for_each(|check| check(&proposed))
        .map_err(|why| refused(&why))
}

/// What the config says about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Nothing,
    Agreement,
    Refusal,
}

fn need(job: &CallContext<'_>) -> Need {
    let policy = &job.config.policy;
    if policy.approval == Approval::Auto && policy.tools.is_empty() {
        return Need::Nothing;
    }
    let former = job.server().former_names();
    let only_reads = job.tool().is_read_only(job.route.is_believed(policy));
    need_of(job.tool(), only_reads, policy, former.of(&job.tool().name))
}

/// A setting for the tool comes before the list of exempt tools, and that before the server's setting.
fn need_of(tool: &Tool, only_reads: bool, policy: &Policy, former: &[String]) -> Need {
    let said = said_about(policy, &tool.name, former).approval;
    let exempt = || Globs::new(&policy.approval_exempt, Case::Matters).fit(&tool.name);
    let mode = match said {
        Some(mode) => mode,
        None if exempt() => Approval::Auto,
        None => policy.approval,
    };
    match mode {
        Approval::Auto => Need::Nothing,
        Approval::Writes if only_reads => Need::Nothing,
        Approval::Writes | Approval::Always => Need::Agreement,
        Approval::Never => Need::Refusal,
    }
}

/// Asks for approval, unless it was given before. While one question about a tool is pending, further calls of it wait: the answer may
/// cover them too.
async fn agreement(job: &CallContext<'_>, call: &ToolCall, arguments: &Arguments) -> Result<(), Failure> {
    let (rules, tool) = (&job.view.rules, job.tool());
    let remembered = || [rules.agreed.about(tool), rules.agreed_for_all.about(tool)];
    if remembered().contains(&Remembered::Agreed) {
        return Ok(());
    }
    let name = tool.dotted_name();
    let refused = |message: String| Failure::new(Kind::NotPermitted, message);
    let Some(approver) = &rules.approver else {
        return Err(refused(format!(
            "a person must agree to calls of `{name}`, and nobody can be asked. Go on without it."
        ))
        .hint(format!(
            "`approval_exempt` of server `{}` lists the tools that need no agreement",
            tool.server
        )));
    };
    let limit = rules.patience().min(job.deadline.remaining());
    let asking = async {
        let _turn = rules.asking.turn(tool).await;
        let remembered = remembered();
        if remembered.contains(&Remembered::Agreed) {
            return Ok(Decision::Once);
        }
        let question = Question {
            call: &call.id,
            server: job.server().name(),
            tool,
            arguments,
            risk: risk(job),
            has_changed: remembered.contains(&Remembered::Changed),
        };
        let decision = caught(async { approver.decide(question).await }).await?;
        // Stored before the permit is released, so that the next call sees it.
        match decision {
            Decision::ForView => rules.agreed.remember(tool),
            Decision::Always => rules.agreed_for_all.remember(tool),
            Decision::Once | Decision::Refused(_) => {}
        }
        Ok(decision)
    };
    match tokio::time::timeout(limit, asking).await {
        Ok(Ok(Decision::Once | Decision::ForView | Decision::Always)) => Ok(()),
        Ok(Err(Panicked)) => Err(panicked("the approver")),
        Ok(Ok(Decision::Refused(why))) => Err(refused(format!(
            "the call of `{name}` was not approved: {}. Do not repeat it. Go on without it, or ask the user.",
            why.trim_end().trim_end_matches('.')
        ))),
        Err(_) => {
            let waited = limit.as_secs_f64().round();
            Err(refused(format!(
                "the call of `{name}` was not approved: nobody answered within {waited} s. Go on without it, or ask the user."
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{catalog::Catalog, config::ToolPolicy, name::ServerName};

    fn tool(hints: &Value) -> Tool {
        let mut catalog = Catalog::default();
        let item = json!({"name": "t", "annotations": hints});
        let server = ServerName::parse("fx").unwrap();
        catalog.read_tools(&server, vec![item], crate::catalog::HeaderRule::Ignored);
        Tool::clone(&catalog.tools[0])
    }

    fn policy(approval: Approval) -> Policy {
        Policy {
            approval,
            ..Policy::default()
        }
    }

    fn said(approval: Approval) -> ToolPolicy {
        ToolPolicy {
            approval: Some(approval),
            ..ToolPolicy::default()
        }
    }

    /// Every mode against every kind of tool.
    #[test]
    fn each_mode_asks_about_the_calls_that_it_names() {
        use Need::{Agreement, Nothing, Refusal};
        let (auto, writes, always, never) = (Approval::Auto, Approval::Writes, Approval::Always, Approval::Never);
        for (hints, expected) in [
            (json!(null), [Nothing, Agreement, Agreement, Refusal]),
            (json!({"readOnlyHint": true}), [Nothing, Nothing, Agreement, Refusal]),
            (json!({"readOnlyHint": false}), [Nothing, Agreement, Agreement, Refusal]),
            (
                json!({"destructiveHint": false}),
                [Nothing, Agreement, Agreement, Refusal],
            ),
            (
                json!({"destructiveHint": true}),
                [Nothing, Agreement, Agreement, Refusal],
            ),
            (
                json!({"openWorldHint": false}),
                [Nothing, Agreement, Agreement, Refusal],
            ),
            (
                json!({"readOnlyHint": true, "destructiveHint": true}),
                [Nothing, Agreement, Agreement, Refusal],
            ),
        ] {
            let needs = |trusted: bool| {
                let tool = tool(&hints);
                let only_reads = tool.is_read_only(trusted);
                [auto, writes, always, never].map(|mode| need_of(&tool, only_reads, &policy(mode), &[]))
            };
            assert_eq!(needs(true), expected, "{hints}");
            assert_eq!(needs(false), [Nothing, Agreement, Agreement, Refusal], "{hints}");
        }
    }

    #[test]
    fn what_is_said_about_a_tool_counts_before_the_exempt_and_those_before_the_server() {
        let tool = tool(&json!(null));
        for mode in [Approval::Writes, Approval::Always, Approval::Never] {
            let mut policy = policy(mode);
            policy.approval_exempt = vec!["t*".to_owned()];
            assert_eq!(need_of(&tool, false, &policy, &[]), Need::Nothing, "{mode:?}");
            policy.tools.insert("?".to_owned(), said(Approval::Always));
            assert_eq!(need_of(&tool, false, &policy, &[]), Need::Agreement, "{mode:?}");
            policy.tools.insert("t".to_owned(), said(Approval::Never));
            assert_eq!(need_of(&tool, false, &policy, &[]), Need::Refusal, "{mode:?}");
        }
    }

    #[test]
    fn a_renamed_tool_needs_what_it_needed_before() {
        let mut policy = policy(Approval::Auto);
        policy.tools.insert("delete".to_owned(), said(Approval::Never));
        assert_eq!(need_of(&tool(&json!(null)), false, &policy, &[]), Need::Nothing);
        assert_eq!(
            need_of(&tool(&json!(null)), false, &policy, &["delete".to_owned()]),
            Need::Refusal
        );
    }
}
