//! Where a gateway writes its access log.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{from_setting::FromSetting, setting::Setting};

/// Where the access log is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AccessLogTarget {
    /// Nowhere: requests are not logged.
    #[default]
    Off,
    /// To stderr, with the log.
    Stderr,
    /// To the end of this file.
    File(PathBuf),
}

impl AccessLogTarget {
    /// Reads `off`, `stderr` or a path.
    pub fn parse(text: &str) -> Self {
        match text {
            OFF => Self::Off,
            STDERR => Self::Stderr,
            path => Self::File(path.into()),
        }
    }
}

const OFF: &str = "off";
const STDERR: &str = "stderr";

/// Whether a text is a path, and no word for another place.
pub(crate) fn is_path(text: &str) -> bool {
    !matches!(text, OFF | STDERR) && problem(text).is_none()
}

/// What is wrong with the place of an access log.
pub(crate) fn problem(text: &str) -> Option<String> {
    match text {
        "" => Some("must not be empty".to_owned()),
        "stdout" | "-" => Some("cannot be stdout, which is for the addresses of the gateway".to_owned()),
        _ => None,
    }
}

impl FromSetting for AccessLogTarget {
    fn from_setting(setting: &Setting) -> Option<Self> {
        let text = String::from_setting(setting)?;
        problem(&text).is_none().then(|| Self::parse(&text))
    }
}

impl Serialize for AccessLogTarget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_str(OFF),
            Self::Stderr => serializer.serialize_str(STDERR),
            Self::File(path) => serializer.serialize_str(&path.to_string_lossy()),
        }
    }
}

impl<'de> Deserialize<'de> for AccessLogTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::parse(&String::deserialize(deserializer)?))
    }
}
