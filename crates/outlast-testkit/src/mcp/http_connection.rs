//! HTTP for tests without a runtime: requests on one connection, one after the other. Every wait
//! has a limit.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::http_request::{
    MODERN, message_headers, modern_headers, request_bytes, with_modern_meta,
};
use crate::output::WAIT_LIMIT;

/// A connection to a server.
pub struct HttpConnection {
    stream: BufReader<TcpStream>,
    authority: String,
}

/// A response.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// The body, without the sizes of chunks.
    pub body: String,
}

impl HttpConnection {
    /// Connects to `authority`, such as `127.0.0.1:8040`.
    ///
    /// # Panics
    ///
    /// If no server listens there.
    pub fn open(authority: &str) -> Self {
        let stream = TcpStream::connect(authority);
        let stream = stream.unwrap_or_else(|error| panic!("{authority}: {error}"));
        let limited = stream.set_read_timeout(Some(WAIT_LIMIT));
        limited.expect("the limit is not zero");
        let limited = stream.set_write_timeout(Some(WAIT_LIMIT));
        limited.expect("the limit is not zero");
        Self {
            stream: BufReader::new(stream),
            authority: authority.to_owned(),
        }
    }

    /// Sends a request and returns its response.
    ///
    /// # Panics
    ///
    /// If no complete response arrives within two minutes.
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> HttpResponse {
        self.send_with(method, path, &[], headers, body)
    }

    fn send_with(
        &mut self,
        method: &str,
        path: &str,
        usual: &[(&str, &str)],
        other: &[(&str, &str)],
        body: &str,
    ) -> HttpResponse {
        let authority = &self.authority;
        let request = request_bytes(authority, method, path, usual, other, body.as_bytes());
        let sent = self.stream.get_mut().write_all(&request);
        sent.expect("the server reads the request");
        self.response()
    }

    /// Sends a GET request without other headers.
    pub fn get(&mut self, path: &str) -> HttpResponse {
        self.send("GET", path, &[], "")
    }

    /// Sends a JSON-RPC message with its usual headers and `other`, which replace them.
    pub fn post(
        &mut self,
        path: &str,
        version: &str,
        message: &Value,
        other: &[(&str, &str)],
    ) -> HttpResponse {
        let mut headers = message_headers(version).to_vec();
        if version == MODERN {
            headers.extend(modern_headers(message));
        }
        self.send_with("POST", path, &headers, other, &message.to_string())
    }

    /// Calls a tool as a modern client with these capabilities.
    pub fn call_tool(
        &mut self,
        path: &str,
        token: &str,
        params: Value,
        capabilities: Value,
    ) -> HttpResponse {
        let params = with_modern_meta(params, capabilities);
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let token = format!("Bearer {token}");
        self.post(path, MODERN, &call, &[("authorization", &token)])
    }

    fn response(&mut self) -> HttpResponse {
        let first = self.line();
        let status = first.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status: {first:?}"));
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut response = HttpResponse {
            status,
            headers,
            body: String::new(),
        };
        let body = self.body(&response);
        response.body = String::from_utf8(body).expect("the body is text");
        response
    }

    fn body(&mut self, response: &HttpResponse) -> Vec<u8> {
        let mut body = Vec::new();
        if response.header("transfer-encoding") == Some("chunked") {
            loop {
                let size = usize::from_str_radix(&self.line(), 16).expect("the size of a chunk");
                let mut chunk = vec![0; size];
                self.fill(&mut chunk);
                self.line();
                if size == 0 {
                    return body;
                }
                body.append(&mut chunk);
            }
        }
        if let Some(length) = response.header("content-length") {
            body.resize(length.parse().expect("a length"), 0);
            self.fill(&mut body);
        }
        body
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        self.stream
            .read_exact(bytes)
            .expect("the body arrives in time");
    }

    /// The next line, without its end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line);
        read.expect("the response arrives in time");
        line.trim_end().to_owned()
    }
}

impl HttpResponse {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    ///
    /// # Panics
    ///
    /// If it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
