//! The session of a browser: a record in the store, found by the cookie.
//!
//! The record contains the viewer's token, encrypted with a key that only the cookie yields. A copy
//! of the store gives access to nothing.

use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use outlast::server::Identity;
use outlast_engine::store::{Record, RecordKey, RecordWrite};
use outlast_engine::{Clock as _, Engine, Owner, SystemClock, random};
use sha2::{Digest, Sha256};

use crate::error::ConsoleError;

/// The random id in the cookie.
#[derive(Clone)]
pub(super) struct SessionId(String);

/// A loaded session.
pub(super) struct SignInSession {
    /// The bearer token that the session was exchanged for.
    pub(super) token: String,
}

impl SessionId {
    /// Reads the value of a cookie.
    pub(super) fn read(text: &str) -> Option<Self> {
        random::is_token::<ID_BYTES>(text).then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The CSRF token of the session's pages.
    pub(super) fn csrf(&self) -> String {
        hex(&self.derive("csrf"))
    }

    /// A name for the session that may be shown and stored.
    pub(super) fn public_name(&self) -> String {
        hex(&self.derive("name"))
    }

    fn record_key(&self) -> RecordKey {
        RecordKey::new(RECORD_KIND, hex(&self.derive("record")))
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Key::from(self.derive("key")))
    }

    /// A value for one purpose. None reveals another, or the id.
    fn derive(&self, purpose: &str) -> [u8; 32] {
        let mut digest = Sha256::new();
        digest.update("outlast console ");
        digest.update(purpose);
        digest.update([0]);
        digest.update(&self.0);
        digest.finalize().into()
    }
}

impl SignInSession {
    /// Stores a new session. Above the limit it replaces the oldest of the same identity.
    pub(super) async fn create(
        engine: &Engine,
        identity: &Identity,
        token: &str,
    ) -> Result<SessionId, ConsoleError> {
        let now = SystemClock.now();
        let id = SessionId(random::token::<ID_BYTES>());
        let nonce: [u8; NONCE_BYTES] = random::bytes();
        let sealed = id.cipher().encrypt(&XNonce::from(nonce), token.as_bytes());
        let sealed = sealed.map_err(|_| ConsoleError::invalid("the token is too long"))?;
        let owner = identity.owner().cloned().unwrap_or(Owner::Local);
        let mut writes = vec![RecordWrite::Put(Record {
            key: id.record_key(),
            owner: Some(owner.clone()),
            expires: Some(now.plus(SESSION_TTL_MS)),
            bytes: [&nonce[..], &sealed].concat().into(),
        })];
        let mut known = engine
            .store()
            .records(RECORD_KIND, Some(&owner), now)
            .await?;
        known.sort_by_key(|record| record.expires);
        let excess = (known.len() + 1).saturating_sub(MAX_SESSIONS_PER_OWNER);
        let oldest = known.into_iter().take(excess);
        writes.extend(oldest.map(|record| RecordWrite::Delete(record.key)));
        engine.store().write_records(writes).await?;
        Ok(id)
    }

    /// Loads a session that has not ended.
    pub(super) async fn load(
        engine: &Engine,
        id: &SessionId,
    ) -> Result<Option<Self>, ConsoleError> {
        let now = SystemClock.now();
        let record = engine.store().record(&id.record_key(), now).await?;
        Ok(record.and_then(|record| {
            let (nonce, sealed) = record.bytes.split_at_checked(NONCE_BYTES)?;
            let nonce = <[u8; NONCE_BYTES]>::try_from(nonce).ok()?;
            let token = id.cipher().decrypt(&XNonce::from(nonce), sealed).ok()?;
            let token = String::from_utf8(token).ok()?;
            Some(Self { token })
        }))
    }

    /// Ends a session.
    pub(super) async fn end(engine: &Engine, id: &SessionId) -> Result<(), ConsoleError> {
        let delete = RecordWrite::Delete(id.record_key());
        Ok(engine.store().write_records(vec![delete]).await?)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const RECORD_KIND: &str = "consoleSession";

const ID_BYTES: usize = 32;

const NONCE_BYTES: usize = 24;

/// How long a browser stays signed in.
pub(super) const SESSION_TTL_MS: u64 = 30 * 24 * 3_600_000;

const MAX_SESSIONS_PER_OWNER: usize = 50;
