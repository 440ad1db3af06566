//! The table of the audit log.

use crate::{
    audit::AuditConfig,
    key::{count, flag, located, section, size},
    setting::Text,
};

section! {
    audit = "audit" {
        FILE: Option<Text> = located("file", "The file, relative to the config file; `~` is the home directory.").aka(&["path"]);
        REQUIRED: bool = flag("required", false, "Whether calls are refused while the log cannot be written.");
        MAX_SIZE: usize = size("max_size", (4096, 1 << 40), AuditConfig::MAX_SIZE, "The size from which on a new file is begun.");
        MAX_FILES: usize = count("max_files", (2, 100_000), AuditConfig::MAX_FILES, "The most files, the current one included; the oldest is removed when there are more.");
    }
}
