//! The built-in tools that a listing shows beside the tools of servers.

use super::{builtin_definitions::ResourceTools, listing::ListedTool, open_view::OpenView};

/// Lists `read_output` and the tools that list and read resources, as far as the view has them. The discovery tools are not among them: they take
/// the place of tools that do not fit into the view's budget.
pub(super) fn list_builtin(open: &OpenView) -> Vec<ListedTool> {
    let view = &open.view;
    let lists_reader = view.result_options.lists_reader();
    if !lists_reader && !view.resource_tools {
        return Vec::new();
    }
    open.read_snapshot(|snapshot| {
        let reader = lists_reader.then_some(&snapshot.read_output);
        let resources = snapshot.resources.iter().filter(|_| snapshot.selection_error.is_none());
        let resources = resources.flat_map(ResourceTools::all);
        reader.into_iter().chain(resources).cloned().collect()
    })
}
