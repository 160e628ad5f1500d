//! rmcp's transport within this process: typed messages with their extensions, over two bounded
//! queues.

use ::rmcp::RoleServer;
use ::rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use ::rmcp::transport::Transport;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// The handler's end.
pub(super) struct HandlerTransport {
    incoming: Receiver<ClientJsonRpcMessage>,
    outgoing: Sender<ServerJsonRpcMessage>,
}

/// The receiver of the handler's messages is dropped.
#[derive(Debug)]
pub(super) struct ChannelClosed;

/// A channel, and our ends of it.
pub(super) fn channel() -> (
    HandlerTransport,
    Sender<ClientJsonRpcMessage>,
    Receiver<ServerJsonRpcMessage>,
) {
    let (to_handler, incoming) = mpsc::channel(QUEUE_MESSAGES);
    let (outgoing, from_handler) = mpsc::channel(QUEUE_MESSAGES);
    let channel = HandlerTransport { incoming, outgoing };
    (channel, to_handler, from_handler)
}

impl Transport<RoleServer> for HandlerTransport {
    type Error = ChannelClosed;

    /// Sends before the future is polled, because rmcp runs the futures of several messages
    /// concurrently. So messages keep their order unless the queue is full.
    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), ChannelClosed>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        let sent = outgoing.try_send(message);
        async move {
            match sent {
                Ok(()) => Ok(()),
                Err(TrySendError::Full(message)) => {
                    outgoing.send(message).await.map_err(|_| ChannelClosed)
                }
                Err(TrySendError::Closed(_)) => Err(ChannelClosed),
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), ChannelClosed> {
        self.incoming.close();
        Ok(())
    }
}

impl std::fmt::Display for ChannelClosed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the channel is closed")
    }
}

impl std::error::Error for ChannelClosed {}

/// The capacity of each queue, in messages.
const QUEUE_MESSAGES: usize = 256;
