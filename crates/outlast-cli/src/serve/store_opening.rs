//! Opens a store while the listener already runs. Requests get the response "starting" until it is
//! open.

use std::sync::Arc;

use outlast::store::{OpenError, StoreUrl};
use outlast::store::{Reason, StoreError};
use outlast_engine::store::OpeningStore;
use tokio::sync::oneshot;

use crate::exit::Failure;
use crate::gateway::open_when_free;

pub(super) struct StoreOpening {
    pub(super) store: Arc<OpeningStore>,
    failed: oneshot::Receiver<OpenError>,
}

impl StoreOpening {
    /// Starts to open the store at `url`.
    pub(super) fn start(url: StoreUrl) -> Self {
        let (report, failed) = oneshot::channel();
        let open = async move {
            let opened = open_when_free(&url).await;
            opened.map_err(|error| {
                let reason = Reason::new(error.to_string());
                // The receiver is dropped if the listener failed first.
                let _ = report.send(error);
                StoreError::Unavailable(reason)
            })
        };
        let store = Arc::new(OpeningStore::new(open));
        Self { store, failed }
    }

    /// Returns why the store cannot be opened, if that is known.
    pub(super) fn failure(mut self) -> Option<Failure> {
        self.failed.try_recv().ok().map(Failure::from)
    }
}
