//! Events and metrics of a running board: nothing is missed and nothing is reported twice.

mod calls;
mod fixtures;
mod metrics;
mod servers;
