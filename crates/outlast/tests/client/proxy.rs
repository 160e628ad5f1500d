//! Servers that are reached through a proxy, which the environment names as it does for other programs.
//!
//! The environment belongs to a process, so the client runs in one of its own.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use crate::tls::{self, AUTHORITY};

/// A proxy that leads every connection to one server.
struct Proxy {
    url: String,
    /// The first line of each connection that it has led on.
    lines: Receiver<String>,
}

impl Proxy {
    /// A proxy that lives as long as this process and leads to the server on `port`.
    fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let tell = tell.clone();
                std::thread::spawn(move || lead(client, port, &tell));
            }
        });
        Self { url, lines }
    }

    /// The first line of the next connection.
    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }
}

/// Leads a connection to the server on `port`: as a tunnel if it asks for one, else as it is.
fn lead(mut client: TcpStream, port: u16, tell: &Sender<String>) -> Option<()> {
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
    tell.send(line).ok()?;
    let (mut back, mut forth) = (server.try_clone().ok()?, client.try_clone().ok()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut back, &mut forth);
        let _ = forth.shutdown(Shutdown::Both);
    });
    let _ = std::io::copy(&mut client, &mut server);
    let _ = server.shutdown(Shutdown::Both);
    Some(())
}

/// A server without TLS, which lives as long as this process: the port it listens on.
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

/// Speaks to the server at `url` in a process with these variables: whether that succeeded, and what was said.
fn speak(url: &str, variables: &[(&str, &str)]) -> (bool, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--ignored", "--nocapture", "proxy::a_client"]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command.env("PROXY_TEST_URL", url);
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
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
    tokio::time::timeout(PATIENCE, work).await.unwrap();
}

#[test]
fn a_proxy_of_the_environment_is_asked_for_what_is_behind_http() {
    let proxy = Proxy::before(plain_server());
    let (done, said) = speak("http://tools.test/mcp", &[("HTTP_PROXY", &proxy.url)]);
    assert!(done, "{said}");
    assert_eq!(proxy.line(), "POST http://tools.test/mcp HTTP/1.1");
}

#[test]
fn a_proxy_of_the_environment_is_a_tunnel_to_what_is_behind_https() {
    let proxy = Proxy::before(tls::listen("127.0.0.1"));
    let url = "https://tools.test/mcp";
    let (done, said) = speak(url, &[("HTTPS_PROXY", &proxy.url)]);
    assert!(done, "{said}");
    assert_eq!(proxy.line(), "CONNECT tools.test:443 HTTP/1.1");
}

#[test]
fn no_proxy_is_asked_for_a_server_that_is_excepted_or_on_this_machine() {
    let port = plain_server();
    let proxy = Proxy::before(port);
    let here = format!("http://localhost:{port}/mcp");
    let (done, said) = speak(&here, &[("HTTP_PROXY", &proxy.url)]);
    assert!(done, "{said}");
    // There is no such server: only the proxy could reach it.
    let excepted = [("HTTP_PROXY", &*proxy.url), ("NO_PROXY", ".test")];
    let (done, _) = speak("http://tools.test/mcp", &excepted);
    assert!(!done);
    assert!(proxy.lines.try_recv().is_err());
}

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);
