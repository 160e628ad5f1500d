//! Who uses a task. The scope decides the access; the name is only for the audit trail.

use std::borrow::Cow;
use std::sync::Arc;

use crate::id::Scope;
use crate::owner::Owner;

/// Who cancels, answers or deletes a task.
///
/// A [`Scope`] converts into an actor: with [`Scope::OwnedBy`] it is the owner, with
/// [`Scope::AnyTask`] an operator without a name.
///
/// ```
/// use outlast_engine::{Actor, Scope};
///
/// let operator = Actor::from(&Scope::AnyTask).with_name("principal:ops");
/// assert_eq!(operator.scope(), &Scope::AnyTask);
/// ```
#[derive(Clone, Debug)]
pub struct Actor {
    scope: Scope,
    name: Name,
}

#[derive(Clone, Debug)]
enum Name {
    /// The name that follows from the scope.
    OfScope,
    /// The owner of the task, whose connection runs the call.
    Owner,
    Given(Arc<str>),
}

impl Actor {
    /// The caller of a call that its own connection still follows.
    pub(super) fn caller() -> Self {
        Self {
            scope: Scope::AnyTask,
            name: Name::Owner,
        }
    }

    /// The name for the audit trail, such as `principal:ops`.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Name::Given(name.into());
        self
    }

    /// The tasks that the actor may access.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The name for an event of a task of `owner`.
    pub(super) fn name(&self, owner: &Owner) -> Cow<'_, str> {
        match (&self.name, &self.scope) {
            (Name::Given(name), _) => Cow::Borrowed(name),
            (Name::OfScope, Scope::AnyTask) => Cow::Borrowed("operator"),
            (Name::Owner, _) | (Name::OfScope, Scope::OwnedBy(_)) => Cow::Owned(owner.to_string()),
        }
    }
}

impl From<&Scope> for Actor {
    fn from(scope: &Scope) -> Self {
        scope.clone().into()
    }
}

impl From<Scope> for Actor {
    fn from(scope: Scope) -> Self {
        Self {
            scope,
            name: Name::OfScope,
        }
    }
}

impl From<&Actor> for Actor {
    fn from(actor: &Actor) -> Self {
        actor.clone()
    }
}
