//! The wrappers in TypeScript: checked by its compiler in strict mode, and run by Node. `scripts/peers` installs both.

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
};

use super::golden;
use crate::{
    ends::Ends,
    home::{Home, Ran},
};

/// A program that calls tools both ways. The compiler is to refuse what is marked.
const PROGRAM: &str = r#"
import { Demo, ToolError, overCommand, overHttp } from "./demo.ts";
import { Caller2, ToolError as CallersError } from "./caller.ts";

const shared: typeof ToolError = CallersError;
console.log(shared === ToolError, typeof Caller2);

for (const caller of [overCommand(process.argv[2], ["--no-daemon"]), overHttp(process.argv[3])]) {
  const demo = new Demo(caller);
  const { value } = await demo.calculate({ expression: "6 * 7" });
  const twice: number = value * 2;
  console.log(twice);
  const { json } = await demo.echo({ text: "it's \"quoted\"", json: [1, null] });
  console.log(JSON.stringify(json));
  try {
    await demo.fail({ message: "on purpose" });
  } catch (error) {
    console.log(error instanceof ToolError && error.record.is_error, (error as Error).message);
  }
  try {
    await demo.calculate({} as { expression: string });
  } catch (error) {
    console.log(error instanceof ToolError && error.record.status, (error as Error).message);
  }
  const long = await demo.echo({ text: "x".repeat(200_000) });
  console.log(long.text?.length);
}
try {
  await new Demo(overHttp(`${process.argv[3]}/nothing`)).now();
} catch (error) {
  console.log(error instanceof ToolError, (error as Error).message);
}

export async function refused(demo: Demo) {
  // @ts-expect-error: an argument is missing
  await demo.calculate({});
  // @ts-expect-error: it is not one of the words
  await demo.draw({ shape: "line" });
  // @ts-expect-error: there is no such argument
  await demo.now({ zone: "UTC" });
  // @ts-expect-error: the result has no such field
  (await demo.calculate({ expression: "1" })).values;
}
"#;

/// What Node has and the compiler does not know without a package of types.
const NODE: &str = "declare const process: { argv: string[] };\n";

/// A program of `scripts/peers`.
fn peer(program: &str) -> PathBuf {
    let peers = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/npm");
    let path = peers.join("node_modules/.bin").join(program);
    assert!(path.exists(), "run scripts/peers first");
    path
}

/// Runs a program of Node in a home with the wrappers.
fn node(home: &Home, args: &[&str]) -> Ran {
    let mut command = Command::new(peer("node"));
    command
        .args(args)
        .current_dir(home.path("."))
        .env_clear()
        .env("CI", "1")
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home.path("."));
    Ran::of(command)
}

fn with_wrappers() -> Home {
    let home = Home::new();
    for file in ["demo.ts", "caller.ts"] {
        home.write(file, &std::fs::read_to_string(golden(file)).unwrap());
    }
    let shared = super::shared().join("pegboard_calls.ts");
    home.write("pegboard_calls.ts", &std::fs::read_to_string(shared).unwrap());
    home.write("use.ts", PROGRAM);
    home
}

#[test]
fn the_compiler_accepts_them_in_strict_mode_and_knows_their_types() {
    let home = with_wrappers();
    home.write("node.d.ts", NODE);
    let compiler = peer("tsc").canonicalize().unwrap();
    let options = "--strict --noEmit --skipLibCheck --noUncheckedIndexedAccess --exactOptionalPropertyTypes --allowImportingTsExtensions --erasableSyntaxOnly --noUnusedLocals --noUnusedParameters \
                   --target es2022 --module esnext --moduleResolution bundler --lib es2022,dom";
    let args: Vec<&str> = [compiler.to_str().unwrap()]
        .into_iter()
        .chain(options.split_whitespace())
        .chain(["demo.ts", "caller.ts", "use.ts", "node.d.ts"])
        .collect();
    let ran = node(&home, &args);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:?}");
}

#[test]
fn node_runs_them_over_the_command_and_over_http() {
    let home = with_wrappers();
    home.write("package.json", "{\"type\": \"module\"}");
    let program = env!("CARGO_BIN_EXE_pegboard");
    home.config(&format!(
        "[servers.demo]\ncommand = {program:?}\nargs = ['demo-server']\n"
    ));
    let mut command = home.pegboard(&["serve", "--listen", "127.0.0.1:0"]);
    let mut serve = Ends(command.stderr(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(serve.0.stderr.take().unwrap()).lines();
    let url = lines
        .find_map(|line| {
            Some(
                line.unwrap()
                    .split_once("http://")?
                    .1
                    .trim_end_matches("/mcp")
                    .to_owned(),
            )
        })
        .unwrap();
    let ran = node(&home, &["--no-warnings", "use.ts", program, &format!("http://{url}")]);
    let once = |calculate: &str| {
        format!(
            "84\n[1,null]\ntrue on purpose\n\
             refused {calculate} was not called: the arguments do not fit: `expression` is missing\n200000\n"
        )
    };
    let (command, http) = (once("demo.calculate"), once("demo__calculate"));
    let expected = format!("true function\n{command}{http}false there is nothing at this path\n");
    assert_eq!(ran.ends_with(0).out, expected, "{ran:?}");
}
