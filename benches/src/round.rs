//! One round of one client, in a separate process, so that its memory and CPU time can be measured. It prints a line of JSON per
//! measurement.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    client::{Client, Place},
    floor::Floor,
    memory,
    times::Times,
};

/// The measurement of a round.
#[derive(Clone, Debug)]
pub struct Round {
    pub client: String,
    pub places: Vec<Place>,
    pub modern: bool,
    pub phases: Vec<Phase>,
}

/// A phase: concurrency, size in bytes, and its length in calls or time.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    pub concurrency: usize,
    pub bytes: usize,
    pub calls: usize,
    pub limit: Duration,
}

impl Round {
    /// The round as arguments for another process.
    pub fn to_json(&self) -> Value {
        let places = self.places.iter().map(|place| match place {
            Place::Command(words) => json!(words),
            Place::Url(url) => json!(url),
        });
        let phases = self.phases.iter().map(|phase| {
            json!([
                phase.concurrency,
                phase.bytes,
                phase.calls,
                u64::try_from(phase.limit.as_millis()).unwrap_or(u64::MAX)
            ])
        });
        json!({ "client": self.client, "places": places.collect::<Vec<_>>(), "modern": self.modern, "phases": phases.collect::<Vec<_>>() })
    }

    pub fn from_json(value: &Value) -> Option<Self> {
        let place = |value: &Value| match value {
            Value::String(url) => Some(Place::Url(url.clone())),
            Value::Array(words) => Some(Place::Command(
                words
                    .iter()
                    .filter_map(|word| Some(word.as_str()?.to_owned()))
                    .collect(),
            )),
            _ => None,
        };
        let phase = |value: &Value| {
            let numbers: Vec<u64> = value.as_array()?.iter().filter_map(Value::as_u64).collect();
            let [concurrency, bytes, calls, limit] = numbers[..] else {
                return None;
            };
            Some(Phase {
                concurrency: concurrency as usize,
                bytes: bytes as usize,
                calls: calls as usize,
                limit: Duration::from_millis(limit),
            })
        };
        Some(Self {
            client: value["client"].as_str()?.to_owned(),
            places: value["places"].as_array()?.iter().filter_map(place).collect(),
            modern: value["modern"].as_bool()?,
            phases: value["phases"].as_array()?.iter().filter_map(phase).collect(),
        })
    }

    /// Runs the round and prints its measurements.
    pub fn run(&self) -> anyhow::Result<()> {
        if self.client == "floor" {
            return self.run_floor();
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(self.run_client())
    }

    async fn run_client(&self) -> anyhow::Result<()> {
        let (began, spent) = (Instant::now(), memory::processor_time());
        let (client, tools) = Client::connect(&self.client, &self.places, self.modern).await?;
        let ready = json!({ "tools": tools, "ready_ms": began.elapsed().as_secs_f64() * 1e3,
            "ready_cpu_ms": (memory::processor_time() - spent).as_secs_f64() * 1e3, "ready_kb": memory::kilobytes("VmRSS") });
        println!("{ready}");
        let client = Arc::new(client);
        for phase in &self.phases {
            measure(&client, *phase).await?;
        }
        println!(
            "{}",
            json!({ "end_kb": memory::kilobytes("VmRSS"), "peak_kb": memory::kilobytes("VmHWM") })
        );
        if let Some(client) = Arc::into_inner(client) {
            client.close().await;
        }
        Ok(())
    }

    fn run_floor(&self) -> anyhow::Result<()> {
        let most = self.phases.iter().map(|phase| phase.concurrency).max().unwrap_or(1);
        let (began, spent) = (Instant::now(), memory::processor_time());
        if self.phases.is_empty() {
            let floors = Floor::list_all(&self.places)?;
            println!(
                "{}",
                json!({ "tools": 0, "ready_ms": began.elapsed().as_secs_f64() * 1e3,
                    "ready_cpu_ms": (memory::processor_time() - spent).as_secs_f64() * 1e3, "ready_kb": memory::kilobytes("VmRSS") })
            );
            drop(floors);
            return Ok(());
        }
        let mut floor = Floor::connect(&self.places[0], most)?;
        println!(
            "{}",
            json!({ "tools": 0, "ready_ms": began.elapsed().as_secs_f64() * 1e3, "ready_cpu_ms": (memory::processor_time() - spent).as_secs_f64() * 1e3 })
        );
        for phase in &self.phases {
            let (mut times, mut came) = (Times::default(), Vec::new());
            let meter = Meter::start();
            // Responses of a megabyte exceed the pipe's buffer, so concurrent requests would need a reader meanwhile.
            let concurrency = if phase.bytes > 100_000 { 1 } else { phase.concurrency };
            while times.count() < phase.calls && meter.began.elapsed() < phase.limit {
                floor.calls(concurrency, phase.bytes, &mut came)?;
                came.drain(..).for_each(|micros| times.add(micros));
            }
            meter.report(*phase, &times);
        }
        Ok(())
    }
}

async fn measure(client: &Arc<Client>, phase: Phase) -> anyhow::Result<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let meter = Meter::start();
    let mut callers = Vec::new();
    for _ in 0..phase.concurrency {
        let (client, next, began) = (client.clone(), next.clone(), meter.began);
        callers.push(tokio::spawn(async move {
            let mut times = Times::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= phase.calls || began.elapsed() >= phase.limit {
                    return anyhow::Ok(times);
                }
                let started = Instant::now();
                let came = client.call(number, phase.bytes).await?;
                times.add(started.elapsed().as_secs_f64() * 1e6);
                anyhow::ensure!(came > phase.bytes / 2, "{came} bytes came instead of {}", phase.bytes);
            }
        }));
    }
    let mut times = Times::default();
    for caller in callers {
        times.add_all(&caller.await??);
    }
    meter.report(phase, &times);
    Ok(())
}

struct Meter {
    began: Instant,
    spent: Duration,
    allocations: u64,
}

impl Meter {
    fn start() -> Self {
        Self {
            began: Instant::now(),
            spent: memory::processor_time(),
            allocations: memory::allocations(),
        }
    }

    fn report(self, phase: Phase, times: &Times) {
        let count = times.count().max(1) as f64;
        let took = self.began.elapsed().as_secs_f64();
        let spent = (memory::processor_time() - self.spent).as_secs_f64() * 1e6;
        let allocations = (memory::allocations() - self.allocations) as f64;
        println!(
            "{}",
            json!({ "concurrency": phase.concurrency, "bytes": phase.bytes, "calls_per_s": count / took, "p50_us": times.at(0.5),
                "p99_us": times.at(0.99), "cpu_us": spent / count, "allocations": allocations / count })
        );
    }
}
