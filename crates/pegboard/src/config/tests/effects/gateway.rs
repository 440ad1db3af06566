//! The tests of views, and of the gateway's settings and tokens.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    (
        "settings/views.rs",
        "a_view_shows_some_servers_and_some_of_their_tools",
        &["view.servers", "view.tools", "view.deny"],
    ),
    ("settings/views.rs", "a_view_has_names_of_its_own", &["view.naming"]),
    (
        "settings/views.rs",
        "a_view_with_a_small_budget_lists_the_tools_that_find_others",
        &["view.budget"],
    ),
    (
        "settings/views.rs",
        "a_view_asks_a_person_where_it_is_stricter_than_the_server",
        &["view.approval"],
    ),
];
