//! Cases on lists, resources, prompts, completions and log levels.

use std::collections::HashSet;

use pegboard_protocol::{Era, code, method};
use serde_json::{Value, json};

use crate::{
    bench::{Bench, pages},
    case::{Applies, Case, Spec},
    client::Reply,
    stop::{Stop, ensure, fail, skip},
};

const GROUP: &str = "lists";
const PAGING: Spec = Spec::Both("server/utilities/pagination");
/// The lists: capability, method, key of the items, key that identifies an item.
const LISTS: [(&str, &str, &str, &str); 4] = [
    ("tools", method::TOOLS_LIST, "tools", "name"),
    ("resources", method::RESOURCES_LIST, "resources", "uri"),
    (
        "resources",
        method::RESOURCES_TEMPLATES_LIST,
        "resourceTemplates",
        "uriTemplate",
    ),
    ("prompts", method::PROMPTS_LIST, "prompts", "name"),
];

pub(super) const CASES: &[Case] = &[
    Case {
        id: "paging",
        group: GROUP,
        title: "every list ends, and names nothing twice",
        applies: Applies::Always,
        spec: PAGING,
        mend: "return each item on exactly one page, a new cursor for each page, and no `nextCursor` on the last one",
        run: |bench| Box::pin(paging(bench)),
    },
    Case {
        id: "stable-lists",
        group: GROUP,
        title: "a list that is read twice is the same",
        applies: Applies::Always,
        spec: Spec::Both("server/tools#listing-tools"),
        mend: "list items in a fixed order; the prompt caches of models depend on it",
        run: |bench| Box::pin(stable_lists(bench)),
    },
    Case {
        id: "invalid-cursor",
        group: GROUP,
        title: "an invalid cursor is not taken for the first page",
        applies: Applies::Always,
        spec: PAGING,
        mend: "answer a cursor that the server did not hand out with -32602 (invalid params)",
        run: |bench| Box::pin(invalid_cursor(bench)),
    },
    Case {
        id: "undeclared",
        group: GROUP,
        title: "what the server does not declare gets the error -32601",
        applies: Applies::Always,
        spec: Spec::Each(
            "basic/lifecycle#capability-negotiation",
            "basic/versioning#capabilities",
        ),
        mend: "declare the capability, or answer its methods with -32601",
        run: |bench| Box::pin(undeclared(bench)),
    },
    Case {
        id: "list-changed",
        group: GROUP,
        title: "changes of lists are announced only if that is declared",
        applies: Applies::Always,
        spec: Spec::Both("server/tools#capabilities"),
        mend: "declare `listChanged: true` for each list whose changes are announced, as a boolean",
        run: |bench| Box::pin(list_changed(bench)),
    },
    Case {
        id: "unknown-resource",
        group: GROUP,
        title: "an unknown resource gets an error",
        applies: Applies::Always,
        spec: Spec::Both("server/resources#error-handling"),
        mend: "answer `resources/read` for an unknown URI with an error: -32002 in 2025-11-25, -32602 in 2026-07-28",
        run: |bench| Box::pin(unknown_resource(bench)),
    },
    Case {
        id: "resources",
        group: GROUP,
        title: "the first listed resource can be read",
        applies: Applies::Always,
        spec: Spec::Both("server/resources#reading-resources"),
        mend: "return `contents` with a `uri` and `text` or `blob` for each listed resource",
        run: |bench| Box::pin(resources(bench)),
    },
    Case {
        id: "unknown-prompt",
        group: GROUP,
        title: "an unknown prompt gets the error -32602",
        applies: Applies::Always,
        spec: Spec::Both("server/prompts#error-handling"),
        mend: "answer `prompts/get` for an unknown name with -32602 (invalid params)",
        run: |bench| Box::pin(unknown_prompt(bench)),
    },
    Case {
        id: "completions",
        group: GROUP,
        title: "a completion for something unknown is answered",
        applies: Applies::Always,
        spec: Spec::Both("server/utilities/completion"),
        mend: "answer `completion/complete` with at most 100 values, or with -32602 for an unknown reference",
        run: |bench| Box::pin(completions(bench)),
    },
    Case {
        id: "log-level",
        group: GROUP,
        title: "every log level can be set, and an unknown one cannot",
        applies: Applies::Legacy,
        spec: Spec::Both("server/utilities/logging"),
        mend: "answer `logging/setLevel` with {} for the eight levels, and with -32602 for anything else",
        run: |bench| Box::pin(log_level(bench)),
    },
];

/// The lists that the server declares; skips the case if there are none.
fn declared<'a>(bench: &Bench<'_>) -> Result<Vec<&'a (&'static str, &'static str, &'static str, &'static str)>, Stop> {
    let lists: Vec<_> = LISTS.iter().filter(|(capability, ..)| bench.has(capability)).collect();
    match lists.is_empty() {
        true => skip("the server declares neither tools, resources nor prompts"),
        false => Ok(lists),
    }
}

