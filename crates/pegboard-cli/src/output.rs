//! Printing: data to stdout; messages, questions and the spinner to stderr.

mod image;
mod moment;
mod out_file;
mod pager;
mod path_text;
mod sanitize;
mod shell_word;
mod table;
mod wrap;

pub(crate) use image::Graphics;
pub(crate) use moment::{IN_SECONDS, moment};
pub(crate) use out_file::check_out;
pub(crate) use path_text::path_text;
#[cfg(unix)]
pub(crate) use path_text::{serialize_optional_path, serialize_path};
pub(crate) use sanitize::{clean, indent, is_hidden, one_line};
pub(crate) use shell_word::{shell_word, single_quote};
pub(crate) use table::{Table, fit};
pub(crate) use wrap::{wrap, wrap_message};

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, IsTerminal as _, Write as _},
    path::Path,
    sync::Arc,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pegboard_base::sync::Mutex;
use serde::Serialize;

use crate::{
    cli::{Format, Global},
    exit::Exit,
    logging::{LogLines, json_line, time},
};

/// The width of a terminal that does not report it.
pub(crate) const USUAL_WIDTH: usize = 80;

/// The height of a terminal that does not report it.
const USUAL_HEIGHT: usize = 24;

/// How this run prints.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) format: Format,
    /// The number of `-v` options.
    pub(crate) verbose: u8,
    quiet: bool,
    /// Whether a long text may be shown in a pager.
    may_page: bool,
    /// Shown while the user waits; hidden unless stderr is a terminal.
    spinner: ProgressBar,
    terminal_use: Arc<Mutex<TerminalUse>>,
}

/// What else uses the terminal. The spinner must not be drawn over it.
#[derive(Debug, Default)]
struct TerminalUse {
    /// The number of open questions.
    questions: usize,
    /// Whether the final report was printed.
    is_over: bool,
    /// The form of log lines.
    log_lines: LogLines,
    /// Whether messages have it too.
    has_log: bool,
}

impl TerminalUse {
    fn allows_spinner(&self) -> bool {
        self.questions == 0 && !self.is_over
    }
}

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);

