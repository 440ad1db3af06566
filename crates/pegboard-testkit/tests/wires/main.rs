//! The fake servers behave, and misbehave, as their scripts say: raw JSON over every wire.

#[cfg(test)]
mod http;
#[cfg(test)]
mod lines;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod process;
#[cfg(test)]
mod raw_http;
#[cfg(test)]
mod sse;
#[cfg(test)]
mod ws;
