//! Reads and writes one message per line (V1-STDIO-1), for the client's end of a pipe.

use std::io;

use outlast_wire::envelope::ResponseIdFinder;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::link::{Incoming, Outgoing, TransportError};

/// Forwards every line of `input` until it ends or the receiver is dropped. Empty lines are
/// skipped. A line of more than `limit` bytes is dropped; if it is a response, its request fails.
/// `on_line` is called with each line that is forwarded.
pub(crate) async fn read(
    mut input: impl AsyncBufRead + Unpin,
    incoming: &mpsc::Sender<Incoming>,
    limit: usize,
    on_line: impl Fn(&[u8]),
) -> Result<(), TransportError> {
    let broken = |error: io::Error| TransportError::Broken(error.to_string());
    // The limit does not include the line ending.
    let max_line_bytes = limit as u64 + 2;
    loop {
        let mut line = Vec::new();
        let read = (&mut input)
            .take(max_line_bytes)
            .read_until(b'\n', &mut line)
            .await;
        let read = read.map_err(broken)?;
        if read == 0 {
            return Ok(());
        }
        let message = if line.last() != Some(&b'\n') && read as u64 == max_line_bytes {
            match too_large(&mut input, line, limit as u64).await? {
                Some(failed) => failed,
                None => continue,
            }
        } else {
            line.truncate(line.trim_ascii_end().len());
            if line.is_empty() {
                continue;
            }
            on_line(&line);
            Incoming::Message { line, via: None }
        };
        if incoming.send(message).await.is_err() {
            return Ok(());
        }
    }
}

/// Skips the rest of a line that is too long. If it is a response, its request fails. A line that
/// does not end closes the connection.
async fn too_large(
    input: &mut (impl AsyncBufRead + Unpin),
    start: Vec<u8>,
    limit: u64,
) -> Result<Option<Incoming>, TransportError> {
    let mut response_id = ResponseIdFinder::default();
    response_id.take(&start);
    let mut bytes = start.len() as u64;
    drop(start);
    let error = |bytes, is_whole| TransportError::TooLarge {
        bytes,
        is_whole,
        limit,
    };
    loop {
        let part = input.fill_buf().await;
        let part = part.map_err(|error| TransportError::Broken(error.to_string()))?;
        let end = part.iter().position(|byte| *byte == b'\n');
        let used = end.unwrap_or(part.len());
        response_id.take(&part[..used]);
        bytes += used as u64;
        let is_whole = end.is_some() || part.is_empty();
        input.consume(used + usize::from(end.is_some()));
        if is_whole {
            let error = error(bytes, true);
            tracing::warn!(error = error.brief(), "dropped a message that is too large");
            let id = response_id.id().cloned();
            return Ok(id.map(|id| Incoming::Failed { id, error }));
        }
        if bytes > limit.saturating_mul(ENDLESS_FACTOR) {
            return Err(error(bytes, false));
        }
    }
}

/// Writes every message as a line until all senders are dropped.
pub(crate) async fn write(
    outgoing: &mut mpsc::Receiver<Outgoing>,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    while let Some(out) = outgoing.recv().await {
        let line = match out {
            Outgoing::Message(message) => message.line,
            Outgoing::Cancel { line, .. } => line,
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

/// A line that exceeds the limit by this factor counts as endless.
const ENDLESS_FACTOR: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_wire::envelope::Id;

    async fn read_all(input: &str, limit: usize) -> (Vec<Incoming>, Result<(), TransportError>) {
        let (sender, mut receiver) = mpsc::channel(8);
        let read = read(input.as_bytes(), &sender, limit, |_| ()).await;
        drop(sender);
        let mut all = Vec::new();
        while let Some(item) = receiver.recv().await {
            all.push(item);
        }
        (all, read)
    }

    #[tokio::test]
    async fn a_too_large_response_fails_its_request_only() {
        let large = "x".repeat(500);
        for answer in [
            format!(r#"{{"id":7,"result":"{large}"}}"#),
            format!(r#"{{"result":"{large}","id":7}}"#),
        ] {
            let (all, read) = read_all(&format!("{answer}\nnext\n"), 100).await;
            let [
                Incoming::Failed { id, error },
                Incoming::Message { line, .. },
            ] = &all[..]
            else {
                panic!("{all:?}");
            };
            assert_eq!((id, &line[..]), (&Id::from(7), &b"next"[..]));
            let bytes = answer.len() as u64;
            let expected = TransportError::TooLarge {
                bytes,
                is_whole: true,
                limit: 100,
            };
            assert_eq!(*error, expected);
            assert_eq!(read, Ok(()));
        }
    }

    #[tokio::test]
    async fn a_line_that_does_not_end_breaks_the_connection() {
        let (all, read) = read_all(&"x".repeat(100_000), 100).await;
        assert!(all.is_empty(), "{all:?}");
        assert!(
            matches!(
                read,
                Err(TransportError::TooLarge {
                    is_whole: false,
                    limit: 100,
                    ..
                })
            ),
            "{read:?}"
        );
    }
}
