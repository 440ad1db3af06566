//! Limits the size of a result: one that is too long is spilled, truncated, or selected for a summary.

use std::{io, sync::Arc};

use serde_json::Value;

use super::result_rules::ResultRules;
use crate::{
    call::result_options::ResultOptions,
    spill::{Output, OutputFormat},
};
use pegboard_config::{Join, Structured, Summarise, TooLong};
use pegboard_tools::{
    catalog::MAX_RESULT_SIZE,
    outcome::{
        Answer, Content, Failure, Kind, Notes, is_json_of,
        truncate::{self, Bounds, Part, Sizes, estimate_tokens},
    },
};

/// How much of a result is shown beside the handle of the spilled output.
const PREVIEW: usize = 4 << 10;

/// The result of limiting an answer.
pub(super) enum Limited {
    /// Small enough, and unchanged.
    Fits(Answer),
    Cut(Box<Cut>),
    /// Too long, and the config makes that an error.
    Refused(Failure),
}

/// An answer that was too long.
pub(super) struct Cut {
    answer: Answer,
    /// The text within its limits.
    text: String,
    /// The most bytes that the text may have.
    space: usize,
    /// The whole text, if it is to be summarised.
    pub(super) summarise: Option<Arc<String>>,
    /// The blocks that are not text.
    others: Vec<Content>,
}

impl Cut {
    /// Builds the answer with a summary, or with the truncated text if there is none.
    pub(super) fn finish(self, summary: Option<String>) -> Answer {
        let Self {
            mut answer,
            text,
            space,
            mut others,
            ..
        } = self;
        let text = match summary {
            // An overlong summary must not undo the limit.
            Some(summary) => message(&summary, space).unwrap_or(summary),
            None => text,
        };
        answer.content = vec![Content::text(text)];
        answer.content.append(&mut others);
        // Everything shown is in the blocks now.
        answer.rendering.structured = Structured::ContentOnly;
        answer
    }
}

/// Returns whether an answer is so small that its text need not be examined.
pub(super) fn surely_fits(rules: &ResultRules<'_>, answer: &Answer, summarise: Option<&Summarise>) -> bool {
    let max_bytes = byte_limit(rules, answer);
    if max_bytes == usize::MAX && summarise.is_none() && rules.results == rules.results.whole() {
        return true;
    }
    let bounds = bounds(rules, max_bytes);
    let sizes = Sizing::measure(answer, max_bytes);
    let per_token = if bounds.count.is_some() { 1 } else { 4 };
    let most = summarise.map(|policy| policy.threshold_tokens.saturating_mul(per_token));
    sizes.parts_fit && most.is_none_or(|most| sizes.shown <= most) && bounds.surely_hold(sizes.shown)
}

fn bounds<'a>(rules: &ResultRules<'a>, max_bytes: usize) -> Bounds<'a> {
    Bounds {
        bytes: max_bytes,
        lines: rules.results.max_lines,
        tokens: rules.results.max_tokens,
        count: rules.options.count(),
    }
}

/// Measures an answer and makes it fit.
pub(super) async fn limit(
    rules: &ResultRules<'_>,
    mut answer: Answer,
    failed: bool,
    summarise: Option<&Summarise>,
    notes: &mut Notes,
) -> Limited {
    if surely_fits(rules, &answer, summarise) {
        return Limited::Fits(answer);
    }
    let max_bytes = byte_limit(rules, &answer);
    let bounds = bounds(rules, max_bytes);
    let threshold = summarise.map(|policy| policy.threshold_tokens);
    let sizes = Sizing::measure(&answer, max_bytes);
    let over = !sizes.parts_fit || !bounds.hold(&answer.body());
    let long = threshold.is_some_and(|most| bounds.tokens_of(&answer.body()) > most);
    if !over && !long {
        return Limited::Fits(answer);
    }
    if over && !failed && rules.results.mode == TooLong::Error {
        return Limited::Refused(refusal(rules, answer.body().len(), max_bytes));
    }
    let is_summarised = long || (over && !failed && rules.results.mode == TooLong::Summarise);
    notes.truncated = over;
    let others = take_other_blocks(&mut answer, max_bytes, &mut notes.warnings);
    if !sizes.parts_fit && !answer.shown_parts().0 && !answer.content.is_empty() {
        notes
            .warnings
            .push("the blocks of the result were left out; its structured content is shown".to_owned());
    }
    let (form, text) = take_body(&mut answer);
    let text = Arc::new(text);
    if !text.is_empty() && matches!(rules.results.mode, TooLong::Spill | TooLong::Summarise) {
        notes.handle = spill(rules, form, text.clone(), notes).await;
    }
    spill_structured(rules, &mut answer, &text, max_bytes, notes).await;
    let space = minus_descriptions(&bounds, &others);
    let limited = if over {
        truncate_text(rules, &text, &space, notes.handle.as_deref())
    } else {
        text.as_ref().clone()
    };
    Limited::Cut(Box::new(Cut {
        answer,
        text: limited,
        space: space.bytes,
        summarise: is_summarised.then_some(text),
        others,
    }))
}

