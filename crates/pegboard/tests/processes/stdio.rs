//! Servers as real processes: starts, failures, messages and stops, and that no process is left.

mod budget;
mod death;
mod environment;
mod eras;
mod faults;
mod fixtures;
mod load;
mod memory;
mod one_process;
mod own_process;
mod start;
mod stop;
