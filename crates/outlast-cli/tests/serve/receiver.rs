//! An HTTP server that records requests and answers as a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

/// A recorded request.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// How the receiver answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseMode {
    Status(u16),
    /// The connection stays open without an answer.
    Nothing,
}

/// The server, until the process ends.
pub(crate) struct Receiver {
    pub(crate) url: String,
    shared: Arc<Mutex<(ResponseMode, Vec<ReceivedRequest>)>>,
}

impl Receiver {
    pub(crate) fn start(answer: ResponseMode) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let shared = Arc::new(Mutex::new((answer, Vec::new())));
        let recorded = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                let recorded = recorded.clone();
                std::thread::spawn(move || serve(&stream, &recorded));
            }
        });
        Self { url, shared }
    }

    pub(crate) fn answer(&self, answer: ResponseMode) {
        self.shared.lock().expect("no panic").0 = answer;
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.lock().expect("no panic").1.clone()
    }
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

/// Serves one request.
fn serve(stream: &TcpStream, recorded: &Mutex<(ResponseMode, Vec<ReceivedRequest>)>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let request = ReceivedRequest {
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    let answer = {
        let mut recorded = recorded.lock().expect("no panic");
        recorded.1.push(request);
        recorded.0
    };
    match answer {
        ResponseMode::Status(status) => {
            let head =
                format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            (&*stream).write_all(head.as_bytes()).ok()
        }
        ResponseMode::Nothing => {
            // Until the other side closes.
            stream
                .set_read_timeout(Some(Duration::from_secs(120)))
                .ok()?;
            reader.read(&mut [0]).ok().map(drop)
        }
    }
}
