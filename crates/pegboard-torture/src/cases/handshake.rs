//! Cases on how a session begins.

use pegboard_protocol::{
    Era, Version, code, meta,
    method::{self, notification},
};
use serde_json::{Value, json};

use crate::{
    bench::Bench,
    case::{Applies, Case, Spec},
    client::Reply,
    stop::{Stop, ensure, fail},
};

const GROUP: &str = "handshake";
const NEGOTIATION: Spec = Spec::Each("basic/lifecycle#version-negotiation", "basic/versioning");
/// A version that no server knows.
const UNKNOWN: &str = "1999-12-31";

pub(super) const CASES: &[Case] = &[
    Case {
        id: "greeting",
        group: GROUP,
        title: "the session begins, and the server says who it is and what it can do",
        applies: Applies::Always,
        spec: Spec::Each("basic/lifecycle#initialization", "server/discover"),
        mend: "return `protocolVersion` (or `supportedVersions`), `capabilities` as an object, and `serverInfo` with `name` and `version`",
        run: |bench| Box::pin(greeting(bench)),
    },
    Case {
        id: "versions",
        group: GROUP,
        title: "a client of every published version is served",
        applies: Applies::Legacy,
        spec: NEGOTIATION,
        mend: "answer `initialize` with the requested version if the server supports it, and with its newest one otherwise",
        run: |bench| Box::pin(versions(bench)),
    },
    Case {
        id: "unknown-version",
        group: GROUP,
        title: "an unknown version is not accepted",
        applies: Applies::Always,
        spec: NEGOTIATION,
        mend: "legacy: answer with a version that the server supports; modern: the error -32022 with the list `data.supported`",
        run: |bench| Box::pin(unknown_version(bench)),
    },
    Case {
        id: "early-notification",
        group: GROUP,
        title: "a notification before the handshake does no harm",
        applies: Applies::Legacy,
        spec: Spec::Both("basic/lifecycle#initialization"),
        mend: "ignore notifications that arrive before `initialize`",
        run: |bench| Box::pin(early_notification(bench)),
    },
    Case {
        id: "second-initialize",
        group: GROUP,
        title: "a second `initialize` is answered and does not end the session",
        applies: Applies::Legacy,
        spec: Spec::Both("basic/lifecycle#initialization"),
        mend: "answer a second `initialize` with an error, or with the same result as the first",
        run: |bench| Box::pin(second_initialize(bench)),
    },
];

async fn greeting(bench: &Bench<'_>) -> Result<(), Stop> {
    let client = bench.session().await?;
    let greeting = &client.greeting;
    ensure(greeting.get("capabilities").is_some_and(Value::is_object), || {
        "`capabilities` is missing or not an object".to_owned()
    })?;
    if bench.era == Era::Legacy {
        let version = greeting
            .get("protocolVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        ensure(is_legacy(version), || {
            format!("`protocolVersion` is {version:?}, which is no version of MCP")
        })?;
        if version != Version::LATEST_LEGACY.as_str() {
            bench.advise(format!(
                "the newest version that the server speaks is {version}; {} is the newest",
                Version::LATEST_LEGACY.as_str()
            ));
        }
    }
    let info = greeting
        .get("serverInfo")
        .or_else(|| greeting.get("_meta").and_then(|meta| meta.get(meta::SERVER_INFO)));
    for key in ["name", "version"] {
        let text = info.and_then(|info| info.get(key)).and_then(Value::as_str);
        let is_there = text.is_some_and(|text| !text.is_empty());
        if bench.era == Era::Legacy {
            ensure(is_there, || format!("`serverInfo.{key}` is missing"))?;
        } else if !is_there {
            bench.advise(format!("`serverInfo.{key}` is missing"));
        }
    }
    Ok(())
}

async fn versions(bench: &Bench<'_>) -> Result<(), Stop> {
    for version in Version::LEGACY.map(Version::as_str) {
        let mut client = bench.connect().await?;
        let result = client
            .initialize(version)
            .await?
            .result(&format!("initialize {version}"))?;
        let chosen = result
            .get("protocolVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        ensure(is_legacy(chosen), || {
            format!("{version} was answered with the version {chosen:?}")
        })?;
        client.set_version(Some(chosen));
        client.send_initialized().await?;
        client.still_answers().await?;
    }
    Ok(())
}

async fn unknown_version(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.connect().await?;
    match bench.era {
        Era::Legacy => match client.initialize(UNKNOWN).await? {
            Reply::Error { .. } => Ok(()),
            Reply::Result(result) => {
                let chosen = result
                    .get("protocolVersion")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                ensure(Version::parse(chosen).is_some(), || {
                    format!("the version {UNKNOWN} was answered with {chosen:?}")
                })
            }
        },
        Era::Modern => {
            let meta = json!({meta::PROTOCOL_VERSION: UNKNOWN});
            match client.request(method::TOOLS_LIST, json!({"_meta": meta})).await? {
                Reply::Error {
                    code: Some(code::UNSUPPORTED_VERSION),
                    ..
                } => client.still_answers().await,
                Reply::Error { code, .. } => {
                    fail(format!("an unknown version got the error {code:?} in place of -32022"))
                }
                Reply::Result(_) => fail("a request in an unknown version got a result"),
            }
        }
    }
}

async fn early_notification(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.connect().await?;
    if bench.target.is_stdio() {
        client.notify(notification::ROOTS_LIST_CHANGED, json!({})).await?;
    }
    client
        .notify(notification::CANCELLED, json!({"requestId": 99}))
        .await
        .ok();
    // Over HTTP a message without a session may be refused; only what follows counts.
    let mut client = if bench.target.is_stdio() {
        client
    } else {
        bench.connect().await?
    };
    client.open().await?;
    client.still_answers().await
}

async fn second_initialize(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    client.initialize(Version::LATEST_LEGACY.as_str()).await?;
    client.still_answers().await
}

fn is_legacy(version: &str) -> bool {
    Version::parse(version).is_some_and(|version| version.era() == Era::Legacy)
}
