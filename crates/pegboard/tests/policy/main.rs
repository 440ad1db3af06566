//! What agents may see and do: filters, selections, grants, approval, and instructions.

#[path = "../support/mod.rs"]
mod support;

mod approval;
mod arguments;
mod board;
mod filters;
mod grants;
mod instructions;
mod limits;
mod selection;
mod taint;
