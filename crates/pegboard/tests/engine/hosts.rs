//! Who is asked: which host gets a server's question, what callbacks know about the call, and which questions reach no host.

mod callbacks;
mod fixtures;
mod offers;
mod wires;
