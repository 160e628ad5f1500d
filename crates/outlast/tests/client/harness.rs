//! The harness: a scripted server at the other end of a pipe.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast::client::{
    Client, ClientOptions, Era, Execution, Inbox, InboxEvent, InboxItem, InboxItemId, Target,
};
use outlast::task::{InputKinds, Outcome};
use outlast::transport::duplex;
use outlast::wire::Raw;
use outlast_testkit::mcp::{Line, ScriptedServer};
use outlast_testkit::{eventually, within};
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

/// A scripted server.
pub(crate) struct TestServer(ScriptedServer);

/// Options of a legacy client.
pub(crate) fn options() -> ClientOptions {
    ClientOptions::default().with_era(Era::Legacy)
}

/// A client and the server it is connected to.
pub(crate) async fn connected() -> (Client, TestServer) {
    connected_with(options(), capabilities()).await
}

/// A client with a call of the tool `slow` in flight, and its server.
pub(crate) async fn calling() -> (Client, TestServer, JoinHandle<Execution>) {
    let (client, server) = connected().await;
    let call = client.call_tool("slow", ());
    let call = tokio::spawn(async move { call.await.unwrap() });
    (client, server, call)
}

/// A client with these options, and a server with these capabilities.
pub(crate) async fn connected_with(
    options: ClientOptions,
    capabilities: Value,
) -> (Client, TestServer) {
    let (target, mut servers) = target();
    let connecting = tokio::spawn(Client::connect(target, options));
    let mut server = servers.next().await;
    server.welcome("2025-11-25", capabilities).await;
    (connecting.await.unwrap().unwrap(), server)
}

/// A target, and the servers that are connected through it, in order.
pub(crate) fn target() -> (Target, Servers) {
    let (sink, notification) = tokio::sync::mpsc::unbounded_channel();
    let target = Target::other("test", move || {
        let (line, theirs) = Line::pair();
        let _ = sink.send(TestServer(ScriptedServer::new(line)));
        let (read, write) = tokio::io::split(theirs);
        Ok(duplex::over(read, write))
    });
    (target, Servers(notification))
}

pub(crate) struct Servers(tokio::sync::mpsc::UnboundedReceiver<TestServer>);

impl Servers {
    pub(crate) async fn next(&mut self) -> TestServer {
        let connected = within("a connection", self.0.recv()).await;
        connected.expect("a client connects")
    }
}

/// The capabilities of a server with all V1 task features.
pub(crate) fn capabilities() -> Value {
    json!({ "tools": {}, "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } } })
}

impl TestServer {
    /// Responds to the list request, and then to the call with a task.
    pub(crate) async fn make_task(&mut self, status: &str, interval: u64) -> Value {
        self.list(&[("slow", "optional")]).await;
        let call = self.expect_request("tools/call").await;
        self.reply(&call, json!({ "task": task(status, interval) }))
            .await;
        call
    }

    /// The response to a request of the server.
    pub(crate) async fn response_to_id(&mut self, id: &str) -> Value {
        self.response_to(&id.into()).await
    }

    /// Sends a request to the client.
    pub(crate) async fn ask(&mut self, id: &str, method: &str, params: Value) {
        self.request(&id.into(), method, params).await;
    }

    /// Checks that no message arrives for `time` and none is unread.
    pub(crate) async fn silence(&mut self, time: Duration) {
        assert_eq!(self.early(), None);
        self.0.silence(time).await;
    }
}

impl Deref for TestServer {
    type Target = ScriptedServer;

    fn deref(&self) -> &ScriptedServer {
        &self.0
    }
}

impl DerefMut for TestServer {
    fn deref_mut(&mut self) -> &mut ScriptedServer {
        &mut self.0
    }
}

/// Synchronizes both sides: all earlier messages are processed.
pub(crate) trait Synchronize {
    async fn synchronize(&self, server: &mut TestServer);
}

impl Synchronize for Client {
    async fn synchronize(&self, server: &mut TestServer) {
        let client = self.clone();
        let pinging = tokio::spawn(async move { client.ping().await });
        let ping = server.expect_request("ping").await;
        server.reply(&ping, json!({})).await;
        pinging.await.unwrap().unwrap();
    }
}

/// A task as the server reports it.
pub(crate) fn task(status: &str, interval: u64) -> Value {
    json!({
        "taskId": "t1",
        "status": status,
        "createdAt": "2026-01-10T08:00:00Z",
        "lastUpdatedAt": "2026-01-10T08:00:00Z",
        "ttl": 60_000,
        "pollInterval": interval,
    })
}

/// A tool result with one text.
pub(crate) fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// The text of a result.
pub(crate) fn result_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Result(body) => outlast_wire::tool::first_text(body.borrow()).unwrap_or_default(),
        other => panic!("{other:?} is no result"),
    }
}

pub(crate) fn raw(value: Value) -> Raw {
    Raw::encode(&value).unwrap()
}

/// An inbox for all input kinds, and options that use it.
pub(crate) fn with_inbox() -> (TestInbox, ClientOptions) {
    let inbox = Inbox::new(InputKinds::all());
    let options = options().with_handler(Arc::new(inbox.clone()));
    (TestInbox(inbox), options)
}

/// An inbox. Every wait has a limit.
#[derive(Clone)]
pub(crate) struct TestInbox(Inbox);

impl TestInbox {
    /// Waits for the oldest item.
    pub(crate) async fn first(&self) -> InboxItem {
        within("an input request", self.0.first()).await
    }

    /// Waits until it has `count` items.
    pub(crate) async fn until_items(&self, count: usize) {
        let what = format!("the inbox has {count} items");
        eventually(&what, async || self.items().len() == count).await;
    }
}

impl Deref for TestInbox {
    type Target = Inbox;

    fn deref(&self) -> &Inbox {
        &self.0
    }
}

/// The next event of an inbox.
pub(crate) async fn next_event(events: &mut broadcast::Receiver<InboxEvent>) -> InboxEvent {
    within("an event of the inbox", events.recv())
        .await
        .unwrap()
}

/// Waits until an item has left the inbox.
pub(crate) async fn until_removed(events: &mut broadcast::Receiver<InboxEvent>, id: InboxItemId) {
    while next_event(events).await != InboxEvent::Removed(id) {}
}

/// Collects the arguments of a callback.
pub(crate) fn collector() -> (
    Arc<Mutex<Vec<String>>>,
    impl Fn(&str) + Send + Sync + 'static,
) {
    let received = Arc::new(Mutex::new(Vec::new()));
    let sink = received.clone();
    (received, move |line: &str| {
        sink.lock().unwrap().push(line.to_owned());
    })
}
