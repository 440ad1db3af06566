//! All settings: everything that a config file may set, in sections of typed keys.
//!
//! `settings!` declares most of them beside their resolved types, the rest in this module. Files are validated against them, values are read by
//! them, and the JSON Schema, the reference page, `config show` and `config explain` are generated from them.

mod connection;
mod oauth_table;
mod remote;
mod server_table;
mod top_table;

pub(super) use super::{
    audit::audit,
    lifecycle::{breaker, restart, retry},
    policy::{
        call_arguments,
        mask_settings::{masking, pattern},
        results::{result, summarise},
        tool_policy::tool,
    },
    sandbox::sandbox,
    serve::{
        oauth::{serve_oauth, serve_oauth_introspection, serve_oauth_rule},
        serve, serve_tls,
        telemetry::serve_telemetry,
        token::token,
    },
    view::view,
};
pub(super) use oauth_table::{identity_provider, oauth};
pub(super) use remote::{API_KEY_HEADER, auth, tls};
pub(super) use server_table::SERVER;

use super::{board_limits::board_limit_keys, field::Section, key::Table};

/// The keys of one server's table.
pub(super) mod server {
    pub(crate) use super::connection::connection::*;
    pub(crate) use crate::{limits::limit_keys::*, policy::policy_keys::*, server::basics::*};

    /// Marks keys and values of a server's table.
    #[derive(Debug, Clone, Copy)]
    pub(crate) enum In {}
}

/// The keys at the top of a file.
pub(super) mod top {
    pub(crate) use super::top_table::board::*;

    /// Marks keys and values of the top of a file.
    #[derive(Debug, Clone, Copy)]
    pub(crate) enum In {}
}

/// The values of one server's table.
pub(super) type ServerTable<'a> = Table<'a, server::In>;

/// The values at the top of a file.
pub(super) type TopTable<'a> = Table<'a, top::In>;

/// The fields at the top of a file. `servers` itself is read by `import`, which knows the shapes it may have.
pub(super) static TOP: &Section = &Section {
    name: "config",
    parts: &[
        top_table::board::FIELDS,
        board_limit_keys::FIELDS,
        &top_table::OF_SERVERS,
        top_table::FOREIGN,
    ],
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{
        field::{ValueKind, Void},
        spelling::{camel, snake},
    };

    fn each_section(kind: &ValueKind, seen: &mut Vec<&'static Section>) {
        match kind {
            ValueKind::Table(section) if !seen.iter().any(|known| std::ptr::eq(*known, *section)) => {
                seen.push(section);
                section.fields().for_each(|field| each_section(&field.kind, seen));
            }
            ValueKind::List(kind) | ValueKind::Map(kind) => each_section(kind, seen),
            ValueKind::Either(kinds) => kinds.iter().for_each(|kind| each_section(kind, seen)),
            _ => {}
        }
    }

    #[test]
    fn no_name_means_two_things_in_a_section() {
        let mut sections = Vec::new();
        each_section(&ValueKind::Table(TOP), &mut sections);
        each_section(&ValueKind::Table(SERVER), &mut sections);
        assert!(sections.len() > 5);
        for section in sections {
            let mut seen = BTreeSet::new();
            for name in section.fields().flat_map(|field| field.names()) {
                assert!(seen.insert(name), "{name} is in `{}` twice", section.name);
                assert_eq!(snake(name), name, "names are kept in snake case");
                assert_eq!(snake(&camel(name)), name, "camel case must find its way back");
            }
        }
    }

    #[test]
    fn a_setting_is_void_because_of_others_of_its_table() {
        let mut sections = Vec::new();
        each_section(&ValueKind::Table(SERVER), &mut sections);
        for section in sections {
            for field in section.fields() {
                if let Void::IfSet(names) = field.void {
                    let is_known = |name: &&str| section.fields().any(|field| field.name == *name);
                    assert!(names.iter().all(is_known), "{}.{}", section.name, field.name);
                }
            }
        }
    }

    #[test]
    fn keys_are_found_in_every_case_and_with_a_unit() {
        for (key, name, unit) in [
            ("toolsAllowed", "allow", None),
            ("tools-denied", "deny", None),
            ("requestTimeoutMs", "call_timeout", Some(1)),
            ("startup_timeout_sec", "connect_timeout", Some(1000)),
            ("healthProbe", "health_probe", None),
            ("HTTPUrl", "url", None),
            ("URL", "url", None),
            ("OAuth", "oauth", None),
            ("VerifySSL", "insecure", None),
        ] {
            let found = SERVER.find(key).unwrap();
            assert_eq!((found.field.name, found.unit), (name, unit), "{key}");
        }
        assert!(SERVER.find("enabled_ms").is_none());
        assert_eq!(SERVER.find_nearest("startup_timout"), Some("startup_timeout"));
        assert_eq!(SERVER.find_nearest("comand"), Some("command"));
        assert_eq!(SERVER.find_nearest("zzzzzz"), None);
    }
}
