//! [`Activation`]: whether the program has requested a server, and whether an operator has enabled or disabled it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, Ordering},
};

use pegboard_config::Start;

/// What the program and operators have said about a server, in addition to its config. All instances of the server share it.
#[derive(Debug)]
pub(crate) struct Activation {
    /// Whether the server may be started. `false` only if its config says `start = "explicit"` and the program has not connected it.
    is_requested: AtomicBool,
    /// The last command of an operator.
    command: AtomicU8,
}

const AS_CONFIGURED: u8 = 0;
const ENABLE: u8 = 1;
const DISABLE: u8 = 2;

impl Activation {
    /// Creates the activation of a server that nobody has given a command about.
    pub(super) fn new(start: Start) -> Arc<Self> {
        Arc::new(Self {
            is_requested: AtomicBool::new(start != Start::Explicit),
            command: AtomicU8::new(AS_CONFIGURED),
        })
    }

    /// Whether the server may be started. `false` only if its config says `start = "explicit"` and the program has not connected it.
    pub(crate) fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::Relaxed)
    }

    /// Permits the start of a server whose config says `start = "explicit"`.
    pub(crate) fn request(&self) {
        self.is_requested.store(true, Ordering::Relaxed);
    }

    /// Whether the server is enabled: by an operator's last command, or else as `configured`.
    pub(super) fn is_enabled(&self, configured: bool) -> bool {
        match self.command.load(Ordering::Relaxed) {
            ENABLE => true,
            DISABLE => false,
            _ => configured,
        }
    }

    /// Whether an operator's last command has disabled the server.
    pub(super) fn is_disabled_by_operator(&self) -> bool {
        self.command.load(Ordering::Relaxed) == DISABLE
    }

    /// Records that an operator has enabled the server.
    pub(crate) fn enable(&self) {
        self.command.store(ENABLE, Ordering::Relaxed);
    }

    /// Records that an operator has disabled the server.
    pub(crate) fn disable(&self) {
        self.command.store(DISABLE, Ordering::Relaxed);
    }

    /// Lets the config decide again whether the server is enabled.
    pub(crate) fn reset(&self) {
        self.command.store(AS_CONFIGURED, Ordering::Relaxed);
    }

    /// Repeats the last command of an operator about another server.
    pub(super) fn inherit_command(&self, other: &Self) {
        self.command
            .store(other.command.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_takes_precedence_over_the_config_until_it_is_reset() {
        let (old, new) = (Activation::new(Start::Lazy), Activation::new(Start::Lazy));
        assert!(old.is_enabled(true) && !old.is_enabled(false));
        old.disable();
        new.inherit_command(&old);
        assert!(!old.is_enabled(true) && !new.is_enabled(true));
        new.enable();
        assert!(!old.is_enabled(true) && new.is_enabled(false));
        new.reset();
        assert!(!new.is_enabled(false));
    }

    #[test]
    fn only_a_server_with_an_explicit_start_waits_for_a_request() {
        assert!(Activation::new(Start::Lazy).is_requested());
        let explicit = Activation::new(Start::Explicit);
        assert!(!explicit.is_requested());
        explicit.request();
        assert!(explicit.is_requested());
    }
}
