//! Newline-delimited JSON over a pair of byte streams: one message per line, as stdio and in-process servers speak it.

mod line_splitter;
mod read_buffer;
mod reader;
mod stdout_noise;
mod writer;

pub(super) use reader::read_lines;
pub(super) use stdout_noise::StdoutNoise;
pub(super) use writer::write_lines;

#[cfg(test)]
#[cfg(feature = "explore")]
mod explore;
#[cfg(test)]
mod tests;
