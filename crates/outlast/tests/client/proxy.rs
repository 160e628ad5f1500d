//! Connections through a proxy that the environment names.
//!
//! The environment is global to a process, so the client runs in its own process.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use outlast_testkit::RunCommand;

use crate::tls::{self, AUTHORITY};

/// A proxy that forwards every connection to one server.
struct Proxy {
    url: String,
    /// The first line of each forwarded connection.
    lines: Receiver<String>,
}

impl Proxy {
    /// Starts a proxy to the server on `port`. It runs until this process ends.
    fn to_server_on(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let sender = sender.clone();
                std::thread::spawn(move || forward(client, port, &sender));
            }
        });
        Self { url, lines }
    }

    /// The first line of the next connection.
    fn line(&self) -> String {
        self.lines.recv_timeout(STEP_TIMEOUT).unwrap()
    }
}

/// Forwards a connection to the server on `port`: as a tunnel after CONNECT, else unchanged.
fn forward(mut client: TcpStream, port: u16, lines: &Sender<String>) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let line = String::from_utf8(head.clone()).ok()?;
    let line = line.lines().next()?.to_owned();
    let mut server = TcpStream::connect(("127.0.0.1", port)).ok()?;
    if line.starts_with("CONNECT ") {
        client.write_all(b"HTTP/1.1 200 X\r\n\r\n").ok()?;
    } else {
        server.write_all(&head).ok()?;
    }
    lines.send(line).ok()?;
    let (mut back, mut forth) = (server.try_clone().ok()?, client.try_clone().ok()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut back, &mut forth);
        let _ = forth.shutdown(Shutdown::Both);
    });
    let _ = std::io::copy(&mut client, &mut server);
    let _ = server.shutdown(Shutdown::Both);
    Some(())
}

/// A server without TLS, which runs until this process ends. Returns its port.
fn plain_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || tls::serve(stream));
        }
    });
    port
}

/// Connects to `url` in a process with these variables. Returns whether it succeeded, and the
/// output.
fn connect_through(url: &str, variables: &[(&str, &str)]) -> (bool, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--ignored", "--nocapture", "proxy::a_client"]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command.env("PROXY_TEST_URL", url);
    command.envs(variables.iter().copied());
    let output = command.run();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[tokio::test]
#[ignore = "runs in a process of its own, started by the tests below"]
async fn a_client() {
    let url = std::env::var("PROXY_TEST_URL").unwrap();
    let work = async {
        let client = tls::connect(url, AUTHORITY).await.unwrap();
        client.ping().await.unwrap();
        client.close().await;
    };
    tokio::time::timeout(STEP_TIMEOUT, work).await.unwrap();
}

#[test]
fn http_goes_through_the_proxy_of_the_environment() {
    let proxy = Proxy::to_server_on(plain_server());
    let (done, text) = connect_through("http://tools.test/mcp", &[("HTTP_PROXY", &proxy.url)]);
    assert!(done, "{text}");
    assert_eq!(proxy.line(), "POST http://tools.test/mcp HTTP/1.1");
}

#[test]
fn https_goes_through_a_tunnel_of_the_proxy() {
    let proxy = Proxy::to_server_on(tls::listen("127.0.0.1"));
    let url = "https://tools.test/mcp";
    let (done, text) = connect_through(url, &[("HTTPS_PROXY", &proxy.url)]);
    assert!(done, "{text}");
    assert_eq!(proxy.line(), "CONNECT tools.test:443 HTTP/1.1");
}

#[test]
fn excepted_and_local_servers_need_no_proxy() {
    let port = plain_server();
    let proxy = Proxy::to_server_on(port);
    let here = format!("http://localhost:{port}/mcp");
    let (done, text) = connect_through(&here, &[("HTTP_PROXY", &proxy.url)]);
    assert!(done, "{text}");
    // The server does not exist: only the proxy can reach it.
    let excepted = [("HTTP_PROXY", &*proxy.url), ("NO_PROXY", ".test")];
    let (done, _) = connect_through("http://tools.test/mcp", &excepted);
    assert!(!done);
    assert!(proxy.lines.try_recv().is_err());
}

/// The time limit of a step.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);