/// The bounds minus the lines that describe these blocks.
fn minus_descriptions<'a>(bounds: &Bounds<'a>, others: &[Content]) -> Bounds<'a> {
    let mut space = *bounds;
    for block in others {
        let description = block.to_text();
        space.bytes = space.bytes.saturating_sub(description.len() + 2);
        space.lines = space.lines.map(|most| most.saturating_sub(1));
        space.tokens = space
            .tokens
            .map(|most| most.saturating_sub(bounds.tokens_of(&description) + 1));
    }
    space
}

/// The limit in bytes: the config's, or the size that the server declares for the tool or this result, up to the ceiling.
fn byte_limit(rules: &ResultRules<'_>, answer: &Answer) -> usize {
    let results = &rules.results;
    let of_result = || answer.meta.as_ref()?.get(MAX_RESULT_SIZE)?.as_u64();
    match of_result().and_then(|chars| usize::try_from(chars).ok()).or(rules.hint) {
        Some(hint) if results.max_bytes < usize::MAX => hint.min(results.ceiling).max(results.max_bytes),
        _ => results.max_bytes,
    }
}

/// The size of an answer, computed without rendering it.
struct Sizing {
    /// Upper bound for the text that is shown.
    shown: usize,
    /// Whether the blocks and the structured content are each within the limit, shown or not.
    parts_fit: bool,
}

impl Sizing {
    fn measure(answer: &Answer, max_bytes: usize) -> Self {
        let between = match answer.rendering.join {
            Join::Newline | Join::First => 1,
            Join::EmptyLine => 2,
            Join::Nothing => 0,
        };
        let blocks: usize = answer.content.iter().map(|block| text_len(block) + between).sum();
        let blocks = blocks.saturating_sub(between);
        let structured = answer.structured.as_ref().map_or(0, |value| json_len(value, max_bytes));
        let shown = match answer.rendering.structured {
            Structured::ContentFirst if answer.content.is_empty() => structured,
            Structured::ContentFirst | Structured::ContentOnly => blocks,
            Structured::StructuredFirst if answer.structured.is_none() => blocks,
            Structured::StructuredFirst | Structured::StructuredOnly => structured,
            Structured::BothDedup => blocks + structured + 1,
        };
        Self {
            shown,
            parts_fit: blocks <= max_bytes && structured <= max_bytes,
        }
    }
}

/// The length of a block as text.
fn text_len(block: &Content) -> usize {
    match block {
        Content::Text { text, .. } => text.len(),
        other => other.to_text().len(),
    }
}

