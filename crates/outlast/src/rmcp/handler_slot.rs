//! The handler of a client, stored in the client's extensions. It exists as long as the client's
//! session, as the request of a client without a session, or as a running call of the client.

use std::sync::Arc;

use outlast_wire::envelope::ErrorObject;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::Rmcp;
use super::running_handler::RunningHandler;
use crate::server::ClientHandle;

/// The slot for a client's handler.
#[derive(Default)]
struct HandlerSlot(Mutex<HandlerCell>);

type HandlerCell = Arc<OnceCell<Arc<RunningHandler>>>;

impl HandlerSlot {
    /// The slot of the handler; a new one if the handler has stopped.
    fn slot(&self) -> HandlerCell {
        let mut slot = self.0.lock();
        if slot
            .get()
            .is_some_and(|connection| connection.has_stopped())
        {
            *slot = HandlerCell::default();
        }
        slot.clone()
    }
}

impl Rmcp {
    /// The handler for `client`. It is started if necessary.
    pub(super) async fn connection(
        &self,
        client: &Arc<ClientHandle>,
    ) -> Result<Arc<RunningHandler>, ErrorObject> {
        let slot = client.extension::<HandlerSlot>(&self.extension_key).slot();
        slot.get_or_try_init(|| self.start(client)).await.cloned()
    }

    /// The handler for `client`, if it runs.
    pub(super) fn running(&self, client: &ClientHandle) -> Option<Arc<RunningHandler>> {
        client
            .extension::<HandlerSlot>(&self.extension_key)
            .slot()
            .get()
            .cloned()
    }
}
