//! `search_text`: searches the files of one folder for a text.

mod walk;

use serde::Deserialize;
use serde_json::{Value, json};

use super::tool::{Call, Failure, Output, at_most, harmless, text, within};
use walk::{Query, WalkResult, walk};

const MAX_QUERY: usize = 256;
const MAX_MATCHES: u64 = 200;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    query: String,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default = "default_matches")]
    max_matches: u64,
}

fn default_matches() -> u64 {
    50
}

pub(super) fn definition() -> Value {
    json!({
        "name": "search_text",
        "title": "Folder search",
        "description": "Finds the lines that contain a piece of text in the files of the server's folder and its \
            subfolders. The text is taken literally, not as a pattern. Gives `path:line: text` for each matching line. \
            Skips hidden files, symbolic links, node_modules, target, binary files and files over 1 MiB.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "The text to look for, within one line",
                    "minLength": 1,
                    "maxLength": MAX_QUERY,
                },
                "ignore_case": {
                    "type": "boolean",
                    "description": "Whether upper and lower case are the same",
                    "default": false,
                },
                "max_matches": {
                    "type": "integer",
                    "description": "Stop after this many matching lines",
                    "minimum": 1,
                    "maximum": MAX_MATCHES,
                    "default": default_matches(),
                },
            },
            "required": ["query"],
            "additionalProperties": false,
        },
        "annotations": harmless(),
    })
}

pub(super) async fn run(arguments: Arguments, call: Call<'_>) -> Result<Output, Failure> {
    at_most("query", &arguments.query, MAX_QUERY)?;
    if arguments.query.is_empty() || arguments.query.contains(['\n', '\r']) {
        return Err(Failure(
            "invalid arguments: `query` must be part of one line, and not empty".into(),
        ));
    }
    let max_matches = within("max_matches", arguments.max_matches, 1, MAX_MATCHES)? as usize;
    let query = Query::new(&arguments.query, arguments.ignore_case, max_matches);
    let (folder, cancelled) = (call.folder.to_owned(), call.cancelled.clone());
    // Files are read on a blocking thread, which checks `cancelled` before each file.
    let found = tokio::task::spawn_blocking(move || walk(&folder, &query, &|| cancelled.is_cancelled())).await;
    found
        .map(|found| report(&found))
        .map_err(|_| Failure("the search broke off; try again".into()))
}

fn report(found: &WalkResult) -> Output {
    let summary = text(summary(found));
    let mut content = Vec::with_capacity(2);
    if !found.lines.is_empty() {
        content.push(text(found.lines.join("\n")));
    }
    content.push(summary);
    Output {
        content,
        structured: None,
    }
}

fn summary(found: &WalkResult) -> String {
    let matches = if found.lines.len() == 1 { "match" } else { "matches" };
    let files = if found.files == 1 { "file" } else { "files" };
    let mut summary = format!("{} {matches} in {} {files}", found.lines.len(), found.files);
    if found.skipped > 0 {
        summary.push_str(&format!(", {} skipped", found.skipped));
    }
    if let Some(limit) = found.stopped_by {
        summary.push_str(&format!("; stopped early: {limit}"));
    }
    summary
}
