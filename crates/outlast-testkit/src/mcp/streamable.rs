//! Streamable HTTP as a client writes it by hand: each message is a POST on a connection of its
//! own, whose response is JSON or a stream. In a session, one GET opens the general stream.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::http::HttpResponse;
use super::http_request::{MODERN, message_headers, modern_headers, request_bytes};
use crate::within;

pub(super) struct Streamable {
    http_session: HttpSession,
    sender: UnboundedSender<Value>,
    received: UnboundedReceiver<Value>,
    /// The requests that were made, by their ids.
    posts: HashMap<i64, JoinHandle<()>>,
    listening: Option<JoinHandle<()>>,
}

/// The address, the token, the version and the session, which every request sends.
#[derive(Clone)]
struct HttpSession {
    authority: String,
    token: Option<String>,
    version: &'static str,
    session: Arc<Mutex<Option<String>>>,
}

impl Streamable {
    pub(super) fn new(authority: &str, token: Option<&str>, version: &'static str) -> Self {
        let (sender, received) = unbounded_channel();
        Self {
            http_session: HttpSession {
                authority: authority.into(),
                token: token.map(str::to_owned),
                version,
                session: Arc::default(),
            },
            sender,
            received,
            posts: HashMap::new(),
            listening: None,
        }
    }

    /// Sends a message. The response to a request arrives later; any other message is accepted when
    /// this returns.
    pub(super) async fn send(&mut self, message: Value) {
        let (http_session, sender) = (self.http_session.clone(), self.sender.clone());
        let is_request = message.get("method").is_some() && message.get("id").is_some();
        if is_request {
            let id = message["id"].as_i64().expect("an id");
            let post = tokio::spawn(async move {
                let done = match http_session.post(&message).await {
                    Ok(response) => pass_on(response, &sender, Some(id)).await,
                    Err(error) => Err(error),
                };
                if let Err(error) = done {
                    let broken = json!({ "id": id, "broken": error.to_string() });
                    let _ = sender.send(broken);
                }
            });
            self.posts.insert(id, post);
            return;
        }
        let accepted = self
            .http_session
            .post(&message)
            .await
            .expect("the server answers");
        assert_eq!(accepted.status, 202, "{message}");
    }

    /// The next message, on whichever stream.
    pub(super) async fn receive(&mut self) -> Value {
        let received = within("a message", self.received.recv()).await;
        received.expect("we hold one end")
    }

    /// Closes the stream of a request.
    pub(super) fn close(&mut self, id: i64) -> bool {
        let post = self.posts.remove(&id);
        post.inspect(|post| post.abort()).is_some()
    }

    /// Listens in general, as clients with a session do.
    pub(super) async fn listen(&mut self) {
        let response = self
            .http_session
            .request("GET", &[], "")
            .await
            .expect("the server answers");
        assert_eq!(response.status, 200);
        let sender = self.sender.clone();
        let listening = tokio::spawn(async move {
            // It ends with the server.
            let _ = pass_on(response, &sender, None).await;
        });
        if let Some(before) = self.listening.replace(listening) {
            before.abort();
        }
    }

    /// Closes everything, as a client does that loses its way.
    pub(super) fn disconnect(&mut self) {
        let posts = self.posts.drain().map(|(_, post)| post);
        for open in posts.chain(self.listening.take()) {
            open.abort();
        }
    }
}

impl Drop for Streamable {
    fn drop(&mut self) {
        self.disconnect();
    }
}

impl HttpSession {
    /// Posts a message; a modern one repeats itself in headers (V2-HDR-1).
    async fn post(&self, message: &Value) -> io::Result<HttpResponse> {
        let headers = match self.version {
            MODERN => modern_headers(message),
            _ => Vec::new(),
        };
        self.request("POST", &headers, &message.to_string()).await
    }

    async fn request(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<HttpResponse> {
        let mut all = message_headers(self.version).to_vec();
        all.extend(headers);
        let token = self.token.as_ref().map(|token| format!("Bearer {token}"));
        all.extend(token.as_deref().map(|token| ("authorization", token)));
        let session = self.session.lock().clone();
        all.extend(
            session
                .as_deref()
                .map(|session| ("mcp-session-id", session)),
        );
        let request = request_bytes(&self.authority, method, "/mcp", &all, &[], body.as_bytes());
        let mut stream = TcpStream::connect(&self.authority).await?;
        stream.write_all(&request).await?;
        let response = HttpResponse::read(stream).await;
        let response = response.ok_or(io::ErrorKind::UnexpectedEof)?;
        if let Some(session) = response.header("mcp-session-id") {
            *self.session.lock() = Some(session.to_owned());
        }
        Ok(response)
    }
}

/// Forwards every message of the body. A body that ends without the response to `id` is broken.
async fn pass_on(
    mut response: HttpResponse,
    sender: &UnboundedSender<Value>,
    id: Option<i64>,
) -> io::Result<()> {
    if !response.is_stream() {
        // A server that closes may send a status without a body.
        let body = response.body().await?;
        let _ = sender.send(serde_json::from_slice(&body)?);
        return Ok(());
    }
    while let Some(event) = response.event_without_limit().await {
        let Some(message) = event.message else {
            continue;
        };
        let is_last = id.is_some_and(|id| message["id"] == id) && message.get("method").is_none();
        let _ = sender.send(message);
        if is_last {
            return Ok(());
        }
    }
    Err(io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the stream ended before the response",
    ))
}
