//! Cases on calls: results, progress, cancellation, calls at once.

use std::time::Duration;

use pegboard_protocol::{
    Era,
    method::{self, notification},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    bench::Bench,
    case::{Applies, Case, Spec},
    client::{Client, Reply},
    sample,
    stop::{Stop, ensure, fail, skip},
};

const GROUP: &str = "calls";
/// How many tools are called by one case.
const MOST: usize = 12;
/// How many calls are in flight at once.
const PARALLEL: usize = 20;
/// A call that takes longer than this can be cancelled.
const SLOW: Duration = Duration::from_millis(150);
/// A `ping` that waits longer than this was not read while the call ran.
const BUSY: Duration = Duration::from_secs(1);
/// A response that was sent before the cancellation arrived may come within this time.
const CROSSING: Duration = Duration::from_millis(100);
/// How long the response of a call that does not stop is waited for.
const LATE: Duration = Duration::from_secs(2);

pub(super) const CASES: &[Case] = &[
    Case {
        id: "results",
        group: GROUP,
        title: "calls return well-formed content",
        applies: Applies::Always,
        spec: Spec::Both("server/tools#tool-result"),
        mend: "return `content` as a list of blocks, each with a `type` and the fields of that type",
        run: |bench| Box::pin(results(bench)),
    },
    Case {
        id: "output-schema",
        group: GROUP,
        title: "structured results match the tool's `outputSchema`",
        applies: Applies::Always,
        spec: Spec::Both("server/tools#output-schema"),
        mend: "return `structuredContent` that conforms to `outputSchema`, in every successful result",
        run: |bench| Box::pin(output_schema(bench)),
    },
    Case {
        id: "parallel-calls",
        group: GROUP,
        title: "20 calls at once get one response each",
        applies: Applies::Always,
        spec: Spec::Both("basic#responses"),
        mend: "answer each call exactly once and with its own id, in any order",
        run: |bench| Box::pin(parallel_calls(bench)),
    },
    Case {
        id: "progress",
        group: GROUP,
        title: "progress is reported only to who asked, increases, and ends with the call",
        applies: Applies::Always,
        spec: Spec::Each("basic/utilities/progress", "basic/patterns/progress"),
        mend: "send progress only for a token of an active request, with a value that increases each time",
        run: |bench| Box::pin(progress(bench)),
    },
    Case {
        id: "cancellation",
        group: GROUP,
        title: "a cancelled call stops and gets no response",
        applies: Applies::Always,
        spec: Spec::Each("basic/utilities/cancellation", "basic/patterns/cancellation"),
        mend: "stop the work on `notifications/cancelled`, and send no response for that request",
        run: |bench| Box::pin(cancellation(bench)),
    },
    Case {
        id: "cancel-unknown",
        group: GROUP,
        title: "the cancellation of an unknown request is ignored",
        applies: Applies::Always,
        spec: Spec::Each("basic/utilities/cancellation", "basic/patterns/cancellation"),
        mend: "ignore cancellations of requests that are unknown or finished",
        run: |bench| Box::pin(cancel_unknown(bench)),
    },
    Case {
        id: "ping-during-call",
        group: GROUP,
        title: "`ping` is answered while a call runs",
        applies: Applies::Legacy,
        spec: Spec::Both("basic/utilities/ping"),
        mend: "do not run tools on the thread that reads messages",
        run: |bench| Box::pin(ping_during_call(bench)),
    },
];

