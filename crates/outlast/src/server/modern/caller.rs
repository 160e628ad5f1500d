//! Who sends a modern request, and which tasks it may see.

use std::borrow::Cow;
use std::net::IpAddr;

use outlast_engine::{Owner, Scope};

/// Who sends a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A principal, or whoever started the process.
    Principal(Owner),
    /// Nobody in particular. The id of a task is the secret that gives access to it; the address only bounds how
    /// many tasks there are.
    Anonymous(Owner),
}

impl Caller {
    /// Nobody in particular, from this address.
    pub(crate) fn from_address(address: IpAddr) -> Self {
        Self::Anonymous(Owner::Address(network(address)))
    }

    /// Whose tasks the visitor's calls become.
    pub(crate) fn owner(&self) -> &Owner {
        match self {
            Self::Principal(owner) | Self::Anonymous(owner) => owner,
        }
    }

    /// Where the visitor's tasks are looked for. What is found is still to be judged by [`Caller::may_see`].
    pub(crate) fn scope(&self) -> Scope {
        match self {
            Self::Principal(owner) => Scope::Of(owner.clone()),
            Self::Anonymous(_) => Scope::Anyone,
        }
    }

    /// Whether the visitor may see a task of `owner` (V2-SEC-2).
    pub(crate) fn may_see(&self, owner: &Owner) -> bool {
        match self {
            Self::Principal(caller) => caller == owner,
            // Tasks of principals and of legacy sessions are theirs alone.
            Self::Anonymous(_) => matches!(owner, Owner::Address(_)),
        }
    }

    /// The name that a sealed state is bound to: nobody in particular has none.
    pub(crate) fn principal(&self) -> Cow<'static, str> {
        match self {
            Self::Principal(owner) => owner.to_storage(),
            Self::Anonymous(_) => "".into(),
        }
    }
}

/// The part of an address that one household or machine has to itself: the last half of an IPv6 address is free.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Caller {
        Caller::from_address(address.parse().unwrap())
    }

    #[test]
    fn without_a_name_the_id_is_the_secret_but_only_for_tasks_of_nobody() {
        // V2-SEC-2.
        let (one, two) = (at("10.0.0.1"), at("10.0.0.2"));
        assert!(one.may_see(two.owner()));
        assert!(!one.may_see(&Owner::principal("ada")));
        assert!(!one.may_see(&Owner::session("x")));
        let ada = Caller::Principal(Owner::principal("ada"));
        assert!(ada.may_see(&Owner::principal("ada")));
        assert!(!ada.may_see(one.owner()));
    }

    #[test]
    fn a_network_counts_as_one_address() {
        assert_eq!(at("2001:db8:1:2:3::4"), at("2001:db8:1:2::9"));
        assert_ne!(at("2001:db8:1:2::"), at("2001:db8:1:3::"));
        assert_eq!(at("::ffff:10.0.0.1"), at("10.0.0.1"));
        assert_ne!(at("10.0.0.1"), at("10.0.0.2"));
    }
}
