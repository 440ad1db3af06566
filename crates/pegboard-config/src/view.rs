//! Named views of a config.

use serde::{Deserialize, Serialize};

use super::policy::{Approval, Results};
use pegboard_base::name::NameStyle;

/// A named view: a part of the board for one kind of client, with rules of its own.
///
/// `View` can be made of it, and `Pegboard::configured_view` finds it by its name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ViewConfig {
    /// What the view is for. Clients read it as the instructions of the server.
    pub description: Option<String>,
    /// Names or globs of the servers it shows; none means all.
    pub servers: Vec<String>,
    /// Globs of the tools it shows, as in `View::allow`; none means all.
    pub tools: Vec<String>,
    /// Globs of the tools that it hides, as in `View::deny`.
    pub deny: Vec<String>,
    /// About how many tokens the definitions of all tools may take. When they take more, `find_tools`, `describe_tool` and `call_tool` of the
    /// built-in server `pegboard` are listed instead.
    pub budget: Option<usize>,
    /// How its tools are named; `None` means as the config says for all.
    pub naming: Option<NameStyle>,
    /// Which calls a person must approve, where that is stricter than the server's own setting.
    pub approval: Approval,
    /// The words that are granted, as in `Grants::of_words`. `None` does not restrict the view, and grants no capability
    /// that a tool requires.
    pub grants: Option<Vec<String>>,
    /// Whether it has tools that list and read resources, as in `View::resource_tools`.
    pub resource_tools: bool,
    /// How results are limited and formatted. `None` means as the config of their servers says.
    pub result: Option<Results>,
}
