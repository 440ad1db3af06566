//! The program `fake-mcp-server`: parses its options and serves the script.

use std::{ffi::OsString, io, process::ExitCode};

use crate::{
    conformance::conformance,
    log::read_log,
    process,
    script::{Era, Script},
    server::Server,
    wire::{
        net::{NetHandle, Wire},
        stdio,
    },
};

const USAGE: &str = "\
usage: fake-mcp-server [--script JSON | --script-file PATH] [--listen ADDRESS [--transport http|sse|ws]]
       fake-mcp-server conformance [--era legacy|modern|both] [--transport stdio|http|sse|ws] [--port PORT]

Serves the script on stdin and stdout, or on the address, for example 127.0.0.1:0. The second form serves what the official
conformance suite calls: on stdin and stdout, or on a port of 127.0.0.1, a free one without --port.
";

/// Runs the program with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    ExitCode::from(serve())
}

/// Serves and exits if this process was started with the arguments of [`FakeServer::arguments`](crate::FakeServer::arguments), and
/// returns otherwise. A program that starts itself as a fake server calls this first in `main`.
pub fn serve_if_asked() {
    if std::env::args_os().nth(1).is_some_and(|first| first == "--script") {
        std::process::exit(serve().into());
    }
}

#[expect(clippy::print_stderr, reason = "this is a program")]
fn serve() -> u8 {
    let options = match Options::read(std::env::args_os().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("fake-mcp-server: {problem}\n\n{USAGE}");
            return 2;
        }
    };
    match run(options) {
        // Not a return: on some systems a thread that blocks on stdin would keep the process alive.
        Ok(code) => std::process::exit(code),
        Err(error) => {
            eprintln!("fake-mcp-server: {error}");
            1
        }
    }
}

#[derive(Debug)]
struct Options {
    script: Script,
    listen: Option<String>,
    wire: Wire,
}

impl Options {
    fn read(args: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut args = args.peekable();
        if args.next_if(|first| first == "conformance").is_some() {
            return Self::read_conformance(args);
        }
        let mut options = Self {
            script: Script::default(),
            listen: None,
            wire: Wire::Http,
        };
        while let Some((option, value)) = next_option(&mut args)? {
            match option.as_str() {
                "--script" => options.script = parse(&value)?,
                "--script-file" => {
                    let text =
                        std::fs::read_to_string(&value).map_err(|error| format!("cannot read {value}: {error}"))?;
                    options.script = parse(&text)?;
                }
                "--listen" => options.listen = Some(value),
                "--transport" => options.wire = wire(&value)?,
                other => return Err(format!("unknown option {other}")),
            }
        }
        Ok(options)
    }

    fn read_conformance(mut args: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let (mut era, mut transport, mut port) = (Era::Both, None, None);
        while let Some((option, value)) = next_option(&mut args)? {
            match option.as_str() {
                "--era" => {
                    era = match value.as_str() {
                        "legacy" => Era::Legacy,
                        "modern" => Era::Modern,
                        "both" => Era::Both,
                        other => return Err(format!("unknown era {other}: legacy, modern or both")),
                    }
                }
                "--transport" if value == "stdio" => transport = None,
                "--transport" => transport = Some(wire(&value)?),
                "--port" => port = Some(value.parse::<u16>().map_err(|_| format!("{value} is not a port"))?),
                other => return Err(format!("unknown option {other}")),
            }
        }
        if port.is_some() && transport.is_none() {
            return Err("--port needs a --transport with a port".into());
        }
        Ok(Self {
            script: conformance(era).script().clone(),
            listen: transport.map(|_| format!("127.0.0.1:{}", port.unwrap_or(0))),
            wire: transport.unwrap_or(Wire::Http),
        })
    }
}

/// The next option and its value.
fn next_option(args: &mut impl Iterator<Item = OsString>) -> Result<Option<(String, String)>, String> {
    let Some(option) = args.next() else { return Ok(None) };
    let option = option.to_string_lossy().into_owned();
    let value = args.next().ok_or_else(|| format!("{option} needs a value"))?;
    let value = value
        .into_string()
        .map_err(|_| format!("the value of {option} is not UTF-8"))?;
    Ok(Some((option, value)))
}

fn wire(name: &str) -> Result<Wire, String> {
    match name {
        "http" => Ok(Wire::Http),
        "sse" => Ok(Wire::Sse),
        "ws" => Ok(Wire::WebSocket),
        other => Err(format!("unknown transport {other}")),
    }
}

fn parse(text: &str) -> Result<Script, String> {
    serde_json::from_str(text).map_err(|error| format!("the script is not valid: {error}"))
}

fn run(options: Options) -> io::Result<i32> {
    let before = match &options.script.log {
        Some(path) => u32::try_from(read_log(path)?.spawned.len()).unwrap_or(u32::MAX),
        None => 0,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let server = Server::process(options.script, before)?;
    // Before the start is logged: a test may end the parent as soon as it sees that line.
    process::watch(&server.script());
    runtime.block_on(async {
        match options.listen {
            None => {
                server.start();
                stdio::serve(server).await
            }
            Some(address) => listen(NetHandle::start(server, options.wire, &address).await?).await,
        }
    })
}

#[expect(clippy::print_stdout, reason = "the line tells the address")]
async fn listen(handle: NetHandle) -> io::Result<i32> {
    println!("listening on {}", handle.url());
    handle.died().await;
    Ok(0)
}
