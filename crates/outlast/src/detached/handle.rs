//! The handle of a detached task: what another program needs to report its work.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use outlast_engine::task::ResumeState;
use outlast_engine::{Attempt, TaskId, random};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The right to report and end one detached task. Its text form contains a secret: give it only to
/// the program that does the work.
///
/// It is one text in JSON and in its `Display` form, and stays valid over restarts.
///
/// ```
/// use outlast::detached::{CompletionHandle, InvalidHandle};
///
/// /// What a worker takes from a queue.
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Job {
///     title: String,
///     handle: CompletionHandle,
/// }
///
/// let handle = "5ksmzk715k9jk0by6w40gkgzj6.2.0secret".parse::<CompletionHandle>();
/// assert_eq!(handle.map(|handle| handle.to_string().len()), Ok(36));
/// assert_eq!("no handle".parse::<CompletionHandle>(), Err(InvalidHandle));
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct CompletionHandle {
    task: TaskId,
    attempt: Attempt,
    secret: String,
}

/// A text that is not a [`CompletionHandle`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this text is not the handle of a detached task")]
pub struct InvalidHandle;

/// What the store keeps instead of a secret.
pub(super) struct SecretHash([u8; 32]);

impl CompletionHandle {
    /// The id of the task.
    pub fn task(&self) -> TaskId {
        self.task
    }

    pub(super) fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// A handle with `secret`.
    pub(crate) fn new(task: TaskId, attempt: Attempt, secret: Secret) -> Self {
        Self {
            task,
            attempt,
            secret: secret.0,
        }
    }

    /// Whether its secret is the one that was stored.
    pub(super) fn matches(&self, stored: Option<&ResumeState>) -> bool {
        let given = SecretHash::of(&self.secret);
        let stored = stored.and_then(SecretHash::read);
        stored.is_some_and(|stored| stored.0.ct_eq(&given.0).into())
    }
}

/// A fresh secret of 128 random bits.
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn random() -> Self {
        Self(random::token::<SECRET_BYTES>())
    }

    /// What is stored with the task.
    pub(crate) fn stored(&self) -> ResumeState {
        let mut bytes = STORED_PREFIX.to_vec();
        bytes.extend_from_slice(&SecretHash::of(&self.0).0);
        ResumeState(Arc::from(bytes))
    }
}

impl SecretHash {
    fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    fn read(stored: &ResumeState) -> Option<Self> {
        let hash = stored.0.strip_prefix(STORED_PREFIX)?;
        Some(Self(hash.try_into().ok()?))
    }
}

impl fmt::Display for CompletionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.task, self.attempt.0, self.secret)
    }
}

/// Hides the secret.
impl fmt::Debug for CompletionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CompletionHandle({}.{}.…)", self.task, self.attempt.0)
    }
}

impl FromStr for CompletionHandle {
    type Err = InvalidHandle;

    fn from_str(text: &str) -> Result<Self, InvalidHandle> {
        let mut parts = text.splitn(3, '.');
        let mut part = || parts.next().ok_or(InvalidHandle);
        Ok(Self {
            task: part()?.parse().map_err(|_| InvalidHandle)?,
            attempt: Attempt(part()?.parse().map_err(|_| InvalidHandle)?),
            secret: part()?.to_owned(),
        })
    }
}

impl From<CompletionHandle> for String {
    fn from(handle: CompletionHandle) -> Self {
        handle.to_string()
    }
}

impl TryFrom<String> for CompletionHandle {
    type Error = InvalidHandle;

    fn try_from(text: String) -> Result<Self, InvalidHandle> {
        text.parse()
    }
}

const SECRET_BYTES: usize = 16;

/// Marks the resume state of a detached task, before the hash.
const STORED_PREFIX: &[u8] = b"detached:sha256:";

#[cfg(test)]
mod tests {
    use outlast_engine::{Ids, RandomIds};

    use super::*;

    #[test]
    fn the_secret_is_a_random_token() {
        let secret = Secret::random().0;
        assert!(random::is_token::<SECRET_BYTES>(&secret), "{secret}");
    }

    #[test]
    fn a_handle_survives_json_and_hides_its_secret() {
        let secret = Secret::random();
        let stored = secret.stored();
        let handle = CompletionHandle::new(RandomIds.task(), Attempt(2), secret);
        let json = serde_json::to_string(&handle).unwrap();
        let read: CompletionHandle = serde_json::from_str(&json).unwrap();
        assert_eq!(read, handle);
        assert!(read.matches(Some(&stored)));
        let other = CompletionHandle::new(handle.task, Attempt(2), Secret::random());
        assert!(!other.matches(Some(&stored)) && !handle.matches(None));
        assert!(!format!("{handle:?}").contains(&handle.secret));
        for text in ["", "x", "a.b.c", &json] {
            assert_eq!(text.parse::<CompletionHandle>(), Err(InvalidHandle));
        }
    }
}
