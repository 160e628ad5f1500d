//! A server in this process: the client's end of a pipe. The other end is an [`McpServer`], or
//! anything else that reads and writes lines.

use std::sync::Arc;

use outlast_wire::envelope::Limits;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::mpsc;

use super::link::{Incoming, Link, LinkError, QUEUE};
use super::{lines, stdio};
use crate::server::McpServer;

/// A connection to a server of this process, which runs until the connection is closed.
pub fn to_front(front: Arc<McpServer>) -> Link {
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let (read, write) = tokio::io::split(theirs);
    tokio::spawn(async move { stdio::serve_on(front, BufReader::new(read), write).await });
    let (read, write) = tokio::io::split(ours);
    over(read, write)
}

/// A connection over any pair of pipes to a server.
pub fn over(
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> Link {
    let (outgoing, mut sent) = mpsc::channel(QUEUE);
    let (tell, incoming) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        let reading = lines::read(
            BufReader::new(input),
            &tell,
            Limits::default().bytes,
            |_| (),
        );
        let writing = async {
            let mut output = output;
            let written = lines::write(&mut sent, &mut output).await;
            // The other end gets the end of its input and stops.
            let _ = tokio::io::AsyncWriteExt::shutdown(&mut output).await;
            written
        };
        let (mut reading, mut writing) = (std::pin::pin!(reading), std::pin::pin!(writing));
        let error = tokio::select! {
            read = &mut reading => match read {
                Ok(()) => LinkError::Broken("the server closed the pipe".into()),
                Err(error) => error,
            },
            written = &mut writing => match written {
                Ok(()) => {
                    // Read the last messages of the server.
                    let _ = tokio::time::timeout(super::child::FAREWELL, &mut reading).await;
                    LinkError::Closed
                }
                Err(error) => LinkError::Broken(error.to_string()),
            },
        };
        let _ = tell.send(Incoming::Closed(error)).await;
    });
    Link::new(outgoing, incoming)
}

/// The buffer size of the pipe in each direction.
const PIPE: usize = 1 << 16;
