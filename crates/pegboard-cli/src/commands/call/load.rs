//! `call --repeat`: the same call many times, and how long it took.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use pegboard::{Outcome, Reply, ToolCall, Toolset, deadline::Deadline};
use pegboard_base::sync::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    exit::Exit,
    output::{Output, Report, Table, one_line, width},
};

/// The most different errors that are shown.
const SHOWN_ERRORS: usize = 10;

/// The results so far. A signal ends the calls; what was counted stays.
#[derive(Debug, Clone)]
pub(super) struct Load {
    started: Instant,
    counts: Arc<Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    /// The latencies of calls that were answered, in milliseconds.
    latencies: Vec<f64>,
    tool_errors: usize,
    failed: usize,
    /// How often an error occurred, by its first line.
    errors: BTreeMap<String, usize>,
    /// The code of the first failure that is not the tool's own.
    exit: Option<Exit>,
}

impl Load {
    /// Counts the first call.
    pub(super) fn begun_with(first: &Reply) -> Self {
        let load = Self {
            started: Instant::now().checked_sub(first.latency).unwrap_or_else(Instant::now),
            counts: Arc::default(),
        };
        load.add(first);
        load
    }

    fn add(&self, reply: &Reply) {
        let mut counts = self.counts.lock();
        let is_answered = matches!(reply.outcome, Outcome::Done(_) | Outcome::ToolFailed(_));
        if is_answered {
            counts.latencies.push(millis(reply.latency));
        } else {
            counts.failed += 1;
            counts.exit.get_or_insert(Exit::from_outcome(&reply.outcome));
        }
        if matches!(reply.outcome, Outcome::ToolFailed(_)) {
            counts.tool_errors += 1;
        }
        if reply.is_error() {
            let text = match &reply.outcome {
                Outcome::Refused(failure) | Outcome::Lost(failure) => failure.to_string(),
                Outcome::Done(_) | Outcome::ToolFailed(_) => reply.text(),
            };
            let line = one_line(text.lines().next().unwrap_or_default());
            let is_known = counts.errors.contains_key(&line);
            if is_known || counts.errors.len() < SHOWN_ERRORS {
                *counts.errors.entry(line).or_default() += 1;
            }
        }
    }

    /// Makes `times` further calls like `call`, at most `concurrent` at once, until the deadline.
    pub(super) async fn run(
        &self,
        toolset: &Toolset,
        call: &ToolCall,
        times: usize,
        concurrent: usize,
        deadline: Deadline,
    ) {
        let one = |_| async move {
            if deadline.has_passed() {
                return;
            }
            let mut next = ToolCall::new(&call.name).arguments(call.arguments.clone());
            next.text.clone_from(&call.text);
            next.meta.clone_from(&call.meta);
            let reply = toolset.call(next.timeout(deadline.remaining())).await;
            self.add(&reply);
        };
        futures_util::stream::iter(0..times)
            .for_each_concurrent(concurrent, one)
            .await;
    }

    pub(super) fn report(&self, output: &Output, tool: &str, concurrent: usize, ending: Option<Exit>) -> Report {
        let elapsed = self.started.elapsed();
        let mut counts = self.counts.lock();
        counts.latencies.sort_by(f64::total_cmp);
        let exit = ending.or(counts.exit).unwrap_or(match counts.tool_errors {
            0 => Exit::Done,
            _ => Exit::ToolError,
        });
        let document = document(&counts, tool, concurrent, elapsed);
        if output.is_json() {
            return Report::json(exit, &document);
        }
        let mut table = Table::with_indent(0);
        let requests = counts.latencies.len() + counts.failed;
        table.row(["calls".to_owned(), format!("{requests}, {concurrent} at once")]);
        table.row([
            "failed".to_owned(),
            format!("{}, and {} errors of the tool", counts.failed, counts.tool_errors),
        ]);
        table.row(["elapsed".to_owned(), format!("{:.1} ms", millis(elapsed))]);
        table.row([
            "rate".to_owned(),
            format!("{:.1} calls/s", document["per_second"].as_f64().unwrap_or_default()),
        ]);
        for key in ["min", "mean", "p50", "p90", "p99", "max"] {
            if let Some(value) = document["latency_ms"][key].as_f64() {
                table.row([key.to_owned(), format!("{value:.2} ms")]);
            }
        }
        let mut report = Report::new(exit);
        report.data = table.render(width());
        let errors = counts.errors.iter();
        errors.fold(report, |report, (error, count)| {
            report.error(&format!("{count} times: {error}"), None)
        })
    }
}

fn document(counts: &Counts, tool: &str, concurrent: usize, elapsed: Duration) -> Value {
    let sorted = &counts.latencies;
    let requests = sorted.len() + counts.failed;
    let latency = (!sorted.is_empty()).then(|| {
        json!({
            "min": sorted[0],
            "mean": sorted.iter().sum::<f64>() / sorted.len() as f64,
            "p50": percentile(sorted, 50),
            "p90": percentile(sorted, 90),
            "p99": percentile(sorted, 99),
            "max": sorted[sorted.len() - 1],
        })
    });
    json!({
        "name": tool,
        "requests": requests,
        "concurrent": concurrent,
        "ok": sorted.len() - counts.tool_errors,
        "tool_errors": counts.tool_errors,
        "failed": counts.failed,
        "elapsed_ms": millis(elapsed),
        "per_second": requests as f64 / elapsed.as_secs_f64().max(1e-9),
        "latency_ms": latency,
        "errors": counts.errors.iter().map(|(message, count)| json!({"message": message, "count": count})).collect::<Vec<_>>(),
    })
}

/// The nearest-rank percentile of a sorted list that is not empty.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted[rank - 1]
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(
            [50, 90, 99, 100].map(|percent| percentile(&hundred, percent)),
            [50.0, 90.0, 99.0, 100.0]
        );
        assert_eq!(percentile(&[7.0], 50), 7.0);
    }
}
