//! Authentication: turns the head of a request into an [`Identity`].

use std::sync::Arc;

use async_trait::async_trait;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

use crate::server::{HttpParts, Identity, Scopes};

/// Finds out who sends a request, and what it may do.
///
/// ```
/// use async_trait::async_trait;
/// use outlast::server::{HttpParts, Identity, Scopes};
/// use outlast::transport::http::{Authenticate, Unauthenticated};
///
/// /// Trusts the name that a proxy in front of this server sends.
/// struct ProxyUser;
///
/// #[async_trait]
/// impl Authenticate for ProxyUser {
///     async fn authenticate(&self, request: &HttpParts) -> Result<Identity, Unauthenticated> {
///         let user = request.headers.get("x-user").ok_or(Unauthenticated::missing())?;
///         let user = user.to_str().map_err(|_| Unauthenticated::invalid())?;
///         Ok(Identity::principal(user).with_scopes(Scopes::CLIENT))
///     }
/// }
/// ```
#[async_trait]
pub trait Authenticate: Send + Sync + 'static {
    /// The identity behind a request. `request` is its head.
    async fn authenticate(&self, request: &HttpParts) -> Result<Identity, Unauthenticated>;
}

/// Why a request is not authenticated.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{kind}")]
pub struct Unauthenticated {
    pub(super) kind: UnauthenticatedKind,
    pub(super) challenge: Option<HeaderValue>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum UnauthenticatedKind {
    #[error("a bearer token is required")]
    Missing,
    #[error("the bearer token is unknown")]
    Invalid,
    #[error("authentication is not available: {0}")]
    Unavailable(String),
}

impl Unauthenticated {
    /// The request has no credentials. The response is 401.
    pub fn missing() -> Self {
        Self::of(UnauthenticatedKind::Missing)
    }

    /// The credentials are unknown, expired or revoked. The response is 401.
    pub fn invalid() -> Self {
        Self::of(UnauthenticatedKind::Invalid)
    }

    /// The credentials cannot be checked now, because of `why`. The response is 503.
    pub fn unavailable(why: impl Into<String>) -> Self {
        Self::of(UnauthenticatedKind::Unavailable(why.into()))
    }

    /// Whether the credentials could not be checked, so that a later request may be admitted.
    pub fn is_unavailable(&self) -> bool {
        matches!(self.kind, UnauthenticatedKind::Unavailable(_))
    }

    /// Sets the header `WWW-Authenticate` of the response.
    pub fn with_challenge(mut self, challenge: HeaderValue) -> Self {
        self.challenge = Some(challenge);
        self
    }

    fn of(kind: UnauthenticatedKind) -> Self {
        Self {
            kind,
            challenge: None,
        }
    }
}

/// A bearer token, its principal and its scopes. Only the hash is stored.
#[derive(Clone)]
pub struct Token {
    name: String,
    hash: [u8; 32],
    scopes: Scopes,
}

impl Token {
    /// The token `secret` of the principal `name`, with the scopes of a client.
    pub fn new(name: impl Into<String>, secret: &str) -> Self {
        Self::hashed(name, hash(secret.as_bytes()))
    }

    /// The token of the principal `name` whose SHA-256 is `hash`.
    pub fn hashed(name: impl Into<String>, hash: [u8; 32]) -> Self {
        Self {
            name: name.into(),
            hash,
            scopes: Scopes::CLIENT,
        }
    }

    /// Replaces the scopes.
    pub fn with_scopes(mut self, scopes: Scopes) -> Self {
        self.scopes = scopes;
        self
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Token({}: {})", self.name, self.scopes)
    }
}

/// Static bearer tokens.
///
/// ```
/// use outlast::Server;
/// use outlast::server::Scopes;
/// use outlast::transport::http::{BearerTokens, Token};
///
/// let tokens = BearerTokens::new([
///     Token::new("ada", "her-secret"),
///     Token::new("auditor", "another-secret").with_scopes(Scopes::READ),
/// ]);
/// let server = Server::builder("reports", "1.0").authenticate(tokens).build();
/// # drop(server);
/// ```
#[derive(Clone, Debug, Default)]
pub struct BearerTokens(Vec<Token>);

impl BearerTokens {
    /// Admits callers with one of `tokens`.
    pub fn new(tokens: impl IntoIterator<Item = Token>) -> Self {
        Self(tokens.into_iter().collect())
    }

    /// Like [`BearerTokens::new`], for the options of a server.
    pub fn shared(tokens: impl IntoIterator<Item = Token>) -> Arc<dyn Authenticate> {
        Arc::new(Self::new(tokens))
    }

    /// The identity behind the header `Authorization`.
    pub fn identify(&self, headers: &HeaderMap) -> Result<Identity, Unauthenticated> {
        let token = headers.get(AUTHORIZATION).and_then(bearer);
        let hash = hash(token.ok_or_else(Unauthenticated::missing)?);
        let mut found = None;
        // All tokens are compared in full, so that the time reveals nothing.
        for token in &self.0 {
            if token.hash.ct_eq(&hash).into() {
                found = Some(token);
            }
        }
        let token = found.ok_or_else(Unauthenticated::invalid)?;
        Ok(Identity::principal(&token.name).with_scopes(token.scopes))
    }
}

#[async_trait]
impl Authenticate for BearerTokens {
    async fn authenticate(&self, request: &HttpParts) -> Result<Identity, Unauthenticated> {
        self.identify(&request.headers)
    }
}

fn bearer(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, token) = value.as_bytes().split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| token.trim_ascii())
}

fn hash(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_principal_and_scopes() {
        let tokens = BearerTokens::new([
            Token::new("ada", "a-secret"),
            Token::new("bob", "b-secret").with_scopes(Scopes::READ),
        ]);
        let with = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
            tokens.identify(&headers)
        };
        let bob = Identity::principal("bob").with_scopes(Scopes::READ);
        assert_eq!(with("Bearer b-secret").unwrap(), bob);
        assert_eq!(with("bearer a-secret").unwrap(), Identity::principal("ada"));
        let kind = |value| with(value).unwrap_err().kind;
        assert!(matches!(kind("Bearer wrong"), UnauthenticatedKind::Invalid));
        assert!(matches!(kind("Basic YTpi"), UnauthenticatedKind::Missing));
        assert!(matches!(kind("x"), UnauthenticatedKind::Missing));
    }
}
