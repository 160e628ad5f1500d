//! The owner of a task. Access is decided by comparing [`Owner`] values, never by comparing text.

use std::borrow::Cow;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

/// The owner of a task.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// An authenticated principal, by name.
    Principal(Arc<str>),
    /// A session without authentication, by its id. The id gives access to the session's tasks.
    Session(Arc<str>),
    /// A network address without authentication or session. It only limits the number of tasks: the
    /// id of a task gives access to it.
    Address(IpAddr),
    /// The user that started the process.
    Local,
}

impl Owner {
    /// The principal of that name.
    pub fn principal(name: impl Into<Arc<str>>) -> Self {
        Self::Principal(name.into())
    }

    /// The session with that id.
    pub fn session(id: impl Into<Arc<str>>) -> Self {
        Self::Session(id.into())
    }

    /// The text for a column of a store or a command line. [`Owner::from_str`] reads it back. It
    /// contains the full id of a session: logs and messages use [`Display`](fmt::Display) instead.
    pub fn to_storage(&self) -> Cow<'static, str> {
        match self {
            Self::Principal(name) => format!("{PRINCIPAL}{name}").into(),
            Self::Session(id) => format!("{SESSION}{id}").into(),
            Self::Address(address) => format!("{ADDRESS}{address}").into(),
            Self::Local => LOCAL.into(),
        }
    }
}

impl FromStr for Owner {
    type Err = OwnerParseError;

    fn from_str(text: &str) -> Result<Self, OwnerParseError> {
        if let Some(name) = text.strip_prefix(PRINCIPAL) {
            return Ok(Self::principal(name));
        }
        if let Some(id) = text.strip_prefix(SESSION) {
            return Ok(Self::session(id));
        }
        if let Some(address) = text.strip_prefix(ADDRESS) {
            let address = address.parse().map_err(|_| OwnerParseError);
            return address.map(Self::Address);
        }
        match text {
            LOCAL => Ok(Self::Local),
            _ => Err(OwnerParseError),
        }
    }
}

/// The text is not one that [`Owner::to_storage`] makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an owner: expected `local`, `principal:NAME`, `session:ID` or `address:IP`, such as `principal:ada`"
)]
pub struct OwnerParseError;

/// The text for logs and messages. It shows a digest of a session id, because the id gives access.
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(id) => {
                f.write_str(SESSION)?;
                let mut digest = DefaultHasher::new();
                id.hash(&mut digest);
                write!(f, "#{:08x}", digest.finish() >> 32)
            }
            Self::Principal(_) | Self::Address(_) | Self::Local => f.write_str(&self.to_storage()),
        }
    }
}

/// As [`Display`](fmt::Display): debug output ends up in logs as well.
impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({self})")
    }
}

const PRINCIPAL: &str = "principal:";
const SESSION: &str = "session:";
const ADDRESS: &str = "address:";
const LOCAL: &str = "local";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn owner() -> impl Strategy<Value = Owner> {
        prop_oneof![
            "\\PC{0,40}".prop_map(Owner::principal),
            "\\PC{0,40}".prop_map(Owner::session),
            any::<IpAddr>().prop_map(Owner::Address),
            Just(Owner::Local),
        ]
    }

    proptest! {
        #[test]
        fn the_stored_text_reads_back(owner in owner()) {
            prop_assert_eq!(owner.to_storage().parse(), Ok(owner));
        }

        #[test]
        fn different_owners_have_different_texts(one in owner(), other in owner()) {
            prop_assert_eq!(one == other, one.to_storage() == other.to_storage());
        }

        #[test]
        fn displayed_owners_contain_no_session_id(id in "[a-z0-9]{7,40}") {
            let owner = Owner::session(id.as_str());
            let shown = format!("{owner} {owner:?}");
            prop_assert!(!shown.contains(&id));
        }
    }

    #[test]
    fn a_principal_with_any_name_stays_a_principal() {
        for name in ["local", "session:x", "address:10.0.0.1", "principal:ada"] {
            let owner = Owner::principal(name);
            assert_eq!(owner.to_storage().parse(), Ok(owner.clone()));
            assert!(matches!(owner, Owner::Principal(_)));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "ada",
            "Local",
            "local ",
            "address:",
            "address:x",
            "address:10.0.0.1:80",
        ] {
            assert_eq!(text.parse::<Owner>(), Err(OwnerParseError), "{text}");
        }
    }
}
