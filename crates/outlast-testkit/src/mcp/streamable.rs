//! Streamable HTTP as a client writes it by hand: each message is a POST on a connection of its own, whose answer is JSON or
//! a stream; in a session, one GET listens in general.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

pub(crate) struct Streamable {
    place: Place,
    tell: UnboundedSender<Value>,
    heard: UnboundedReceiver<Value>,
    /// The requests that were made, by their ids.
    posts: HashMap<i64, JoinHandle<()>>,
    listening: Option<JoinHandle<()>>,
}

/// What every request repeats.
#[derive(Clone)]
struct Place {
    authority: String,
    token: Option<String>,
    version: &'static str,
    session: Arc<Mutex<Option<String>>>,
}

impl Streamable {
    pub(crate) fn new(authority: &str, token: Option<&str>, version: &'static str) -> Self {
        let (tell, heard) = unbounded_channel();
        Self {
            place: Place {
                authority: authority.into(),
                token: token.map(str::to_owned),
                version,
                session: Arc::default(),
            },
            tell,
            heard,
            posts: HashMap::new(),
            listening: None,
        }
    }

    /// Sends a message. The answer to a request is heard later; anything else has been accepted when this returns.
    pub(crate) async fn send(&mut self, message: Value) {
        let (place, tell) = (self.place.clone(), self.tell.clone());
        let is_request = message.get("method").is_some() && message.get("id").is_some();
        if is_request {
            let id = message["id"].as_i64().unwrap();
            let post = tokio::spawn(async move {
                let answered = match place.post(&message).await {
                    Ok(answer) => answer.read(&tell, Some(id)).await,
                    Err(error) => Err(error),
                };
                if let Err(error) = answered {
                    let broken = json!({ "id": id, "broken": error.to_string() });
                    let _ = tell.send(broken);
                }
            });
            self.posts.insert(id, post);
            return;
        }
        let accepted = self.place.post(&message).await.unwrap();
        assert_eq!(accepted.status, 202, "{message}");
    }

    /// The next message, on whichever stream.
    pub(crate) async fn hear(&mut self) -> Value {
        let heard = tokio::time::timeout(PATIENCE, self.heard.recv());
        heard.await.expect("an answer").expect("we hold one end")
    }

    /// Closes the stream of a request.
    pub(crate) fn close(&mut self, id: i64) -> bool {
        let post = self.posts.remove(&id);
        post.inspect(|post| post.abort()).is_some()
    }

    /// Listens in general, as clients with a session do.
    pub(crate) async fn listen(&mut self) {
        let answer = self.place.request("GET", &[], "").await.unwrap();
        assert_eq!(answer.status, 200);
        let tell = self.tell.clone();
        let listening = tokio::spawn(async move {
            // It ends with the server.
            let _ = answer.read(&tell, None).await;
        });
        if let Some(before) = self.listening.replace(listening) {
            before.abort();
        }
    }

    /// Closes everything, as a client does that loses its way.
    pub(crate) fn fall_silent(&mut self) {
        let posts = self.posts.drain().map(|(_, post)| post);
        for open in posts.chain(self.listening.take()) {
            open.abort();
        }
    }
}

impl Drop for Streamable {
    fn drop(&mut self) {
        self.fall_silent();
    }
}

impl Place {
    /// Posts a message; a modern one repeats itself in headers (V2-HDR-1).
    async fn post(&self, message: &Value) -> io::Result<Answer> {
        let params = &message["params"];
        let named = ["name", "uri", "taskId"];
        let named = named.iter().find_map(|name| params[name].as_str());
        let mut headers = Vec::new();
        if self.version == MODERN {
            let method = message["method"].as_str();
            headers.extend(method.map(|method| ("mcp-method", method)));
            headers.extend(named.map(|name| ("mcp-name", name)));
        }
        self.request("POST", &headers, &message.to_string()).await
    }

    async fn request(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<Answer> {
        let authority = &self.authority;
        let mut request = format!(
            "{method} /mcp HTTP/1.1\r\nhost: {authority}\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nmcp-protocol-version: {}\r\n",
            body.len(),
            self.version
        );
        let mut say = |name: &str, value: &str| request.push_str(&format!("{name}: {value}\r\n"));
        for (name, value) in headers {
            say(name, value);
        }
        if let Some(token) = &self.token {
            say("authorization", &format!("Bearer {token}"));
        }
        if let Some(session) = &*self.session.lock().unwrap() {
            say("mcp-session-id", session);
        }
        request.push_str("\r\n");
        request.push_str(body);
        let mut stream = TcpStream::connect(authority).await?;
        stream.write_all(request.as_bytes()).await?;
        let answer = Answer::head(BufReader::new(stream)).await?;
        if let Some(session) = answer.header("mcp-session-id") {
            *self.session.lock().unwrap() = Some(session.to_owned());
        }
        Ok(answer)
    }
}

/// An answer whose head has arrived.
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    stream: BufReader<TcpStream>,
}

impl Answer {
    async fn head(mut stream: BufReader<TcpStream>) -> io::Result<Self> {
        let first = line(&mut stream).await?;
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let mut headers = Vec::new();
        loop {
            let line = line(&mut stream).await?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap();
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Self {
            status: status.unwrap(),
            headers,
            stream,
        })
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// Tells every message of the body. One that ends without the answer to `id` has broken.
    async fn read(mut self, tell: &UnboundedSender<Value>, id: Option<i64>) -> io::Result<()> {
        if self.header("content-type") != Some("text/event-stream") {
            let length = self.header("content-length").unwrap().parse().unwrap();
            let mut body = vec![0; length];
            self.stream.read_exact(&mut body).await?;
            // A server that closes may answer with nothing but a status.
            let _ = tell.send(serde_json::from_slice(&body)?);
            return Ok(());
        }
        let mut lines = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            lines.extend_from_slice(&chunk);
            while let Some(end) = lines.iter().position(|byte| *byte == b'\n') {
                let line: Vec<_> = lines.drain(..=end).collect();
                let line = String::from_utf8(line).unwrap();
                // Everything of ours is on one line; comments, ids and empty events say nothing here.
                let data = line.strip_prefix("data:").map(str::trim);
                let Some(data) = data.filter(|data| !data.is_empty()) else {
                    continue;
                };
                let message: Value = serde_json::from_str(data).unwrap();
                let is_last =
                    id.is_some_and(|id| message["id"] == id) && message.get("method").is_none();
                let _ = tell.send(message);
                if is_last {
                    return Ok(());
                }
            }
        }
        Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the stream ended before the answer",
        ))
    }

    /// The next piece of a chunked body, or none at its end.
    async fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let size = usize::from_str_radix(&line(&mut self.stream).await?, 16).unwrap();
        let mut chunk = vec![0; size + 2];
        self.stream.read_exact(&mut chunk).await?;
        chunk.truncate(size);
        Ok((size > 0).then_some(chunk))
    }
}

/// A line without its end; one that does not come has broken.
async fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut text = String::new();
    match stream.read_line(&mut text).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(text.trim_end().to_owned()),
    }
}

/// How long a message may take to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// The version whose requests stand alone.
const MODERN: &str = "2026-07-28";
