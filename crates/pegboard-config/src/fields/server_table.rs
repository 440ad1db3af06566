//! The fields of one server's table.

use super::connection;
use crate::{field::Section, lifecycle::health_keys, limits::limit_keys, policy::policy_keys, server::basics};

/// The fields of one server's table.
pub(crate) static SERVER: &Section = &Section {
    name: "server",
    parts: &[
        connection::connection::FIELDS,
        basics::FIELDS,
        limit_keys::FIELDS,
        policy_keys::FIELDS,
        health_keys::FIELDS,
        connection::FOREIGN,
    ],
};
