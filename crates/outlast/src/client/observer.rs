//! Observes the messages of a connection, for a program that shows or records them.

use outlast_wire::envelope::Id;

use crate::transport::link::TransportError;

/// Receives every message of a connection, in both directions.
///
/// The methods are called while messages are sent and read: return quickly. Headers are not
/// messages, so that tokens in `Authorization` are not observed.
pub trait MessageObserver: Send + Sync + 'static {
    /// A message is sent or was received.
    fn message(&self, message: ObservedMessage<'_>);

    /// A request of the client has no response and will get none.
    fn request_failed(&self, request: &Id, error: &TransportError) {
        let _ = (request, error);
    }
}

/// A message on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObservedMessage<'a> {
    /// Its direction.
    pub direction: MessageDirection,
    /// Its JSON text. A server may send anything.
    pub text: &'a [u8],
    /// The protocol version of the connection, once it is known.
    pub version: Option<&'a str>,
    /// The number of the connection to the server. It grows when the client reconnects.
    pub connection: u64,
}

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageDirection {
    /// From this client to the server.
    ToServer,
    /// From the server to this client.
    FromServer,
}

impl<'a> ObservedMessage<'a> {
    /// A message of the first connection to the server.
    pub fn new(direction: MessageDirection, text: &'a [u8], version: Option<&'a str>) -> Self {
        Self {
            direction,
            text,
            version,
            connection: 0,
        }
    }
}
