//! A server on a pipe: one message per line, concurrent requests (V1-STDIO-1, V1-STDIO-5).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use outlast_wire::envelope::{Limits, MalformedKind, Message, write};
use outlast_wire::{notice, v2};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::server::{
    McpServer, Session, SessionId, StreamEvent, StreamId, StreamKind, local_owner,
    stdio_request_meta,
};

/// Serves on standard input and output until the input ends.
pub async fn serve(server: Arc<McpServer>) -> io::Result<()> {
    serve_on(
        server,
        BufReader::new(tokio::io::stdin()),
        tokio::io::stdout(),
    )
    .await
}

/// Serves on any pair of pipes until the input ends. Tasks continue; calls without a task are
/// cancelled.
pub async fn serve_on(
    server: Arc<McpServer>,
    input: impl AsyncBufRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> io::Result<()> {
    serve_until(server, input, output, std::future::pending()).await
}

/// Serves until the input ends or `closing` resolves.
///
/// When `closing` resolves, the peer gets [`notice::CLOSING`]. Requests that arrive until the peer
/// closes its end are still answered, so that the peer knows which requests were received.
pub async fn serve_until(
    server: Arc<McpServer>,
    input: impl AsyncBufRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    closing: impl Future<Output = ()>,
) -> io::Result<()> {
    let session = Session::new(server, SessionId::random(), local_owner());
    let pipe = session.streams.open(StreamKind::Stdio);
    let writing = tokio::spawn(write_lines(pipe.receiver, output));
    let mut handling = JoinSet::new();
    let read = {
        let mut reading = std::pin::pin!(read_lines(&session, pipe.stream, input, &mut handling));
        tokio::select! {
            read = &mut reading => Some(read),
            () = closing => {
                let closing = write::notification(notice::CLOSING, None);
                session.streams.send(pipe.stream, closing);
                let _ = tokio::time::timeout(LAST_REQUESTS_TIMEOUT, reading).await;
                None
            }
        }
    };
    let read = match read {
        Some(read) => read,
        None => {
            let answered = async { while handling.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(LAST_RESPONSES_TIMEOUT, answered).await;
            Ok(())
        }
    };
    // Requests that are still running end with the pipe.
    drop(handling);
    session.streams.close();
    writing.await.map_err(io::Error::other)??;
    read
}

async fn read_lines(
    session: &Arc<Session>,
    stream: StreamId,
    mut input: impl AsyncBufRead + Unpin,
    handling: &mut JoinSet<()>,
) -> io::Result<()> {
    let limits = Limits::default();
    let mut listening = JoinSet::new();
    let (open, closing) = watch::channel(());
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = limits.bytes as u64 + 2;
        let read = (&mut input)
            .take(limit)
            .read_until(b'\n', &mut line)
            .await?;
        if read == 0 {
            // Dropping `open` ends open subscriptions with a final message.
            drop(open);
            while listening.join_next().await.is_some() {}
            return Ok(());
        }
        if line.last() != Some(&b'\n') && read as u64 == limit {
            skip_line(&mut input).await?;
        }
        while handling.try_join_next().is_some() {}
        while listening.try_join_next().is_some() {}
        let bytes = std::mem::take(&mut line);
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match Message::parse(bytes.trim_ascii_end(), &limits) {
            Ok(Message::Request(request)) => {
                let listens = request.method == v2::method::LISTEN;
                match stdio_request_meta(&request) {
                    Ok(Some(meta)) => {
                        let closing = closing.clone();
                        let closing =
                            Box::new(move || -> Closed { Box::pin(closed(closing.clone())) });
                        let work = session.handle_modern(request, meta, stream, closing);
                        if listens {
                            listening.spawn(work)
                        } else {
                            handling.spawn(work)
                        };
                    }
                    Ok(None) => {
                        handling.spawn(session.handle_on_stdio(request, stream));
                    }
                    Err(error) => {
                        let error = write::error(Some(&request.id), error.to_raw().borrow());
                        session.streams.send(stream, error);
                    }
                }
            }
            Ok(Message::Notification(notification)) => session.notification(&notification),
            Ok(Message::Response(response)) => session.handle_response(response).await,
            // A malformed response gets no error.
            Err(malformed) if malformed.kind == MalformedKind::Response => {}
            Err(malformed) => {
                let error = malformed.to_error().to_raw();
                session
                    .streams
                    .send(stream, write::error(malformed.id.as_ref(), error.borrow()));
            }
        }
    }
}

/// Resolves when the other end of `open` is dropped.
async fn closed(mut open: watch::Receiver<()>) {
    while open.changed().await.is_ok() {}
}

type Closed = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

async fn write_lines(
    mut lines: tokio::sync::mpsc::Receiver<StreamEvent>,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    while let Some(out) = lines.recv().await {
        if let Some(line) = out.line {
            output.write_all(line.as_bytes()).await?;
            output.write_all(b"\n").await?;
        }
        if lines.is_empty() {
            output.flush().await?;
        }
    }
    output.flush().await
}

/// How long to wait until the peer closes its end.
const LAST_REQUESTS_TIMEOUT: Duration = Duration::from_millis(500);

/// How long running requests may take when the server closes.
const LAST_RESPONSES_TIMEOUT: Duration = Duration::from_secs(1);

/// Skips the rest of a line that is too long.
async fn skip_line(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<()> {
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
