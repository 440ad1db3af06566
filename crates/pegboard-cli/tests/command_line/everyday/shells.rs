//! Completion in the real shells: a line is typed at a terminal, and Tab. `scripts/peers` installs the shells if it may. PowerShell is not
//! among them: no release of it can be had from Debian, PyPI or npm.

use std::{fs, path::Path};

use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::{
    home::{Home, until},
    pty::Terminal,
};

/// Ctrl-T, which each shell is told to write its line to a file for.
const SHOW: &str = "\u{14}";

/// What each line of a table is typed after.
const ISSUE: &str = "pegboard call fx.issue ";

/// A home with `pegboard` on its path, in which the tools of a server are known from an earlier run.
fn known() -> Home {
    let home = Home::new();
    let schema = json!({"type": "object", "properties": {
        "state": {"enum": ["open", "in progress", "won't fix", "$(touch evil)"], "description": "Which ones: all"},
        "limit": {"type": "integer"},
        "body": {"type": "string"}}});
    let fake = FakeServer::new("fx")
        .tool(Tool::new("issue").description("Finds issues.").schema(schema))
        .tool(Tool::new("admin.users.list").answers_text("none"));
    home.config(&home.entry("fx", fake, ""));
    home.run(&["tools"]).ends_with(0);
    home.write("notes/day one.json", "1");
    home.write("monday.toml", "");
    fs::create_dir(home.path("bin")).unwrap();
    std::os::unix::fs::symlink(home.pegboard(&[]).get_program(), home.path("bin/pegboard")).unwrap();
    home
}

/// Starts a shell with a prompt `ready>`, types each line and Tab, and compares what the line is then. `SETTINGS` in its arguments stands
/// for the file of its settings, and `COMPLETION` in these for the completion script.
#[expect(clippy::print_stdout, reason = "says that a test is left out")]
fn completes(shell: &str, args: &[&str], settings: &str, lines: &[(&str, &str)]) {
    let folders = ["/usr/local/bin", "/usr/bin", "/bin"];
    if !folders.iter().any(|folder| Path::new(folder).join(shell).exists()) {
        println!("skipped: {shell} is not installed; root can install it with `apt-get install {shell}`");
        return;
    }
    let home = known();
    let script = home.run(&["completions", shell]).ends_with(0).out.clone();
    // Zsh finds its settings by their name.
    let file = home.write(".zshrc", &settings.replace("COMPLETION", &script));
    let args: Vec<String> = args
        .iter()
        .map(|arg| arg.replace("SETTINGS", file.to_str().unwrap()))
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let path = format!("{}:{}", home.path("bin").display(), folders.join(":"));
    let mut terminal = Terminal::start_program(&home, shell, &args, &[("PATH", &path)]);
    terminal.shows("ready>", 1);
    for (typed, expected) in lines {
        let typed = typed.replace("ISSUE ", ISSUE);
        let shown = home.path("shown");
        let _ = fs::remove_file(&shown);
        terminal.types(&format!("{typed}\t{SHOW}"));
        let mut line = String::new();
        until(
            &format!("{shell} has completed {typed:?}: {}", terminal.shown()),
            || {
                line = fs::read_to_string(&shown).unwrap_or_default();
                line.ends_with("|\n")
            },
        );
        assert_eq!(
            line.trim_end_matches("|\n"),
            expected.replace("ISSUE ", ISSUE),
            "{shell}: {typed}"
        );
    }
    assert!(!home.path("evil").exists());
}

#[test]
fn bash_completes_what_is_typed() {
    let settings = "COMPLETION\nPS1='ready>'; bind -x '\"\\C-t\": printf \"%s|\\n\" \"$READLINE_LINE\" > shown; READLINE_LINE=; READLINE_POINT=0'";
    completes(
        "bash",
        &["--noprofile", "--rcfile", "SETTINGS", "-i"],
        settings,
        &[
            ("pegboard sta", "pegboard status "),
            ("pegboard call fx.iss", "ISSUE "),
            ("pegboard call fx.adm", "pegboard call fx.admin.users.list "),
            ("pegboard call fx iss", "pegboard call fx issue "),
            ("ISSUE li", "ISSUE limit="),
            ("ISSUE state=o", "ISSUE state=open "),
            ("ISSUE state=i", "ISSUE state=in\\ progress "),
            ("ISSUE state=in\\ p", "ISSUE state=in\\ progress "),
            ("ISSUE state=\"in p", "ISSUE state=\"in progress\""),
            ("ISSUE \"state=in p", "ISSUE \"state=in progress\""),
            ("ISSUE 'state=w", "ISSUE 'state=won'\\''t fix'"),
            ("ISSUE state=w", "ISSUE state=won\\'t\\ fix "),
            ("ISSUE state=$", "ISSUE state=$"),
            ("ISSUE 'state=open' l", "ISSUE 'state=open' limit="),
            ("ISSUE body=@no", "ISSUE body=@notes/"),
            ("ISSUE body=@notes/d", "ISSUE body=@notes/day\\ one.json "),
            ("pegboard -c mon", "pegboard -c monday.toml"),
        ],
    );
}

