//! Every future of the API can be dropped at any time, on every wire and during a start: no queue slot, task or process is left, and the
//! next call succeeds.

mod events;
mod fixtures;
mod starts;
mod wires;
