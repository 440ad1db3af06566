//! `pegboard generate`: the wrappers of the demo server's tools and of a server with odd ones, which are compiled and run here. The modules of Rust are
//! in one program and share one `ToolError`; the compiler has no warning about them, although few of their tools are used.

#[expect(unreachable_pub, reason = "the golden file is what users get")]
#[rustfmt::skip]
#[path = "generate/golden/demo.rs"]
mod demo;
#[expect(unreachable_pub, reason = "the golden file is what users get")]
#[rustfmt::skip]
#[path = "generate/golden/caller.rs"]
mod caller;
#[expect(unreachable_pub, reason = "the file is what users get")]
#[rustfmt::skip]
#[path = "../../src/generate/shared/pegboard_calls.rs"]
mod pegboard_calls;
mod program;
mod typescript;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::home::{Home, Ran};

/// What is generated, and the end of the name of its golden file. A program of its own is compared in part by its own tests.
const GOLDEN: [(&[&str], &str); 4] = [
    (&["ts"], ".ts"),
    (&["python"], ".py"),
    (&["rust"], ".rs"),
    (&["cli", "--through-pegboard"], "_cli.py"),
];

fn golden(file: &str) -> String {
    format!(
        "{}/tests/command_line/generate/golden/{file}",
        env!("CARGO_MANIFEST_DIR")
    )
}

#[test]
fn every_language_has_its_golden_file() {
    for (language, end) in GOLDEN {
        let ran = Home::new().run(&[&["generate"][..], language, &["demo"]].concat());
        assert_golden(&format!("demo{end}"), &ran.ends_with(0).out);
    }
}

fn assert_golden(file: &str, made: &str) {
    if std::env::var_os("PEGBOARD_BLESS").is_some() {
        fs::write(golden(file), made).unwrap();
    }
    assert_eq!(fs::read_to_string(golden(file)).unwrap(), made, "{file}");
}

/// The folder of the files that all wrappers share.
fn shared() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/generate/shared")
}

/// A server whose name, tools and arguments have the names that the wrappers use themselves, or that end a comment.
fn odd() -> FakeServer {
    let schema = json!({
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {"enum": ["self", "Self", "", "an \"odd\" \\ word"], "description": "*\\ throw 1; /*"},
            "self": {"type": "object", "properties": {"fn": {"type": ["string", "null"]}, "x y": {"type": "integer"}}},
            "help": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}},
            "a_2": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "a2": {"$ref": "#/properties/a2"},
            "ünï\u{1b}": {"type": "boolean"},
        },
    });
    let echo = Tool::new("use")
        .description("\"\"\"*\\ throw 1; /*\n\"\"\"")
        .schema(schema.clone());
    FakeServer::new("odd")
        .tool(
            echo.output_schema(schema)
                .answers_structured(json!({"type": "self", "self": {"fn": null}})),
        )
        .tool(Tool::new("where").answers_text("there"))
        .tool(Tool::new("a_2").answers_text("a_2"))
        .tool(Tool::new("a2").answers_text("a2"))
        .tool(Tool::new("caller").answers_text("caller"))
        .tool(Tool::new("*/ throw 1; /*").description("").answers_text("odd"))
}

#[test]
fn odd_names_and_texts_are_no_code() {
    let home = Home::new();
    let server = home.server("caller", odd());
    for (language, end) in GOLDEN {
        let ran = home.run(&[&["generate"][..], language, &["caller", server.as_str()]].concat());
        assert_golden(&format!("caller{end}"), &ran.ends_with(0).out);
    }
    let code = "import caller\nprint(caller.Caller.use_.__doc__)";
    python(&home, &["-c", code]).ends_with(0).prints("throw 1");
    let script = golden("caller_cli.py");
    python(&home, &[&script, "use-", "--help"])
        .ends_with(0)
        .prints("--help-value");
}

