//! `pegboard add`, `add-json`, `remove`, `enable`, `disable`, `rename`, `get` and `list`: the servers of the config files.

mod add;
mod change;
mod entry;
mod screen;
mod show;
mod views;

pub(super) use add::{add, add_json};
pub(super) use change::{remove, rename, switch};
pub(super) use entry::for_this_run;
pub(super) use screen::target as shown_target;
pub(super) use show::{get, list};

use super::context::Context;
use crate::settings::Settings;

/// Whether a daemon serves the config as it is before a change. It reads a changed file by itself.
async fn has_daemon(context: &Context<'_>) -> bool {
    let settings = Settings::load(&context.global);
    context.servers(&settings).await.daemon.is_some()
}
