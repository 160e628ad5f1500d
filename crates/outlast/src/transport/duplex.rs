//! A server in this process: the client's end of a pipe. The other end is an [`McpServer`], or
//! anything else that reads and writes lines.

#[cfg(feature = "server")]
use std::sync::Arc;

use outlast_wire::envelope::Limits;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::mpsc;

use super::lines;
use super::link::{Incoming, Link, QUEUE_MESSAGES, TransportError};
#[cfg(feature = "server")]
use super::stdio;
#[cfg(feature = "server")]
use crate::server::McpServer;

/// A connection to a server of this process, which runs until the connection is closed.
#[cfg(feature = "server")]
pub fn to_server(server: Arc<McpServer>) -> Link {
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    let (read, write) = tokio::io::split(theirs);
    tokio::spawn(async move { stdio::serve_on(server, BufReader::new(read), write).await });
    let (read, write) = tokio::io::split(ours);
    over(read, write)
}

/// A connection over any pair of pipes to a server.
pub fn over(
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> Link {
    let (outgoing, mut outgoing_receiver) = mpsc::channel(QUEUE_MESSAGES);
    let (incoming_sender, incoming) = mpsc::channel(QUEUE_MESSAGES);
    tokio::spawn(async move {
        let reading = lines::read(
            BufReader::new(input),
            &incoming_sender,
            Limits::default().bytes,
            |_| (),
        );
        let writing = async {
            let mut output = output;
            let written = lines::write(&mut outgoing_receiver, &mut output).await;
            // The other end gets the end of its input and stops.
            let _ = tokio::io::AsyncWriteExt::shutdown(&mut output).await;
            written
        };
        let (mut reading, mut writing) = (std::pin::pin!(reading), std::pin::pin!(writing));
        let error = tokio::select! {
            read = &mut reading => match read {
                Ok(()) => TransportError::Broken("the server closed the pipe".into()),
                Err(error) => error,
            },
            written = &mut writing => match written {
                Ok(()) => {
                    // Read the last messages of the server.
                    let _ = tokio::time::timeout(super::child::LAST_OUTPUT_TIMEOUT, &mut reading).await;
                    TransportError::Closed
                }
                Err(error) => TransportError::Broken(error.to_string()),
            },
        };
        let _ = incoming_sender.send(Incoming::Closed(error)).await;
    });
    Link::new(outgoing, incoming)
}

/// The buffer size of the pipe in each direction.
const PIPE_BYTES: usize = 1 << 16;
