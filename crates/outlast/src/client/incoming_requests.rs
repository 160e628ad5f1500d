//! Requests of a server that we answer.
//!
//! A request is known by its id until its answer is delivered. A server that resumes a broken stream may send the request
//! again under the same id; that is the same request, and it is answered once.

use std::collections::HashMap;

use outlast_wire::envelope::Id;
use tokio::task::{AbortHandle, JoinSet};

/// The requests that are being answered. Dropping this drops the work on all of them.
#[derive(Default)]
pub(super) struct IncomingRequests {
    work: JoinSet<()>,
    by_id: HashMap<Id, AbortHandle>,
}

/// What is to be done with a request that has come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    New,
    /// A request of that id is being answered.
    Duplicate,
    /// Too many requests are being answered.
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

    /// Answers the request `id` by `work`.
    pub(super) fn begin(&mut self, id: Id, work: impl Future<Output = ()> + Send + 'static) {
        let handle = self.work.spawn(work);
        self.by_id.insert(id, handle);
    }

    /// V1-CANC-3: stops the work, and no answer is sent. Unknown and finished requests are ignored.
    pub(super) fn cancel(&mut self, id: &Id) {
        if let Some(work) = self.by_id.remove(id) {
            work.abort();
        }
    }
}

/// The most requests of a server that are answered at the same time (V1-ELIC-23).
const MAX_REQUESTS: usize = 256;