fn name(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The params of a valid call.
fn params(tool: &Value) -> Value {
    json!({"name": name(tool), "arguments": sample::valid_arguments(tool)})
}

async fn results(bench: &Bench<'_>) -> Result<(), Stop> {
    let tools = bench.callable_tools()?;
    let mut client = bench.session().await?;
    for tool in tools.iter().take(MOST) {
        let Reply::Result(result) = client.request(method::TOOLS_CALL, params(tool)).await? else {
            bench.advise(format!(
                "`{}` got a JSON-RPC error; a model sees only results with `isError`",
                name(tool)
            ));
            continue;
        };
        if result.get("resultType").is_some_and(|kind| kind != "complete") {
            continue;
        }
        check_content(name(tool), &result)?;
    }
    Ok(())
}

fn check_content(tool: &str, result: &Value) -> Result<(), Stop> {
    let Some(content) = result.get("content").and_then(Value::as_array) else {
        return fail(format!("the result of `{tool}` has no list `content`"));
    };
    for block in content {
        let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
        let fields: &[&str] = match kind {
            "text" => &["text"],
            "image" | "audio" => &["data", "mimeType"],
            "resource_link" => &["uri", "name"],
            "resource" => &[],
            _ => return fail(format!("a content block of `{tool}` has the type {kind:?}")),
        };
        for field in fields {
            ensure(block.get(field).is_some_and(Value::is_string), || {
                format!("a block of type {kind} of `{tool}` has no text `{field}`")
            })?;
        }
    }
    match result.get("isError") {
        None | Some(Value::Bool(_)) => Ok(()),
        Some(_) => fail(format!("`isError` of `{tool}` is not a boolean")),
    }
}

async fn output_schema(bench: &Bench<'_>) -> Result<(), Stop> {
    let typed: Vec<_> = bench
        .callable_tools()?
        .iter()
        .filter(|tool| tool.get("outputSchema").is_some())
        .collect();
    if typed.is_empty() {
        return skip("no tool that may be called has an `outputSchema`");
    }
    let mut client = bench.session().await?;
    for tool in typed.into_iter().take(MOST) {
        let reply = client.request(method::TOOLS_CALL, params(tool)).await?;
        let Reply::Result(result) = reply else { continue };
        if result.get("isError") == Some(&json!(true)) {
            continue;
        }
        let Some(structured) = result.get("structuredContent") else {
            return fail(format!(
                "`{}` has an `outputSchema` and returned no `structuredContent`",
                name(tool)
            ));
        };
        let schema = tool.get("outputSchema").unwrap_or(&Value::Null);
        if let Ok(validator) = jsonschema::validator_for(schema)
            && let Err(error) = validator.validate(structured)
        {
            return fail(format!(
                "`structuredContent` of `{}` does not match: {error}",
                name(tool)
            ));
        }
    }
    Ok(())
}

async fn parallel_calls(bench: &Bench<'_>) -> Result<(), Stop> {
    let Some(tool) = bench.callable_tools()?.first() else {
        return skip("no tool may be called");
    };
    let mut client = bench.session().await?;
    let ids: Vec<Value> = (0..PARALLEL).map(|number| json!(format!("c{number}"))).collect();
    for id in &ids {
        client.start_with(id, method::TOOLS_CALL, params(tool)).await?;
    }
    for id in &ids {
        client.response(id, method::TOOLS_CALL).await?;
    }
    client.still_answers().await?;
    let doubled = client.stray_responses().count();
    ensure(doubled == 0, || {
        format!("{doubled} of {PARALLEL} calls got a second response")
    })
}

async fn progress(bench: &Bench<'_>) -> Result<(), Stop> {
    let tools = bench.callable_tools()?;
    let mut client = bench.session().await?;
    let mut reported = false;
    for (number, tool) in tools.iter().take(MOST).enumerate() {
        let token = format!("token-{number}");
        let mut params = params(tool);
        params["_meta"] = json!({"progressToken": token});
        client.request(method::TOOLS_CALL, params).await?;
        let values: Vec<f64> = client
            .notifications()
            .filter(|message| is_progress(message) && message.pointer("/params/progressToken") == Some(&json!(token)))
            .map(|message| {
                message
                    .pointer("/params/progress")
                    .and_then(Value::as_f64)
                    .unwrap_or(f64::NAN)
            })
            .collect();
        reported |= !values.is_empty();
        let increases = values.iter().zip(values.iter().skip(1)).all(|(one, next)| next > one);
        ensure(increases && !values.iter().any(|value| value.is_nan()), || {
            format!("the progress of `{}` does not increase: {values:?}", name(tool))
        })?;
        let before = client.notifications().filter(|message| is_progress(message)).count();
        client.still_answers().await?;
        let after = client.notifications().filter(|message| is_progress(message)).count();
        ensure(before == after, || {
            format!("progress of `{}` came after its response", name(tool))
        })?;
        let strange = client
            .notifications()
            .filter(|message| is_progress(message))
            .find(|message| {
                !message
                    .pointer("/params/progressToken")
                    .is_some_and(|it| it.as_str().is_some_and(|it| it.starts_with("token-")))
            });
        ensure(strange.is_none(), || {
            "progress came for a token that no request had".to_owned()
        })?;
    }
    match reported {
        true => Ok(()),
        false => skip("no call reported progress"),
    }
}

fn is_progress(message: &Value) -> bool {
    message.get("method").and_then(Value::as_str) == Some(notification::PROGRESS)
}

/// Starts calls until one is still running after [`SLOW`]. Returns the tool and the id of the call.
async fn slow_call<'a>(bench: &Bench<'a>, client: &mut Client) -> Result<(&'a Value, Value), Stop> {
    for tool in bench.callable_tools()?.iter().take(MOST) {
        let id = client.start(method::TOOLS_CALL, params(tool)).await?;
        let answered = client
            .find(
                |message| message.get("id") == Some(&id) && message.get("method").is_none(),
                SLOW,
            )
            .await?;
        if answered.is_none() {
            return Ok((tool, id));
        }
    }
    skip(format!(
        "every call that may be made is answered within {} ms; name a slow tool with --tool",
        SLOW.as_millis()
    ))
}

