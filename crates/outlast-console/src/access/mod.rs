//! Who may see and change what.
//!
//! A bearer token is exchanged once for a session: a random id in a cookie. Each request of the
//! session authenticates with that token again, so that a revoked token ends its sessions. A script
//! of another program may send the token itself in `Authorization`.
//!
//! A change with a cookie needs the page's own origin and its CSRF token.

mod guard;
mod headers;
mod session;
mod sign_in;
mod viewer;

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, HeaderValue};
use outlast::server::{HttpParts, Identity};
use outlast::transport::http::Authenticate;
use outlast_engine::{Clock as _, Engine, SystemClock, random};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

use crate::error::ConsoleError;

pub(crate) use guard::guard;
pub(crate) use headers::response_headers;
use session::{SessionId, SignInSession};
pub(crate) use sign_in::{sign_in, sign_in_page, sign_out};
pub(crate) use viewer::Viewer;

/// Tokens and sessions of one console.
pub(crate) struct Access {
    engine: Engine,
    authenticate: Arc<dyn Authenticate>,
    /// The token behind one-time codes.
    secret: Option<String>,
    /// Codes that have not been used, oldest first.
    codes: Mutex<Vec<OneTimeCode>>,
    instance: String,
    cookie: String,
    base: String,
}

struct OneTimeCode {
    hash: [u8; 32],
    expires_ms: u64,
}

impl Access {
    pub(crate) fn new(
        engine: Engine,
        authenticate: Arc<dyn Authenticate>,
        secret: Option<String>,
        instance: &str,
        base: &str,
    ) -> Self {
        let digest = Sha256::digest(instance.as_bytes());
        let digits: String = digest
            .iter()
            .take(6)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self {
            engine,
            authenticate,
            secret,
            codes: Mutex::default(),
            cookie: format!("outlast_console_{digits}"),
            instance: digits,
            base: base.to_owned(),
        }
    }

    /// Tells two consoles on one host apart.
    pub(crate) fn instance(&self) -> &str {
        &self.instance
    }

    /// The path under which the console is mounted.
    fn base(&self) -> &str {
        &self.base
    }

    /// A code that signs in once, if there is a token behind it.
    pub(crate) fn one_time_code(&self) -> Option<String> {
        self.secret.as_ref()?;
        let code = format!("{CODE_PREFIX}{}", random::token::<32>());
        let mut codes = self.codes.lock();
        if codes.len() >= MAX_CODES {
            codes.remove(0);
        }
        codes.push(OneTimeCode {
            hash: Sha256::digest(code.as_bytes()).into(),
            expires_ms: SystemClock.now().plus(CODE_TTL.as_millis() as u64).0,
        });
        Some(code)
    }

    /// The token behind `given`, which is a one-time code or the token itself.
    fn redeem(&self, given: &str) -> String {
        let hash: [u8; 32] = Sha256::digest(given.as_bytes()).into();
        let now = SystemClock.now().0;
        let mut codes = self.codes.lock();
        codes.retain(|code| code.expires_ms > now);
        let mut found = None;
        for (at, code) in codes.iter().enumerate() {
            if code.hash.ct_eq(&hash).into() {
                found = Some(at);
            }
        }
        match (found, &self.secret) {
            (Some(at), Some(secret)) => {
                codes.remove(at);
                secret.clone()
            }
            _ => given.to_owned(),
        }
    }

    /// The identity behind a token, if it is valid now.
    async fn identify(&self, token: &str) -> Result<Option<Identity>, ConsoleError> {
        let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {token}")) else {
            return Ok(None);
        };
        value.set_sensitive(true);
        let (mut head, ()) = axum::http::Request::new(()).into_parts();
        head.headers.insert(AUTHORIZATION, value);
        self.identify_request(&head).await
    }

    /// The identity behind the header `Authorization` of a request.
    async fn identify_request(&self, head: &HttpParts) -> Result<Option<Identity>, ConsoleError> {
        match self.authenticate.authenticate(head).await {
            Ok(identity) => Ok(Some(identity)),
            Err(error) if error.is_unavailable() => Err(ConsoleError::new(
                axum::http::StatusCode::SERVICE_UNAVAILABLE,
                error.to_string(),
            )),
            Err(_) => Ok(None),
        }
    }

    /// Exchanges a token or a one-time code for a session.
    async fn open_session(&self, given: &str) -> Result<Option<SessionId>, ConsoleError> {
        let token = self.redeem(given);
        let Some(identity) = self.identify(&token).await? else {
            return Ok(None);
        };
        let id = SignInSession::create(&self.engine, &identity, &token).await?;
        Ok(Some(id))
    }

    /// The viewer behind a session.
    async fn viewer_of(&self, id: &SessionId) -> Result<Option<Viewer>, ConsoleError> {
        let Some(session) = SignInSession::load(&self.engine, id).await? else {
            return Ok(None);
        };
        let identity = self.identify(&session.token).await?;
        let viewer = identity.and_then(|identity| Viewer::of_session(identity, id));
        Ok(viewer.map(|viewer| viewer.with_token(&session.token)))
    }

    /// Whether the session of a viewer has not ended.
    pub(crate) async fn is_current(&self, viewer: &Viewer) -> bool {
        match viewer.session() {
            // A program that sends its token is checked at its next request.
            None => true,
            // An error of the store is no reason to end a stream.
            Some(id) => !matches!(self.viewer_of(id).await, Ok(None)),
        }
    }
}

/// The maximum number of unused codes. A further one replaces the oldest.
const MAX_CODES: usize = 16;

/// How long a code is valid.
const CODE_TTL: Duration = Duration::from_secs(3_600);

/// Tells a code from a token, for a person.
const CODE_PREFIX: &str = "once_";