async fn paging(bench: &Bench<'_>) -> Result<(), Stop> {
    let lists = declared(bench)?;
    let mut client = bench.session().await?;
    for (_, method, key, name) in lists {
        // Templates are optional for a server with resources.
        if *method == method::RESOURCES_TEMPLATES_LIST
            && matches!(client.request(method, json!({})).await?, Reply::Error { .. })
        {
            bench.advise("`resources/templates/list` gets an error; an empty list is simpler for clients");
            continue;
        }
        let pages = pages(&mut client, method, key).await?;
        let mut seen = HashSet::new();
        for item in pages.iter().flatten() {
            let id = item.get(name).and_then(Value::as_str).unwrap_or_default();
            ensure(!id.is_empty(), || format!("an item of `{method}` has no `{name}`"))?;
            ensure(seen.insert(id), || format!("`{method}` lists {id:?} twice"))?;
        }
    }
    Ok(())
}

async fn stable_lists(bench: &Bench<'_>) -> Result<(), Stop> {
    let lists = declared(bench)?;
    let (mut first, mut second) = (bench.session().await?, bench.session().await?);
    for (_, method, ..) in lists {
        let one = first.request(method, json!({})).await?;
        let same = first.request(method, json!({})).await?;
        let other = second.request(method, json!({})).await?;
        if let (Reply::Result(one), Reply::Result(same), Reply::Result(other)) = (one, same, other) {
            ensure(one == same, || {
                format!("`{method}` differs between two requests of one session")
            })?;
            ensure(one == other, || format!("`{method}` differs between two sessions"))?;
        }
    }
    Ok(())
}

async fn invalid_cursor(bench: &Bench<'_>) -> Result<(), Stop> {
    let lists = declared(bench)?;
    let mut client = bench.session().await?;
    for (_, method, key, _) in lists {
        if *method == method::RESOURCES_TEMPLATES_LIST {
            continue;
        }
        let first = client.request(method, json!({})).await?.result(method)?;
        let is_paged = first.get("nextCursor").is_some_and(Value::is_string);
        match client.request(method, json!({"cursor": "no such cursor"})).await? {
            Reply::Error {
                code: Some(code::INVALID_PARAMS),
                ..
            } => {}
            Reply::Error { code, .. } => {
                bench.advise(format!(
                    "an invalid cursor of `{method}` got the error {}; -32602 is meant for it",
                    code.unwrap_or_default()
                ));
            }
            Reply::Result(again) if is_paged && again.get(key) == first.get(key) => {
                return fail(format!(
                    "an invalid cursor of `{method}` got the first page again, so clients may loop"
                ));
            }
            Reply::Result(_) => bench.advise(format!("`{method}` ignores cursors; an invalid one should get -32602")),
        }
    }
    client.still_answers().await
}

async fn undeclared(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    let mut all = vec![
        ("tools", method::TOOLS_LIST, json!({})),
        ("resources", method::RESOURCES_LIST, json!({})),
        ("prompts", method::PROMPTS_LIST, json!({})),
    ];
    if bench.era == Era::Legacy {
        all.push(("logging", method::LOGGING_SET_LEVEL, json!({"level": "info"})));
    }
    let missing: Vec<_> = all
        .into_iter()
        .filter(|(capability, ..)| !bench.has(capability))
        .collect();
    if missing.is_empty() {
        return skip("the server declares everything");
    }
    for (capability, method, params) in missing {
        match client.request(method, params).await? {
            Reply::Error {
                code: Some(code::METHOD_NOT_FOUND),
                ..
            } => {}
            Reply::Error { code, .. } => {
                bench.advise(format!(
                    "`{method}` got the error {}; -32601 is meant for it",
                    code.unwrap_or_default()
                ));
            }
            Reply::Result(result) => {
                let is_empty = result
                    .as_object()
                    .is_none_or(|fields| fields.values().all(|value| value.as_array().is_none_or(Vec::is_empty)));
                ensure(is_empty, || {
                    format!("`{method}` lists something, and `{capability}` is not declared")
                })?;
                bench.advise(format!("`{method}` is answered, and `{capability}` is not declared"));
            }
        }
    }
    Ok(())
}

