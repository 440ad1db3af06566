//! `pegboard doctor`: one broken setup per finding. Each yields its finding, and is well once the fix is applied.

mod config_files;
mod diagnosis;
mod fixing;
mod guide;
mod lying_texts;
mod machine;
mod network;
mod processes;
mod tools;
