//! Pegboard and rmcp: its handlers and transports as servers of a board, a toolset as its handler, and conversions between the types.

mod conversions;
mod handler_in_process;
mod kit;
mod library;
mod served_toolset;
mod transport_as_dialer;
