//! What an authenticated caller may do: its scopes, and the scopes that each message needs.
//!
//! The check is the last step before a request is handled, after all middleware. Therefore it holds
//! for both eras and all transports, also if middleware changes the method. The HTTP transport
//! applies the same rules before, to reply with 403.

use std::fmt;
use std::ops::BitOr;
use std::str::FromStr;

use outlast_engine::Owner;
use outlast_wire::envelope::ErrorObject;
use outlast_wire::{Raw, RawRef, codes, notice, tool, v1, v2};
use serde::Deserialize;

use super::delivery::CANCEL_TOOL;

/// A set of scopes.
///
/// ```
/// use outlast::server::Scopes;
///
/// let scopes: Scopes = "read call".parse()?;
/// assert!(scopes.contains(Scopes::READ) && !scopes.contains(Scopes::CANCEL));
/// assert_eq!(scopes | Scopes::CANCEL, "read call cancel".parse()?);
/// # Ok::<_, outlast::server::UnknownScope>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scopes(u8);

/// Who sends a request, and what it may do.
///
/// ```
/// use outlast::server::{Identity, Scopes};
///
/// let identity = Identity::principal("ada").with_scopes(Scopes::READ);
/// assert!(!identity.scopes().contains(Scopes::CALL));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    owner: Option<Owner>,
    scopes: Scopes,
}

/// A word that is not the name of a scope.
#[derive(Clone, Debug, thiserror::Error)]
#[error("`{0}` is not a scope; the scopes are read, call, cancel, answer and operate")]
pub struct UnknownScope(String);

impl Scopes {
    /// No scope.
    pub const NONE: Self = Self(0);
    /// Lists tools, prompts and resources, reads them, and reads tasks and their results.
    pub const READ: Self = Self(1);
    /// Calls tools, and methods that a backend adds.
    pub const CALL: Self = Self(1 << 1);
    /// Cancels tasks and requests, and ends sessions.
    pub const CANCEL: Self = Self(1 << 2);
    /// Answers the input requests of tasks.
    pub const ANSWER: Self = Self(1 << 3);
    /// Sees and changes the tasks of every owner, in a console. No MCP method needs it.
    pub const OPERATE: Self = Self(1 << 4);
    /// What a client needs: every scope except [`Scopes::OPERATE`].
    pub const CLIENT: Self = Self(0b0_1111);
    /// Every scope.
    pub const ALL: Self = Self(0b1_1111);

    /// Whether every scope of `other` is in this set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of the scopes in this set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let all = NAMES.into_iter();
        all.filter_map(move |(name, scope)| self.contains(scope).then_some(name))
    }

    /// The scopes of `other` that are not in this set.
    fn missing(self, other: Self) -> Self {
        Self(other.0 & !self.0)
    }
}

impl BitOr for Scopes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().collect::<Vec<_>>().join(" "))
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scopes({self})")
    }
}

/// Parses names that are separated by spaces or commas.
impl FromStr for Scopes {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        let words = text.split([' ', ',']).filter(|word| !word.is_empty());
        words.into_iter().try_fold(Self::NONE, |all, word| {
            let mut names = NAMES.into_iter();
            match names.find(|(name, _)| *name == word) {
                Some((_, scope)) => Ok(all | scope),
                None => Err(UnknownScope(word.to_owned())),
            }
        })
    }
}

impl Identity {
    /// The principal `name`, with the scopes of a client.
    pub fn principal(name: &str) -> Self {
        Self::owner_with(Some(Owner::principal(name)))
    }

    /// A caller without a name, with the scopes of a client. Each of its legacy sessions is a
    /// separate owner; the id of a modern task is the secret that gives access to it.
    pub fn anonymous() -> Self {
        Self::owner_with(None)
    }

    /// The identity that another node has authenticated.
    #[cfg(feature = "http")]
    pub(crate) fn of_node(owner: Option<Owner>, scopes: Scopes) -> Self {
        Self { owner, scopes }
    }

    fn owner_with(owner: Option<Owner>) -> Self {
        Self {
            owner,
            scopes: Scopes::CLIENT,
        }
    }

    /// Replaces the scopes.
    pub fn with_scopes(mut self, scopes: Scopes) -> Self {
        self.scopes = scopes;
        self
    }

    /// The owner of the caller's tasks; `None` for an anonymous caller.
    pub fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref()
    }

    /// What the caller may do.
    pub fn scopes(&self) -> Scopes {
        self.scopes
    }
}

/// Checks that `scopes` suffice for a request.
pub(crate) fn check_request(
    scopes: Scopes,
    method: &str,
    params: Option<RawRef<'_>>,
) -> Result<(), Scopes> {
    if scopes.contains(Scopes::CLIENT) {
        return Ok(());
    }
    check(scopes, needed_for_request(method, params))
}

