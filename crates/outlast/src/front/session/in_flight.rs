//! Requests of a session that are being handled and can be cancelled.

use std::collections::HashMap;

use outlast_wire::envelope::Id;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

/// The requests of one session that can be cancelled, by their id.
#[derive(Default)]
pub(in crate::front) struct InFlight(Mutex<HashMap<Id, oneshot::Sender<()>>>);

impl InFlight {
    /// Registers a request; the receiver resolves when it is cancelled.
    pub(in crate::front) fn begin(&self, request: &Id) -> oneshot::Receiver<()> {
        let (cancel, cancelled) = oneshot::channel();
        self.lock().insert(request.clone(), cancel);
        cancelled
    }

    /// The request is answered or dropped.
    pub(in crate::front) fn done(&self, request: &Id) {
        self.lock().remove(request);
    }

    /// Cancels a request. Unknown and finished ones are ignored (V1-CANC-4).
    pub(in crate::front) fn cancel(&self, request: &Id) {
        let found = self.lock().remove(request);
        if let Some(cancel) = found {
            let _ = cancel.send(());
        }
    }

    /// Cancels every request: the session has ended.
    pub(super) fn cancel_all(&self) {
        let found = std::mem::take(&mut *self.lock());
        for cancel in found.into_values() {
            let _ = cancel.send(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Id, oneshot::Sender<()>>> {
        self.0.lock()
    }
}