#[test]
fn zsh_completes_what_is_typed() {
    let settings = "autoload -Uz compinit; compinit -u -D\nCOMPLETION\nPS1='ready>'\n\
                    _shown() { print -r -- \"$BUFFER|\" > shown; BUFFER= }; zle -N _shown; bindkey '^T' _shown";
    completes(
        "zsh",
        &["-d", "-i"],
        settings,
        &[
            ("pegboard sta", "pegboard status "),
            ("pegboard call fx.iss", "ISSUE "),
            ("pegboard call fx.adm", "pegboard call fx.admin.users.list "),
            ("pegboard call fx iss", "pegboard call fx issue "),
            ("ISSUE li", "ISSUE limit="),
            ("ISSUE state=o", "ISSUE state=open "),
            ("ISSUE state=i", "ISSUE state=in\\ progress "),
            ("ISSUE state=in\\ p", "ISSUE state=in\\ progress "),
            ("ISSUE state=\"in p", "ISSUE state=in\\ progress "),
            ("ISSUE \"state=in p", "ISSUE \"state=in progress\" "),
            ("ISSUE 'state=w", "ISSUE 'state=won'\\''t fix' "),
            ("ISSUE state=w", "ISSUE state=won\\'t\\ fix "),
            ("ISSUE 'state=open' l", "ISSUE 'state=open' limit="),
            ("ISSUE body=@no", "ISSUE body=@notes/"),
            ("ISSUE body=@notes/d", "ISSUE body=@notes/day\\ one.json "),
            ("pegboard -c mon", "pegboard -c monday.toml "),
        ],
    );
}

#[test]
fn fish_completes_what_is_typed() {
    let settings = "COMPLETION\nfunction fish_prompt; printf 'ready>'; end\nfunction fish_right_prompt; end\n\
                    function _shown; printf '%s|\\n' (commandline) > shown; commandline ''; end\nbind \\ct _shown";
    completes(
        "fish",
        &["--no-config", "-i", "-C", "source SETTINGS"],
        settings,
        &[
            ("pegboard sta", "pegboard status "),
            ("pegboard call fx.iss", "ISSUE "),
            ("pegboard call fx.adm", "pegboard call fx.admin.users.list "),
            ("pegboard call fx iss", "pegboard call fx issue "),
            ("ISSUE li", "ISSUE limit="),
            ("ISSUE state=o", "ISSUE state=open "),
            ("ISSUE state=i", "ISSUE state=in\\ progress "),
            ("ISSUE state=in\\ p", "ISSUE state=in\\ progress "),
            ("ISSUE state=\"in p", "ISSUE state=\"in progress\" "),
            ("ISSUE \"state=in p", "ISSUE \"state=in progress\" "),
            ("ISSUE 'state=w", "ISSUE 'state=won\\'t fix' "),
            ("ISSUE state=w", "ISSUE state=won\\'t\\ fix "),
            ("ISSUE 'state=open' l", "ISSUE 'state=open' limit="),
            ("ISSUE body=@no", "ISSUE body=@notes/"),
            ("ISSUE body=@notes/d", "ISSUE body=@notes/day\\ one.json "),
            ("pegboard -c mon", "pegboard -c monday.toml "),
        ],
    );
}

#[test]
fn elvish_completes_what_is_typed() {
    // A word that Elvish has to quote is shown as a list first, from which it is taken.
    let settings = "COMPLETION\nset edit:prompt = { print 'ready>' }\nset edit:rprompt = { print '' }\n\
                    var show~ = { print $edit:current-command\"|\\n\" > shown; set edit:current-command = '' }\n\
                    set edit:insert:binding[Ctrl-T] = $show~\n\
                    set edit:completion:binding[Ctrl-T] = { edit:completion:accept; show }";
    completes(
        "elvish",
        &["-rc", "SETTINGS"],
        settings,
        &[
            ("pegboard sta", "pegboard status "),
            ("pegboard call fx.iss", "ISSUE "),
            ("pegboard call fx.adm", "pegboard call fx.admin.users.list "),
            ("pegboard call fx iss", "pegboard call fx issue "),
            ("ISSUE li", "ISSUE 'limit='"),
            ("ISSUE state=o", "ISSUE 'state=open' "),
            ("ISSUE state=i", "ISSUE 'state=in progress' "),
            ("ISSUE \"state=in p", "ISSUE \"state=in progress\" "),
            ("ISSUE state=w", "ISSUE 'state=won''t fix' "),
            ("ISSUE 'state=open' l", "ISSUE 'state=open' 'limit='"),
            ("ISSUE body=@no", "ISSUE 'body=@notes/'"),
            ("ISSUE body=@notes/d", "ISSUE 'body=@notes/day one.json' "),
            ("pegboard -c mon", "pegboard -c monday.toml "),
        ],
    );
}
