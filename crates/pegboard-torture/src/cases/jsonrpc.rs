//! Cases on JSON-RPC: ids, errors, and messages that make no sense.

use std::time::Duration;

use pegboard_protocol::{code, method};
use serde_json::{Value, json};

use crate::{
    bench::Bench,
    case::{Applies, Case, Spec},
    client::Reply,
    stop::{Stop, ensure, fail},
};

const GROUP: &str = "json-rpc";
const MESSAGES: Spec = Spec::Both("basic#messages");
const JSON_RPC: Spec = Spec::Other("JSON-RPC 2.0, section 5.1 (error object)");
/// How many requests are in flight at once.
const PARALLEL: usize = 50;
/// The size of a large message.
const LARGE: usize = 1 << 20;
/// How deep nested JSON is. Many parsers stop at 128 or 1,000.
const DEEP: usize = 5000;

pub(super) const CASES: &[Case] = &[
    Case {
        id: "ids",
        group: GROUP,
        title: "the id of a request comes back unchanged, whatever it is",
        applies: Applies::Always,
        spec: Spec::Both("basic#responses"),
        mend: "keep the id of a request as the JSON value that it is: a string stays a string, 0 is an id",
        run: |bench| Box::pin(ids(bench)),
    },
    Case {
        id: "null-id",
        group: GROUP,
        title: "a request with the id null gets no result",
        applies: Applies::Always,
        spec: Spec::Both("basic#requests"),
        mend: "refuse a request whose id is null with -32600, and stay alive",
        run: |bench| Box::pin(null_id(bench)),
    },
    Case {
        id: "unknown-method",
        group: GROUP,
        title: "an unknown method gets the error -32601",
        applies: Applies::Always,
        spec: JSON_RPC,
        mend: "answer every request whose method is not known with -32601 (method not found)",
        run: |bench| Box::pin(unknown_method(bench)),
    },
    Case {
        id: "malformed-json",
        group: GROUP,
        title: "a line that is not JSON does not end the session",
        applies: Applies::Always,
        spec: JSON_RPC,
        mend: "answer with -32700 (parse error) and the id null, and read on with the next line",
        run: |bench| Box::pin(malformed_json(bench)),
    },
    Case {
        id: "invalid-request",
        group: GROUP,
        title: "JSON that is no request does not end the session",
        applies: Applies::Always,
        spec: JSON_RPC,
        mend: "answer with -32600 (invalid request), and read on",
        run: |bench| Box::pin(invalid_request(bench)),
    },
    Case {
        id: "wrong-params",
        group: GROUP,
        title: "params of a wrong shape get an error",
        applies: Applies::Always,
        spec: JSON_RPC,
        mend: "check `params` before they are used, and answer with -32602 (invalid params)",
        run: |bench| Box::pin(wrong_params(bench)),
    },
    Case {
        id: "unknown-notification",
        group: GROUP,
        title: "an unknown notification gets no response",
        applies: Applies::Always,
        spec: Spec::Both("basic#notifications"),
        mend: "ignore notifications that are not known; never respond to a notification",
        run: |bench| Box::pin(unknown_notification(bench)),
    },
    Case {
        id: "stray-response",
        group: GROUP,
        title: "a response that nothing asked for is ignored",
        applies: Applies::Always,
        spec: MESSAGES,
        mend: "ignore responses whose id belongs to no request",
        run: |bench| Box::pin(stray_response(bench)),
    },
    Case {
        id: "parallel",
        group: GROUP,
        title: "50 requests at once get one response each",
        applies: Applies::Always,
        spec: Spec::Both("basic#responses"),
        mend: "answer each request exactly once and with its own id, in any order",
        run: |bench| Box::pin(parallel(bench)),
    },
    Case {
        id: "ping",
        group: GROUP,
        title: "`ping` gets an empty result",
        applies: Applies::Legacy,
        spec: Spec::Both("basic/utilities/ping"),
        mend: "answer `ping` at once with the result {}",
        run: |bench| Box::pin(ping(bench)),
    },
    Case {
        id: "large-message",
        group: GROUP,
        title: "a message of 1 MiB is answered",
        applies: Applies::Always,
        spec: MESSAGES,
        mend: "read messages of any reasonable size, or answer with an error; do not use a fixed buffer",
        run: |bench| Box::pin(large_message(bench)),
    },
    Case {
        id: "deep-nesting",
        group: GROUP,
        title: "JSON that is nested 5,000 deep does not end the session",
        applies: Applies::Always,
        spec: MESSAGES,
        mend: "limit the depth of JSON and answer with an error; a recursive parser must not overflow the stack",
        run: |bench| Box::pin(deep_nesting(bench)),
    },
];

async fn ids(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    let method = client.harmless();
    for id in [
        json!("a string"),
        json!(0),
        json!(-7),
        json!(9_007_199_254_740_991_u64),
        json!("1"),
        json!(""),
        json!("ünï\u{1f980}\n\"\\"),
        json!("x".repeat(1000)),
    ] {
        client.start_with(&id, method, json!({})).await?;
        let Some(response) = client.any_response(bench.wait).await? else {
            return fail(format!("no response to a request with the id {id}"));
        };
        let came = response.get("id").unwrap_or(&Value::Null);
        ensure(*came == id, || format!("the id {id} came back as {came}"))?;
    }
    Ok(())
}

