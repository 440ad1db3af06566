//! Runs one step of a call a number of times, for a tool that counts instructions: `steps NAME TIMES`. Without arguments it lists the names.

use bytes::Bytes;
use pegboard::{ServerName, bench};
use serde_json::value::RawValue;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, times] = &args[..] else {
        println!("write\nread-100\nread-10k\nread-1m\nread-prose-1m\nlist-100-tools");
        return;
    };
    let times: u32 = times.parse().unwrap_or(1);
    let mut step = step(name);
    let sum: usize = (0..times).map(|_| step()).sum();
    assert!(times == 0 || sum > 0, "nothing was done");
}

fn step(name: &str) -> Box<dyn FnMut() -> usize> {
    match name {
        "write" => {
            let arguments = RawValue::from_string(r#"{"path":"src/lib.rs","line":7}"#.to_owned()).unwrap_or_default();
            Box::new(move || bench::write_call(1234, "read_file", &arguments))
        }
        "list-100-tools" => {
            let tool = |number| {
                format!(
                    r#"{{"name":"tool_{number}","description":"Looks for something in files and says where it is.","inputSchema":{{"type":"object","properties":{{"query":{{"type":"string","description":"What to look for"}},"limit":{{"type":"integer","minimum":1}}}},"required":["query"]}}}}"#
                )
            };
            let tools: Vec<String> = (0..100).map(tool).collect();
            let message = Bytes::from(format!(
                r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{}]}}}}"#,
                tools.join(",")
            ));
            let server = ServerName::parse("s").ok();
            Box::new(move || {
                server
                    .as_ref()
                    .and_then(|server| bench::read_tools(&message, server))
                    .unwrap_or(0)
            })
        }
        _ => {
            let (record, bytes) = match name {
                "read-100" => (RECORD, 100),
                "read-10k" => (RECORD, 10_000),
                "read-1m" => (RECORD, 1_000_000),
                _ => (PROSE, 1_000_000),
            };
            let text = record.repeat((bytes / record.len()).max(1));
            let message = Bytes::from(format!(
                r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}}}"#
            ));
            Box::new(move || bench::read_answer(&message).unwrap_or(0))
        }
    }
}

const RECORD: &str =
    r#"{\"file\": \"docs/guide.md\", \"line\": 7, \"words\": \"a board with pegs, and on each peg a tool\"}\n"#;
const PROSE: &str =
    r"A board has pegs, and on each peg hangs a tool; whoever needs one takes it, and hangs it back after use.\n";
