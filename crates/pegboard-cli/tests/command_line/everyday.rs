//! Everyday use of the `pegboard` command: calling tools, showing results, completion, status.

mod arguments;
mod completion;
mod results;
#[cfg(target_os = "linux")]
mod shells;
#[cfg(unix)]
mod status;
mod tools;
