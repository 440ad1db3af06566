//! How often an owner may call: token buckets, one for each limit and rate.

use std::{collections::HashMap, fmt, time::Duration};

use tokio::time::Instant;

use super::verdict::Denied;
use crate::audit::AuditRule;
use pegboard_base::name::ServerName;
use pegboard_base::sync::Mutex;
use pegboard_config::Rate;
use pegboard_tools::outcome::{Advice, Failure, Kind};

/// How many rate limits are kept before those that are unused are dropped.
const MAX_BUCKETS: usize = 1024;

/// The rates of one owner.
#[derive(Debug, Default)]
pub(super) struct RateBuckets(Mutex<HashMap<(Limited, Rate), Bucket>>);

/// What a rate limits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Limited {
    View,
    Server(ServerName),
    Tool(ServerName, String),
}

impl fmt::Display for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::View => f.write_str("view"),
            Self::Server(server) => write!(f, "server {server}"),
            // No name of a server has a space.
            Self::Tool(server, tool) => write!(f, "tool {server} {tool}"),
        }
    }
}

/// A token bucket as one instant: when it will be full again. It holds `rate.calls` tokens, and one returns every `rate.per / rate.calls`.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    full_at: Instant,
}

impl RateBuckets {
    /// Takes a token of every bucket, or none if one of them is empty. `tool` is the name of the called tool, for the refusal.
    pub(super) fn spend<const N: usize>(
        &self,
        limited: [Option<(Limited, Rate)>; N],
        now: Instant,
        tool: impl FnOnce() -> String,
    ) -> Result<(), Denied> {
        let mut buckets = self.0.lock();
        if buckets.len() >= MAX_BUCKETS {
            buckets.retain(|_, bucket| bucket.full_at > now);
        }
        let next = |limited: &(Limited, Rate)| {
            let full_at = buckets.get(limited).map_or(now, |bucket| bucket.full_at.max(now));
            full_at + limited.1.per / limited.1.calls
        };
        let spent = limited.into_iter().flatten();
        let spent: Vec<_> = spent.map(|limited| (next(&limited), limited)).collect();
        let wait =
            |(full_at, (_, rate)): &(Instant, (Limited, Rate))| full_at.saturating_duration_since(now + rate.per);
        if let Some(slowest) = spent.iter().max_by_key(|spent| wait(spent))
            && !wait(slowest).is_zero()
        {
            let (limited, rate) = &slowest.1;
            return Err(rate_denial(limited, *rate, wait(slowest), tool));
        }
        for (full_at, limited) in spent {
            buckets.insert(limited, Bucket { full_at });
        }
        Ok(())
    }

    /// When all buckets are full again, unless they are.
    pub(super) fn spent_until(&self, now: Instant) -> Option<Instant> {
        let full_at = self.0.lock().values().map(|bucket| bucket.full_at).max();
        full_at.filter(|full_at| *full_at > now)
    }
}

pub(super) fn rate_denial(limited: &Limited, rate: Rate, wait: Duration, name: impl FnOnce() -> String) -> Denied {
    let (what, setting) = match limited {
        Limited::View => ("of this client".to_owned(), "`View::rate`".to_owned()),
        Limited::Server(server) => (format!("of `{server}`"), format!("`rate` of server `{server}`")),
        Limited::Tool(server, tool) => (
            format!("of `{}`", name()),
            format!("`tools.{tool}.rate` of server `{server}`"),
        ),
    };
    let message = format!("the limit of {rate} {what} is reached");
    let failure = Failure::new(Kind::LimitExceeded, message)
        .advice(Advice::Wait)
        .hint(format!("{setting} sets the limit"))
        .retry_after(wait);
    Denied::by(AuditRule::Rate, failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn unused_buckets_are_dropped() {
        let rates = RateBuckets::default();
        let server = ServerName::parse("fx").unwrap();
        for n in 0..3 * MAX_BUCKETS {
            let limited = Limited::Tool(server.clone(), n.to_string());
            let rate = Rate::new(1, Duration::from_millis(1));
            rates
                .spend([Some((limited, rate))], Instant::now(), String::new)
                .unwrap();
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(rates.0.lock().len() <= MAX_BUCKETS);
    }

    /// A call that one limit refuses costs nothing of the other.
    #[tokio::test(start_paused = true)]
    async fn a_refused_call_takes_no_token() {
        let rates = RateBuckets::default();
        let server = ServerName::parse("fx").unwrap();
        let limits = || {
            [
                Some((Limited::View, Rate::new(2, Duration::from_secs(60)))),
                Some((Limited::Server(server.clone()), Rate::new(1, Duration::from_secs(10)))),
            ]
        };
        rates.spend(limits(), Instant::now(), String::new).unwrap();
        for _ in 0..5 {
            let denied = rates.spend(limits(), Instant::now(), String::new).unwrap_err();
            assert_eq!(denied.failure.retry_after, Some(Duration::from_secs(10)));
        }
        tokio::time::advance(Duration::from_secs(10)).await;
        rates.spend(limits(), Instant::now(), String::new).unwrap();
    }

    /// Views of one principal may have different rates.
    #[tokio::test(start_paused = true)]
    async fn a_slow_rate_does_not_fill_the_bucket_of_a_fast_one() {
        let rates = RateBuckets::default();
        let spend = |calls, seconds| {
            let rate = Rate::new(calls, Duration::from_secs(seconds));
            rates.spend([Some((Limited::View, rate))], Instant::now(), String::new)
        };
        spend(1, 3600).unwrap();
        spend(1, 3600).unwrap_err();
        spend(10, 1).unwrap();
    }
}
