//! Cases on the definitions of tools. They call nothing.

use std::future::ready;

use pegboard_protocol::{code, method};
use serde_json::{Value, json};

use crate::{
    bench::Bench,
    case::{Applies, Case, Spec},
    client::Reply,
    stop::{Stop, ensure, fail, skip},
};

const GROUP: &str = "tools";
const TOOL: Spec = Spec::Both("server/tools#tool");
/// First words of names of tools that often change something.
const WRITES: &[&str] = &[
    "add", "append", "apply", "commit", "copy", "create", "delete", "drop", "edit", "execute", "insert", "install",
    "kill", "merge", "move", "post", "publish", "push", "remove", "rename", "reset", "send", "set", "store", "update",
    "upload", "write",
];

pub(super) const CASES: &[Case] = &[
    Case {
        id: "names",
        group: GROUP,
        title: "tools have names that every client can use",
        applies: Applies::Always,
        spec: Spec::Both("server/tools#tool-names"),
        mend: "use 1 to 128 of the characters A-Z, a-z, 0-9, `_`, `-` and `.`",
        run: |bench| Box::pin(ready(names(bench))),
    },
    Case {
        id: "schemas",
        group: GROUP,
        title: "the schemas of tools are valid JSON Schema 2020-12 of an object",
        applies: Applies::Always,
        spec: TOOL,
        mend: "make `inputSchema` (and `outputSchema`) a valid JSON Schema with `\"type\": \"object\"`",
        run: |bench| Box::pin(ready(schemas(bench))),
    },
    Case {
        id: "annotations",
        group: GROUP,
        title: "annotations of tools are valid and do not contradict each other",
        applies: Applies::Always,
        spec: Spec::Both("schema#toolannotations"),
        mend: "set `readOnlyHint` only on tools that change nothing: clients call them without asking",
        run: |bench| Box::pin(ready(annotations(bench))),
    },
    Case {
        id: "unknown-tool",
        group: GROUP,
        title: "an unknown tool gets an error",
        applies: Applies::Always,
        spec: Spec::Both("server/tools#error-handling"),
        mend: "answer `tools/call` for an unknown name with -32602 (invalid params)",
        run: |bench| Box::pin(unknown_tool(bench)),
    },
];

fn name(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The tools of the server; skips the case if there are none.
fn tools<'a>(bench: &Bench<'a>) -> Result<&'a [Value], Stop> {
    match bench.survey.tools.as_slice() {
        [] => skip("the server has no tools"),
        tools => Ok(tools),
    }
}

fn names(bench: &Bench<'_>) -> Result<(), Stop> {
    for tool in tools(bench)? {
        let name = name(tool);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        ensure((1..=128).contains(&name.len()), || {
            format!("the name {name:?} has {} characters", name.len())
        })?;
        ensure(name.chars().all(is_plain), || {
            format!("the name {name:?} has other characters than A-Z, a-z, 0-9, `_`, `-`, `.`")
        })?;
        if tool
            .get("description")
            .and_then(Value::as_str)
            .is_none_or(str::is_empty)
        {
            bench.advise(format!("`{name}` has no description, so no model knows what it is for"));
        }
    }
    Ok(())
}

fn schemas(bench: &Bench<'_>) -> Result<(), Stop> {
    for tool in tools(bench)? {
        let name = name(tool);
        let Some(input) = tool.get("inputSchema") else {
            return fail(format!("`{name}` has no `inputSchema`"));
        };
        for (key, schema) in [("inputSchema", Some(input)), ("outputSchema", tool.get("outputSchema"))] {
            let Some(schema) = schema else { continue };
            ensure(schema.get("type") == Some(&json!("object")), || {
                format!("`{key}` of `{name}` has no `\"type\": \"object\"`")
            })?;
            if let Err(error) = jsonschema::meta::validate(schema) {
                return fail(format!(
                    "`{key}` of `{name}` is no valid JSON Schema: {error} at {:?}",
                    error.instance_path().to_string()
                ));
            }
            let required = schema.get("required").and_then(Value::as_array);
            for missing in required.into_iter().flatten().filter_map(Value::as_str) {
                let is_declared = schema.get("properties").is_some_and(|all| all.get(missing).is_some());
                if !is_declared {
                    bench.advise(format!(
                        "`{key}` of `{name}` requires `{missing}`, which it does not declare"
                    ));
                }
            }
        }
    }
    Ok(())
}

fn annotations(bench: &Bench<'_>) -> Result<(), Stop> {
    let tools = tools(bench)?;
    for tool in tools {
        let name = name(tool);
        let hint = |key: &str| tool.get("annotations").and_then(|all| all.get(key));
        for key in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            if let Some(value) = hint(key) {
                ensure(value.is_boolean(), || format!("`{key}` of `{name}` is not a boolean"))?;
            }
        }
        if hint("readOnlyHint") != Some(&json!(true)) {
            continue;
        }
        ensure(hint("destructiveHint") != Some(&json!(true)), || {
            format!("`{name}` is declared read-only and destructive")
        })?;
        // A name proves nothing: `add` may add two numbers.
        if WRITES.contains(&first_word(name).as_str()) {
            bench.advise(format!(
                "`{name}` is declared read-only, and its name sounds as if it changes something; if it does, clients call it without asking"
            ));
        }
    }
    if tools.iter().all(|tool| tool.get("annotations").is_none()) {
        bench.advise("no tool has annotations, so clients must ask a person before each call");
    }
    Ok(())
}

/// The first word of a name in any style, in lower case.
fn first_word(name: &str) -> String {
    let mut word = String::new();
    for c in name.chars() {
        if !c.is_ascii_alphabetic() || (c.is_ascii_uppercase() && !word.is_empty()) {
            break;
        }
        word.push(c.to_ascii_lowercase());
    }
    word
}

async fn unknown_tool(bench: &Bench<'_>) -> Result<(), Stop> {
    bench.needs("tools")?;
    let mut client = bench.session().await?;
    let params = json!({"name": "no_such_tool", "arguments": {}});
    match client.request(method::TOOLS_CALL, params).await? {
        Reply::Error {
            code: Some(code::INVALID_PARAMS),
            ..
        } => {}
        Reply::Error { code, .. } => {
            bench.advise(format!(
                "an unknown tool got the error {} in place of -32602",
                code.unwrap_or_default()
            ));
        }
        Reply::Result(result) => {
            ensure(result.get("isError") == Some(&json!(true)), || {
                "a call of an unknown tool succeeded".to_owned()
            })?;
            bench.advise("an unknown tool got a result with `isError`; the specification wants the error -32602");
        }
    }
    client.still_answers().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_of_a_name_is_found_in_every_style() {
        for name in ["delete_file", "deleteFile", "Delete-File", "delete.file", "delete"] {
            assert_eq!(first_word(name), "delete");
        }
        assert_eq!(first_word("settings"), "settings");
    }
}