async fn cancellation(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    let (tool, id) = slow_call(bench, &mut client).await?;
    client.cancel(&id).await?;
    let is_it = |message: &Value| message.get("id") == Some(&id) && message.get("method").is_none();
    // The server has read the cancellation once it answers this. A result that was sent before that is no fault.
    client.still_answers().await?;
    match client.find(is_it, CROSSING).await? {
        None => {}
        Some(message) if message.get("error").is_some() => {
            bench.advise("a cancelled call got an error as its response; it should get none");
            return Ok(());
        }
        Some(_) => return skip("the call was over before it could be cancelled"),
    }
    let late = client.find(is_it, bench.wait.min(LATE)).await?;
    ensure(late.is_none(), || {
        format!("`{}` was cancelled and sent a response nevertheless", name(tool))
    })
}

async fn cancel_unknown(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    for id in [json!(99_999), json!("nobody")] {
        client.notify(notification::CANCELLED, json!({"requestId": id})).await?;
    }
    client.still_answers().await?;
    let strays = client.stray_responses().count();
    ensure(strays == 0, || {
        "the cancellation of an unknown request got a response".to_owned()
    })
}

async fn ping_during_call(bench: &Bench<'_>) -> Result<(), Stop> {
    debug_assert_eq!(bench.era, Era::Legacy);
    let mut client = bench.session().await?;
    let (tool, id) = slow_call(bench, &mut client).await?;
    let ping = client.start(method::PING, json!({})).await?;
    let asked = Instant::now();
    let is_either = |message: &Value| {
        message.get("method").is_none() && (message.get("id") == Some(&ping) || message.get("id") == Some(&id))
    };
    match client.find(is_either, bench.wait).await? {
        Some(message) if message.get("id") == Some(&ping) => Ok(()),
        Some(_) if asked.elapsed() < BUSY => skip("the call was over before the ping could be answered"),
        Some(_) => fail(format!("`ping` was answered only after the call of `{}`", name(tool))),
        None => fail(format!("`ping` was not answered while `{}` ran", name(tool))),
    }
}
