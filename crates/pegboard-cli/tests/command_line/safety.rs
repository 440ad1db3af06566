//! What must never be printed: secrets, and characters that a terminal interprets.

use pegboard_testkit::{FakeServer, Fault, Tool, refused_address};
use serde_json::json;

use super::home::{Home, Ran};

const CANARY: &str = "c4nary-7f3a9b1e";

#[tokio::test]
async fn secrets_of_the_config_are_in_no_output() {
    let home = Home::new();
    let refused = refused_address().await.unwrap();
    let stdio = home.entry(
        "pipe",
        FakeServer::new("fx").tool(Tool::new("t")),
        &format!("env = {{ TOKEN = '{CANARY}', OTHER = '${{SECRET}}' }}"),
    );
    let web = format!(
        "[servers.web]\nurl = 'http://user:{CANARY}@{refused}/mcp?api_key={CANARY}'\nheaders = {{ X-Key = '{CANARY}' }}\nauth = {{ bearer = '${{SECRET}}' }}\n\
         [servers.sock]\nurl = 'ws://{refused}/?token={CANARY}'\n\
         [servers.gone]\ncommand = 'no-such-program'\nargs = ['--token', '{CANARY}', '--api-key={CANARY}']\n"
    );
    home.config(&format!("{stdio}{web}"));
    let commands: [&[&str]; 7] = [
        &["tools"],
        &["status"],
        &["call", "pipe.t"],
        &["call", "web.t"],
        &["call", "sock.t"],
        &["call", "gone.t"],
        &["config", "show"],
    ];
    for command in commands {
        for more in [&[][..], &["-o", "json"], &["-vvv"]] {
            let mut run = home.pegboard(&[command, more].concat());
            run.env("SECRET", CANARY);
            let ran = Ran::of(run);
            for text in [&ran.out, &ran.err] {
                assert!(!text.contains(CANARY), "{command:?} {more:?}: {text}");
            }
        }
    }
}

/// Control characters, escape sequences and invisible characters, as a hostile server may send them.
const HOSTILE: &str = "x\x1b[2J\x1b]0;title\x07\x1b]52;c;aGk=\x1b\\\u{9b}31m\rover\u{202e}\u{200b}\u{e0041}\x08\x7f";

fn is_clean(text: &str) -> bool {
    text.chars().all(|c| {
        matches!(c, '\n' | '\t')
            || !(c.is_control() || matches!(c, '\u{202e}' | '\u{200b}' | '\u{e0000}'..='\u{e007f}'))
    })
}

#[test]
fn nothing_that_a_terminal_acts_on_passes_through() {
    let home = Home::new();
    let schema = json!({"type": "object", "properties": {HOSTILE: {"type": HOSTILE, "description": HOSTILE}}});
    let good = FakeServer::new(HOSTILE)
        .instructions(HOSTILE)
        .tool(
            Tool::new("text")
                .description(HOSTILE)
                .with("title", HOSTILE)
                .schema(schema)
                .answers_text(HOSTILE),
        )
        .tool(Tool::new("fails").fails_with(HOSTILE))
        .tool(Tool::new("refuses").refuses(-32000, HOSTILE))
        .tool(Tool::new(HOSTILE))
        .tool(Tool::new("bidi\u{202e}name"))
        .fault(Fault::OddToolName);
    let bad = FakeServer::new("fx").fault(Fault::ExitsAtStart {
        code: 1,
        stderr: HOSTILE.into(),
    });
    let (good, bad) = (home.server("good", good), home.server("bad", bad));
    let commands: [&[&str]; 8] = [
        &["tools"],
        &["tools", "-v"],
        &["status"],
        &["call", "good.text"],
        &["call", "good.fails"],
        &["call", "good.refuses"],
        &["call", "bad.x"],
        &["call", HOSTILE],
    ];
    for command in commands {
        for more in [&[][..], &["-o", "json"], &["-vvv"]] {
            let ran = home.run(&[command, more, &[&good, &bad]].concat());
            // A pipe gets a result unchanged.
            let is_result = command == ["call", "good.text"] && more != ["-o", "json"];
            assert!(is_result || is_clean(&ran.out), "{command:?} {more:?}: {:?}", ran.out);
            assert!(is_clean(&ran.err), "{command:?} {more:?}: {:?}", ran.err);
        }
    }
    let ran = home.run(&["call", "good.text", &good]);
    assert_eq!(ran.ends_with(0).out, format!("{HOSTILE}\n"));
    let json = home
        .run(&["call", "good.text", "-o", "json", &good])
        .ends_with(0)
        .json();
    assert_eq!(json["text"], HOSTILE);
}

#[test]
fn a_tool_with_invisible_characters_in_its_name_is_listed_with_a_warning() {
    let home = Home::new();
    let fake = FakeServer::new("fx")
        .tool(Tool::new("read\u{200b}_file"))
        .tool(Tool::new("read_file"));
    let server = home.server("fx", fake);
    let ran = home.run(&["tools", &server]);
    ran.ends_with(0)
        .says("warning: fx: the name of the tool `read\\u{200b}_file` has invisible characters; it is called as `fx__read__file_");
    let json = home.run(&["tools", "-o", "json", &server]).ends_with(0).json();
    let called = json["tools"][0]["name"].as_str().unwrap();
    home.run(&["call", called, &server]).ends_with(0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_gets_a_result_with_its_control_characters_escaped() {
    let home = Home::new();
    let fake = FakeServer::new("fx").tool(Tool::new("text").answers_text(HOSTILE));
    let server = home.server("fx", fake);
    let terminal = super::pty::Terminal::start(&home, &["call", "fx.text", &server]);
    let (code, shown) = terminal.ends();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("x\\u{1b}[2J"), "{shown:?}");
    assert!(!shown.contains("\x1b]0;title"), "{shown:?}");
}

#[test]
fn every_command_prints_exactly_one_document() {
    let home = Home::new();
    let fake = home.server("fx", FakeServer::new("fx").tool(Tool::new("t")));
    let commands: [&[&str]; 8] = [
        &["tools"],
        &["tools", "--provider", "mcp"],
        &["call", "fx.t"],
        &["call", "fx.none"],
        &["call", "fx.t", "--json", "{"],
        &["status"],
        &["config", "show"],
        &["config", "schema"],
    ];
    for command in commands {
        let mut args = vec!["-o", "json"];
        args.extend(command);
        if command != ["config", "schema"] {
            args.push(&fake);
        }
        let ran = home.run(&args);
        assert!(ran.json().is_object() || ran.json().is_array(), "{command:?}");
        assert!(ran.out.ends_with('\n'));
    }
}
