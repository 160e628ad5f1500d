//! The requests of a server that are being handled.
//!
//! A request is identified by its id until its response is delivered. A server that resumes a
//! broken stream may send a request again with the same id. It is handled once.

use std::collections::HashMap;

use outlast_wire::envelope::Id;
use tokio::task::{AbortHandle, JoinSet};

/// The requests that are being handled. Dropping this cancels all of them.
#[derive(Default)]
pub(super) struct IncomingRequests {
    work: JoinSet<()>,
    by_id: HashMap<Id, AbortHandle>,
}

/// What to do with an incoming request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    New,
    /// A request with this id is being handled.
    Duplicate,
    /// Too many requests are being handled.
    Full,
}

impl IncomingRequests {
    pub(super) fn admit(&mut self, id: &Id) -> Admission {
        while self.work.try_join_next().is_some() {}
        if self.by_id.len() >= 2 * self.work.len().max(8) {
            self.by_id.retain(|_, work| !work.is_finished());
        }
        if self.by_id.get(id).is_some_and(|work| !work.is_finished()) {
            return Admission::Duplicate;
        }
        if self.work.len() >= MAX_REQUESTS {
            Admission::Full
        } else {
            Admission::New
        }
    }

    /// Handles the request `id` with `work`.
    pub(super) fn begin(&mut self, id: Id, work: impl Future<Output = ()> + Send + 'static) {
        let handle = self.work.spawn(work);
        self.by_id.insert(id, handle);
    }

    /// V1-CANC-3: stops the work and sends no response. Unknown and finished requests are ignored.
    pub(super) fn cancel(&mut self, id: &Id) {
        if let Some(work) = self.by_id.remove(id) {
            work.abort();
        }
    }
}

/// How many requests of a server are handled at the same time (V1-ELIC-23).
const MAX_REQUESTS: usize = 256;
