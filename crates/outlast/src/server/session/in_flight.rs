//! Requests of a session that are being handled and can be cancelled.

use std::collections::HashMap;

use outlast_wire::envelope::Id;
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

/// The requests of one session that can be cancelled, by their id.
#[derive(Default)]
pub(in crate::server) struct InFlight(Mutex<HashMap<Id, CancellationToken>>);

impl InFlight {
    /// Registers a request that `token` cancels.
    pub(in crate::server) fn begin(&self, request: &Id, token: CancellationToken) {
        self.lock().insert(request.clone(), token);
    }

    /// Unregisters a request that has its reply or was dropped.
    pub(in crate::server) fn done(&self, request: &Id) {
        self.lock().remove(request);
    }

    /// Cancels a request. Unknown and finished requests are ignored (V1-CANC-4).
    pub(in crate::server) fn cancel(&self, request: &Id) {
        let found = self.lock().remove(request);
        if let Some(token) = found {
            token.cancel();
        }
    }

    /// Cancels all requests when the session ends.
    pub(super) fn cancel_all(&self) {
        let found = std::mem::take(&mut *self.lock());
        for token in found.into_values() {
            token.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Id, CancellationToken>> {
        self.0.lock()
    }
}
