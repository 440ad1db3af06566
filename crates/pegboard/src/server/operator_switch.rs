//! Whether an operator has enabled or disabled a server, in place of its config.

use std::sync::atomic::{AtomicU8, Ordering};

/// The last command of an operator about a server: enable, disable, or none, in which case the config decides.
#[derive(Debug, Default)]
pub(super) struct OperatorSwitch(AtomicU8);

const AS_CONFIGURED: u8 = 0;
const ON: u8 = 1;
const OFF: u8 = 2;

impl OperatorSwitch {
    /// Returns the operator's last command; `None` if the config decides.
    pub(super) fn get(&self) -> Option<bool> {
        match self.0.load(Ordering::Relaxed) {
            ON => Some(true),
            OFF => Some(false),
            _ => None,
        }
    }

    pub(super) fn set(&self, choice: Option<bool>) {
        let value = match choice {
            Some(true) => ON,
            Some(false) => OFF,
            None => AS_CONFIGURED,
        };
        self.0.store(value, Ordering::Relaxed);
    }
}
