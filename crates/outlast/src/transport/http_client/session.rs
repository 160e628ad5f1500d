//! A session that outlives its connection: a later connection, also of another program, goes on in it.

use std::sync::Arc;

use outlast_wire::Raw;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

/// A session that may outlive its connection. Cheap to clone; all clones are one session.
///
/// Give it to the [options](super::HttpClientOptions) of a connection. Before that connection is closed, [`Session::keep`]
/// says that the server is not to be told goodbye, and [`Session::saved`] is what another connection can begin with.
#[derive(Clone, Default)]
pub struct Session(Arc<Mutex<State>>);

/// What it takes to go on in a session. The name lets in whoever knows it: keep it as one keeps a password.
#[derive(Clone, Serialize, Deserialize)]
pub struct SavedSession {
    id: String,
    /// How the server introduced itself.
    introduction: Raw,
}

impl SavedSession {
    /// The name of the session, which is a secret.
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

impl Session {
    /// A session that is yet to be opened.
    pub fn new() -> Self {
        Self::default()
    }

    /// A session that an earlier connection opened. It is kept.
    pub fn again(saved: SavedSession) -> Self {
        let session = Self::default();
        session.resume(saved);
        session
    }

    /// Goes on in a session that an earlier connection opened. It is kept.
    pub fn resume(&self, saved: SavedSession) {
        *self.state() = State {
            id: Some(saved.id),
            introduction: Some(saved.introduction),
            kept: true,
        };
    }

    /// Says that the session shall outlive its connection.
    pub fn keep(&self) {
        self.state().kept = true;
    }

    /// What another connection can begin with; nothing if the server opened no session.
    pub fn saved(&self) -> Option<SavedSession> {
        let state = self.state();
        Some(SavedSession {
            id: state.id.clone()?,
            introduction: state.introduction.clone()?,
        })
    }

    /// Whether the session shall outlive its connection: then the server is not told goodbye.
    pub fn is_kept(&self) -> bool {
        self.state().kept
    }

    pub(super) fn id(&self) -> Option<String> {
        self.state().id.clone()
    }

    /// The server has opened this one, or none.
    pub(super) fn opened(&self, id: Option<&str>) {
        let mut state = self.state();
        state.id = id.map(str::to_owned);
        state.introduction = None;
    }

    /// The server does not know it any more.
    pub(crate) fn forget(&self) {
        *self.state() = State::default();
    }

    /// How the server introduced itself when it opened the session.
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

impl std::fmt::Debug for Session {
    /// Without the name, which is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SavedSession {
    /// Without the name, which is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SavedSession").finish_non_exhaustive()
    }
}
