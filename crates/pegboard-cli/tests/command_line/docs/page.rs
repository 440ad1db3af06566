//! A page of the documentation as steps to run.

/// A page, and what its blocks do in order.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// The path in the repository.
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
    /// The place and the reason of each block that does not run.
    pub(crate) not_run: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A file in the home folder.
    Write { path: String, text: String },
    /// A command that the page does not show.
    Setup { line: usize, command: String },
    /// A command with the output that the page shows.
    Run(Shown),
}

/// A command of a block.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    /// The line of the page.
    pub(crate) line: usize,
    pub(crate) command: String,
    pub(crate) output: Vec<String>,
    pub(crate) code: i32,
}

impl Page {
    /// Parses Markdown.
    ///
    /// # Panics
    ///
    /// If a block does not run and the page does not say why, or if a comment is not understood.
    pub(crate) fn read(name: &str, text: &str) -> Self {
        let mut page = Self {
            name: name.to_owned(),
            steps: Vec::new(),
            not_run: Vec::new(),
        };
        let (mut file, mut reason) = (None, None);
        let mut lines = text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            let place = format!("{name}:{}", index + 1);
            if let Some(path) = line.strip_prefix("<!-- hidden: ") {
                let text = until(&mut lines, "-->");
                page.write(path, &text);
            } else if let Some((word, value)) = comment(line) {
                match word {
                    "file" => file = Some(value.to_owned()),
                    "norun" => reason = Some(value.to_owned()),
                    "setup" => page.steps.push(Step::Setup {
                        line: index + 1,
                        command: value.to_owned(),
                    }),
                    // Programs that another test runs.
                    _ => {}
                }
            } else if let Some(language) = line.trim_start().strip_prefix("```") {
                let block = until(&mut lines, "```");
                match (language, file.take(), reason.take()) {
                    (_, Some(path), _) => page.write(&path, &block),
                    ("console", None, None) => page.steps.extend(commands(index + 2, &block)),
                    ("console,norun", None, Some(reason)) => page.not_run.push(format!("{place}: {reason}")),
                    ("console,norun", ..) => panic!("{place}: no reason is given"),
                    _ => {}
                }
            }
        }
        page
    }

    fn write(&mut self, path: &str, lines: &[String]) {
        let path = path.trim_start_matches("~/").to_owned();
        let text = lines.join("\n") + "\n";
        self.steps.push(Step::Write { path, text });
    }
}

/// The word and the value of a comment on one line, such as `<!-- setup: true -->`.
fn comment(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("<!-- ")?.strip_suffix(" -->")?.split_once(": ")
}

/// The lines up to the one that ends a block.
fn until<'a>(lines: &mut impl Iterator<Item = (usize, &'a str)>, end: &str) -> Vec<String> {
    lines
        .map(|(_, line)| line)
        .take_while(|line| line.trim() != end)
        .map(str::to_owned)
        .collect()
}

/// The commands of a block that begins at a line, each with the lines after it.
fn commands(first: usize, block: &[String]) -> Vec<Step> {
    let mut shown: Vec<Shown> = Vec::new();
    let mut is_open = false;
    for (index, line) in block.iter().enumerate() {
        if let (true, Some(last)) = (is_open, shown.last_mut()) {
            last.command.push('\n');
            last.command.push_str(line);
            is_open = is_unfinished(&last.command);
        } else if let Some(command) = line.strip_prefix("$ ") {
            is_open = is_unfinished(command);
            shown.push(Shown {
                line: first + index,
                command: command.to_owned(),
                output: Vec::new(),
                code: 0,
            });
        } else if let Some(last) = shown.last_mut() {
            last.output.push(line.clone());
        } else {
            panic!("a console block begins with `{line}`, which is no command");
        }
    }
    for one in &mut shown {
        if let Some((_, code)) = one.command.rsplit_once("# exit code ") {
            one.code = code.trim().parse().unwrap();
        }
    }
    shown.into_iter().map(Step::Run).collect()
}

/// Whether a command goes on in the next line: after a backslash, or inside of quotes.
fn is_unfinished(command: &str) -> bool {
    let without_comment = command.split(" # ").next().unwrap_or_default();
    command.ends_with('\\') || without_comment.matches('\'').count() % 2 == 1
}
