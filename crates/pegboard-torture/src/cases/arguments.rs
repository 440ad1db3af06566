//! Cases on arguments that a tool's own schema forbids. The call must fail, and the server must survive.

use pegboard_protocol::method;
use serde_json::{Value, json};

use crate::{
    bench::Bench,
    case::{Applies, Case, Spec},
    client::{Client, Reply},
    sample,
    stop::{Stop, ensure, skip},
};

const GROUP: &str = "arguments";
const INPUT: Spec = Spec::Both("server/tools#error-handling");
const MEND: &str =
    "validate the arguments against `inputSchema` before the tool runs, and answer with `isError` or -32602";
/// How many tools are called by one case.
const MOST: usize = 12;
const HUGE: usize = 1 << 20;
const DEEP: usize = 100;

pub(super) const CASES: &[Case] = &[
    Case {
        id: "missing-argument",
        group: GROUP,
        title: "a call without a required argument fails",
        applies: Applies::Always,
        spec: INPUT,
        mend: MEND,
        run: |bench| Box::pin(missing(bench)),
    },
    Case {
        id: "wrong-type",
        group: GROUP,
        title: "a call with an argument of a wrong type fails",
        applies: Applies::Always,
        spec: INPUT,
        mend: MEND,
        run: |bench| Box::pin(wrong_type(bench)),
    },
    Case {
        id: "extra-argument",
        group: GROUP,
        title: "a call with an argument that the schema forbids fails",
        applies: Applies::Always,
        spec: INPUT,
        mend: "refuse undeclared arguments, or leave `additionalProperties: false` out of the schema",
        run: |bench| Box::pin(extra(bench)),
    },
    Case {
        id: "huge-argument",
        group: GROUP,
        title: "a text of 1 MiB as an argument is answered",
        applies: Applies::Always,
        spec: INPUT,
        mend: "limit the length of texts and answer with an error; do not crash or hang",
        run: |bench| Box::pin(huge(bench)),
    },
    Case {
        id: "odd-text",
        group: GROUP,
        title: "control characters and odd Unicode in an argument are answered",
        applies: Applies::Always,
        spec: INPUT,
        mend: "treat texts as Unicode; do not pass them on to a shell, a path or a query unchecked",
        run: |bench| Box::pin(odd(bench)),
    },
    Case {
        id: "nested-argument",
        group: GROUP,
        title: "a deeply nested argument is answered",
        applies: Applies::Always,
        spec: INPUT,
        mend: "check the type of arguments before they are walked",
        run: |bench| Box::pin(nested(bench)),
    },
];

fn name(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Calls each tool for which `change` makes bad arguments of good ones. Skips the case if there is none.
async fn with_bad(
    bench: &Bench<'_>,
    why_not: &str,
    change: impl Fn(&Value, &mut Value) -> Option<String>,
    judge: impl Fn(&Reply, &str) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut changed = Vec::new();
    for tool in bench.callable_tools()? {
        let mut arguments = sample::valid_arguments(tool);
        if let Some(what) = change(tool, &mut arguments) {
            changed.push((tool, arguments, what));
        }
    }
    if changed.is_empty() {
        return skip(why_not);
    }
    let mut client = bench.session().await?;
    for (tool, arguments, what) in changed.into_iter().take(MOST) {
        let reply = call(&mut client, tool, arguments).await?;
        judge(&reply, &what)?;
    }
    client.still_answers().await
}

async fn call(client: &mut Client, tool: &Value, arguments: Value) -> Result<Reply, Stop> {
    let params = json!({"name": name(tool), "arguments": arguments});
    client.request(method::TOOLS_CALL, params).await
}

fn must_fail(reply: &Reply, what: &str) -> Result<(), Stop> {
    ensure(reply.is_failure(), || format!("{what} succeeded"))
}

async fn missing(bench: &Bench<'_>) -> Result<(), Stop> {
    let change = |tool: &Value, arguments: &mut Value| {
        let missing = sample::required_argument(tool)?;
        arguments.as_object_mut()?.remove(missing)?;
        Some(format!("a call of `{}` without `{missing}`", name(tool)))
    };
    with_bad(
        bench,
        "no tool that may be called requires an argument",
        change,
        must_fail,
    )
    .await
}

async fn wrong_type(bench: &Bench<'_>) -> Result<(), Stop> {
    let change = |tool: &Value, arguments: &mut Value| {
        let (argument, wrong) = sample::wrong_type(tool)?;
        let what = format!("a call of `{}` with {wrong} as `{argument}`", name(tool));
        arguments.as_object_mut()?.insert(argument.to_owned(), wrong);
        Some(what)
    };
    with_bad(
        bench,
        "no tool that may be called declares the type of an argument",
        change,
        must_fail,
    )
    .await
}

async fn extra(bench: &Bench<'_>) -> Result<(), Stop> {
    let change = |tool: &Value, arguments: &mut Value| {
        let fields = arguments.as_object_mut().filter(|_| sample::is_closed(tool))?;
        fields.insert("torture_extra".to_owned(), json!(1));
        Some(format!(
            "a call of `{}` with an argument that its schema forbids",
            name(tool)
        ))
    };
    with_bad(
        bench,
        "no tool that may be called forbids additional arguments",
        change,
        must_fail,
    )
    .await
}

/// Replaces an argument that is a text.
async fn with_text(bench: &Bench<'_>, text: &Value) -> Result<(), Stop> {
    let change = |tool: &Value, arguments: &mut Value| {
        let argument = sample::text_argument(tool)?;
        arguments.as_object_mut()?.insert(argument.to_owned(), text.clone());
        Some(String::new())
    };
    with_bad(bench, "no tool that may be called takes a text", change, |_, _| Ok(())).await
}

async fn huge(bench: &Bench<'_>) -> Result<(), Stop> {
    with_text(bench, &json!("x".repeat(HUGE))).await
}

async fn odd(bench: &Bench<'_>) -> Result<(), Stop> {
    with_text(
        bench,
        &json!("\u{0}\u{7}\u{1b}[2J\u{202e}\u{feff}\u{10ffff}\r\n'\"`$(x)%s{}\\"),
    )
    .await
}

async fn nested(bench: &Bench<'_>) -> Result<(), Stop> {
    let deep = (0..DEEP).fold(json!(1), |inner, _| json!([inner]));
    with_text(bench, &deep).await
}