#[test]
fn invisible_characters_are_escaped_in_strings_and_left_out_of_comments() {
    const HIDDEN: [char; 8] = [
        '\u{202e}',
        '\u{2066}',
        '\u{2069}',
        '\u{200b}',
        '\u{feff}',
        '\u{ad}',
        '\u{e0041}',
        '\u{85}',
    ];
    let odd: String = ['a'].into_iter().chain(HIDDEN).collect();
    let schema = json!({
        "type": "object",
        "properties": {
            &odd: {"enum": [&odd, "b"], "description": format!("d{odd}")},
            "c": {"type": "object", "properties": {&odd: {"enum": [&odd]}}},
        },
    });
    let home = Home::new();
    let tool = Tool::new("t").description(&format!("e{odd}")).schema(schema);
    let server = home.server("fx", FakeServer::new("fx").tool(tool));
    for (language, end) in GOLDEN.iter().chain(&[(&["cli"][..], "_program.py")]) {
        let ran = home.run(&[&["generate"][..], *language, &["fx", server.as_str()]].concat());
        ran.ends_with(0);
        assert!(!ran.out.contains(HIDDEN), "{language:?}: {}", ran.out);
        let escape = if *end == ".rs" { "a\\u{202e}" } else { "a\\u202e" };
        assert!(ran.out.contains(escape), "{language:?}: {}", ran.out);
        fs::write(home.path(&format!("made{end}")), &ran.out).unwrap();
    }
    // A program that reads the strings gets the characters themselves.
    let code = "import sys\nsys.path.insert(0, sys.argv[1])\nimport made_cli, made_program\n\
                assert made_program.TOOLS['t']['arguments'][0][2] == made_cli.TOOLS['t'][2][0][2]\n\
                print([hex(ord(c)) for c in made_cli.TOOLS['t'][2][0][2]])";
    let expected: Vec<String> = HIDDEN.iter().map(|c| format!("'{:#x}'", u32::from(*c))).collect();
    let folder = home.path("");
    python(&home, &["-c", code, &folder.display().to_string()])
        .ends_with(0)
        .prints(&expected.join(", "));
}

#[test]
fn a_tool_may_have_a_name_that_the_wrappers_use_themselves() {
    let home = Home::new();
    let fake = ["call", "caller", "program"]
        .into_iter()
        .fold(FakeServer::new("fx"), |fake, name| {
            fake.tool(Tool::new(name).answers_text(name))
        });
    let server = home.server("fx", fake);
    let ts = home.run(&["generate", "ts", "fx", &server]);
    ts.ends_with(0)
        .prints("  async call(args: CallArgs")
        .prints("  async caller(args: CallerArgs")
        .prints("  async #call(name: string")
        .prints("  readonly #caller: Caller;");
    let python = home.run(&["generate", "python", "fx", &server, "--out", "-"]);
    python
        .ends_with(0)
        .prints("def program(self")
        .prints("self._program = program");
    assert!(!home.path("-").exists());
}

#[test]
fn an_argument_in_python_may_have_a_name_that_the_wrappers_use() {
    let home = Home::new();
    let names = [
        "cast",
        "json",
        "subprocess",
        "Any",
        "program",
        "self",
        "_call",
        "str",
        "dict",
        "ToolError",
    ];
    let properties: serde_json::Map<String, serde_json::Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), serde_json::json!({"type": "string"})))
        .collect();
    let tool = Tool::new("go")
        .answers_text("it went")
        .schema(serde_json::json!({"type": "object", "properties": properties}));
    let server = home.server("fx", FakeServer::new("fx").tool(tool));
    home.run(&["generate", "python", "fx", &server, "--out", "fx.py"])
        .ends_with(0);
    let code = "import inspect, os, sys\nsys.path.insert(0, sys.argv[1])\nimport fx, pegboard_calls\n\
                pegboard_calls.subprocess.run = lambda *args, **kinds: type('Done', (), {'stdout': '{\"status\": \"done\", \"is_error\": false, \"text\": ' + \
                pegboard_calls.json.dumps(kinds['input']) + ', \"structured\": null}'})\n\
                names = [name for name in inspect.signature(fx.Fx.go).parameters if name != 'self']\n\
                print(len(names), fx.Fx().go(**{name: name for name in names}).count(':'))\n";
    let folder = home.path("");
    python(&home, &["-c", code, folder.to_str().unwrap()])
        .ends_with(0)
        .prints("10 10");
}

#[test]
fn the_wrappers_in_rust_call_tools() {
    let demo = demo::Demo::new(env!("CARGO_BIN_EXE_pegboard"));
    let args = demo::CalculateArgs {
        expression: "6 * 7".to_owned(),
    };
    let result = demo.calculate(&args).unwrap();
    assert!((result.value - 42.0).abs() < f64::EPSILON);
    let failed = demo.fail(&demo::FailArgs::default()).unwrap_err();
    // The same type as that of all other wrappers.
    let failed: caller::ToolError = failed;
    assert!(matches!(failed, pegboard_calls::ToolError::Tool(_)), "{failed:?}");
}

/// Runs a Python program with the golden files in reach, and this program as `pegboard`.
fn python(home: &Home, args: &[&str]) -> Ran {
    let program = env!("CARGO_BIN_EXE_pegboard");
    let mut command = Command::new("python3");
    command
        .args(args)
        .env_clear()
        .env("CI", "1")
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", home.path(""))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONPATH", format!("{}:{}", golden(""), shared().display()))
        .env("PEGBOARD", program);
    Ran::of(command)
}

