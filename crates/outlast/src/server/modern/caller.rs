//! The sender of a modern request, and the tasks that it may access.

use std::borrow::Cow;
use std::net::IpAddr;

use outlast_engine::{Owner, Scope};

/// The sender of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// An authenticated principal, or the local user on stdio.
    Principal(Owner),
    /// A caller without authentication. The id of a task is the secret that gives access to it; the
    /// address only limits the number of tasks.
    Anonymous(Owner),
}

impl Caller {
    /// An anonymous caller at this address.
    pub(crate) fn from_address(address: IpAddr) -> Self {
        Self::Anonymous(Owner::Address(network(address)))
    }

    /// The owner of the caller's tasks.
    pub(crate) fn owner(&self) -> &Owner {
        match self {
            Self::Principal(owner) | Self::Anonymous(owner) => owner,
        }
    }

    /// Where the caller's tasks are looked up. Check the result with [`Caller::may_see`].
    pub(crate) fn scope(&self) -> Scope {
        match self {
            Self::Principal(owner) => Scope::OwnedBy(owner.clone()),
            Self::Anonymous(_) => Scope::AnyTask,
        }
    }

    /// Whether the caller may access a task of `owner` (V2-SEC-2).
    pub(crate) fn may_see(&self, owner: &Owner) -> bool {
        match self {
            Self::Principal(caller) => caller == owner,
            // Tasks of principals and of legacy sessions are private.
            Self::Anonymous(_) => matches!(owner, Owner::Address(_)),
        }
    }

    /// The name that a `requestState` is bound to; empty for an anonymous caller.
    pub(crate) fn principal(&self) -> Cow<'static, str> {
        match self {
            Self::Principal(owner) => owner.to_storage(),
            Self::Anonymous(_) => "".into(),
        }
    }
}

/// The network of an address: one subscriber can use all addresses of an IPv6 /64.
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
    fn anonymous_callers_access_anonymous_tasks_only() {
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
    fn an_ipv6_network_counts_as_one_address() {
        assert_eq!(at("2001:db8:1:2:3::4"), at("2001:db8:1:2::9"));
        assert_ne!(at("2001:db8:1:2::"), at("2001:db8:1:3::"));
        assert_eq!(at("::ffff:10.0.0.1"), at("10.0.0.1"));
        assert_ne!(at("10.0.0.1"), at("10.0.0.2"));
    }
}
