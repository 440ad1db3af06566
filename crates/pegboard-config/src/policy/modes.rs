//! How strictly calls and definitions are handled.

use crate::choice::words;

words! {
    /// Which calls a person must approve.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Approval as "approval mode" default Auto {
        /// None.
        Auto = "auto" | "approve",
        /// Calls of tools that do not declare that they only read.
        Writes = "writes",
        /// All calls.
        Always = "always" | "prompt",
        /// All calls are refused.
        Never = "never",
    }
}

words! {
    /// What happens when the arguments of a call contain a secret of another server. The order is from the weakest to the strictest.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum OnCrossing as "policy for secrets of other servers" default Block {
        /// The call is made. The arguments are not searched.
        Allow = "allow" | "off",
        /// The call is made, and its reply has a warning.
        Warn = "warn",
        /// The call is made with the secret masked.
        Mask = "mask",
        /// The call is refused.
        Block = "block" | "refuse",
    }
}

words! {
    /// What happens when a tool's definition changes after it was first listed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Pins as "pin mode" default Warn {
        /// Nothing. Definitions are not pinned.
        Off = "off",
        /// Definitions are pinned when they are first listed, and a changed one is reported.
        Warn = "warn",
        /// Like `Warn`, and changed and new tools of a known server are held until a person accepts them.
        Block = "block",
        /// Like `Block`, and the tools of a new server are held as well.
        Approve = "approve" | "ask",
    }
}

impl Pins {
    /// Whether tools can be held. Such a server is not started without a place for its pins.
    #[doc(hidden)]
    pub fn holds(self) -> bool {
        matches!(self, Self::Block | Self::Approve)
    }
}

words! {
    /// What happens when a definition looks like an attack on the model that reads it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[non_exhaustive]
    pub enum Scan as "scan mode" default Warn {
        /// Nothing. Definitions are not scanned.
        Off = "off",
        /// Findings are reported.
        Warn = "warn",
        /// Findings are reported, and definitions with findings of high severity are held until a person accepts them.
        Block = "block",
    }
}