impl Output {
    pub(crate) fn new(global: &Global) -> Self {
        let quiet = global.quiet > 0;
        let watched = global.format() == Format::Text && !quiet && io::stderr().is_terminal();
        let target = if watched {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let spinner = ProgressBar::with_draw_target(None, target).with_style(spinner_style(false));
        Self {
            format: global.format(),
            verbose: global.verbose,
            quiet,
            may_page: !global.no_pager && global.format() != Format::Json,
            spinner,
            terminal_use: Arc::default(),
        }
    }

    /// The same output without notes.
    pub(crate) fn silenced(&self) -> Self {
        Self {
            quiet: true,
            ..self.clone()
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Whether only the result itself is printed.
    pub(crate) fn is_raw(&self) -> bool {
        self.format == Format::Raw
    }

    /// Prints all reports without a pager.
    pub(crate) fn never_page(&mut self) {
        self.may_page = false;
    }

    /// Whether a report is shown in a pager.
    pub(crate) fn pages(&self, report: &Report) -> bool {
        self.may_page && report.binary.is_none() && pager::is_needed(&report.data)
    }

    /// Shows on the spinner what the command waits for.
    pub(crate) fn show_waiting(&self, what: &str) {
        if !self.terminal_use.lock().allows_spinner() {
            return;
        }
        self.spinner.set_style(spinner_style(false));
        self.spinner.set_message(one_line(what));
        self.spinner.enable_steady_tick(TICK);
    }

    /// Like [`Self::show_waiting`], with a line below for each server that is waited for.
    pub(crate) fn show_waiting_for(&self, what: &str, rows: &[String]) {
        if !self.terminal_use.lock().allows_spinner() {
            return;
        }
        let size = terminal_size::terminal_size_of(io::stderr());
        let (width, height) = size.map_or((USUAL_WIDTH, USUAL_HEIGHT), |(width, height)| {
            (usize::from(width.0), usize::from(height.0))
        });
        // One line for the spinner, one for the number of those that are left out, and one for the prompt that was typed.
        let most = height.saturating_sub(3).max(1);
        let mut lines: Vec<String> = rows.iter().take(most).map(|row| format!("  {row}")).collect();
        if rows.len() > most {
            lines.push(format!("  {} more", rows.len() - most));
        }
        // A line that fills the last column would be wrapped.
        let lines: Vec<String> = lines.iter().map(|line| fit(line, width.saturating_sub(1))).collect();
        self.spinner.set_style(spinner_style(true));
        self.spinner.set_prefix(lines.join("\n"));
        self.spinner.set_message(one_line(what));
        self.spinner.enable_steady_tick(TICK);
    }

    /// Whether a spinner is shown at all.
    pub(crate) fn has_spinner(&self) -> bool {
        !self.spinner.is_hidden()
    }

    /// Hides the spinner for a question until the returned guard is dropped.
    pub(crate) fn hide_spinner(&self) -> SpinnerGuard {
        self.aside(true)
    }

    /// Like [`Self::step_aside`], but the spinner comes back only with [`Aside::end`].
    pub(crate) fn step_aside_until_ended(&self) -> SpinnerGuard {
        self.aside(false)
    }

    fn aside(&self, resumes: bool) -> SpinnerGuard {
        let mut terminal_use = self.terminal_use.lock();
        terminal_use.questions += 1;
        self.spinner.finish_and_clear();
        drop(terminal_use);
        SpinnerGuard {
            output: self.clone(),
            resumes,
        }
    }

    /// Ends the line of a question without an answer, so that the next output starts on a new line.
    pub(crate) fn leave_question(&self) {
        let terminal_use = self.terminal_use.lock();
        if terminal_use.questions > 0 && !terminal_use.is_over {
            let _ = io::stderr().write_all(b"\n");
        }
    }

    /// Shows progress: as a bar if the total is known.
    pub(crate) fn show_progress(&self, what: &str, done: f64, total: Option<f64>, message: &str) {
        if !self.terminal_use.lock().allows_spinner() {
            return;
        }
        match total.filter(|total| total.is_finite() && *total > 0.0) {
            Some(total) => {
                self.spinner.set_style(bar_style());
                self.spinner.set_length(BAR);
                self.spinner.set_position(bar_position(done, total));
                self.spinner
                    .set_message(one_line(&format!("{what}: {done} of {total} {message}")));
            }
            None => self.spinner.set_message(one_line(&format!("{what}: {done} {message}"))),
        }
    }

    /// Prints a note, which is neither data nor an error.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet && self.format == Format::Text {
            self.say(&format!("{}\n", wrap_message(text, message_width(), 0)));
        }
    }

    /// Sets the form of the log. Messages are sentences until [`Self::begin_log`], or JSON as the log is.
    pub(crate) fn set_log_lines(&self, form: LogLines) {
        let mut terminal = self.terminal_use.lock();
        terminal.log_lines = form;
        terminal.has_log = form == LogLines::Json;
    }

    /// The form of the log.
    pub(crate) fn log_lines(&self) -> LogLines {
        self.terminal_use.lock().log_lines
    }

    /// Writes messages in the form of the log from now on: what a program that keeps running says is read later.
    pub(crate) fn begin_log(&self) {
        self.terminal_use.lock().has_log = true;
    }

    /// The form of messages.
    fn message_form(&self) -> LogLines {
        let terminal = self.terminal_use.lock();
        if terminal.has_log {
            terminal.log_lines
        } else {
            LogLines::Sentences
        }
    }

    /// Writes to stderr without disturbing the spinner, in the form of the log.
    pub(crate) fn say(&self, text: &str) {
        match self.message_form() {
            _ if text.trim().is_empty() => self.write_log(text),
            LogLines::Sentences => self.write_log(text),
            // The first lines of a gateway at a terminal are read as they appear.
            LogLines::Dated if io::stderr().is_terminal() => self.write_log(text),
            LogLines::Dated => self.write_log(&dated(text)),
            LogLines::Json => {
                let (level, message) = split_level(text);
                let fields = [("message".to_owned(), message.into())].into_iter().collect();
                self.write_log(&(json_line(level, "message", fields) + "\n"));
            }
        }
    }

    /// Writes to stderr as it is, without disturbing the spinner.
    pub(crate) fn write_log(&self, text: &str) {
        // There is no other place to report that stderr is closed.
        let say = || {
            let _ = io::stderr().write_all(text.as_bytes());
        };
        if self.terminal_use.lock().allows_spinner() {
            self.spinner.suspend(say);
        } else {
            say();
        }
    }

    /// Prints a report.
    pub(crate) fn print(&self, report: &Report) -> Exit {
        self.leave_question();
        self.terminal_use.lock().is_over = true;
        self.spinner.finish_and_clear();
        let is_paged = self.pages(report) && pager::show(&report.data).is_ok();
        let written = match (&report.binary, is_paged) {
            (_, true) => Ok(()),
            (Some(bytes), false) => write_out(bytes),
            (None, false) => write_out(report.data.as_bytes()),
        };
        let exit = match written {
            Ok(()) => report.exit,
            // The reader of the pipe closed it, as `head` does. That is no failure of the command.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => report.exit,
            Err(error) => {
                self.say(&format!("error: stdout cannot be written: {error}\n"));
                Exit::Unavailable
            }
        };
        self.say(&report.messages);
        exit
    }
}

/// Hides the spinner until it is dropped.
#[derive(Debug)]
pub(crate) struct SpinnerGuard {
    output: Output,
    /// Whether the spinner is shown again when this is dropped.
    resumes: bool,
}

impl SpinnerGuard {
    /// Shows the spinner again, with what the command waits for now.
    pub(crate) fn end(mut self, what: &str) {
        self.output.spinner.set_message(one_line(what));
        self.resumes = true;
    }
}

impl Drop for SpinnerGuard {
    fn drop(&mut self) {
        let mut terminal_use = self.output.terminal_use.lock();
        terminal_use.questions -= 1;
        if self.resumes && terminal_use.allows_spinner() {
            self.output.spinner.reset();
            self.output.spinner.enable_steady_tick(TICK);
        }
    }
}

/// The spinner, and below it the lines of its prefix.
fn spinner_style(has_lines: bool) -> ProgressStyle {
    let template = match has_lines {
        true => "{spinner} {wide_msg}\n{prefix}",
        false => "{spinner} {wide_msg} {elapsed:>4}",
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// The number of steps of a bar.
const BAR: u64 = 1000;

fn bar_style() -> ProgressStyle {
    let style = ProgressStyle::with_template("{bar:24} {percent:>3}% {wide_msg}");
    style.unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// The filled steps of a bar. Servers may report more progress than the total, or NaN.
fn bar_position(done: f64, total: f64) -> u64 {
    let share = (done / total).clamp(0.0, 1.0);
    // The share is between 0 and 1, or NaN, which the cast turns into 0.
    (share * BAR as f64) as u64
}

fn write_out(data: &[u8]) -> io::Result<()> {
    // Its reader may stall, and nothing is not worth waiting for.
    if data.is_empty() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(data)?;
    out.flush()
}

/// A server's text for stdout. Control characters are escaped on a terminal only; a pipe or a file gets the bytes that the server sent.
pub(crate) fn as_data(text: &str) -> Cow<'_, str> {
    match io::stdout().is_terminal() {
        true => clean(text),
        false => text.into(),
    }
}

/// The width of the terminal in columns; `None` if stdout is not a terminal.
pub(crate) fn width() -> Option<usize> {
    let size = || terminal_size::terminal_size_of(io::stdout());
    io::stdout()
        .is_terminal()
        .then(|| size().map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0)))
}

/// The width of the terminal that shows messages; `None` if stderr is not a terminal.
pub(crate) fn message_width() -> Option<usize> {
    let size = || terminal_size::terminal_size_of(io::stderr());
    io::stderr()
        .is_terminal()
        .then(|| size().map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0)))
}

