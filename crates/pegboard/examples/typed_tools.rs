//! Native tools with typed arguments and results: the JSON Schemas are derived, errors are any error type, progress is reported, and the tool
//! knows for whom it is called.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::ensure;
use pegboard::{
    Config, Kind, NativeTool, NativeTools, Pegboard, ToolCall, View,
    in_process::{Json, ToolError},
    schemars::JsonSchema,
    watch::Progress,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::mpsc;

/// A reservation. The comments of the fields are the descriptions that the model reads.
#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "pegboard::schemars")]
#[serde(deny_unknown_fields)]
struct Reserve {
    /// The room, for example `blue`.
    room: String,
    /// When the meeting starts, as hour of the day.
    #[schemars(range(min = 8, max = 18))]
    hour: u8,
    /// Who comes, besides the person who asks.
    #[serde(default)]
    guests: Vec<String>,
}

/// Its result, which programs and models read as structured content.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "pegboard::schemars")]
struct Reserved {
    room: String,
    hour: u8,
    seats: usize,
    by: String,
}

/// An error of the program's own. Its text is what the model reads.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("the room {0} does not exist; there are blue and green")]
    NoRoom(String),
    #[error("{by} has the room at {hour}:00 already")]
    Taken { by: String, hour: u8 },
}

/// The reservations: who has which room at which hour.
#[derive(Clone, Default)]
struct Calendar(Arc<Mutex<HashMap<(String, u8), String>>>);

impl Calendar {
    fn reserve(&self, wanted: Reserve, by: &str) -> Result<Reserved, Refused> {
        if !["blue", "green"].contains(&wanted.room.as_str()) {
            return Err(Refused::NoRoom(wanted.room));
        }
        let mut reserved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (wanted.room.clone(), wanted.hour);
        if let Some(other) = reserved.get(&key) {
            return Err(Refused::Taken {
                by: other.clone(),
                hour: wanted.hour,
            });
        }
        reserved.insert(key, by.to_owned());
        Ok(Reserved {
            room: wanted.room,
            hour: wanted.hour,
            seats: wanted.guests.len() + 1,
            by: by.to_owned(),
        })
    }

    /// The tool. `?` takes every error type, and a text.
    fn tool(&self) -> NativeTool {
        let calendar = self.clone();
        NativeTool::typed("reserve", "Reserves a room.", move |wanted: Reserve, context| {
            let calendar = calendar.clone();
            async move {
                let by = context.caller().principal.map(ToString::to_string);
                let by = by.ok_or("only users reserve rooms")?;
                context.progress(1.0, Some(2.0), "looking at the calendar");
                let reserved = calendar.reserve(wanted, &by)?;
                context.progress(2.0, Some(2.0), "reserved");
                Ok::<_, ToolError>(Json(reserved))
            }
        })
        .output::<Reserved>()
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let board = Pegboard::builder(Config::default())
        .in_process("rooms", NativeTools::new([Calendar::default().tool()]))
        .open();
    let ann = board.toolset_with(View::new().principal("ann"));
    let bob = board.toolset_with(View::new().principal("bob"));

    // What a model sees of the types.
    let listing = ann.list(Duration::from_secs(30)).await;
    let schema = listing.tools[0].tool.input_schema.value();
    println!("the model sees {schema}");
    ensure!(
        schema["properties"]["hour"]["maximum"] == 18,
        "the range is part of the schema"
    );

    let (reports, mut seen) = mpsc::channel::<Progress>(8);
    let wanted = json!({"room": "blue", "hour": 9, "guests": ["Bob", "Eve"]});
    let call = ToolCall::new("rooms.reserve")
        .arguments(wanted.clone())
        .progress(reports);
    let reply = ann.call(call).await;
    println!("ann: {}", reply.text());
    ensure!(reply.text() == r#"{"by":"ann","hour":9,"room":"blue","seats":3}"#);
    while let Some(report) = seen.recv().await {
        println!("  {} of 2: {}", report.progress, report.message.unwrap_or_default());
    }

    // An error of the tool, in its own words.
    let reply = bob.call(ToolCall::new("rooms.reserve").arguments(wanted)).await;
    println!("bob: {}", reply.text());
    ensure!(reply.outcome.kind() == Kind::ToolError && reply.text().contains("ann has the room at 9:00 already"));

    // Arguments that do not fit never reach the function.
    let early = json!({"room": "green", "hour": 3});
    let reply = bob.call(ToolCall::new("rooms.reserve").arguments(early)).await;
    println!("bob: {}", reply.text());
    ensure!(reply.outcome.kind() == Kind::InvalidArguments && !reply.outcome.may_have_executed());

    board.shutdown().await;
    Ok(())
}
