//! `count_slowly`: a slow tool that reports progress and can be cancelled.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::tool::{Failure, Output, harmless, within};

const MAX_STEPS: u64 = 100;
const MAX_DELAY_MS: u64 = 5000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    #[serde(default = "default_steps")]
    n: u64,
    #[serde(default = "default_delay")]
    delay_ms: u64,
}

fn default_steps() -> u64 {
    5
}

fn default_delay() -> u64 {
    200
}

pub(super) fn definition() -> Value {
    json!({
        "name": "count_slowly",
        "title": "Slow counter",
        "description": "Counts from 1 to n with a pause before each step. Reports progress after every step if the \
            caller asked for progress, and stops at once when it is cancelled. Use it to try out slow calls.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "n": {
                    "type": "integer",
                    "description": "How many steps to count",
                    "minimum": 1,
                    "maximum": MAX_STEPS,
                    "default": default_steps(),
                },
                "delay_ms": {
                    "type": "integer",
                    "description": "The pause before each step, in milliseconds",
                    "minimum": 0,
                    "maximum": MAX_DELAY_MS,
                    "default": default_delay(),
                },
            },
            "additionalProperties": false,
        },
        "annotations": harmless(),
    })
}

/// Counts, and calls `report` after each step. Dropping the future cancels it.
pub(super) async fn run<F: Future<Output = ()>>(
    arguments: Arguments,
    report: impl Fn(u64, u64) -> F,
) -> Result<Output, Failure> {
    let steps = within("n", arguments.n, 1, MAX_STEPS)?;
    let delay = Duration::from_millis(within("delay_ms", arguments.delay_ms, 0, MAX_DELAY_MS)?);
    for step in 1..=steps {
        tokio::time::sleep(delay).await;
        report(step, steps).await;
    }
    Ok(Output::text(format!("counted to {steps}")))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn every_step_waits_and_is_reported() {
        let reported = RefCell::new(Vec::new());
        let report = |step, steps| {
            reported.borrow_mut().push((step, steps));
            std::future::ready(())
        };
        let start = Instant::now();
        let output = run(Arguments { n: 3, delay_ms: 1000 }, report).await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_secs(3));
        assert_eq!(output.content[0]["text"], "counted to 3");
        assert_eq!(*reported.borrow(), [(1, 3), (2, 3), (3, 3)]);
    }

    #[tokio::test]
    async fn bounds_hold() {
        for (n, delay_ms) in [(0, 0), (101, 0), (1, 5001)] {
            let report = |_, _| std::future::ready(());
            run(Arguments { n, delay_ms }, report).await.unwrap_err();
        }
    }
}
