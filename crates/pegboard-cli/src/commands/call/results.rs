//! The report of one call: text, JSON, raw bytes, saved files, images at the terminal.

use std::{fmt::Write as _, io::IsTerminal as _};

use pegboard::{Answer, Content, Outcome, Reply};
use serde_json::{Value, json};

use super::{
    super::blobs::{self, Blob},
    call_times::TimeParts,
    options::Call,
};
use crate::{
    exit::Exit,
    output::{Graphics, Output, Report, as_data, clean},
};

/// The report of a reply, after its binary parts were saved as the options say.
pub(super) fn report(output: &Output, options: &Call, reply: &Reply, times: Option<&TimeParts>) -> Report {
    let exit = Exit::from_outcome(&reply.outcome);
    let (saved, problem) = save(options, reply);
    let damaged = damage_warning(options, reply);
    if output.is_json() {
        let exit = if problem.is_some() { Exit::Unavailable } else { exit };
        let report = if saved.is_empty() && times.is_none() {
            Report::json(exit, reply)
        } else {
            let mut document = json!(reply);
            if !saved.is_empty() {
                document["saved"] = json!(saved);
            }
            if let Some(times) = times {
                document["times"] = json!(times);
            }
            Report::json(exit, &document)
        };
        let report = damaged.iter().fold(report, |report, warning| report.warning(warning));
        return match problem {
            Some(problem) => report.error(&problem, None),
            None => report,
        };
    }
    let mut report = match &reply.outcome {
        Outcome::Done(answer) => report_answer(output, options, answer, &reply.text(), exit),
        Outcome::ToolFailed(_) => Report::new(exit).error(&format!("{} failed: {}", reply.name, reply.text()), None),
        // The advice is for models; for a person there is the hint.
        Outcome::Refused(failure) | Outcome::Lost(failure) => {
            Report::new(exit).error(&failure.message, failure.hint.as_deref())
        }
    };
    report = saved
        .iter()
        .fold(report, |report, path| report.note(&format!("saved {path}")));
    if let Some(problem) = problem {
        report = report.error(&problem, None);
        report.exit = Exit::Unavailable;
    }
    let warnings = damaged.iter().chain(&reply.warnings);
    warnings.fold(report, |report, warning| report.warning(warning))
}

/// The result for stdout. A pipe or a file gets the bytes of a result that is one binary block.
fn report_answer(output: &Output, options: &Call, answer: &Answer, text: &str, exit: Exit) -> Report {
    let mut report = Report::new(exit);
    let is_shown = options.out.is_none() && std::io::stdout().is_terminal();
    let mut parts = answer.content.iter().filter_map(Blob::decode).peekable();
    if let ([block], false) = (answer.content.as_slice(), is_shown)
        && let Some(blob) = Blob::decode(block)
        && options.save.is_none()
        && (!output.is_raw() || answer.structured.is_none())
    {
        report.binary = Some(blob.bytes);
        return report;
    }
    if options.out.is_some() && options.save.is_none() && parts.peek().is_some() {
        let what = match parts.all(|part| part.is_image) {
            true => "images",
            false => "binary parts",
        };
        report = report.note(&format!(
            "the file has the text of the result; `--save DIR` saves its {what}"
        ));
    }
    if output.is_raw() {
        report.data = raw(answer, is_shown);
        return report;
    }
    report.data = match Graphics::detect().filter(|_| is_shown && !options.no_images) {
        Some(graphics)
            if answer
                .content
                .iter()
                .any(|block| matches!(block, Content::Image { .. })) =>
        {
            with_images(graphics, answer)
        }
        _ if is_shown => clean(text).into_owned(),
        _ if options.out.is_some() => text.to_owned(),
        _ => as_data(text).into_owned(),
    };
    if !report.data.is_empty() && !report.data.ends_with('\n') {
        report.data.push('\n');
    }
    report
}

/// The structured result as JSON, else the texts alone. Nothing is added to them, except at a terminal.
fn raw(answer: &Answer, is_shown: bool) -> String {
    let texts = answer.content.iter().filter_map(|block| match block {
        Content::Text { text, .. } => Some(text.as_str()),
        Content::Resource { resource, .. } => resource.get("text")?.as_str(),
        _ => None,
    });
    let data = match &answer.structured {
        Some(structured) => {
            let written = texts.filter(|text| serde_json::from_str::<Value>(text).ok().as_ref() == Some(structured));
            // Most servers repeat it as text, where objects have the order in which the server wrote them.
            let written = written.map(on_one_line).next();
            written.unwrap_or_else(|| structured.to_string()) + "\n"
        }
        None => texts.collect::<Vec<_>>().join("\n"),
    };
    match is_shown {
        true => format!("{}\n", clean(data.trim_end())),
        false => data,
    }
}

/// JSON text without the whitespace between its tokens.
fn on_one_line(json: &str) -> String {
    let (mut is_string, mut is_escaped) = (false, false);
    let is_kept = |c: &char| {
        let is_kept = is_string || !c.is_ascii_whitespace();
        match c {
            '"' if !is_escaped => is_string = !is_string,
            _ => {}
        }
        is_escaped = is_string && *c == '\\' && !is_escaped;
        is_kept
    };
    json.chars().filter(is_kept).collect()
}

/// The blocks in their order, images as the terminal shows them.
fn with_images(graphics: Graphics, answer: &Answer) -> String {
    let mut shown = String::new();
    for block in &answer.content {
        let image = Blob::decode(block).filter(|blob| blob.is_image);
        match image.and_then(|blob| graphics.show(&blob.bytes)) {
            Some(image) => shown.push_str(&image),
            None => {
                let _ = writeln!(shown, "{}", clean(block.to_text().trim_end()));
            }
        }
    }
    shown
}

/// Saves the binary parts of a result. Returns the files' names, and why some are missing.
fn save(options: &Call, reply: &Reply) -> (Vec<String>, Option<String>) {
    let (Some(folder), Outcome::Done(answer) | Outcome::ToolFailed(answer)) = (&options.save, &reply.outcome) else {
        return (Vec::new(), None);
    };
    let parts: Vec<Blob> = answer.content.iter().filter_map(Blob::decode).collect();
    let saved = blobs::save(folder, reply.tool.as_deref().unwrap_or(&reply.name), &parts);
    let problem = saved.problem.map(|error| {
        let which = if saved.files.is_empty() {
            "the files"
        } else {
            "some files"
        };
        format!("{which} cannot be saved in {}: {error}", folder.display())
    });
    let files = saved.files.iter().map(|path| path.display().to_string());
    (files.collect(), problem)
}

/// The warning that parts of the result cannot be saved, because the server's base64 is wrong.
fn damage_warning(options: &Call, reply: &Reply) -> Option<String> {
    let (Some(_), Outcome::Done(answer) | Outcome::ToolFailed(answer)) = (&options.save, &reply.outcome) else {
        return None;
    };
    match answer.content.iter().filter(|block| Blob::is_damaged(block)).count() {
        0 => None,
        1 => Some("a part of the result was not saved: its data is not valid base64".to_owned()),
        count => Some(format!(
            "{count} parts of the result were not saved: their data is not valid base64"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_on_one_line_keeps_its_strings() {
        let text = "{\n  \"b c\": [1,\t2], \"a\\\" \\\\\": \" x \" }\n";
        assert_eq!(on_one_line(text), "{\"b c\":[1,2],\"a\\\" \\\\\":\" x \"}");
    }
}
