//! Elicitation at the terminal: questions of servers are shown on stderr, one at a time, and answered on stdin.

use std::{
    future::Future,
    io::{self, IsTerminal as _, Write},
    pin::Pin,
    sync::Arc,
};

use pegboard::{
    Host,
    host::{ElicitAnswer, Elicitation, Field, FieldKind, Form, HostContext},
};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    output::{Output, clean, one_line},
    terminal::{Keyboard, Lines},
};

/// How many invalid inputs for one field end the form.
const TRIES: usize = 3;
/// Starts every line of a server's text, so that none can pass for a line of ours.
const QUOTE: &str = "│ ";
/// The most lines of a server's message.
const MAX_LINES: usize = 40;
/// The most characters of a name, description or option.
const MAX_LABEL: usize = 300;

/// Asks the user at the terminal. Without a terminal, the elicitation capability is not declared to servers.
#[derive(Debug)]
pub(in crate::commands) struct Terminal {
    output: Output,
    is_there: bool,
    /// Held while a question is open, so that there is one at a time.
    turn: Arc<Mutex<()>>,
}

impl Terminal {
    /// `reads_stdin` tells that stdin is used for something else, so that questions cannot be answered there.
    pub(in crate::commands) fn new(output: &Output, reads_stdin: bool) -> Self {
        Self {
            is_there: !reads_stdin && io::stdin().is_terminal() && io::stderr().is_terminal(),
            output: output.clone(),
            turn: Arc::default(),
        }
    }
}

impl Host for Terminal {
    fn offers_elicitation(&self) -> bool {
        self.is_there
    }

    fn elicit<'a>(
        &'a self,
        context: HostContext<'a>,
        request: Elicitation,
    ) -> Pin<Box<dyn Future<Output = ElicitAnswer> + Send + 'a>> {
        Box::pin(async move {
            let server = context.server;
            if !self.is_there {
                let message = quote(&request.message);
                self.output.note(&format!(
                    "server `{server}` asks:\n{message}nobody is there to answer, so it is told no"
                ));
                return ElicitAnswer::Decline;
            }
            let turn = self.turn.clone().lock_owned().await;
            let mut open = OpenQuestion::new(&self.output);
            let (cancelled, aside) = (open.cancelled.clone(), self.output.hide_spinner());
            let server = server.to_string();
            // Reading blocks, and a cancelled elicitation must not wait for it.
            let asking = tokio::task::spawn_blocking(move || {
                let answer = ask(&server, &request, &mut Keyboard::until(cancelled), &mut io::stderr());
                drop((aside, turn));
                answer
            });
            let answer = asking.await;
            open.is_answered = true;
            match answer {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) | Err(_) => ElicitAnswer::Cancel,
            }
        })
    }
}

/// Cancels the reading for a question if it is dropped before the answer, and ends the question's line.
struct OpenQuestion {
    output: Output,
    cancelled: CancellationToken,
    is_answered: bool,
}

impl OpenQuestion {
    fn new(output: &Output) -> Self {
        Self {
            output: output.clone(),
            cancelled: CancellationToken::new(),
            is_answered: false,
        }
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.cancelled.cancel();
        if !self.is_answered {
            self.output.leave_question();
        }
    }
}

/// Asks one question. The end of the input cancels it.
fn ask(server: &str, request: &Elicitation, lines: &mut impl Lines, out: &mut impl Write) -> io::Result<ElicitAnswer> {
    write!(out, "server `{server}` asks:\n{}", quote(&request.message))?;
    match (&request.url, &request.form) {
        (Some(url), _) => {
            let host = request.page_host().unwrap_or_default();
            writeln!(out, "it wants you to visit a page of this host:\n  {}", one_line(&host))?;
            if request.has_foreign_host() {
                writeln!(
                    out,
                    "warning: the host's name has letters of other scripts; it may imitate another name"
                )?;
            }
            writeln!(out, "the whole address is:\n  {}", one_line(url))?;
            write!(
                out,
                "open it yourself and press Enter when you are done, or type n to refuse: "
            )?;
            Ok(match read(lines, out)?.as_deref() {
                None => ElicitAnswer::Cancel,
                Some("n" | "no" | "N") => ElicitAnswer::Decline,
                Some(_) => ElicitAnswer::Finished,
            })
        }
        (None, Some(form)) => fill_in(form, lines, out),
        (None, None) => Ok(ElicitAnswer::Decline),
    }
}

