//! The fakes of the kit themselves: servers on every transport, and the authorization server.

mod sign_in;
mod wires;
