//! One endpoint on a SQLite file, with clients of both eras at the same time: a few hundred tasks,
//! and every owner gets its own.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast::server::TaskPolicy;
use outlast::store::open_store;
use outlast::transport::http::{BearerTokens, Token};
use outlast::{Server, ServerHandle, TaskSupport, Tool, text};
use outlast_testkit::mcp::HttpClient;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::http_client::{ModernHttpClient, next};

#[tokio::test(flavor = "multi_thread")]
async fn every_owner_gets_its_own_tasks_under_load() {
    // V2-ERA-8, V2-STATE-1, V2-SEC-2, V2-NOTIF-10, V1-SEC-1, V1-SEC-2, V1-SEC-3.
    let folder = tempfile::tempdir().unwrap();
    let owners = Arc::new(Owners::default());
    let running = owners.serve(&folder.path().join("tasks.db")).await;
    let address = running.local_addr();
    let mut clients = JoinSet::new();
    for owner in 0..OWNERS.len() {
        clients.spawn(legacy(owners.clone(), address, owner));
        clients.spawn(modern(owners.clone(), address, owner));
    }
    let busy = async {
        while let Some(ended) = clients.join_next().await {
            ended.unwrap();
        }
        for owner in 0..OWNERS.len() {
            check_list(&owners, address, owner).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, busy)
        .await
        .expect("every client ends in time");
    running.shutdown().await.unwrap();
}

/// The tasks of each owner, and the gates of the tools. Each owner has a legacy session and a
/// modern client.
#[derive(Default)]
struct Owners {
    tasks: Mutex<HashMap<usize, Vec<String>>>,
    /// The gate of each word.
    gates: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Owners {
    async fn serve(self: &Arc<Self>, file: &Path) -> ServerHandle {
        let url = file.to_str().unwrap().parse().unwrap();
        let store = open_store(&url, Default::default()).await.unwrap();
        let owners = self.clone();
        let say = Tool::new("say", "says its word when it may", move |args, _| {
            let owners = owners.clone();
            async move {
                let word = args.text("word")?.to_owned();
                owners.gate(&word).acquire().await?.forget();
                Ok(text(word))
            }
        });
        let say = say
            .task(TaskSupport::Optional)
            .task_policy(TaskPolicy::After(Duration::from_millis(1)));
        let tokens = OWNERS.map(|name| Token::new(name, name));
        let server = Server::builder("owners", "1")
            .tool(say)
            .store(store)
            .authenticate(BearerTokens::new(tokens))
            .build();
        server.listen().await.unwrap()
    }

    fn gate(&self, word: &str) -> Arc<Semaphore> {
        let mut gates = self.gates.lock().unwrap();
        let gate = gates.entry(word.to_owned());
        gate.or_insert_with(|| Arc::new(Semaphore::new(0))).clone()
    }

    /// Lets the tool with this word continue.
    fn open(&self, word: &str) {
        self.gate(word).add_permits(1);
    }

    fn record(&self, owner: usize, task: &str) {
        let mut tasks = self.tasks.lock().unwrap();
        tasks.entry(owner).or_default().push(task.to_owned());
    }

    fn tasks_of(&self, owner: usize) -> Vec<String> {
        let tasks = self.tasks.lock().unwrap();
        tasks.get(&owner).cloned().unwrap_or_default()
    }

    /// The latest task of another owner, if there is one.
    fn task_of_another_owner(&self, owner: usize) -> Option<String> {
        self.tasks_of((owner + 1) % OWNERS.len()).pop()
    }
}

/// Creates tasks in a legacy session, polls them, and waits for their results.
async fn legacy(owners: Arc<Owners>, address: SocketAddr, owner: usize) {
    let client = initialized(address, owner).await;
    for number in 0..TASKS_PER_CLIENT {
        let word = format!("v1-{owner}-{number}");
        let task = client.task("say", json!({ "word": word })).await;
        owners.record(owner, &task);
        assert_eq!(client.status(&task).await["result"]["status"], "working");
        let mut waiting = client.result(&task).await;
        assert!(waiting.is_stream());
        owners.open(&word);
        let response = waiting.rest().await.pop().unwrap();
        assert_eq!(response["result"]["content"][0]["text"], word);
        let related = &response["result"]["_meta"]["io.modelcontextprotocol/related-task"];
        assert_eq!(*related, json!({ "taskId": task }));
        assert_eq!(client.status(&task).await["result"]["status"], "completed");
        if let Some(foreign) = owners.task_of_another_owner(owner) {
            assert_eq!(client.status(&foreign).await["error"]["code"], -32602);
        }
    }
}

/// Makes modern calls: promoted and polled, promoted and subscribed, or inline.
async fn modern(owners: Arc<Owners>, address: SocketAddr, owner: usize) {
    let http = ModernHttpClient::at(address, Some(OWNERS[owner]));
    for number in 0..TASKS_PER_CLIENT {
        let word = format!("v2-{owner}-{number}");
        let call = json!({ "name": "say", "arguments": { "word": word } });
        if number % 3 == 2 {
            owners.open(&word);
        }
        let response = http.call("tools/call", call).await["result"].clone();
        let result = match response["resultType"].as_str() {
            Some("task") => {
                let task = response["taskId"].as_str().unwrap();
                owners.record(owner, task);
                match number % 3 {
                    0 => {
                        assert_eq!(http.status(task).await["status"], "working");
                        owners.open(&word);
                    }
                    1 => listen(&owners, &http, owner, task, &word).await,
                    _ => {}
                }
                http.until(task, "completed").await["result"].clone()
            }
            // No response arrives before the gate is open.
            _ => {
                assert_eq!(number % 3, 2, "{response}");
                response
            }
        };
        assert_eq!(result["content"][0]["text"], word);
        if let Some(foreign) = owners.task_of_another_owner(owner) {
            let rejected = http.rejected("tasks/get", json!({ "taskId": foreign }), &[]);
            assert_eq!(rejected.await, (200, -32602));
        }
    }
}

/// Subscribes to a task and to a foreign one; receives only its own, up to its end.
async fn listen(owners: &Owners, http: &ModernHttpClient, owner: usize, task: &str, word: &str) {
    let mut filter = vec![task.to_owned()];
    filter.extend(owners.task_of_another_owner(owner));
    let filter = json!({ "notifications": { "taskIds": filter } });
    let mut stream = http.request("subscriptions/listen", filter).await;
    let ack = next(&mut stream, "subscriptions/listen").await;
    let accepted = &ack["params"]["notifications"];
    assert_eq!(*accepted, json!({ "taskIds": [task] }));
    owners.open(word);
    loop {
        let notification = next(&mut stream, "subscriptions/listen").await["params"].clone();
        assert_eq!(notification["taskId"], task);
        if notification["status"] == "completed" {
            assert_eq!(notification["result"]["content"][0]["text"], word);
            return;
        }
    }
}

/// Asserts that an owner's list has its tasks of both eras, and no others.
async fn check_list(owners: &Owners, address: SocketAddr, owner: usize) {
    let client = initialized(address, owner).await;
    let (mut listed, mut params) = (Vec::new(), json!({}));
    loop {
        let page = client.call("tasks/list", params).await["result"].clone();
        let tasks = page["tasks"].as_array().unwrap();
        let ids = tasks.iter().map(|task| task["taskId"].as_str().unwrap());
        listed.extend(ids.map(str::to_owned));
        match &page["nextCursor"] {
            Value::Null => break,
            cursor => params = json!({ "cursor": cursor }),
        }
    }
    let mut made = owners.tasks_of(owner);
    // All legacy tasks, and the modern ones that waited at their gate.
    assert!(made.len() >= TASKS_PER_CLIENT + TASKS_PER_CLIENT / 3 * 2);
    listed.sort();
    made.sort();
    assert_eq!(listed, made);
}

/// An initialized session of an owner.
async fn initialized(address: SocketAddr, owner: usize) -> HttpClient {
    let mut client = HttpClient::without_session(address);
    client.token = Some(OWNERS[owner]);
    client.introduce("2025-11-25").await;
    client
}

/// The names of the owners, which are also their tokens.
const OWNERS: [&str; 10] = [
    "ada", "bob", "cleo", "dan", "eve", "finn", "gwen", "hugo", "ines", "jack",
];

/// How many tasks each client creates.
const TASKS_PER_CLIENT: usize = 15;

/// Far longer than the test takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);
