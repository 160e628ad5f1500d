//! A program observes the messages and the state of a connection.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast::client::{
    Client, ConnectionState, MessageDirection, MessageObserver, ObservedMessage, ReconnectPolicy,
    Target,
};
use outlast::transport::link::TransportError;
use outlast::wire::Id;
use outlast_testkit::{eventually, within};
use serde_json::{Value, json};

use crate::harness::{capabilities, connected_with, options, target, with_inbox};

/// Keeps what it observes.
#[derive(Default)]
struct Recorder(Mutex<Vec<(MessageDirection, Value, Option<String>)>>);

impl MessageObserver for Recorder {
    fn message(&self, message: ObservedMessage<'_>) {
        let text = serde_json::from_slice(message.text).unwrap();
        let version = message.version.map(str::to_owned);
        self.0
            .lock()
            .unwrap()
            .push((message.direction, text, version));
    }

    fn request_failed(&self, request: &Id, _: &TransportError) {
        let failed = json!({ "failed": request.to_string() });
        self.0
            .lock()
            .unwrap()
            .push((MessageDirection::FromServer, failed, None));
    }
}

impl Recorder {
    /// The methods of the messages in one direction; `response` for a response.
    fn methods(&self, wanted: MessageDirection) -> Vec<String> {
        let seen = self.0.lock().unwrap();
        let seen = seen.iter().filter(|(direction, ..)| *direction == wanted);
        seen.map(|(_, message, _)| message["method"].as_str().unwrap_or("response").to_owned())
            .collect()
    }
}

#[tokio::test]
async fn every_message_is_observed_in_both_directions() {
    let recorder = Arc::new(Recorder::default());
    let (inbox, options) = with_inbox();
    let options = options.with_observer(recorder.clone());
    let (client, mut server) = connected_with(options, capabilities()).await;
    server
        .ask(
            "1",
            "elicitation/create",
            json!({ "message": "?", "requestedSchema": {} }),
        )
        .await;
    let item = within("the request", inbox.first()).await;
    inbox.decline(item.id).unwrap();
    within("the answer", server.response_to_id("1")).await;
    let pinging = tokio::spawn(async move { client.ping().await });
    let ping = server.expect_request("ping").await;
    server.reply(&ping, json!({})).await;
    pinging.await.unwrap().unwrap();
    assert_eq!(
        recorder.methods(MessageDirection::ToServer),
        [
            "initialize",
            "notifications/initialized",
            "response",
            "ping"
        ]
    );
    assert_eq!(
        recorder.methods(MessageDirection::FromServer),
        ["response", "elicitation/create", "response"]
    );
    let last = recorder.0.lock().unwrap().last().unwrap().clone();
    assert_eq!(last.2.as_deref(), Some("2025-11-25"));
}

#[tokio::test]
async fn the_state_of_a_connection_is_reported() {
    let (target, mut servers) = target();
    let reconnect = ReconnectPolicy::default().with_first_delay(Duration::from_millis(1));
    let options = options().with_reconnect(reconnect);
    let connecting = tokio::spawn(Client::connect(target, options));
    let mut server = servers.next().await;
    server.welcome("2025-11-25", json!({})).await;
    let client = connecting.await.unwrap().unwrap();
    assert_eq!(client.connection_state(), ConnectionState::Open);
    assert!(client.declared_capabilities().as_str().starts_with('{'));
    let mut changes = client.connection_changes();
    drop(server);
    let lost = within("the loss", changes.next()).await;
    assert!(
        matches!(lost, Some(ConnectionState::Reconnecting(_))),
        "{lost:?}"
    );
    let mut server = servers.next().await;
    server.welcome("2025-11-25", json!({})).await;
    eventually("the connection is open", async || {
        client.connection_state() == ConnectionState::Open
    })
    .await;
    client.close().await;
    assert!(matches!(
        client.connection_state(),
        ConnectionState::Closed(_)
    ));
}

#[tokio::test]
async fn a_connection_without_a_server_has_no_state() {
    let target = Target::other("nothing", || {
        Err(TransportError::Unreachable("no server".into()))
    });
    assert!(Client::connect(target, options()).await.is_err());
}