/// The length of a value as JSON, counted no further than just above `limit`.
pub(super) fn json_len(value: &Value, limit: usize) -> usize {
    struct Counter {
        bytes: usize,
        limit: usize,
    }
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.bytes = self.bytes.saturating_add(bytes.len());
            if self.bytes > self.limit {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter { bytes: 0, limit };
    // The only error is the one that stops the count.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.bytes
}

/// Takes the blocks that are not text out of an answer. Drops those whose descriptions would take more than half of the space.
fn take_other_blocks(answer: &mut Answer, max_bytes: usize, warnings: &mut Vec<String>) -> Vec<Content> {
    let is_text = |block: &Content| match block {
        Content::Text { .. } => true,
        Content::Resource { resource, .. } => resource.get("text").is_some_and(Value::is_string),
        Content::Image { .. } | Content::Audio { .. } | Content::Link { .. } | Content::Other(_) => false,
    };
    let (texts, mut others): (Vec<_>, Vec<_>) = std::mem::take(&mut answer.content).into_iter().partition(is_text);
    answer.content = texts;
    let mut space = max_bytes / 2;
    let fitting = others.iter().take_while(|block| {
        let description = block.to_text().len() + 2;
        let fits = description <= space;
        space = space.saturating_sub(description);
        fits
    });
    let fitting = fitting.count();
    if fitting < others.len() {
        warnings.push(format!("{} blocks of the result were left out", others.len() - fitting));
        others.truncate(fitting);
    }
    others
}

/// The whole text of an answer and its form, moved out of the answer if possible.
fn take_body(answer: &mut Answer) -> (OutputFormat, String) {
    match answer.shown_parts() {
        (false, Some(structured)) => (OutputFormat::Json, structured.to_string()),
        (true, None) => match answer.content.as_mut_slice() {
            [Content::Text { text, .. }] => (OutputFormat::Text, std::mem::take(text)),
            _ => (OutputFormat::Text, answer.body().into_owned()),
        },
        _ => (OutputFormat::Text, answer.body().into_owned()),
    }
}

async fn spill(rules: &ResultRules<'_>, form: OutputFormat, text: Arc<String>, notes: &mut Notes) -> Option<String> {
    match rules.options.spill.keep(Output { format: form, text }).await {
        Ok(handle) => Some(handle),
        Err(problem) => {
            tracing::debug!(server = rules.server, tool = rules.tool, %problem, "a result was not put aside");
            notes
                .warnings
                .push(format!("the whole result was not put aside: {problem}"));
            None
        }
    }
}

/// Removes the structured content if it is too large itself. It gets its own handle unless the text has the same content.
async fn spill_structured(
    rules: &ResultRules<'_>,
    answer: &mut Answer,
    text: &Arc<String>,
    max_bytes: usize,
    notes: &mut Notes,
) {
    let Some(structured) = answer
        .structured
        .take_if(|value| json_len(value, max_bytes) > max_bytes)
    else {
        return;
    };
    let written = structured.to_string();
    let known = text.as_str() == written || is_json_of(text, &structured);
    let mut warning = format!("the structured content has {} bytes and was left out", written.len());
    if !known
        && matches!(rules.results.mode, TooLong::Spill | TooLong::Summarise)
        && let Some(handle) = spill(rules, OutputFormat::Json, Arc::new(written), notes).await
    {
        warning.push_str(&format!("; it is kept as {handle}"));
        notes.handle.get_or_insert(handle);
    }
    notes.warnings.push(warning);
}

/// The text within its limits, with a marker.
fn truncate_text(rules: &ResultRules<'_>, text: &str, space: &Bounds<'_>, handle: Option<&str>) -> String {
    let part = match rules.results.mode {
        TooLong::Head => Part::Head,
        TooLong::HeadTail | TooLong::Spill | TooLong::Summarise | TooLong::Error => Part::Ends,
    };
    let shown = match part {
        Part::Head => "the first",
        Part::Ends => "the first and last",
    };
    let fitted = match handle {
        None => truncate::fit(text, space, part, |sizes| {
            let Sizes { kept, bytes, .. } = sizes;
            format!("[truncated: {shown} {kept} of {bytes} bytes are shown; ask for less to see all of it]")
        }),
        Some(handle) => {
            let reader = rules.options.reader();
            let preview = Bounds {
                bytes: space.bytes.min(PREVIEW),
                ..*space
            };
            truncate::fit(text, &preview, part, |sizes| {
                let Sizes { kept, bytes, lines } = sizes;
                let tokens = estimate_tokens(bytes);
                let how = how_to_read(&reader, handle);
                format!(
                    "[truncated: {shown} {kept} of {bytes} bytes ({lines} lines, about {tokens} tokens) are shown. {how}]"
                )
            })
        }
    };
    fitted.unwrap_or_else(|| text.to_owned())
}

/// Tells a model how to read the rest.
pub(super) fn how_to_read(reader: &str, handle: &str) -> String {
    let reader = if reader.is_empty() { "read_output" } else { reader };
    format!(
        "All of it is kept as {handle}: read parts with {reader} (handle, and range, grep or jsonpath), or hand it to another tool as \
         {{\"$handle\": \"{handle}\"}}."
    )
}

fn refusal(rules: &ResultRules<'_>, bytes: usize, limit: usize) -> Failure {
    let message = format!(
        "the result of {} is too long: it has {bytes} bytes, and {limit} are allowed. The tool has run; ask it for less.",
        rules.tool_name()
    );
    Failure::new(Kind::LimitExceeded, message)
        .hint(format!("`servers.{}.max_result` sets the limit", rules.server))
        .after_sending()
}

/// Truncates a message to `limit` bytes; `None` if it fits.
pub(super) fn message(text: &str, limit: usize) -> Option<String> {
    truncate::fit(text, &Bounds::bytes(limit), Part::Head, |sizes| {
        format!(
            "[truncated: the first {} of {} bytes are shown]",
            sizes.kept, sizes.bytes
        )
    })
}

/// The tokens of a text, by the view's tokenizer.
pub(super) fn tokens(options: &ResultOptions, text: &str) -> usize {
    match options.count() {
        Some(count) => count(text),
        None => estimate_tokens(text.len()),
    }
}
