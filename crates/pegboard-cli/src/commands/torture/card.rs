//! [`Card`]: the score card, as text, JSON and JUnit.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::{case::Case, era::Era};
use crate::output::{Paint, Table, as_data, clean, one_line, wrapped};

/// The column at which values of a failed case begin, after their labels.
const VALUE_AT: usize = 9;

/// The results of all cases.
#[derive(Debug, Default, Serialize)]
pub(super) struct Card {
    pub(super) server: String,
    pub(super) server_info: Value,
    pub(super) transport: &'static str,
    pub(super) eras: Vec<Era>,
    /// `A` to `F`; absent if nothing was tried.
    pub(super) grade: Option<char>,
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
    pub(super) groups: Vec<Group>,
    pub(super) cases: Vec<CaseResult>,
    pub(super) duration_ms: u64,
}

/// The results of one group.
#[derive(Debug, Serialize)]
pub(super) struct Group {
    group: &'static str,
    passed: usize,
    failed: usize,
    skipped: usize,
}

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Passed,
    Failed,
    Skipped,
}

/// The result of one case in one era.
#[derive(Debug, Serialize)]
pub(super) struct CaseResult {
    pub(super) id: &'static str,
    pub(super) group: &'static str,
    pub(super) era: Era,
    pub(super) title: &'static str,
    pub(super) verdict: Verdict,
    /// Why it failed or was skipped.
    pub(super) why: Option<String>,
    /// The message that the case is about.
    pub(super) sent: Option<String>,
    /// What came after it.
    pub(super) came: Option<String>,
    pub(super) spec: String,
    pub(super) mend: &'static str,
    pub(super) advice: Vec<String>,
    pub(super) duration_ms: u64,
}

impl Card {
    /// Adds the results, counts them and gives the grade.
    pub(super) fn fill(&mut self, cases: Vec<CaseResult>) {
        for case in &cases {
            let group = match self.groups.iter_mut().position(|group| group.group == case.group) {
                Some(at) => self.groups.get_mut(at),
                None => {
                    self.groups.push(Group {
                        group: case.group,
                        passed: 0,
                        failed: 0,
                        skipped: 0,
                    });
                    self.groups.last_mut()
                }
            };
            let Some(group) = group else { continue };
            match case.verdict {
                Verdict::Passed => (self.passed, group.passed) = (self.passed + 1, group.passed + 1),
                Verdict::Failed => (self.failed, group.failed) = (self.failed + 1, group.failed + 1),
                Verdict::Skipped => (self.skipped, group.skipped) = (self.skipped + 1, group.skipped + 1),
            }
        }
        self.grade = grade(self.passed, self.failed);
        self.cases = cases;
    }

