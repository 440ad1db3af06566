//! [`Scope`]: a right that a token can have, and [`Scopes`], a set of them.

use std::fmt;

use pegboard::config::TokenScope;

/// A right of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// May list tools, resources and prompts, read resources, and see the state of the servers.
    Read,
    /// May call tools.
    Call,
    /// May change what runs: add, remove, reconnect, enable and disable servers, and reload the config.
    Admin,
}

impl Scope {
    /// All scopes, in the order of their power.
    pub const ALL: [Self; 3] = [Self::Read, Self::Call, Self::Admin];

    /// The name of the scope in a config.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Call => "call",
            Self::Admin => "admin",
        }
    }

    /// The scope that a config names; `None` for one that this version does not know.
    pub fn from_config(scope: TokenScope) -> Option<Self> {
        match scope {
            TokenScope::Read => Some(Self::Read),
            TokenScope::Call => Some(Self::Call),
            TokenScope::Admin => Some(Self::Admin),
            _ => None,
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Call => 2,
            Self::Admin => 4,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of scopes. No scope includes another: a token that may call tools but not list them has only [`Scope::Call`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scopes(u8);

impl Scopes {
    /// Every scope.
    pub const ALL: Self = Self(Scope::Read.bit() | Scope::Call.bit() | Scope::Admin.bit());

    /// What a token may do if nothing else is said: use tools, but not change what runs.
    pub const DEFAULT: Self = Self(Scope::Read.bit() | Scope::Call.bit());

    /// Returns `true` if the set has this scope.
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |all, scope| all | scope.bit()))
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(Scope::ALL.into_iter().filter(|scope| self.contains(*scope)))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_scopes_it_was_made_of() {
        let scopes: Scopes = [Scope::Read, Scope::Admin].into_iter().collect();
        assert_eq!(format!("{scopes:?}"), "{Read, Admin}");
        assert!(scopes.contains(Scope::Admin));
        assert!(!scopes.contains(Scope::Call));
        assert_eq!(Scope::ALL.into_iter().collect::<Scopes>(), Scopes::ALL);
        assert!(!Scopes::DEFAULT.contains(Scope::Admin));
    }
}