/// The final output of a command.
#[derive(Debug)]
pub(crate) struct Report {
    /// For stdout.
    pub(crate) data: String,
    /// Bytes for stdout in place of `data`.
    pub(crate) binary: Option<Vec<u8>>,
    /// For stderr.
    pub(crate) messages: String,
    pub(crate) exit: Exit,
}

impl Report {
    pub(crate) fn new(exit: Exit) -> Self {
        Self {
            data: String::new(),
            binary: None,
            messages: String::new(),
            exit,
        }
    }

    /// A report with a JSON document: indented on a terminal, on one line elsewhere.
    pub(crate) fn json(exit: Exit, document: &impl Serialize) -> Self {
        let text = if io::stdout().is_terminal() {
            serde_json::to_string_pretty(document)
        } else {
            serde_json::to_string(document)
        };
        match text {
            Ok(text) => Self {
                data: escape_hidden(&text) + "\n",
                ..Self::new(exit)
            },
            Err(error) => Self::new(Exit::Unavailable).error(&format!("the document cannot be written: {error}"), None),
        }
    }

    /// Writes what is for stdout to a file instead, unless the command failed. What cannot be written is printed.
    pub(crate) fn write_to(mut self, path: Option<&Path>) -> Self {
        let Some(path) = path.filter(|_| self.exit == Exit::Done) else {
            return self;
        };
        let bytes = self.binary.as_deref().unwrap_or(self.data.as_bytes());
        let Err(error) = out_file::write(path, bytes) else {
            (self.binary, self.data) = (None, String::new());
            return self;
        };
        self.exit = Exit::Unavailable;
        if io::stdout().is_terminal() {
            self.data = match self.binary.take() {
                Some(bytes) => format!("[{} bytes]\n", bytes.len()),
                None => clean(&self.data).into_owned(),
            };
        }
        let path = path.display();
        self.warning(&format!("{path} cannot be written, so the result is printed: {error}"))
    }

