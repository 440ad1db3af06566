//! What agents may see and do: filters, selections, grants, approval, and instructions.

mod approval;
mod arguments;
mod board;
mod filters;
mod grants;
mod instructions;
mod limits;
mod selection;
mod taint;