    /// The card for people; `all` shows skipped cases too. Sentences are broken at `width`, messages are not: they can be copied.
    pub(super) fn text(&self, all: bool, width: Option<usize>, paint: Paint) -> String {
        let mut text = String::new();
        let narrower = |by: usize| width.map(|width| width.saturating_sub(by));
        let info = |key: &str| self.server_info.get(key).and_then(Value::as_str).unwrap_or("?");
        let eras: Vec<String> = self
            .eras
            .iter()
            .map(|era| format!("{} ({})", era.as_str(), era.version()))
            .collect();
        let line = format!(
            "{}: {} {} over {}, {}",
            self.server,
            info("name"),
            info("version"),
            self.transport,
            eras.join(" and ")
        );
        let _ = writeln!(text, "{}\n", wrapped(&as_data(&one_line(&line)), narrower(2), 2));
        let mut table = Table::indented(2);
        table.row(["group", "passed", "failed", "skipped"].map(str::to_owned));
        for group in &self.groups {
            let counts = [(group.passed, 6), (group.failed, 6), (group.skipped, 7)];
            let counts = counts.map(|(count, width)| format!("{count:>width$}"));
            table.row(std::iter::once(group.group.to_owned()).chain(counts));
        }
        text.push_str(&table.render(None));
        let grade = self.grade.map_or("none".to_owned(), |grade| grade.to_string());
        let _ = writeln!(
            text,
            "\n{}: {} passed, {} failed, {} skipped",
            paint.bold(&format!("grade {grade}")),
            self.passed,
            self.failed,
            self.skipped
        );
        for case in self.cases.iter().filter(|case| case.verdict == Verdict::Failed) {
            let title = format!("{} ({}): {}", case.id, case.era.as_str(), case.title);
            // The word before it has a width of its own, whatever its colour.
            let title = wrapped(&title, narrower("FAILED ".len()), 2);
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
                let lines: Vec<String> = value.lines().map(|line| wrapped(line, room, VALUE_AT)).collect();
                let value = lines.join(&format!("\n{}", " ".repeat(VALUE_AT)));
                let _ = writeln!(text, "  {label:<6} {}", as_data(&value));
            }
        }
        text.push_str(&self.notes(all, width));
        text
    }

    fn notes(&self, all: bool, width: Option<usize>) -> String {
        let mut text = String::new();
        let mut notes: Vec<(String, &str)> = Vec::new();
        for case in &self.cases {
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
                let _ = writeln!(text, "  {}", wrapped(&line, room, 4));
            }
        };
        section("advice", notes);
        if all {
            let skipped = self.cases.iter().filter(|case| case.verdict == Verdict::Skipped);
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

    /// The card in the format of JUnit, with a suite for each group.
    pub(super) fn junit(&self) -> String {
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let total = self.cases.len();
        let _ = writeln!(
            text,
            "<testsuites name=\"pegboard torture {}\" tests=\"{total}\" failures=\"{}\" skipped=\"{}\" time=\"{}\">",
            escaped(&self.server),
            self.failed,
            self.skipped,
            seconds(self.duration_ms)
        );
        for group in &self.groups {
            let tests = group.passed + group.failed + group.skipped;
            let _ = writeln!(
                text,
                "  <testsuite name=\"{}\" tests=\"{tests}\" failures=\"{}\" skipped=\"{}\">",
                group.group, group.failed, group.skipped
            );
            for case in self.cases.iter().filter(|case| case.group == group.group) {
                let _ = write!(
                    text,
                    "    <testcase classname=\"{}.{}\" name=\"{}\" time=\"{}\"",
                    group.group,
                    case.era.as_str(),
                    case.id,
                    seconds(case.duration_ms)
                );
                let why = escaped(case.why.as_deref().unwrap_or_default());
                let _ = match case.verdict {
                    Verdict::Passed => writeln!(text, "/>"),
                    Verdict::Skipped => writeln!(text, "><skipped message=\"{why}\"/></testcase>"),
                    Verdict::Failed => writeln!(
                        text,
                        "><failure message=\"{why}\">{}</failure></testcase>",
                        escaped(&format!(
                            "sent: {}\ncame: {}\nspec: {}\nmend: {}",
                            case.sent.as_deref().unwrap_or("(nothing)"),
                            case.came.as_deref().unwrap_or("(nothing)"),
                            case.spec,
                            case.mend
                        ))
                    ),
                };
            }
            text.push_str("  </testsuite>\n");
        }
        text.push_str("</testsuites>\n");
        text
    }
}

impl CaseResult {
    /// A case that passed, until more is known.
    pub(super) fn new(case: &Case, era: Era) -> Self {
        Self {
            id: case.id,
            group: case.group,
            era,
            title: case.title,
            verdict: Verdict::Passed,
            why: None,
            sent: None,
            came: None,
            spec: case.spec.of(era),
            mend: case.mend,
            advice: Vec::new(),
            duration_ms: 0,
        }
    }
}

/// `A` if nothing failed; the others by the share of cases that failed.
fn grade(passed: usize, failed: usize) -> Option<char> {
    let tried = passed + failed;
    match (failed * 100).checked_div(tried)? {
        0 if failed == 0 => Some('A'),
        0..10 => Some('B'),
        10..25 => Some('C'),
        25..50 => Some('D'),
        _ => Some('F'),
    }
}

fn seconds(millis: u64) -> String {
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

/// A text for XML. Characters that XML does not allow become U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
