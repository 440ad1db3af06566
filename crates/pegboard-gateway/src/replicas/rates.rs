//! Counts the rates of principals for all replicas together, in the store.

use pegboard::{
    Principal,
    config::Rate,
    rates::{NotSpent, SharedRates},
};
use pegboard_base::BoxFuture;
use pegboard_store::{Draw, Key, Rate as StoreRate};

use super::registry::Replicas;

impl SharedRates for Replicas {
    fn spend<'a>(&'a self, principal: &'a Principal, what: &'a str, rate: Rate) -> BoxFuture<'a, Result<(), NotSpent>> {
        Box::pin(async move {
            // Views of one principal may have different rates, each with a bucket of its own.
            let bucket = format!("{what} {} {}", rate.calls, rate.per.as_millis());
            let key = Key::new("rate", &[principal.as_str(), &bucket]);
            let per_second = f64::from(rate.calls) / rate.per.as_secs_f64();
            let Some(rate) = StoreRate::new(rate.calls, per_second) else {
                return Err(NotSpent::Unknown("the store cannot count this rate".to_owned()));
            };
            match self.note(self.0.store.draw(&key, rate, 1).await) {
                Ok(Draw::Drawn) => Ok(()),
                Ok(Draw::Wait(wait)) => Err(NotSpent::Wait(wait)),
                Err(error) => Err(NotSpent::Unknown(error.to_string())),
            }
        })
    }
}