/// Checks that `scopes` suffice for a notification.
pub(crate) fn check_notification(scopes: Scopes, method: &str) -> Result<(), Scopes> {
    let needed = match method {
        notice::CANCELLED => Scopes::CANCEL,
        _ => Scopes::READ,
    };
    check(scopes, needed)
}

/// Checks that `scopes` contain `needed`. The error names the missing scopes.
pub(crate) fn check(scopes: Scopes, needed: Scopes) -> Result<(), Scopes> {
    match scopes.missing(needed) {
        Scopes::NONE => Ok(()),
        missing => Err(missing),
    }
}

/// The JSON-RPC error for missing scopes.
pub(crate) fn denied(missing: Scopes) -> ErrorObject {
    codes::invalid_request(format!(
        "the caller has no permission for this request; missing scope: {missing}"
    ))
}

fn needed_for_request(method: &str, params: Option<RawRef<'_>>) -> Scopes {
    match method {
        tool::CALL => needed_for_call(params),
        v1::method::CANCEL => Scopes::CANCEL,
        v2::method::UPDATE => Scopes::ANSWER,
        _ if READ_METHODS.contains(&method) => Scopes::READ,
        // A method of a backend can have any effect.
        _ => Scopes::CALL,
    }
}

/// The scopes of `tools/call`, which can also cancel a task by the helper tool, and carry input
/// responses.
fn needed_for_call(params: Option<RawRef<'_>>) -> Scopes {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct CallParams {
        name: Option<String>,
        input_responses: Option<Raw>,
    }
    let call = params.and_then(|params| serde_json::from_str::<CallParams>(params.as_str()).ok());
    let Some(call) = call else {
        // Another parser may accept such params, for example with a repeated member.
        return Scopes::CLIENT;
    };
    let mut needed = Scopes::CALL;
    if call.name.as_deref() == Some(CANCEL_TOOL) {
        needed = needed | Scopes::CANCEL;
    }
    if call.input_responses.is_some() {
        needed = needed | Scopes::ANSWER;
    }
    needed
}

const NAMES: [(&str, Scopes); 5] = [
    ("read", Scopes::READ),
    ("call", Scopes::CALL),
    ("cancel", Scopes::CANCEL),
    ("answer", Scopes::ANSWER),
    ("operate", Scopes::OPERATE),
];

/// The requests that change nothing except the caller's own session.
const READ_METHODS: [&str; 17] = [
    v1::method::INITIALIZE,
    v2::method::DISCOVER,
    v2::method::LISTEN,
    v1::method::GET,
    v1::method::RESULT,
    v1::method::LIST,
    tool::LIST,
    outlast_wire::method::PING,
    outlast_wire::method::PROMPTS_LIST,
    outlast_wire::method::PROMPTS_GET,
    outlast_wire::method::RESOURCES_LIST,
    outlast_wire::method::RESOURCE_TEMPLATES_LIST,
    outlast_wire::method::RESOURCES_READ,
    outlast_wire::method::RESOURCES_SUBSCRIBE,
    outlast_wire::method::RESOURCES_UNSUBSCRIBE,
    outlast_wire::method::COMPLETE,
    outlast_wire::log::SET_LEVEL,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn needed(method: &str, params: &str) -> Scopes {
        let params = Raw::parse(params.to_owned()).unwrap();
        needed_for_request(method, Some(params.borrow()))
    }

    #[test]
    fn every_method_needs_a_scope() {
        assert_eq!(needed("tasks/get", "{}"), Scopes::READ);
        assert_eq!(needed("tasks/cancel", "{}"), Scopes::CANCEL);
        assert_eq!(needed("tasks/update", "{}"), Scopes::ANSWER);
        assert_eq!(needed("example/anything", "{}"), Scopes::CALL);
        assert_eq!(needed("tools/call", r#"{"name":"a"}"#), Scopes::CALL);
        let cancel = needed("tools/call", r#"{"name":"task_cancel"}"#);
        assert_eq!(cancel, Scopes::CALL | Scopes::CANCEL);
        let answer = needed("tools/call", r#"{"name":"a","inputResponses":{}}"#);
        assert_eq!(answer, Scopes::CALL | Scopes::ANSWER);
    }

    #[test]
    fn the_error_names_the_missing_scopes() {
        let missing = check(Scopes::READ, Scopes::CALL | Scopes::CANCEL).unwrap_err();
        assert_eq!(missing.to_string(), "call cancel");
        assert_eq!(check(Scopes::ALL, Scopes::CLIENT), Ok(()));
        assert!("reed".parse::<Scopes>().is_err());
    }
}
