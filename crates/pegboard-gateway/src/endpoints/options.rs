//! [`BoardOptions`]: what a program sets for the clients of its board.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;
use pegboard::View;
use serde_json::{Map, Value, json};

use crate::door::Caller;

/// What a program sets for the clients of its board. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct BoardOptions(Arc<ArcSwap<Options>>);

type ViewOf = dyn Fn(&Caller) -> View + Send + Sync;

#[derive(Clone, Default)]
struct Options {
    view: Option<Arc<ViewOf>>,
    server_info: Option<Map<String, Value>>,
}

impl BoardOptions {
    pub(crate) fn set_view(&self, view: impl Fn(&Caller) -> View + Send + Sync + 'static) {
        self.0.store(Arc::new(Options {
            view: Some(Arc::new(view)),
            ..Options::clone(&self.0.load())
        }));
    }

    pub(crate) fn set_server_info(&self, info: Map<String, Value>) {
        self.0.store(Arc::new(Options {
            server_info: Some(info),
            ..Options::clone(&self.0.load())
        }));
    }

    /// Whether the program decides what each caller sees.
    pub(super) fn has_view(&self) -> bool {
        self.0.load().view.is_some()
    }

    /// What a caller sees, if the program decides that.
    pub(super) fn view(&self, caller: &Caller) -> Option<View> {
        let view = self.0.load().view.clone()?;
        Some(view(caller))
    }

    /// How the server of a board introduces itself.
    pub(super) fn server_info(&self) -> Map<String, Value> {
        let set = self.0.load().server_info.clone();
        set.unwrap_or_else(|| {
            let info = [
                ("name", "pegboard"),
                ("title", "Pegboard"),
                ("version", env!("CARGO_PKG_VERSION")),
            ];
            info.into_iter()
                .map(|(key, value)| (key.to_owned(), json!(value)))
                .collect()
        })
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("has_view", &self.view.is_some())
            .field("server_info", &self.server_info)
            .finish()
    }
}
