//! One message a line, in both directions (V1-STDIO-1), for the client's end of a pipe.

use std::io;

use outlast_wire::envelope::Limits;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::link::{Incoming, Outgoing};

/// Passes on every line of `input` until it ends or nobody listens. Lines that are longer than a message may be
/// are passed over, as are empty ones.
pub(crate) async fn read(
    mut input: impl AsyncBufRead + Unpin,
    incoming: &mpsc::Sender<Incoming>,
) -> io::Result<()> {
    let limit = Limits::default().bytes as u64 + 2;
    loop {
        let mut line = Vec::new();
        let read = (&mut input)
            .take(limit)
            .read_until(b'\n', &mut line)
            .await?;
        if read == 0 {
            return Ok(());
        }
        if line.last() != Some(&b'\n') && read as u64 == limit {
            tracing::warn!(limit, "a message of the server was too long and is ignored");
            skip_line(&mut input).await?;
            continue;
        }
        line.truncate(line.trim_ascii_end().len());
        if line.is_empty() {
            continue;
        }
        if incoming
            .send(Incoming::Message { line, via: None })
            .await
            .is_err()
        {
            return Ok(());
        }
    }
}

/// Writes every message as a line until nobody sends any more.
pub(crate) async fn write(
    outgoing: &mut mpsc::Receiver<Outgoing>,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    while let Some(out) = outgoing.recv().await {
        let line = match out {
            Outgoing::Message(parcel) => parcel.line,
            Outgoing::Withdraw { line, .. } => line,
            Outgoing::Opened { .. } | Outgoing::Abandon(_) => continue,
        };
        output.write_all(line.as_bytes()).await?;
        output.write_all(b"\n").await?;
        if outgoing.is_empty() {
            output.flush().await?;
        }
    }
    output.flush().await
}

/// Passes over the rest of a line that is too long.
pub(super) async fn skip_line(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<()> {
    loop {
        let part = input.fill_buf().await?;
        if part.is_empty() {
            return Ok(());
        }
        let (used, found) = match part.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (part.len(), false),
        };
        input.consume(used);
        if found {
            return Ok(());
        }
    }
}
