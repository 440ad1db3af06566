//! The servers that a view's selection covers, and warnings about it.

use std::sync::Arc;

use super::{selection_check::check, snapshot::Snapshot, toolset_handle::Toolset};
use crate::{
    call::{Unroutable, View, Visibility},
    server::Server,
};
use pegboard_tools::{
    filter::{Selection, fits},
    outcome::Failure,
};

/// How many selections of single calls are cached with their route tables.
const MAX_CACHED: usize = 8;

impl Toolset {
    /// Returns `true` if this view uses the server of this name, or would if the board had one.
    pub fn has_server(&self, server: &str) -> bool {
        self.view.rules.shows_server(server)
    }

    /// The servers that this view uses. Empty if its selection is invalid.
    pub(super) fn selected_servers(&self) -> Vec<Server> {
        let mut servers = self.servers();
        servers.retain(|server| self.view.rules.has_server(server.name().as_str()));
        if let Some(selection) = self.view.rules.selection() {
            if check(selection, &servers).is_err() {
                return Vec::new();
            }
            servers.retain(|server| selection.has_server(server.name().as_str()));
        }
        servers
    }

    /// The same view with another selection. The last few are cached, because many calls have the same selection.
    pub(super) fn selecting(&self, selection: &Arc<Selection>) -> Self {
        let mut cached = self.selection_views.lock();
        let is_same = |known: &Arc<Selection>| Arc::ptr_eq(known, selection) || known == selection;
        if let Some((_, toolset)) = cached.iter().find(|(known, _)| is_same(known)) {
            return toolset.clone();
        }
        let view = View {
            rules: self.view.rules.with_selection(selection.clone()),
            ..View::clone(&self.view)
        };
        let selected = Self {
            view: Arc::new(view),
            latest: Arc::default(),
            selection_views: Arc::default(),
            ..self.clone()
        };
        cached.truncate(MAX_CACHED - 1);
        cached.insert(0, (selection.clone(), selected.clone()));
        selected
    }

    /// Fails if the selection is invalid on the board as it is now.
    pub(super) fn check_selection(&self) -> Result<(), Failure> {
        let Some(selection) = self.view.rules.selection() else {
            return Ok(());
        };
        check(selection, &self.servers())
    }

    /// Why `name` may not be used, if it refers to a server or tool that this view may not see.
    pub(super) fn refusal(&self, name: &str, all_known: bool) -> Option<Unroutable> {
        let servers = self.servers();
        Visibility::new(&self.view, &servers).refusal(name, &servers, all_known)
    }

    /// Warnings about the selection and about tools that could impersonate others.
    pub(super) fn selection_warnings(&self) -> Vec<String> {
        let servers = self.servers();
        let mut selection_warnings = Visibility::new(&self.view, &servers).warnings().to_vec();
        if let Err(failure) = self.check_selection() {
            selection_warnings.push(failure.message);
        }
        let selected = self.view.rules.selection().map(Selection::servers).unwrap_or_default();
        for selected in selected {
            let server = servers.iter().find(|server| server.name().as_str() == selected.name);
            let Some(catalog) = server.and_then(Server::catalog) else {
                continue;
            };
            let is_absent = |glob: &&String| !catalog.tools.iter().any(|tool| fits(glob, &tool.name));
            for absent in selected.tools.iter().filter(is_absent) {
                selection_warnings.push(format!(
                    "the selection names `{}.{}`, and the server has no such tool",
                    selected.name,
                    absent.escape_debug()
                ));
            }
        }
        selection_warnings.extend_from_slice(&self.snapshot(Snapshot::shadows));
        selection_warnings
    }
}
