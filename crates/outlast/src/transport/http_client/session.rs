//! A session that can outlive its connection: another connection, or another process, can resume
//! it.

use std::sync::Arc;

use outlast_wire::Raw;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

/// A session that can outlive its connection. Cheap to clone; all clones are the same session.
///
/// Set it in the [options](super::HttpClientOptions) of a connection. Before you close that
/// connection, call [`HttpSession::keep`], so that the session is not ended, and store
/// [`HttpSession::saved`], with which another connection can resume it.
#[derive(Clone, Default)]
pub struct HttpSession(Arc<Mutex<State>>);

/// The state that resumes a session. The session id gives access: protect it like a password.
#[derive(Clone, Serialize, Deserialize)]
pub struct SavedSession {
    id: String,
    /// The server's `initialize` result.
    introduction: Raw,
}

impl SavedSession {
    /// The session id, which is a secret.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

#[derive(Default)]
struct State {
    id: Option<String>,
    introduction: Option<Raw>,
    kept: bool,
}

impl HttpSession {
    /// A session that is not open yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Resumes a session of an earlier connection. It outlives its connection.
    pub fn from_saved(saved: SavedSession) -> Self {
        let session = Self::default();
        session.resume(saved);
        session
    }

    /// Switches to a session of an earlier connection. It outlives its connection.
    pub fn resume(&self, saved: SavedSession) {
        *self.state() = State {
            id: Some(saved.id),
            introduction: Some(saved.introduction),
            kept: true,
        };
    }

    /// Makes the session outlive its connection.
    pub fn keep(&self) {
        self.state().kept = true;
    }

    /// The state with which another connection can resume the session; `None` if the server opened
    /// none.
    pub fn saved(&self) -> Option<SavedSession> {
        let state = self.state();
        Some(SavedSession {
            id: state.id.clone()?,
            introduction: state.introduction.clone()?,
        })
    }

    /// Whether the session outlives its connection, so that it is not ended by DELETE.
    pub fn is_kept(&self) -> bool {
        self.state().kept
    }

    pub(super) fn id(&self) -> Option<String> {
        self.state().id.clone()
    }

    /// Records the id of the session that the server opened, if any.
    pub(super) fn opened(&self, id: Option<&str>) {
        let mut state = self.state();
        state.id = id.map(str::to_owned);
        state.introduction = None;
    }

    /// Forgets a session that the server no longer knows.
    pub(crate) fn forget(&self) {
        *self.state() = State::default();
    }

    /// The server's `initialize` result of this session.
    pub(crate) fn introduction(&self) -> Option<Raw> {
        self.state().introduction.clone()
    }

    pub(crate) fn introduced(&self, answer: &Raw) {
        self.state().introduction = Some(answer.clone());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl std::fmt::Debug for HttpSession {
    /// Omits the id, which is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpSession").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SavedSession {
    /// Omits the id, which is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SavedSession").finish_non_exhaustive()
    }
}