fn fill_in(form: &Form, lines: &mut impl Lines, out: &mut impl Write) -> io::Result<ElicitAnswer> {
    write!(out, "press Enter to answer, or type n to refuse: ")?;
    match read(lines, out)?.as_deref() {
        None => return Ok(ElicitAnswer::Cancel),
        Some("n" | "no" | "N") => return Ok(ElicitAnswer::Decline),
        Some(_) => {}
    }
    let mut content = Map::new();
    for field in &form.fields {
        match ask_field(field, lines, out)? {
            Typed::Value(value) => {
                content.insert(field.name.clone(), value);
            }
            Typed::Nothing => {}
            Typed::GivenUp => return Ok(ElicitAnswer::Cancel),
        }
    }
    Ok(ElicitAnswer::Accept(content))
}

/// The input for one field.
enum Typed {
    Value(Value),
    /// Empty input: the field is left out.
    Nothing,
    GivenUp,
}

fn ask_field(field: &Field, lines: &mut impl Lines, out: &mut impl Write) -> io::Result<Typed> {
    if let Some(description) = &field.description {
        writeln!(out, "{QUOTE}{}", label(description))?;
    }
    let options = match &field.kind {
        FieldKind::Choice(options) | FieldKind::Choices { options, .. } => options.as_slice(),
        _ => &[],
    };
    for option in options {
        let title = if option.title == option.value {
            String::new()
        } else {
            format!("  {}", label(&option.title))
        };
        writeln!(out, "{QUOTE}  {}{title}", label(&option.value))?;
    }
    for _ in 0..TRIES {
        write!(out, "{}: ", prompt(field))?;
        let typed = if field.secret {
            read_hidden(lines, out)?
        } else {
            read(lines, out)?
        };
        let Some(typed) = typed else {
            return Ok(Typed::GivenUp);
        };
        if typed.is_empty() {
            if !field.required || field.default.is_some() {
                return Ok(Typed::Nothing);
            }
            writeln!(out, "  this must be filled in")?;
            continue;
        }
        match field.parse(&typed) {
            Ok(value) => return Ok(Typed::Value(value)),
            Err(problem) => writeln!(out, "  {}", one_line(&problem))?,
        }
    }
    Ok(Typed::GivenUp)
}

/// The prompt of a field: its label, the kind of input and the default.
fn prompt(field: &Field) -> String {
    let kind = match &field.kind {
        _ if field.secret => " (not shown)",
        FieldKind::Boolean => " (yes or no)",
        FieldKind::Number { whole: true, .. } => " (a whole number)",
        FieldKind::Number { .. } => " (a number)",
        FieldKind::Choice(_) => " (one of these)",
        FieldKind::Choices { .. } => " (some of these, with commas)",
        _ => "",
    };
    let empty = match &field.default {
        Some(_) if field.secret => " [what the server knows]".to_owned(),
        Some(Value::String(default)) => format!(" [{}]", label(default)),
        Some(default) => format!(" [{}]", label(&default.to_string())),
        None if field.required => String::new(),
        None => " [nothing]".to_owned(),
    };
    format!("{QUOTE}{}{kind}{empty}", label(field.label()))
}

/// A server's message with every line quoted. A long one is cut, with a note.
fn quote(message: &str) -> String {
    let message = clean(message.trim_end());
    let mut lines = message.lines();
    let mut out = String::new();
    for line in lines.by_ref().take(MAX_LINES) {
        out.push_str(&format!("{QUOTE}{line}\n"));
    }
    match lines.count() {
        0 => {}
        more => out.push_str(&format!("({more} more lines of the message are left out)\n")),
    }
    out
}

/// A server's text on one line, at most [`MAX_LABEL`] characters of it.
fn label(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(MAX_LABEL) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The next line; `None` at the end of the input.
fn read(lines: &mut impl Lines, out: &mut impl Write) -> io::Result<Option<String>> {
    out.flush()?;
    ended_line(lines.next()?, out)
}

fn read_hidden(lines: &mut impl Lines, out: &mut impl Write) -> io::Result<Option<String>> {
    out.flush()?;
    ended_line(lines.next_hidden()?, out)
}

/// Ends the line on screen after Ctrl-D, which prints no newline.
fn ended_line(line: Option<String>, out: &mut impl Write) -> io::Result<Option<String>> {
    if line.is_none() {
        writeln!(out)?;
    }
    Ok(line)
}

#[cfg(test)]
mod tests;
