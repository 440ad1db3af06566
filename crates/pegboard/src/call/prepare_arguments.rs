//! The arguments as the tool's server gets them: read, mapped back, checked.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{CallContext, ToolCall, ToolClass, output_handles};
use crate::{
    args::{Arguments, signature},
    catalog::Tool,
    outcome::{Failure, Kind},
};

/// The arguments to send, or why the call cannot be made with what was given. What was changed on the way is told in `notes`.
pub(super) async fn arguments<'c>(
    job: &CallContext<'_>,
    call: &'c ToolCall,
    notes: &mut Vec<String>,
) -> Result<Cow<'c, Arguments>, Failure> {
    let mut given = Cow::Borrowed(&call.arguments);
    if output_handles::may_be_in(&given) {
        // Boxed, because it is rare and every call would pay for the room.
        given = Box::pin(output_handles::fill(given, &job.view.outputs.spill)).await?;
    }
    check(job, with_key(job, call, given), notes)
}

/// The arguments with the call's key among them, where the config says which argument that is and it was not given.
fn with_key<'c>(job: &CallContext<'_>, call: &ToolCall, given: Cow<'c, Arguments>) -> Cow<'c, Arguments> {
    let Some(key) = &call.key else { return given };
    let ToolClass::Keyed(argument) = ToolClass::under(&job.config.policy, job.tool()) else {
        return given;
    };
    match serde_json::from_str::<Map<String, Value>>(given.as_str()) {
        Ok(mut arguments) if !arguments.contains_key(&argument) => {
            arguments.insert(argument, key.as_str().into());
            Cow::Owned(arguments.into())
        }
        Ok(_) | Err(_) => given,
    }
}

/// Makes arguments of the text that was given instead of them, if one was, and turns what was written for a provider's schema into the tool's
/// own words.
pub(super) fn read(job: &CallContext<'_>, call: &mut ToolCall) -> Result<(), Failure> {
    read_text(job, call)?;
    let reverse = job.route.definition.as_ref().map(|definition| &definition.reverse);
    if let Some(own) = reverse.and_then(|reverse| reverse.apply(&call.arguments)) {
        call.arguments = own;
    }
    Ok(())
}

fn read_text(job: &CallContext<'_>, call: &mut ToolCall) -> Result<(), Failure> {
    if let Some(problem) = &call.unfit {
        return Err(invalid(job.tool(), problem));
    }
    let Some(text) = call.text.take() else { return Ok(()) };
    let reading = call.reading.unwrap_or(job.config.policy.args.reading);
    let read = Arguments::read(&text, reading, job.tool().input_schema.tree())
        .map_err(|error| invalid(job.tool(), &error.to_string()))?;
    call.arguments = read.arguments;
    call.notes.extend(read.notes);
    Ok(())
}

/// Compares the arguments with the tool's schema, as the server's settings say.
fn check<'c>(
    job: &CallContext<'_>,
    given: Cow<'c, Arguments>,
    notes: &mut Vec<String>,
) -> Result<Cow<'c, Arguments>, Failure> {
    let (tool, mode) = (job.tool(), job.config.policy.args.check);
    match tool.checks.input.arguments(&given, tool.input_schema.tree(), mode) {
        Ok(checked) => {
            notes.extend(checked.notes);
            Ok(checked.changed.map_or(given, Cow::Owned))
        }
        Err(problems) => Err(invalid(tool, &unfit(&problems))),
    }
}

/// One problem in the sentence, several in lines of their own.
fn unfit(problems: &[String]) -> String {
    match problems {
        [problem] => format!("the arguments do not fit: {problem}"),
        problems => format!("the arguments do not fit:\n- {}", problems.join("\n- ")),
    }
}

fn invalid(tool: &Tool, problem: &str) -> Failure {
    let name = tool.dotted_name();
    let takes = signature(tool.input_schema.tree());
    let failure = Failure::new(Kind::InvalidArguments, format!("{name} was not called: {problem}"));
    if takes.is_empty() {
        failure.hint(format!("{name} takes no arguments that its schema names"))
    } else {
        failure.hint(format!("{name} takes {takes}"))
    }
}
