//! Finds a tool by any of its names without a board, for test doubles.

use std::borrow::Cow;

use super::{
    alias::{self, Aliases, Lookup},
    explain::{self, KnownName},
    repair::{Repairs, name_variants},
};
use pegboard_base::name::{self, ServerName};
use pegboard_tools::outcome::Failure;

/// Finds the (server, tool) pair that `name` means, as a route table does. `listed` has the names that models see, in the same order. Returns
/// its index and whether the name had to be repaired.
pub(crate) fn find_by_any_name(
    name: &str,
    listed: &[&str],
    pairs: &[(&str, &str)],
    servers: &[&ServerName],
) -> Result<(usize, bool), Failure> {
    let (aliases, other_views) = (Aliases::new(pairs, &[]), alias::other_views(pairs));
    let repairs = Repairs::new(pairs, listed, &[]);
    for variant in name_variants(name) {
        if let Some(at) = listed.iter().position(|listed| *listed == variant) {
            return Ok((at, variant != name));
        }
        let exact = [aliases.find(&variant), other_views.find(&variant)];
        let exact = exact.into_iter().map(|lookup| (lookup, variant != name));
        for (lookup, is_repaired) in exact.chain([(repairs.find(&variant), true)]) {
            match lookup {
                Lookup::One(at) => return Ok((at, is_repaired)),
                Lookup::Many(indices) => {
                    let candidates = indices.iter().map(|at| name::format_dotted(pairs[*at].0, pairs[*at].1));
                    return Err(explain::ambiguous_name_failure(
                        name,
                        &candidates.map(Cow::Owned).collect::<Vec<_>>(),
                    ));
                }
                Lookup::Nothing => {}
            }
        }
    }
    let known = pairs.iter().map(|(server, tool)| KnownName {
        server,
        tool,
        listed: None,
    });
    Err(explain::unknown_name_failure(name, &known.collect::<Vec<_>>(), servers))
}
