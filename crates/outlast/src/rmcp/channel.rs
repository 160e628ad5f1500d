//! rmcp's transport within this process: typed messages with their extensions, over two bounded
//! queues.

use ::rmcp::RoleServer;
use ::rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use ::rmcp::transport::Transport;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// The handler's end.
pub(super) struct Channel {
    incoming: Receiver<ClientJsonRpcMessage>,
    outgoing: Sender<ServerJsonRpcMessage>,
}

/// The receiver of the handler's messages is dropped.
#[derive(Debug)]
pub(super) struct Closed;

/// A channel, and our ends of it.
pub(super) fn channel() -> (
    Channel,
    Sender<ClientJsonRpcMessage>,
    Receiver<ServerJsonRpcMessage>,
) {
    let (to_handler, incoming) = mpsc::channel(ROOM);
    let (outgoing, from_handler) = mpsc::channel(ROOM);
    let channel = Channel { incoming, outgoing };
    (channel, to_handler, from_handler)
}

impl Transport<RoleServer> for Channel {
    type Error = Closed;

    /// Sends before the future is polled, because rmcp runs the futures of several messages
    /// concurrently. So messages keep their order unless the queue is full.
    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Closed>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        let sent = outgoing.try_send(message);
        async move {
            match sent {
                Ok(()) => Ok(()),
                Err(TrySendError::Full(message)) => {
                    outgoing.send(message).await.map_err(|_| Closed)
                }
                Err(TrySendError::Closed(_)) => Err(Closed),
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), Closed> {
        self.incoming.close();
        Ok(())
    }
}

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the channel is closed")
    }
}

impl std::error::Error for Closed {}

/// The capacity of each queue, in messages.
const ROOM: usize = 256;
