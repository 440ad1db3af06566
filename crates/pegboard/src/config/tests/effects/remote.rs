//! The tests of credentials and TLS.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    (
        "network/tls_settings.rs",
        "the_tls_settings_of_a_file_reach_the_connection",
        &["tls.ca", "tls.cert", "tls.key", "tls.insecure"],
    ),
    (
        "settings/remote.rs",
        "credentials_are_sent_as_the_config_names_them",
        &[
            "auth.type",
            "auth.bearer",
            "auth.user",
            "auth.password",
            "auth.api_key",
            "auth.header",
        ],
    ),
];
