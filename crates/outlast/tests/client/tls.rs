//! `https`: certificates of a trusted authority are accepted, others are not. They are in `tls`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use outlast::client::{self, Client, Target};
use outlast::transport::http_client::HttpClientOptions;
use outlast::transport::link::TransportError;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

pub(crate) const AUTHORITY: &[u8] = include_bytes!("tls/authority.pem");

/// A TLS server, which runs until this process ends. Returns its port.
pub(crate) fn listen(address: &str) -> u16 {
    let certificates = CertificateDer::pem_slice_iter(include_bytes!("tls/server.pem"));
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates.map(Result::unwrap).collect(), key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind((address, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let tls = ServerConnection::new(config.clone()).unwrap();
            std::thread::spawn(move || serve(StreamOwned::new(tls, stream)));
        }
    });
    port
}

/// Answers requests until the client disconnects or rejects the certificate.
pub(crate) fn serve(stream: impl Read + Write) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            (stream.read_line(&mut head).ok()? > 0).then_some(())?;
        }
        let head = head.to_lowercase();
        let length = head.split("content-length: ").nth(1);
        let length = length.map_or("0", |rest| rest.lines().next().unwrap_or_default());
        let mut body = vec![0; length.parse().ok()?];
        stream.read_exact(&mut body).ok()?;
        let answer = if head.starts_with("post") {
            answer(&serde_json::from_slice(&body).ok()?)
        } else {
            "HTTP/1.1 405 X\r\nContent-Length: 0\r\n\r\n".into()
        };
        stream.get_mut().write_all(answer.as_bytes()).ok()?;
    }
}

fn answer(message: &Value) -> String {
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "serverInfo": { "name": "behind tls", "version": "1" },
        }),
        Some("ping") => json!({}),
        _ => return "HTTP/1.1 202 X\r\nContent-Length: 0\r\n\r\n".into(),
    };
    let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
    format!(
        "HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub(crate) async fn connect(url: String, trust: &[u8]) -> Result<Client, client::Error> {
    let options = HttpClientOptions::new(url).with_trusted_certificates(trust.to_vec());
    Client::connect(Target::http(options), crate::harness::options()).await
}

#[tokio::test]
async fn a_certificate_of_a_trusted_authority_is_accepted() {
    let port = listen("127.0.0.1");
    for host in ["localhost", "127.0.0.1"] {
        let url = format!("https://{host}:{port}/mcp");
        let client = connect(url, AUTHORITY).await.unwrap();
        assert_eq!(&*client.server().await.unwrap().name, "behind tls");
        client.ping().await.unwrap();
        client.close().await;
    }
}

#[tokio::test]
async fn an_untrusted_certificate_is_rejected_with_the_reason() {
    let url = format!("https://127.0.0.1:{}/mcp", listen("127.0.0.1"));
    let failed = connect(url, &[]).await.err().unwrap();
    assert!(
        matches!(&failed, client::Error::Transport(TransportError::Unreachable(why)) if why.contains("certificate")),
        "{failed}"
    );
    // A certificate for another name is rejected, too.
    let url = format!("https://127.0.0.2:{}/mcp", listen("127.0.0.2"));
    let failed = connect(url, AUTHORITY).await.err().unwrap();
    assert!(
        matches!(&failed, client::Error::Transport(TransportError::Unreachable(why)) if why.contains("not valid for name")),
        "{failed}"
    );
}

#[tokio::test]
async fn an_invalid_trusted_certificate_is_an_error() {
    let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let failed = connect("https://127.0.0.1:1/mcp".into(), broken).await;
    let text = failed.err().unwrap().to_string();
    assert!(text.contains("a trusted certificate"), "{text}");
}
