//! Runs one step of a call a number of times, for counting its instructions: `steps NAME TIMES`. Without arguments it lists the names.
//!
//! `steps NAME TIMES double` and `steps NAME TIMES double twice` run steps with an input size, the second with twice the input.
//! `steps double` lists these.

use bytes::Bytes;
use pegboard::{
    Arguments, Provider, Secret, ServerName, bench,
    config::Reading,
    mask::{Masker, Masking},
};
use pegboard_steps::shapes::{PROSE, RECORD, SHAPES};
use serde_json::{json, value::RawValue};

/// A prepared step. It returns a number that depends on its work, so that the optimiser cannot remove it.
type Step = Box<dyn FnMut() -> usize>;

const STEPS: [(&str, fn() -> Step); 15] = [
    ("write", write),
    ("read-100", || read(RECORD, 100)),
    ("read-10k", || read(RECORD, 10_000)),
    ("read-1m", || read(RECORD, 1_000_000)),
    ("read-prose-1m", || read(PROSE, 1_000_000)),
    ("list-100-tools", read_list),
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
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (name, times, step) = match args[..] {
        [name, times] => (
            name,
            times,
            STEPS
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, prepare)| prepare()),
        ),
        [name, times, "double"] => (name, times, sized(name, 1)),
        [name, times, "double", "twice"] => (name, times, sized(name, 2)),
        ["double"] => return sized_names().for_each(|name| println!("{name}")),
        _ => return STEPS.iter().for_each(|(name, _)| println!("{name}")),
    };
    let times: u32 = times.parse().unwrap_or(1);
    let Some(mut step) = step else {
        eprintln!("there is no step `{name}`");
        std::process::exit(2);
    };
    let sum: usize = (0..times).map(|_| step()).sum();
    assert!(times == 0 || sum > 0, "nothing was done");
}

/// The length of the masking shapes before doubling.
const TEXT: usize = 32 << 10;

/// The steps besides masking whose cost must be linear in their input, with its size.
const SIZED: [(&str, usize, fn(usize) -> Step); 5] = [
    ("learn-secrets", 256, learn),
    ("list-tools", 200, list),
    ("content-blocks", 500, read_blocks),
    ("mask-blocks", 500, mask_blocks),
    ("events", 2000, ring),
];

fn sized_names() -> impl Iterator<Item = String> {
    let shapes = SHAPES.iter().map(|shape| format!("mask-{}", shape.name));
    shapes.chain(SIZED.iter().map(|(name, ..)| (*name).to_owned()))
}

/// A step with this multiple of its usual input.
fn sized(name: &str, factor: usize) -> Option<Step> {
    if let Some((_, size, prepare)) = SIZED.iter().find(|(known, ..)| *known == name) {
        return Some(prepare(size * factor));
    }
    let shape = SHAPES
        .iter()
        .find(|shape| name.strip_prefix("mask-") == Some(shape.name))?;
    let (masker, text) = (shape.masker()?, shape.text(TEXT * factor));
    // A warm-up, because patterns are compiled lazily.
    masker.text(&shape.text(2 << 10));
    Some(Box::new(move || masker.text(&text).text.len()))
}

fn learn(secrets: usize) -> Step {
    Box::new(move || bench::learn(secrets))
}

fn ring(events: usize) -> Step {
    Box::new(move || bench::ring(events))
}

/// A result with this many content blocks.
fn blocks_message(blocks: usize) -> Bytes {
    let block =
        |number| format!(r#"{{"type":"text","text":"the {number}. line, with \"quotes\" and password: xK9vT3mQ"}}"#);
    let blocks: Vec<String> = (0..blocks).map(block).collect();
    Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{}],"isError":false}}}}"#,
        blocks.join(",")
    ))
}

fn read_blocks(blocks: usize) -> Step {
    let message = blocks_message(blocks);
    Box::new(move || bench::read_answer(&message).unwrap_or(0))
}

/// Masks the blocks one by one, as in a result.
fn mask_blocks(blocks: usize) -> Step {
    let message: serde_json::Value = serde_json::from_slice(&blocks_message(blocks)).unwrap_or_default();
    let masker = Masker::new(&Masking::default(), [Secret::new("correct-horse-battery")]).ok();
    Box::new(move || {
        let mut message = message.clone();
        masker.as_ref().map_or(0, |masker| masker.value(&mut message).total())
    })
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

/// Parses a listing and assigns names to its tools.
fn list(tools: usize) -> Step {
    let (message, server) = (tools_message(tools), server());
    Box::new(move || bench::names(&bench::read_tools(&message, &server), Provider::OpenAi).len())
}

fn read_list() -> Step {
    let (message, server) = (tools_message(100), server());
    Box::new(move || bench::read_tools(&message, &server).len())
}

fn name() -> Step {
    let tools = bench::read_tools(&tools_message(100), &server());
    Box::new(move || bench::names(&tools, Provider::OpenAi).len())
}

fn define() -> Step {
    let tools = bench::read_tools(&tools_message(100), &server());
    Box::new(move || {
        tools
            .iter()
            .filter(|tool| Provider::OpenAiStrict.define(tool, None).is_ok())
            .count()
    })
}

fn compile() -> Step {
    let message = tools_message(100);
    let server = server();
    let arguments = Arguments::parse(r#"{"query":"x","limit":3}"#).unwrap_or_default();
    Box::new(move || {
        let (tools, validators) = (bench::read_tools(&message, &server), bench::Validators::default());
        usize::from(
            tools
                .first()
                .is_some_and(|tool| bench::fits(tool, &arguments, &validators)),
        )
    })
}

fn check() -> Step {
    let tools = bench::read_tools(&tools_message(100), &server());
    let arguments = Arguments::parse(r#"{"query":"x","limit":3}"#).unwrap_or_default();
    let validators = bench::Validators::default();
    Box::new(move || usize::from(bench::fits(&tools[0], &arguments, &validators)))
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

fn tools_message(count: usize) -> Bytes {
    let tool = |number| {
        format!(
            r#"{{"name":"tool_{number}","description":"Looks for something in files and says where it is.","inputSchema":{{"type":"object","properties":{{"query":{{"type":"string","description":"What to look for"}},"limit":{{"type":"integer","minimum":1}}}},"required":["query"]}}}}"#
        )
    };
    let tools: Vec<String> = (0..count).map(tool).collect();
    Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{}]}}}}"#,
        tools.join(",")
    ))
}

const SECRETS: &str = "the password is correct-horse-battery, and api_key = \"k3yk3yk3yk3yk3yk3yk3y\" is another one\n";