async fn null_id(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    let method = client.harmless();
    client.start_with(&Value::Null, method, json!({})).await?;
    survives(&mut client).await?;
    let got_result = client
        .stray_responses()
        .any(|response| response.get("result").is_some());
    ensure(!got_result, || "a request with the id null got a result".to_owned())
}

async fn unknown_method(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    for method in ["torture/unknown", "tools/destroy", ""] {
        let reply = client.request(method, json!({})).await?;
        reply.expect_error(&format!("the method {method:?}"), &[code::METHOD_NOT_FOUND])?;
    }
    Ok(())
}

async fn malformed_json(bench: &Bench<'_>) -> Result<(), Stop> {
    for text in ["{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\":", "not JSON at all", "{]"] {
        let mut client = bench.session().await?;
        client.send(text).await?;
        survives(&mut client).await?;
        let answered = client
            .stray_responses()
            .any(|response| response.pointer("/error/code") == Some(&json!(code::PARSE_ERROR)));
        if !answered && bench.target.is_stdio() {
            bench.advise("malformed JSON gets no response; JSON-RPC wants the error -32700 with the id null");
            return Ok(());
        }
    }
    Ok(())
}

async fn invalid_request(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    for text in [
        "7",
        "\"text\"",
        "null",
        "[]",
        "{}",
        r#"{"jsonrpc":"2.0","id":"i"}"#,
        r#"{"jsonrpc":"2.0","id":"j","method":7}"#,
    ] {
        client.send(text).await?;
        survives(&mut client).await?;
        let got_result = client
            .stray_responses()
            .any(|response| response.get("result").is_some());
        ensure(!got_result, || "a message that is no request got a result".to_owned())?;
    }
    Ok(())
}

async fn wrong_params(bench: &Bench<'_>) -> Result<(), Stop> {
    bench.needs("tools")?;
    let mut client = bench.session().await?;
    for params in [json!({}), json!({"name": 7}), json!({"name": "x", "arguments": "text"})] {
        let reply = client.request(method::TOOLS_CALL, params.clone()).await?;
        ensure(reply.is_failure(), || {
            format!("`tools/call` with the params {params} succeeded")
        })?;
        if let Reply::Error { code: Some(code), .. } = reply
            && code != code::INVALID_PARAMS
            && code != code::INVALID_REQUEST
        {
            bench.advise(format!(
                "wrong params of `tools/call` got the error {code}; -32602 is meant for them"
            ));
        }
    }
    client.still_answers().await
}

async fn unknown_notification(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    client.notify("notifications/torture", json!({"a": 1})).await?;
    survives(&mut client).await?;
    let count = client.stray_responses().count();
    ensure(count == 0, || "a notification got a response".to_owned())
}

async fn stray_response(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    for text in [
        r#"{"jsonrpc":"2.0","id":"nobody","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":4711,"error":{"code":-1,"message":"no"}}"#,
    ] {
        client.send(text).await?;
        survives(&mut client).await?;
    }
    Ok(())
}

async fn parallel(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    let method = client.harmless();
    let ids: Vec<Value> = (0..PARALLEL).map(|number| json!(format!("p{number}"))).collect();
    for id in &ids {
        client.start_with(id, method, json!({})).await?;
    }
    for id in &ids {
        client.response(id, method).await?;
    }
    // A second response to one of them would be here by the time that the next request is answered.
    client.still_answers().await?;
    let doubled = client.stray_responses().count();
    ensure(doubled == 0, || {
        format!("{doubled} of {PARALLEL} requests got a second response")
    })
}

async fn ping(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    let result = client.request(method::PING, json!({})).await?.result(method::PING)?;
    ensure(result.as_object().is_some(), || {
        "the result of `ping` is not an object".to_owned()
    })
}

async fn large_message(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    let id = client
        .start("torture/large", json!({"text": "x".repeat(LARGE)}))
        .await?;
    match client.response(&id, "a message of 1 MiB").await {
        Ok(_) => {}
        // A limit over HTTP is a status, as long as it is the right one.
        Err(Stop::Fail(why)) if why.contains("HTTP status 413") => {
            bench.advise("messages of 1 MiB are refused with HTTP status 413");
            client = bench.session().await?;
        }
        Err(stop) => return Err(stop),
    }
    client.still_answers().await
}

async fn deep_nesting(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    let deep = format!("{}{}", "[".repeat(DEEP), "]".repeat(DEEP));
    client
        .send(&format!(
            r#"{{"jsonrpc":"2.0","id":"deep","method":"torture/deep","params":{{"a":{deep}}}}}"#
        ))
        .await?;
    survives(&mut client).await
}

/// Checks that the server answers after something that it need not answer. Over HTTP the error status of that may still arrive.
async fn survives(client: &mut crate::client::Client) -> Result<(), Stop> {
    // A server that reads no further than the first message of a batch of bytes is given a moment.
    let mut last = client.still_answers().await;
    for _ in 0..3 {
        match &last {
            Err(Stop::Fail(why)) if why.contains("HTTP status 4") => {
                let _ = client.any_response(Duration::ZERO).await;
                last = client.still_answers().await;
            }
            _ => break,
        }
    }
    last
}
