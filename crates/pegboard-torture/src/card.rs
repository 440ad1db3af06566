//! [`Card`]: the score card, as data and in the format of JUnit.

use std::fmt::Write as _;

use pegboard_protocol::Era;
use serde::Serialize;
use serde_json::Value;

use super::case::Case;

/// The results of all cases.
#[derive(Debug, Default, Serialize)]
pub struct Card {
    /// The server, as the user named it.
    pub server: String,
    /// Its `serverInfo`.
    pub server_info: Value,
    /// The transport over which it was tried.
    pub transport: &'static str,
    /// The eras that it speaks.
    pub eras: Vec<Era>,
    /// `A` to `F`; absent if nothing was tried.
    pub grade: Option<char>,
    /// The number of cases that it passed.
    pub passed: usize,
    /// The number of cases that it failed.
    pub failed: usize,
    /// The number of cases that do not apply to it.
    pub skipped: usize,
    /// The same numbers for each group.
    pub groups: Vec<Group>,
    /// Every case in every era.
    pub cases: Vec<CaseResult>,
    /// How long all cases took together.
    pub duration_ms: u64,
}

/// The results of one group.
#[derive(Debug, Serialize)]
pub struct Group {
    /// Its name.
    pub group: &'static str,
    /// The number of its cases that the server passed.
    pub passed: usize,
    /// The number of its cases that the server failed.
    pub failed: usize,
    /// The number of its cases that do not apply.
    pub skipped: usize,
}

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The server does what is expected.
    Passed,
    /// It does not.
    Failed,
    /// The case does not apply to it.
    Skipped,
}

/// The result of one case in one era.
#[derive(Debug, Serialize)]
pub struct CaseResult {
    /// The name of the case.
    pub id: &'static str,
    /// The group of the case.
    pub group: &'static str,
    /// The era in which it was tried.
    pub era: Era,
    /// What is expected of the server.
    pub title: &'static str,
    /// How it ended.
    pub verdict: Verdict,
    /// Why it failed or was skipped.
    pub why: Option<String>,
    /// The message that the case is about.
    pub sent: Option<String>,
    /// What came after it.
    pub came: Option<String>,
    /// The section of the specification.
    pub spec: String,
    /// What to change in a server that fails it.
    pub mend: &'static str,
    /// What the specification recommends and the server does not do.
    pub advice: Vec<String>,
    /// How long it took.
    pub duration_ms: u64,
}

impl Card {
    /// Adds the results, counts them and gives the grade.
    pub fn fill(&mut self, cases: Vec<CaseResult>) {
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

    /// The card in the format of JUnit, with a suite for each group.
    pub fn junit(&self) -> String {
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let total = self.cases.len();
        let _ = writeln!(
            text,
            "<testsuites name=\"pegboard torture {}\" tests=\"{total}\" failures=\"{}\" skipped=\"{}\" time=\"{}\">",
            escape(&self.server),
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
                let why = escape(case.why.as_deref().unwrap_or_default());
                let _ = match case.verdict {
                    Verdict::Passed => writeln!(text, "/>"),
                    Verdict::Skipped => writeln!(text, "><skipped message=\"{why}\"/></testcase>"),
                    Verdict::Failed => writeln!(
                        text,
                        "><failure message=\"{why}\">{}</failure></testcase>",
                        escape(&format!(
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
            spec: case.spec.for_era(era),
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
fn escape(text: &str) -> String {
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
