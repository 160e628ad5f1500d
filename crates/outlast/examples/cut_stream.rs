//! Cuts the streams of a real server while one of its input requests is open: the server sends the request again, the client
//! takes it for the same request, and the answer reaches the server. `cargo xtask peers` runs it with server-everything.
//!
//! `cargo run --example cut_stream -- URL`, where URL is the server, which has the tool `simulate-research-query`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast::client::{
    Client, ClientHandler, ClientOptions, Era, ServerInputRequest, Target, TaskPreference, accept,
};
use outlast::engine::{InputKinds, InputResponse, Outcome};
use outlast::transport::http_client::HttpClientOptions;
use outlast::wire::{Raw, tool};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, watch};

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let url = std::env::args()
        .nth(1)
        .ok_or("give the URL of the server")?;
    let played = tokio::time::timeout(LIMIT, play(&url)).await;
    played.map_err(|_| "it takes too long")?
}

async fn play(url: &str) -> Result<(), Failure> {
    let (authority, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .ok_or("the URL must look like http://ADDRESS/PATH")?;
    let proxy = Proxy::start(authority).await?;
    let person = Arc::new(Person::default());
    let options = ClientOptions {
        era: Era::Legacy,
        handler: person.clone(),
        ..ClientOptions::default()
    };
    let url = format!("http://{}/{path}", proxy.address);
    let client = Client::connect(Target::http(HttpClientOptions::new(url)), options).await?;
    let arguments = json!({ "topic": "tides", "ambiguous": true });
    let call = client.call_tool(RESEARCH, Some(Raw::encode(&arguments)?));
    let call = call.task(TaskPreference::Require).await?;
    person
        .requests
        .subscribe()
        .wait_for(|seen| *seen > 0)
        .await?;
    for cut in 1..=CUTS {
        let sent = *proxy.requests.borrow();
        proxy.cut();
        let mut requests = proxy.requests.subscribe();
        requests.wait_for(|now| *now > sent).await?;
        println!("cut {cut}: the server sent the request again");
    }
    // What came with the request again has been read, too.
    client.ping().await?;
    let shown = *person.requests.borrow();
    if shown != 1 {
        return Err(format!("{shown} input requests were shown instead of one").into());
    }
    person.answers.send_replace(true);
    match call.outcome().await? {
        Outcome::Result(result)
            if tool::first_text(result.borrow())
                .is_some_and(|text| text.contains("# Research Report: tides")) =>
        {
            println!("ok      an input request over broken streams");
            Ok(())
        }
        other => Err(format!("{other:?} instead of a report").into()),
    }
}

/// Carries bytes between the client and the server, until it cuts every connection.
struct Proxy {
    address: SocketAddr,
    /// How many input requests the server has sent.
    requests: watch::Sender<usize>,
    cuts: broadcast::Sender<()>,
}

impl Proxy {
    async fn start(server: &str) -> Result<Arc<Self>, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let proxy = Arc::new(Self {
            address: listener.local_addr()?,
            requests: watch::Sender::default(),
            cuts: broadcast::Sender::new(1),
        });
        let (server, carrying) = (server.to_owned(), proxy.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, proxy) = (server.clone(), carrying.clone());
                let mut cut = proxy.cuts.subscribe();
                tokio::spawn(async move {
                    tokio::select! {
                        _ = proxy.carry(client, &server) => {}
                        _ = cut.recv() => {}
                    }
                });
            }
        });
        Ok(proxy)
    }

    fn cut(&self) {
        // Without a connection there is nothing to cut.
        let _ = self.cuts.send(());
    }

    async fn carry(&self, client: TcpStream, server: &str) -> std::io::Result<()> {
        let server = TcpStream::connect(server).await?;
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let forward = async {
            tokio::io::copy(&mut from_client, &mut to_server).await?;
            to_server.shutdown().await
        };
        let back = async {
            let mut bytes = vec![0; 1 << 16];
            loop {
                let length = from_server.read(&mut bytes).await?;
                if length == 0 {
                    return to_client.shutdown().await;
                }
                let has_request = hide_event_id(&mut bytes[..length]);
                to_client.write_all(&bytes[..length]).await?;
                if has_request {
                    self.requests.send_modify(|requests| *requests += 1);
                }
            }
        };
        tokio::try_join!(forward, back).map(drop)
    }
}

/// Whether `bytes` hold an input request. Its event loses its id, so that the client names the event before it when it comes
/// back, and the server sends the request again.
fn hide_event_id(bytes: &mut [u8]) -> bool {
    let find = |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).rposition(|at| at == text);
    let Some(request) = find(bytes, b"\"elicitation/create\"") else {
        return false;
    };
    if let Some(id) = find(&bytes[..request], b"id: ") {
        // A field of another name means nothing.
        bytes[id..id + 2].copy_from_slice(b"no");
    }
    true
}

/// Answers the input request when it is allowed to.
#[derive(Default)]
struct Person {
    requests: watch::Sender<usize>,
    answers: watch::Sender<bool>,
}

#[async_trait]
impl ClientHandler for Person {
    fn accepts(&self) -> InputKinds {
        InputKinds::all()
    }

    async fn handle(&self, _: ServerInputRequest) -> InputResponse {
        self.requests.send_modify(|requests| *requests += 1);
        let _ = self.answers.subscribe().wait_for(|answers| *answers).await;
        accept(Some(json!({ "interpretation": "technical" })))
    }
}

/// The tool of server-everything that makes a task and asks.
const RESEARCH: &str = "simulate-research-query";

/// How often the streams are cut while the input request is open.
const CUTS: usize = 3;

/// How long all of it may take.
const LIMIT: Duration = Duration::from_secs(90);