    /// Adds an error and a hint on what to do about it.
    pub(crate) fn error(mut self, message: &str, hint: Option<&str>) -> Self {
        self.messages.push_str(&error(message, hint));
        self
    }

    /// Adds a hint.
    pub(crate) fn hint(mut self, hint: &str) -> Self {
        self.messages.push_str(&hint_in(message_width(), hint));
        self
    }

    /// Adds a line that is neither an error nor a warning.
    pub(crate) fn note(mut self, text: &str) -> Self {
        let text = wrap_message(&indent(text), message_width(), 0);
        self.messages.push_str(&format!("{text}\n"));
        self
    }

    /// Adds a warning.
    pub(crate) fn warning(mut self, message: &str) -> Self {
        self.messages.push_str(&warning(message));
        self
    }
}

/// A message with its time. Its further lines are indented already.
fn dated(text: &str) -> String {
    format!("{} {text}", time())
}

/// The level that a message begins with, and the message without it and without colours. One without a level is a note.
fn split_level(text: &str) -> (&'static str, String) {
    let plain = text
        .replace("\x1b[31m", "")
        .replace("\x1b[33m", "")
        .replace("\x1b[0m", "");
    let plain = plain.trim();
    for level in ["error", "warning"] {
        if let Some(rest) = plain.strip_prefix(level).and_then(|rest| rest.strip_prefix(':')) {
            return (level, rest.trim().to_owned());
        }
    }
    ("info", plain.to_owned())
}

/// Formats an error and its hint.
pub(crate) fn error(message: &str, hint: Option<&str>) -> String {
    error_in(Paint::detect(&io::stderr()), message_width(), message, hint)
}

fn error_in(paint: Paint, width: Option<usize>, message: &str, hint: Option<&str>) -> String {
    let message = wrap_message(&indent(message), width, "error: ".len());
    let mut text = format!("{} {message}\n", paint.paint("31", "error:"));
    if let Some(hint) = hint {
        text.push_str(&hint_in(width, hint));
    }
    text
}

fn hint_in(width: Option<usize>, hint: &str) -> String {
    format!("hint: {}\n", wrap_message(&indent(hint), width, "hint: ".len()))
}

/// Formats a warning.
pub(crate) fn warning(message: &str) -> String {
    let yellow = Paint::detect(&io::stderr()).paint("33", "warning:");
    let message = wrap_message(&indent(message), message_width(), "warning: ".len());
    format!("{yellow} {message}\n")
}

/// Colour, where the stream supports it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    wanted: bool,
}

impl Paint {
    /// Colour if the stream is a terminal, `NO_COLOR` is not set and `TERM` is not `dumb`.
    pub(crate) fn detect(stream: &impl io::IsTerminal) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            wanted: stream.is_terminal() && !refused && !dumb,
        }
    }

    /// Colour or none, whatever stdout is.
    #[cfg(test)]
    pub(crate) fn forced(wanted: bool) -> Self {
        Self { wanted }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.wanted {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Escapes the characters in JSON that a terminal interprets or does not show. serde_json escapes C0 only; this adds DEL, C1 and invisible ones.
fn escape_hidden(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_says_the_same_without_anything_that_a_terminal_acts_on() {
        let value = serde_json::json!({"a\u{202e}": "\x1b[2J \u{9b}31m \u{7f} \u{e0041} 日本\n"});
        let json = escape_hidden(&value.to_string());
        assert_eq!(json, r#"{"a\u202e":"\u001b[2J \u009b31m \u007f \udb40\udc41 日本\n"}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), value);
    }

    #[test]
    fn a_bar_is_never_fuller_than_full() {
        for (done, total, expected) in [
            (0.0, 4.0, 0),
            (1.0, 4.0, 250),
            (9.0, 4.0, 1000),
            (-1.0, 4.0, 0),
            (f64::NAN, 4.0, 0),
        ] {
            assert_eq!(bar_position(done, total), expected);
        }
    }

    #[test]
    fn an_error_has_the_form_of_all_errors() {
        assert_eq!(
            error_in(
                Paint { wanted: false },
                None,
                "server `x` is down\nhint: \x1b]0;no\x07",
                Some("start it")
            ),
            "error: server `x` is down\n  hint: \\u{1b}]0;no\\u{7}\nhint: start it\n"
        );
        assert_eq!(
            error_in(
                Paint { wanted: false },
                Some(24),
                "server `x` is down and out",
                Some("start it at once, please")
            ),
            "error: server `x` is\n  down and out\nhint: start it at once,\n  please\n"
        );
    }
}
