//! Prepares the arguments for the server: parses them, maps them back from the provider's schema, resolves handles, and validates them.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{context::CallContext, output_handles, retry::ToolClass};
use pegboard_config::{Check, OutputCheck, Policy, Reading};
use pegboard_tools::tool_call::ToolCall;
use pegboard_tools::{
    args::{Arguments, CompiledSchemas, signature},
    catalog::Tool,
    outcome::{Failure, Kind},
    provider::Definition,
};

/// A tool, and its name in texts.
struct Named<'a> {
    tool: &'a Tool,
    name: Cow<'a, str>,
}

impl<'a> CallContext<'a> {
    fn to_named(&self) -> Named<'a> {
        Named {
            tool: self.tool(),
            name: self.tool_name(),
        }
    }
}

/// Returns the arguments to send, or why they are invalid. Changes are recorded in `notes`.
pub(super) async fn prepare<'c>(
    context: &CallContext<'_>,
    call: &'c ToolCall,
    notes: &mut Vec<String>,
) -> Result<Cow<'c, Arguments>, Failure> {
    refuse_unchecked(context)?;
    let mut arguments = Cow::Borrowed(&call.arguments);
    if output_handles::may_contain_handles(&arguments) {
        // Boxed, because it is rare and every call would pay for the space.
        arguments = Box::pin(output_handles::resolve(arguments, &context.view.result_options.spill)).await?;
    }
    let check = context.config.policy.call_arguments.check;
    let compiled = &context.view.compiled_schemas;
    let arguments = with_key(context, call, arguments);
    validate(&context.to_named(), check, compiled, arguments, notes)
}

/// Adds the idempotency key as an argument, if the config names that argument and the call does not set it.
fn with_key<'c>(context: &CallContext<'_>, call: &ToolCall, arguments: Cow<'c, Arguments>) -> Cow<'c, Arguments> {
    let Some(key) = &call.key else { return arguments };
    let ToolClass::Keyed(argument) = ToolClass::under(&context.config.policy, context.tool()) else {
        return arguments;
    };
    match serde_json::from_str::<Map<String, Value>>(arguments.as_str()) {
        Ok(mut arguments) if !arguments.contains_key(&argument) => {
            arguments.insert(argument, key.as_str().into());
            Cow::Owned(arguments.into())
        }
        Ok(_) | Err(_) => arguments,
    }
}

/// Parses arguments given as text, and maps arguments written for a provider's schema back to the tool's own schema.
pub(super) fn parse(context: &CallContext<'_>, call: &mut ToolCall) -> Result<(), Failure> {
    let definition = context.route.definition.as_deref();
    parse_for(
        &context.to_named(),
        definition,
        context.config.policy.call_arguments.read,
        call,
    )
}

fn parse_for(
    tool: &Named<'_>,
    definition: Option<&Definition>,
    reading: Reading,
    call: &mut ToolCall,
) -> Result<(), Failure> {
    parse_text(tool, reading, call)?;
    let reverse = definition.map(|definition| &definition.reverse);
    if let Some(own) = reverse.and_then(|reverse| reverse.apply(&call.arguments)) {
        call.arguments = own;
    }
    Ok(())
}

fn parse_text(tool: &Named<'_>, reading: Reading, call: &mut ToolCall) -> Result<(), Failure> {
    if let Some(problem) = &call.invalid_arguments {
        return Err(argument_failure(tool, problem));
    }
    let Some(text) = call.text.take() else { return Ok(()) };
    let reading = call.reading.unwrap_or(reading);
    // Only guided reading uses the schema, and a parsed schema would stay in memory.
    let schema = match reading {
        Reading::Guided => tool.tool.input_schema.tree(),
        Reading::Json | Reading::Repair | Reading::Cascade => &Value::Null,
    };
    let read = Arguments::read(&text, reading, schema).map_err(|error| argument_failure(tool, &error.to_string()))?;
    call.arguments = read.arguments;
    call.notes.extend(read.notes);
    Ok(())
}

/// Parses and validates the arguments of a call without a board, under the default settings of a server. For test doubles.
pub(crate) fn check_standalone(
    tool: &Tool,
    definition: Option<&Definition>,
    call: &mut ToolCall,
) -> Result<(), Failure> {
    let rules = Policy::default().call_arguments;
    let tool = &Named {
        tool,
        name: tool.dotted_name().into(),
    };
    parse_for(tool, definition, rules.read, call)?;
    let mut notes = Vec::new();
    let (compiled, arguments) = (CompiledSchemas::default(), Cow::Borrowed(&call.arguments));
    let changed = match validate(tool, rules.check, &compiled, arguments, &mut notes)? {
        Cow::Owned(changed) => Some(changed),
        Cow::Borrowed(_) => None,
    };
    if let Some(changed) = changed {
        call.arguments = changed;
    }
    call.notes.extend(notes);
    Ok(())
}

/// Validates the arguments against the tool's schema, in the mode that the server's settings select.
fn validate<'c>(
    named: &Named<'_>,
    mode: Check,
    compiled: &CompiledSchemas,
    arguments: Cow<'c, Arguments>,
    notes: &mut Vec<String>,
) -> Result<Cow<'c, Arguments>, Failure> {
    let tool = named.tool;
    let schema = tool.input_schema.as_str();
    match tool.checks.input.arguments(&arguments, schema, mode, compiled) {
        Ok(checked) => {
            notes.extend(checked.notes);
            Ok(checked.changed.map_or(arguments, Cow::Owned))
        }
        Err(problems) => Err(argument_failure(named, &describe(&problems))),
    }
}

/// Refuses a call whose server's settings demand a check that this build lacks. The modes that are on by default only lose it.
fn refuse_unchecked(context: &CallContext<'_>) -> Result<(), Failure> {
    if cfg!(feature = "validation") {
        return Ok(());
    }
    let (policy, tool) = (&context.config.policy, context.tool());
    let setting = match (policy.call_arguments.check, policy.output_check) {
        (Check::Strict, _) => "`call_arguments = \"strict\"`",
        (_, OutputCheck::Error) if tool.output_schema.is_some() => "`output_check = \"error\"`",
        _ => return Ok(()),
    };
    let name = context.tool_name();
    let message = format!(
        "{name} was not called: its server has {setting}, and this program was built without validation against schemas"
    );
    Err(Failure::new(Kind::NotPermitted, message)
        .hint("build it with the feature `validation` of the crate `pegboard`, or change the setting"))
}

/// Formats the problems: a single one inline, several on lines of their own.
fn describe(problems: &[String]) -> String {
    match problems {
        [problem] => format!("the arguments do not fit: {problem}"),
        problems => format!("the arguments do not fit:\n- {}", problems.join("\n- ")),
    }
}

fn argument_failure(Named { tool, name }: &Named<'_>, problem: &str) -> Failure {
    let takes = signature(tool.input_schema.tree(), &tool.argument_names().unwrap_or_default());
    let failure = Failure::new(Kind::InvalidArguments, format!("{name} was not called: {problem}"));
    if takes.is_empty() {
        failure.hint(format!("{name} takes no arguments that its schema names"))
    } else {
        failure.hint(format!("{name} takes {takes}"))
    }
}