#[test]
fn the_wrappers_in_python_call_tools() {
    let home = Home::new();
    let code = "import demo, os, sys\n\
                tools = demo.Demo((os.environ['PEGBOARD'],))\n\
                print(tools.calculate(expression='6 * 7')['value'])\n\
                import caller\n\
                try:\n    tools.fail(message='on purpose')\nexcept caller.ToolError as error:\n    print(error)\n";
    let ran = python(&home, &["-c", code]);
    ran.ends_with(0).prints("42\n").prints("on purpose");
}

#[test]
fn the_script_has_a_subcommand_for_each_tool() {
    let home = Home::new();
    let script = golden("demo_cli.py");
    python(&home, &[&script, "calculate", "--expression", "6 * 7"])
        .ends_with(0)
        .prints("42");
    python(&home, &[&script, "search-text", "--help"])
        .ends_with(0)
        .prints("--max-matches INTEGER");
    let help = python(&home, &[&script, "calculate", "--help"]);
    help.ends_with(0).prints("+ - * / % ^").prints("--expression TEXT");
    python(&home, &[&script, "fail"]).ends_with(1);
    python(&home, &[&script, "draw", "--shape", "line"]).ends_with(2);
}

#[test]
fn the_help_of_the_script_shows_choices_that_no_usage_line_can_have() {
    let home = Home::new();
    let properties: serde_json::Map<String, serde_json::Value> = (0..6)
        .map(|number| {
            (
                format!("an_argument_{number}"),
                json!({"enum": ["\n", "\t", "a  b", "100%"]}),
            )
        })
        .collect();
    let tool = Tool::new("split").schema(json!({"type": "object", "properties": properties}));
    let server = home.server("fx", FakeServer::new("fx").tool(tool));
    for options in [&[][..], &["--through-pegboard"]] {
        let made = home.run(&[&["generate", "cli", "fx", server.as_str()][..], options].concat());
        let script = home.write("fx.py", &made.ends_with(0).out);
        let script = script.to_str().unwrap();
        python(&home, &[script, "split", "--help"])
            .ends_with(0)
            .prints("--an-argument-0 TEXT")
            .prints(r#"one of "\n", "\t", "#);
        python(&home, &[script, "split", "--an-argument-0", "b"])
            .ends_with(2)
            .says("invalid choice: 'b'");
    }
}

#[test]
fn the_files_in_python_import_nothing_that_they_do_not_use() {
    let ruff = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/python-openapi/bin/ruff");
    let files = ["demo.py", "caller.py", "demo_cli.py"].map(golden);
    let shared = shared().join("pegboard_calls.py");
    let client = shared.with_file_name("../program/client.py");
    let mut command = Command::new(ruff);
    command.args(["check", "--isolated", "--no-cache", "--select", "F", "--ignore", "F821"]);
    let ran = Ran::of({
        command.args(files).arg(shared).arg(client);
        command
    });
    ran.ends_with(0);
}

#[test]
fn wrappers_beside_each_other_share_a_file() {
    let home = Home::new();
    let server = home.server(
        "fx",
        FakeServer::new("fx").tool(Tool::new("go").answers_text("it went")),
    );
    home.write("tools/__init__.py", "");
    for folder in [".", "tools"] {
        for args in [&["demo"][..], &["fx", server.as_str()]] {
            let out = format!("{folder}/{}.py", args[0]);
            home.run(&[&["generate", "python"][..], args, &["--out", &out]].concat())
                .ends_with(0)
                .prints("pegboard_calls.py: what all wrappers share");
        }
    }
    let code = "import demo, fx, tools.demo, tools.fx\n\
                print(demo.ToolError is fx.ToolError, tools.demo.ToolError is tools.fx.ToolError)\n";
    let folder = home.path("");
    let mut command = Command::new("python3");
    command
        .args(["-c", code])
        .current_dir(&folder)
        .env("PYTHONPATH", &folder);
    Ran::of(command).ends_with(0).prints("True True");
    // A file of the same name that was not generated stays.
    home.write("other/pegboard_calls.py", "print('mine')\n");
    home.run(&["generate", "python", "demo", "--out", "other/demo.py"])
        .ends_with(2)
        .says("--force");
    home.run(&["generate", "ts", "demo", "--through-pegboard"]).ends_with(2);
}

#[test]
fn a_file_that_was_not_generated_is_not_replaced() {
    let home = Home::new();
    let file = home.write("mine.py", "print('mine')\n");
    let args = ["generate", "python", "demo", "--out", file.to_str().unwrap()];
    home.run(&args).ends_with(2).says("--force");
    home.run(&[&args[..], &["--force"]].concat()).ends_with(0);
    home.run(&args).ends_with(0).prints("7 tools of demo");
    home.run(&["generate", "ts", "other"]).ends_with(2);
}
