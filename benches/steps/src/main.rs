//! Runs one step of a call a number of times, for a tool that counts instructions: `steps NAME TIMES`. Without arguments it lists the names.

use bytes::Bytes;
use pegboard::{Arguments, Masker, Masking, Provider, Reading, Secret, ServerName, bench};
use serde_json::{json, value::RawValue};

/// A step, ready to be run. It returns how much it did, so that nothing of it can be left out.
type Step = Box<dyn FnMut() -> usize>;

const STEPS: [(&str, fn() -> Step); 15] = [
    ("write", write),
    ("read-100", || read(RECORD, 100)),
    ("read-10k", || read(RECORD, 10_000)),
    ("read-1m", || read(RECORD, 1_000_000)),
    ("read-prose-1m", || read(PROSE, 1_000_000)),
    ("list-100-tools", list),
    ("name-100-tools", name),
    ("define-100-tools", define),
    ("compile-schema", compile),
    ("check-arguments", check),
    ("read-arguments", read_arguments),
    ("mask-100", || mask(PROSE, 100)),
    ("mask-10k", || mask(RECORD, 10_000)),
    ("mask-1m", || mask(PROSE, 1_000_000)),
    ("mask-secrets", || mask(SECRETS, 1_000)),
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, times] = &args[..] else {
        STEPS.iter().for_each(|(name, _)| println!("{name}"));
        return;
    };
    let times: u32 = times.parse().unwrap_or(1);
    let Some((_, prepare)) = STEPS.iter().find(|(known, _)| known == name) else {
        eprintln!("there is no step `{name}`");
        std::process::exit(2);
    };
    let mut step = prepare();
    let sum: usize = (0..times).map(|_| step()).sum();
    assert!(times == 0 || sum > 0, "nothing was done");
}

fn write() -> Step {
    let arguments = RawValue::from_string(r#"{"path":"src/lib.rs","line":7}"#.to_owned()).unwrap_or_default();
    Box::new(move || bench::write_call(1234, "read_file", &arguments))
}

fn read(record: &'static str, bytes: usize) -> Step {
    let text = record.repeat((bytes / record.len()).max(1));
    let message = Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}}}"#
    ));
    Box::new(move || bench::read_answer(&message).unwrap_or(0))
}

fn list() -> Step {
    let (message, server) = (tools_message(), server());
    Box::new(move || bench::read_tools(&message, &server).len())
}

fn name() -> Step {
    let tools = bench::read_tools(&tools_message(), &server());
    Box::new(move || bench::names(&tools, Provider::OpenAi).len())
}

fn define() -> Step {
    let tools = bench::read_tools(&tools_message(), &server());
    Box::new(move || {
        tools
            .iter()
            .filter(|tool| Provider::OpenAiStrict.define(tool, None).is_ok())
            .count()
    })
}

fn compile() -> Step {
    let message = tools_message();
    let server = server();
    let arguments = Arguments::parse(r#"{"query":"x","limit":3}"#).unwrap_or_default();
    Box::new(move || {
        let tools = bench::read_tools(&message, &server);
        usize::from(tools.first().is_some_and(|tool| bench::fits(tool, &arguments)))
    })
}

fn check() -> Step {
    let tools = bench::read_tools(&tools_message(), &server());
    let arguments = Arguments::parse(r#"{"query":"x","limit":3}"#).unwrap_or_default();
    Box::new(move || usize::from(bench::fits(&tools[0], &arguments)))
}

fn read_arguments() -> Step {
    let schema = json!({"properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}});
    let read = move || Arguments::read("query: pegs, and tools, limit: 3", Reading::Guided, &schema);
    Box::new(move || read().map_or(0, |read| read.arguments.as_str().len()))
}

fn mask(record: &'static str, bytes: usize) -> Step {
    let text = record.repeat((bytes / record.len()).max(1));
    let masker = Masker::new(&Masking::default(), [Secret::new("correct-horse-battery")]).ok();
    Box::new(move || masker.as_ref().map_or(0, |masker| masker.text(&text).text.len()))
}

fn server() -> ServerName {
    ServerName::parse("s").unwrap_or_else(|_| unreachable!("it is a plain letter"))
}

fn tools_message() -> Bytes {
    let tool = |number| {
        format!(
            r#"{{"name":"tool_{number}","description":"Looks for something in files and says where it is.","inputSchema":{{"type":"object","properties":{{"query":{{"type":"string","description":"What to look for"}},"limit":{{"type":"integer","minimum":1}}}},"required":["query"]}}}}"#
        )
    };
    let tools: Vec<String> = (0..100).map(tool).collect();
    Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{}]}}}}"#,
        tools.join(",")
    ))
}

const RECORD: &str =
    r#"{\"file\": \"docs/guide.md\", \"line\": 7, \"words\": \"a board with pegs, and on each peg a tool\"}\n"#;
const PROSE: &str =
    r"A board has pegs, and on each peg hangs a tool; whoever needs one takes it, and hangs it back after use.\n";
const SECRETS: &str = "the password is correct-horse-battery, and api_key = \"k3yk3yk3yk3yk3yk3yk3y\" is another one\n";
