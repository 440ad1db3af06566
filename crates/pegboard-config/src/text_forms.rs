//! Settings that are a word or a text with a value in it, written and read as in config files.

use std::{fmt, str::FromStr};

use super::{
    from_setting::is_version,
    policy::{Scope, pool},
    server::EraChoice,
};
use pegboard_base::label::{UnknownWord, serde_as_text};

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared => f.pad("shared"),
            Self::Session => f.pad("session"),
            Self::Pool(connections) => write!(f, "pool({connections})"),
        }
    }
}

impl FromStr for Scope {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        match text {
            "shared" => Ok(Self::Shared),
            "session" => Ok(Self::Session),
            other => pool(other)
                .map(Self::Pool)
                .ok_or_else(|| UnknownWord::new("scope", other, ["shared", "session", "pool(N)"])),
        }
    }
}

serde_as_text!(Scope);

impl fmt::Display for EraChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Auto => "auto",
            Self::Probe => "probe",
            Self::Modern => "modern",
            Self::Legacy => "legacy",
            Self::Version(version) => version,
        })
    }
}

impl FromStr for EraChoice {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        match text {
            "auto" => Ok(Self::Auto),
            "probe" => Ok(Self::Probe),
            "modern" => Ok(Self::Modern),
            "legacy" => Ok(Self::Legacy),
            version if is_version(version) => Ok(Self::Version(version.to_owned())),
            other => {
                let known = ["auto", "probe", "modern", "legacy", "versions such as 2025-06-18"];
                Err(UnknownWord::new("choice of an era", other, known))
            }
        }
    }
}

serde_as_text!(EraChoice);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_and_an_era_are_read_as_they_are_written() {
        for scope in [Scope::Shared, Scope::Session, Scope::Pool(4)] {
            assert_eq!(scope.to_string().parse(), Ok(scope));
        }
        assert!("pool(0)".parse::<Scope>().is_err() && "pooled".parse::<Scope>().is_err());
        let version = EraChoice::Version("2025-06-18".to_owned());
        for era in [
            EraChoice::Auto,
            EraChoice::Probe,
            EraChoice::Modern,
            EraChoice::Legacy,
            version,
        ] {
            assert_eq!(era.to_string().parse(), Ok(era));
        }
        assert!("2025".parse::<EraChoice>().is_err());
    }
}
