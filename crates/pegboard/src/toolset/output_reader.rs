//! [`OutputReader`]: the built-in tool `read_output`, which reads a part of an output that was too long for the model and was spilled.

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{
    builtin_definitions::READ_OUTPUT,
    builtin_tools::{self, BuiltinReply},
    open_view::OpenView,
};
use crate::{
    call::{CallGuard, ToolCall},
    spill::{Query, SpillError},
};
use pegboard_config::Reading;
use pegboard_tools::outcome::{Answer, Failure, Kind, Outcome};

/// The largest page, in bytes. The model can read the next one.
const PAGE: usize = 16 << 10;

/// Answers calls of `read_output`.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutputReader<'a> {
    open: &'a OpenView,
}

impl<'a> OutputReader<'a> {
    pub(super) fn new(open: &'a OpenView) -> Self {
        Self { open }
    }

    /// Answers a call of the tool, or returns the call if it is of another tool.
    pub(super) async fn answer(
        self,
        mut call: ToolCall,
        started: Instant,
        mut guard: CallGuard<'a>,
    ) -> BuiltinReply<'a> {
        let outputs = &self.open.view.result_options;
        // Without a spilled output this costs only the read of a flag.
        if !outputs.lists_reader() || !builtin_tools::may_match(&call.name, READ_OUTPUT) {
            return Err(Box::new((call, guard)));
        }
        let (read_output, routes) = self
            .open
            .read_snapshot(|snapshot| (snapshot.read_output.clone(), snapshot.table.clone()));
        if !builtin_tools::matches(&call.name, &read_output, &routes, self.open.view.audience) {
            return Err(Box::new((call, guard)));
        }
        guard.mark_built_in(&read_output.tool);
        let read = builtin_tools::read(&mut call, &read_output, Reading::Guided, self.open.view.audience)
            .and_then(|arguments| parse(&arguments));
        let outcome = match read {
            Err(failure) => Outcome::Refused(failure),
            Ok((handle, query)) => match outputs.spill.page(&handle, query, PAGE).await {
                Ok(page) => Outcome::Done(Answer::from_text(page)),
                Err(SpillError::Query(problem)) => Outcome::Refused(Failure::new(Kind::InvalidArguments, problem)),
                Err(problem) => Outcome::ToolFailed(Answer::from_text(problem.to_string())),
            },
        };
        let mut reply = builtin_tools::reply(&call, &read_output.tool, outcome, started.elapsed());
        builtin_tools::note_repair(&mut reply, &call.name, &read_output);
        guard.complete(&reply);
        Ok(reply)
    }
}

/// The handle and the query.
fn parse(arguments: &Map<String, Value>) -> Result<(String, Query), Failure> {
    let invalid = |problem: String| Failure::new(Kind::InvalidArguments, problem);
    let text = |key: &str| builtin_tools::text(arguments, key);
    let handle =
        text("handle")?.ok_or_else(|| invalid("`handle` is missing: which output is to be read?".to_owned()))?;
    let context = arguments.get("context").and_then(Value::as_u64).unwrap_or(0);
    let query = match (text("range")?, text("grep")?, text("jsonpath")?) {
        (None, None, None) => Ok(Query::start()),
        (Some(range), None, None) => Query::range(&range),
        (None, Some(pattern), None) => Query::grep(&pattern, usize::try_from(context).unwrap_or(usize::MAX)),
        (None, None, Some(path)) => Query::path(&path),
        _ => Err("give only one of `range`, `grep` and `jsonpath`".to_owned()),
    };
    Ok((handle, query.map_err(invalid)?))
}
