//! The fake servers follow their scripts, faults included: raw JSON over every transport.

#[cfg(test)]
mod eras;
#[cfg(test)]
mod host;
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
