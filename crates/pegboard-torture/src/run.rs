//! Runs the cases: a survey of the server in each era first, then every case in sessions of its own.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use pegboard_protocol::{Era, meta, method};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    bench::{Bench, Survey, pages},
    card::{CaseResult, Verdict},
    case::Case,
    cases,
    client::{Client, START},
    stop::{self, Stop},
    transcript::Transcript,
    wire::Target,
};

/// The most cases that run at once. Fewer run at once on a machine with fewer processors.
const AT_ONCE: usize = 4;
/// How long a whole case may take, in response times, besides the starts of the server. No case needs many slow responses.
const CASE_WAITS: u32 = 6;
/// How long the first start may take: `npx` and `uvx` may fetch the server.
const FIRST_START: Duration = Duration::from_secs(120);
/// How long a server that has started may take to answer `server/discover`, which servers of the other era may ignore.
const DISCOVER: Duration = Duration::from_secs(3);

/// Which cases run, and what they may do.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    /// The names of the cases and groups that run; all if it is empty.
    pub only: &'a [String],
    /// The tools that may be called although they do not say that they change nothing.
    pub tools: &'a [String],
    /// Whether every tool may be called.
    pub all_tools: bool,
    /// The era to try; `None` means those that the server speaks.
    pub era: Option<Era>,
    /// How long each response may take.
    pub wait: Duration,
}

impl Options<'_> {
    /// The eras to try. The older is tried first: it is slower to start something that is fetched.
    fn eras(&self) -> Vec<Era> {
        match self.era {
            None => vec![Era::Legacy, Era::Modern],
            Some(era) => vec![era],
        }
    }
}

/// The results of all cases that apply.
#[derive(Debug)]
pub struct Tried {
    /// The eras that the server speaks.
    pub eras: Vec<Era>,
    /// Its `serverInfo`.
    pub server_info: Value,
    /// Every case in every era.
    pub cases: Vec<CaseResult>,
}

/// Runs all cases that apply, and tells `show` what it does. Fails if no session can be opened in any era.
pub async fn run(target: &Target, options: &Options<'_>, show: impl Fn(String)) -> Result<Tried, String> {
    show("starting the server".to_owned());
    let mut surveys = Vec::new();
    let mut failures = Vec::new();
    let mut start = Duration::ZERO;
    for era in options.eras() {
        let asked = Instant::now();
        let wait = match (era, options.era) {
            (Era::Modern, None) => DISCOVER + start * 3,
            _ => options.wait.max(FIRST_START),
        };
        let surveyed = survey(target, era, wait, options).await;
        start = asked.elapsed();
        match surveyed {
            Ok(survey) => surveys.push((era, survey)),
            Err(why) => failures.push(format!("{}: {why}", era.as_str())),
        }
    }
    if surveys.is_empty() {
        return Err(failures.join("\n"));
    }
    let is_wanted = |case: &Case| options.only.is_empty() || options.only.iter().any(|word| case.is_named(word));
    let is_stdio = target.is_stdio();
    let mut planned = Vec::new();
    for case in cases::all().filter(|case| is_wanted(case)) {
        planned.extend(
            surveys
                .iter()
                .filter(|(era, _)| case.is_for(*era, is_stdio))
                .map(|(era, survey)| (case, *era, survey)),
        );
    }
    let total = planned.len();
    let at_once = std::thread::available_parallelism().map_or(1, |processors| processors.get().min(AT_ONCE));
    let running = stream::iter(planned.into_iter().enumerate()).map(|(number, (case, era, survey))| {
        show(format!("case {} of {total}: {}", number + 1, case.title));
        try_one(case, Bench::new(target, era, survey, options.wait))
    });
    let cases = running.buffered(at_once).collect().await;
    Ok(Tried {
        server_info: surveys
            .last()
            .and_then(|(_, survey)| info(&survey.greeting))
            .unwrap_or_default(),
        eras: surveys.iter().map(|(era, _)| *era).collect(),
        cases,
    })
}

fn info(greeting: &Value) -> Option<Value> {
    let info = greeting.get("serverInfo");
    let info = info.or_else(|| greeting.get("_meta").and_then(|meta| meta.get(meta::SERVER_INFO)));
    info.cloned()
}

/// Opens a session and reads what the server offers, or says why it has none in this era.
async fn survey(target: &Target, era: Era, wait: Duration, options: &Options<'_>) -> Result<Survey, String> {
    let surveying = async {
        let mut client = Client::connect(target, era, wait, Transcript::default()).await?;
        client.start = wait;
        client.open().await?;
        client.wait = options.wait;
        // A list that cannot be read is a failure of the cases about lists.
        let tools = match client.capability("tools") {
            Some(_) => pages(&mut client, method::TOOLS_LIST, "tools")
                .await
                .unwrap_or_default(),
            None => Vec::new(),
        };
        let tools: Vec<Value> = tools.into_iter().flatten().collect();
        Ok(Survey {
            greeting: client.greeting.clone(),
            callable: tools.iter().filter(|tool| may_call(tool, options)).cloned().collect(),
            tools,
        })
    };
    surveying.await.map_err(|stop: Stop| match stop {
        Stop::Fail(why) | Stop::Skip(why) => why,
    })
}

/// Whether a tool may be called: it says that it changes nothing, or the user named it.
fn may_call(tool: &Value, options: &Options<'_>) -> bool {
    let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
    let is_read_only = tool.pointer("/annotations/readOnlyHint") == Some(&json!(true));
    options.all_tools || is_read_only || options.tools.iter().any(|wanted| wanted == name)
}

/// Runs one case.
async fn try_one(case: &Case, bench: Bench<'_>) -> CaseResult {
    let started = Instant::now();
    let limit = bench.wait * CASE_WAITS + START * 3;
    let ended = tokio::time::timeout(limit, (case.run)(&bench)).await;
    let ended = ended.unwrap_or_else(|_| stop::fail(format!("the case was not over after {limit:?}")));
    let mut result = CaseResult::new(case, bench.era);
    result.duration_ms = millis(started);
    match ended {
        Ok(()) => {}
        Err(Stop::Skip(why)) => (result.verdict, result.why) = (Verdict::Skipped, Some(why)),
        Err(Stop::Fail(why)) => {
            (result.verdict, result.why) = (Verdict::Failed, Some(why));
            result.sent = bench.transcript.last_sent();
            result.came = bench.transcript.last_came();
        }
    }
    result.advice = bench.into_advice();
    result.advice.dedup();
    result
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
