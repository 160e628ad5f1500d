//! The viewer of a page: an identity, and the session that it came with.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use outlast::server::{Identity, Scopes};
use outlast_engine::{Actor, Owner, Scope};

use super::session::SessionId;
use crate::error::ConsoleError;

/// Who sends a request. A handler with this argument is called for signed-in viewers only.
#[derive(Clone)]
pub(crate) struct Viewer {
    scopes: Scopes,
    scope: Scope,
    name: String,
    own: Option<Owner>,
    session: Option<SessionId>,
    csrf: String,
    /// The bearer token, for calls in the name of the viewer.
    token: Option<Arc<str>>,
}

impl Viewer {
    /// The viewer behind a session cookie; `None` if the identity owns nothing.
    pub(super) fn of_session(identity: Identity, id: &SessionId) -> Option<Self> {
        let mut viewer = Self::of(identity)?;
        viewer.csrf = id.csrf();
        viewer.session = Some(id.clone());
        Some(viewer)
    }

    /// The viewer behind a bearer token; `None` if the identity owns nothing.
    pub(crate) fn of(identity: Identity) -> Option<Self> {
        let scopes = identity.scopes();
        let scope = if scopes.contains(Scopes::OPERATE) {
            Scope::AnyTask
        } else {
            Scope::OwnedBy(identity.owner()?.clone())
        };
        let name = match identity.owner() {
            Some(Owner::Principal(name)) => name.to_string(),
            Some(other) => other.to_string(),
            None => "operator".to_owned(),
        };
        Some(Self {
            scopes,
            scope,
            name,
            own: identity.owner().cloned(),
            session: None,
            csrf: String::new(),
            token: None,
        })
    }

    pub(super) fn with_token(mut self, token: &str) -> Self {
        self.token = (!token.is_empty()).then(|| token.into());
        self
    }

    /// The bearer token of the viewer, for calls in its name.
    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The tasks that the viewer may see.
    pub(crate) fn scope(&self) -> Scope {
        self.scope.clone()
    }

    /// Who changes a task, for the engine and its audit trail.
    pub(crate) fn actor(&self) -> Actor {
        let name = match &self.own {
            Some(owner) => owner.to_string(),
            None => self.name(),
        };
        Actor::from(&self.scope).with_name(name)
    }

    /// The owner whose tasks the viewer sees; `None` for an operator, who sees all.
    pub(crate) fn owner(&self) -> Option<&Owner> {
        match &self.scope {
            Scope::OwnedBy(owner) => Some(owner),
            Scope::AnyTask => None,
        }
    }

    /// The owner of the viewer's own tasks.
    pub(crate) fn identity_owner(&self) -> Option<&Owner> {
        self.own.as_ref()
    }

    /// Whether the viewer sees the tasks of every owner.
    pub(crate) fn is_operator(&self) -> bool {
        self.scope == Scope::AnyTask
    }

    /// The name for the page.
    pub(crate) fn name(&self) -> String {
        self.name.clone()
    }

    pub(crate) fn scopes(&self) -> Scopes {
        self.scopes
    }

    /// Whether the viewer may do what needs `scopes`.
    pub(crate) fn can(&self, scopes: Scopes) -> bool {
        self.scopes.contains(scopes)
    }

    /// Fails if the viewer may not do what needs `scopes`.
    pub(crate) fn require(&self, scopes: Scopes) -> Result<(), ConsoleError> {
        if self.can(scopes) {
            Ok(())
        } else {
            Err(ConsoleError::missing_scope(scopes))
        }
    }

    /// The CSRF token of the viewer's pages.
    pub(crate) fn csrf(&self) -> &str {
        &self.csrf
    }

    pub(super) fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }
}

/// The access layer has put the viewer into the request.
impl<S: Sync> FromRequestParts<S> for Viewer {
    type Rejection = ConsoleError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ConsoleError> {
        let viewer = parts.extensions.get::<Self>().cloned();
        viewer.ok_or_else(|| ConsoleError::new(StatusCode::UNAUTHORIZED, "sign in first"))
    }
}
