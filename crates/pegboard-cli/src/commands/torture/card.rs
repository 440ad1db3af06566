//! Shows the score card to people.

use std::fmt::Write as _;

use pegboard_torture::{Card, Verdict};
use serde_json::Value;

use crate::output::{Paint, Table, as_data, clean, one_line, wrap};

/// The column at which values of a failed case begin, after their labels.
const VALUE_AT: usize = 9;

/// The card for people; `all` shows skipped cases too. Sentences are broken at `width`, messages are not: they can be copied.
pub(super) fn text(card: &Card, all: bool, width: Option<usize>, paint: Paint) -> String {
    let mut text = String::new();
    let narrower = |by: usize| width.map(|width| width.saturating_sub(by));
    let info = |key: &str| card.server_info.get(key).and_then(Value::as_str).unwrap_or("?");
    let eras: Vec<String> = card
        .eras
        .iter()
        .map(|era| format!("{} ({})", era.as_str(), era.latest_version()))
        .collect();
    let line = format!(
        "{}: {} {} over {}, {}",
        card.server,
        info("name"),
        info("version"),
        card.transport,
        eras.join(" and ")
    );
    let _ = writeln!(text, "{}\n", wrap(&as_data(&one_line(&line)), narrower(2), 2));
    let mut table = Table::with_indent(2);
    table.row(["group", "passed", "failed", "skipped"].map(str::to_owned));
    for group in &card.groups {
        let counts = [(group.passed, 6), (group.failed, 6), (group.skipped, 7)];
        let counts = counts.map(|(count, width)| format!("{count:>width$}"));
        table.row(std::iter::once(group.group.to_owned()).chain(counts));
    }
    text.push_str(&table.render(None));
    let grade = card.grade.map_or("none".to_owned(), |grade| grade.to_string());
    let _ = writeln!(
        text,
        "\n{}: {} passed, {} failed, {} skipped",
        paint.bold(&format!("grade {grade}")),
        card.passed,
        card.failed,
        card.skipped
    );
    for case in card.cases.iter().filter(|case| case.verdict == Verdict::Failed) {
        let title = format!("{} ({}): {}", case.id, case.era.as_str(), case.title);
        // The word before it has a width of its own, whatever its colour.
        let title = wrap(&title, narrower("FAILED ".len()), 2);
        let _ = writeln!(text, "\n{} {title}", paint.red("FAILED"));
        let room = narrower(VALUE_AT);
        let rows = [
            ("found", case.why.as_deref(), room),
            ("sent", case.sent.as_deref(), None),
            // Cases on definitions send nothing.
            (
                "came",
                case.sent.as_ref().map(|_| case.came.as_deref().unwrap_or("(nothing)")),
                None,
            ),
            ("spec", Some(case.spec.as_str()), room),
            ("mend", Some(case.mend), room),
        ];
        for (label, value, room) in rows {
            let Some(value) = value else { continue };
            let value = clean(value.trim_end());
            let lines: Vec<String> = value.lines().map(|line| wrap(line, room, VALUE_AT)).collect();
            let value = lines.join(&format!("\n{}", " ".repeat(VALUE_AT)));
            let _ = writeln!(text, "  {label:<6} {}", as_data(&value));
        }
    }
    text.push_str(&notes(card, all, width));
    text
}

fn notes(card: &Card, all: bool, width: Option<usize>) -> String {
    let mut text = String::new();
    let mut notes: Vec<(String, &str)> = Vec::new();
    for case in &card.cases {
        for advice in &case.advice {
            // The same advice in both eras is one.
            if !notes
                .iter()
                .any(|(label, known)| label.starts_with(case.id) && known == advice)
            {
                notes.push((format!("{} ({})", case.id, case.era.as_str()), advice));
            }
        }
    }
    let mut section = |title: &str, rows: Vec<(String, &str)>| {
        if !rows.is_empty() {
            let _ = writeln!(text, "\n{title}:");
        }
        for (label, note) in rows {
            let line = format!("{label}: {}", as_data(&one_line(note)));
            let room = width.map(|width| width.saturating_sub(4));
            let _ = writeln!(text, "  {}", wrap(&line, room, 4));
        }
    };
    section("advice", notes);
    if all {
        let skipped = card.cases.iter().filter(|case| case.verdict == Verdict::Skipped);
        let rows = skipped.map(|case| {
            (
                format!("{} ({})", case.id, case.era.as_str()),
                case.why.as_deref().unwrap_or_default(),
            )
        });
        section("skipped", rows.collect());
    }
    text
}

#[cfg(test)]
mod tests;
