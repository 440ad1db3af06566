//! Conversions of [`ServerName`] from and to text. Maps with names as keys are searched by `&str`.

use std::{
    borrow::{Borrow, Cow},
    convert::Infallible,
};

use serde::{Deserialize, Deserializer, de::Error as _};

use super::{BadServerName, ServerName};

impl AsRef<str> for ServerName {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

// `Eq`, `Ord` and `Hash` of a name are those of its text.
impl Borrow<str> for ServerName {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq<str> for ServerName {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for ServerName {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<ServerName> for str {
    fn eq(&self, other: &ServerName) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<ServerName> for &str {
    fn eq(&self, other: &ServerName) -> bool {
        *self == other.as_str()
    }
}

impl TryFrom<String> for ServerName {
    type Error = BadServerName;

    fn try_from(name: String) -> Result<Self, BadServerName> {
        Self::parse(&name)
    }
}

impl TryFrom<&String> for ServerName {
    type Error = BadServerName;

    fn try_from(name: &String) -> Result<Self, BadServerName> {
        Self::parse(name)
    }
}

impl From<&Self> for ServerName {
    fn from(name: &Self) -> Self {
        name.clone()
    }
}

impl From<ServerName> for String {
    fn from(name: ServerName) -> Self {
        name.as_str().to_owned()
    }
}

impl From<Infallible> for BadServerName {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl<'de> Deserialize<'de> for ServerName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&name).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use super::*;

    #[test]
    fn a_name_equals_its_text_and_is_found_by_it() {
        let name = ServerName::parse("k8s").unwrap();
        assert!(name == "k8s" && name == *"k8s");
        assert!("k8s" == name && *"k8s" == name);
        assert_eq!(name.as_ref(), "k8s");
        let sorted: BTreeMap<_, _> = [(name.clone(), 1)].into();
        let hashed: HashMap<_, _> = [(name.clone(), 1)].into();
        assert_eq!((sorted.get("k8s"), hashed.get("k8s")), (Some(&1), Some(&1)));
        assert_eq!(ServerName::try_from("k8s".to_owned()), Ok(name.clone()));
        assert_eq!(String::from(name), "k8s");
    }

    #[test]
    fn a_name_is_read_from_json_also_as_a_key_and_an_invalid_one_is_refused() {
        let name = ServerName::parse("k8s").unwrap();
        assert_eq!(serde_json::from_str::<ServerName>("\"k8s\"").unwrap(), name);
        let keyed: BTreeMap<ServerName, u8> = serde_json::from_str(r#"{"k8s": 1}"#).unwrap();
        assert_eq!(serde_json::to_string(&keyed).unwrap(), r#"{"k8s":1}"#);
        let refused = serde_json::from_str::<ServerName>("\"a b\"").unwrap_err().to_string();
        assert!(refused.contains("`a b` cannot be a server name"), "{refused}");
    }
}
