//! Checks a selection against the servers of the board.

use crate::server::Server;
use pegboard_base::hint::Hint;
use pegboard_tools::{
    filter::Selection,
    outcome::{Failure, Kind},
};

/// Fails if the selection is invalid for these servers. In that case no tool is listed and none can be called.
pub(super) fn check(selection: &Selection, servers: &[Server]) -> Result<(), Failure> {
    let names: Vec<_> = servers.iter().map(|server| server.name().as_str()).collect();
    selection.check_against(&names).map_err(|problem| {
        let message = format!("{problem}. No tool can be called with this selection.");
        let failure = Failure::new(Kind::NotPermitted, message);
        match problem.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })
}