async fn list_changed(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    for (capability, method, ..) in LISTS {
        let Some(declared) = client.capability(capability) else {
            continue;
        };
        if let Some(flag) = declared.get("listChanged") {
            ensure(flag.is_boolean(), || {
                format!("`{capability}.listChanged` is not a boolean")
            })?;
        }
        client.request(method, json!({})).await?;
    }
    client.still_answers().await?;
    for (capability, ..) in LISTS {
        let announced = format!("notifications/{capability}/list_changed");
        let came = client
            .notifications()
            .any(|message| message.get("method") == Some(&json!(announced)));
        let is_declared = client.capability(capability).and_then(|it| it.get("listChanged")) == Some(&json!(true));
        ensure(!came || is_declared, || {
            format!("`{announced}` came, and `{capability}.listChanged` is not declared")
        })?;
    }
    Ok(())
}

async fn unknown_resource(bench: &Bench<'_>) -> Result<(), Stop> {
    bench.needs("resources")?;
    let mut client = bench.session().await?;
    let wanted: &[i64] = match bench.era {
        Era::Legacy => &[code::RESOURCE_NOT_FOUND, code::INVALID_PARAMS],
        Era::Modern => &[code::INVALID_PARAMS],
    };
    match client
        .request(method::RESOURCES_READ, json!({"uri": "torture://no/such/resource"}))
        .await?
    {
        Reply::Result(_) => return fail("an unknown resource got a result"),
        Reply::Error { code: Some(code), .. } if wanted.contains(&code) => {}
        Reply::Error { code, .. } => {
            bench.advise(format!(
                "an unknown resource got the error {} in place of {}",
                code.unwrap_or_default(),
                wanted[0]
            ));
        }
    }
    client.still_answers().await
}

async fn resources(bench: &Bench<'_>) -> Result<(), Stop> {
    bench.needs("resources")?;
    let mut client = bench.session().await?;
    let listed = client
        .request(method::RESOURCES_LIST, json!({}))
        .await?
        .result(method::RESOURCES_LIST)?;
    let Some(uri) = listed.pointer("/resources/0/uri").and_then(Value::as_str) else {
        return skip("no resource is listed");
    };
    let read = client
        .request(method::RESOURCES_READ, json!({"uri": uri}))
        .await?
        .result(method::RESOURCES_READ)?;
    let contents = read
        .get("contents")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    ensure(!contents.is_empty(), || format!("{uri:?} has no `contents`"))?;
    let is_content = |item: &Value| {
        item.get("uri").is_some_and(Value::is_string)
            && (item.get("text").is_some_and(Value::is_string) || item.get("blob").is_some_and(Value::is_string))
    };
    ensure(contents.iter().all(is_content), || {
        format!("a part of {uri:?} has no `uri`, or neither `text` nor `blob`")
    })
}

async fn unknown_prompt(bench: &Bench<'_>) -> Result<(), Stop> {
    bench.needs("prompts")?;
    let mut client = bench.session().await?;
    match client
        .request(method::PROMPTS_GET, json!({"name": "no such prompt"}))
        .await?
    {
        Reply::Result(_) => return fail("an unknown prompt got a result"),
        Reply::Error {
            code: Some(code::INVALID_PARAMS),
            ..
        } => {}
        Reply::Error { code, .. } => {
            bench.advise(format!(
                "an unknown prompt got the error {} in place of -32602",
                code.unwrap_or_default()
            ));
        }
    }
    client.still_answers().await
}

async fn completions(bench: &Bench<'_>) -> Result<(), Stop> {
    bench.needs("completions")?;
    let mut client = bench.session().await?;
    let params =
        json!({"ref": {"type": "ref/prompt", "name": "no such prompt"}, "argument": {"name": "a", "value": ""}});
    if let Reply::Result(result) = client.request(method::COMPLETION_COMPLETE, params).await? {
        let values = result.pointer("/completion/values").and_then(Value::as_array);
        ensure(values.is_some_and(|values| values.len() <= 100), || {
            "`completion.values` is missing, or has more than 100 items".to_owned()
        })?;
    }
    client.still_answers().await
}

async fn log_level(bench: &Bench<'_>) -> Result<(), Stop> {
    bench.needs("logging")?;
    let mut client = bench.session().await?;
    for level in [
        "debug",
        "info",
        "notice",
        "warning",
        "error",
        "critical",
        "alert",
        "emergency",
    ] {
        client
            .request(method::LOGGING_SET_LEVEL, json!({"level": level}))
            .await?
            .result(&format!("logging/setLevel {level}"))?;
    }
    let reply = client
        .request(method::LOGGING_SET_LEVEL, json!({"level": "shouting"}))
        .await?;
    match reply {
        Reply::Result(_) => fail("the unknown level \"shouting\" got a result"),
        Reply::Error {
            code: Some(code::INVALID_PARAMS),
            ..
        } => Ok(()),
        Reply::Error { code, .. } => {
            bench.advise(format!(
                "an unknown log level got the error {} in place of -32602",
                code.unwrap_or_default()
            ));
            Ok(())
        }
    }
}
