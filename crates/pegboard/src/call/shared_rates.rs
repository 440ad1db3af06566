//! [`SharedRates`]: counts how often principals call, for several processes together.

use std::{fmt, sync::Arc, time::Duration};

use super::{
    rates::{Limited, rate_denial},
    verdict::Denied,
};
use crate::audit::AuditRule;
use pegboard_base::{BoxFuture, caller::Principal};
use pegboard_config::Rate;
use pegboard_tools::outcome::{Advice, Failure, Kind};

/// When a call may be made again that could not be counted.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Counts how often principals call, for several processes together. A board without one counts for itself.
///
/// Each call of a principal with a rate waits for the answer. Calls without a rate, and those of views without a principal, do not ask.
pub trait SharedRates: Send + Sync {
    /// Takes a token of the bucket that a principal has for `what` at this rate: `rate.calls` tokens, which fill up once in `rate.per`.
    fn spend<'a>(&'a self, principal: &'a Principal, what: &'a str, rate: Rate) -> BoxFuture<'a, Result<(), NotSpent>>;
}

/// Why a call is not made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotSpent {
    /// The bucket is empty. A token returns after this time.
    Wait(Duration),
    /// Nobody can tell, for this reason. The call is refused, so that the limit holds.
    Unknown(String),
}

/// What counts the calls of one principal.
#[derive(Clone)]
pub(super) struct SharedBuckets {
    pub(super) rates: Arc<dyn SharedRates>,
    pub(super) principal: Principal,
}

impl SharedBuckets {
    /// Takes a token of every bucket. If one refuses, those that were asked before have lost theirs.
    pub(super) async fn spend(
        &self,
        limited: impl IntoIterator<Item = (Limited, Rate)>,
        tool: impl FnOnce() -> String,
    ) -> Result<(), Denied> {
        for (limited, rate) in limited {
            match self.rates.spend(&self.principal, &limited.to_string(), rate).await {
                Ok(()) => {}
                Err(NotSpent::Wait(wait)) => return Err(rate_denial(&limited, rate, wait, tool)),
                Err(NotSpent::Unknown(why)) => return Err(uncounted(&why)),
            }
        }
        Ok(())
    }
}

fn uncounted(why: &str) -> Denied {
    let message = format!("the call cannot be counted, and there is a limit on how often it may be made: {why}");
    let failure = Failure::new(Kind::LimitExceeded, message)
        .advice(Advice::Wait)
        .hint("the store that counts the calls of all replicas must answer")
        .retry_after(TRY_AGAIN);
    Denied::by(AuditRule::Rate, failure)
}

impl fmt::Debug for SharedBuckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBuckets")
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}
