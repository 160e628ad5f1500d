//! One endpoint on a file, with clients of both eras at the same time: a few hundred lives of tasks, and everybody gets
//! their own.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast::server::{ServerInfo, TaskPolicy};
use outlast::store::open_store;
use outlast::transport::http::{HttpOptions, Token};
use outlast::{Outlast, Running, TaskSupport, Tool, Tools, text};
use outlast_testkit::mcp::HttpClient;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::http_client::{Http, next};
use crate::stdio_client::everything;

#[tokio::test(flavor = "multi_thread")]
async fn everybody_gets_their_own_while_both_eras_are_busy_on_one_endpoint() {
    // V2-ERA-8, V2-STATE-1, V2-SEC-2, V2-NOTIF-10, V1-SEC-1, V1-SEC-2, V1-SEC-3.
    let folder = tempfile::tempdir().unwrap();
    let town = Arc::new(Town::default());
    let running = town.serve(&folder.path().join("tasks.db")).await;
    let address = running.local_addr();
    let mut clients = JoinSet::new();
    for person in 0..PEOPLE.len() {
        clients.spawn(legacy(town.clone(), address, person));
        clients.spawn(modern(town.clone(), address, person));
    }
    let busy = async {
        while let Some(ended) = clients.join_next().await {
            ended.unwrap();
        }
        for person in 0..PEOPLE.len() {
            check_what_is_listed(&town, address, person).await;
        }
    };
    tokio::time::timeout(PATIENCE, busy)
        .await
        .expect("every life ends");
    running.shutdown().await.unwrap();
}

/// Who is there, and what each has made. A person has a session of the old era and a client of the new one.
#[derive(Default)]
struct Town {
    tasks: Mutex<HashMap<usize, Vec<String>>>,
    /// What a tool waits at before it says its word.
    gates: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Town {
    async fn serve(self: &Arc<Self>, file: &Path) -> Running {
        let url = file.to_str().unwrap().parse().unwrap();
        let store = open_store(&url, Default::default()).await.unwrap();
        let town = self.clone();
        let say = Tool::new("say", "says its word when it may", move |args, _| {
            let town = town.clone();
            async move {
                let word = args.text("word")?.to_owned();
                town.gate(&word).acquire().await?.forget();
                Ok(text(word))
            }
        });
        let say = say
            .task(TaskSupport::Optional)
            .deliver(TaskPolicy::After(Duration::from_millis(1)));
        let about = ServerInfo {
            name: "town".into(),
            version: "1".into(),
            instructions: None,
        };
        let outlast = Outlast::builder().store(store).build();
        let options = HttpOptions {
            tokens: PEOPLE.map(|name| Token::new(name, name)).into(),
            ..HttpOptions::default()
        };
        let server = outlast.tools(Tools::new().with(say), about);
        server.http_with(options).await.unwrap()
    }

    fn gate(&self, word: &str) -> Arc<Semaphore> {
        let mut gates = self.gates.lock().unwrap();
        let gate = gates.entry(word.to_owned());
        gate.or_insert_with(|| Arc::new(Semaphore::new(0))).clone()
    }

    /// Lets a word be said.
    fn open(&self, word: &str) {
        self.gate(word).add_permits(1);
    }

    fn note(&self, person: usize, task: &str) {
        let mut tasks = self.tasks.lock().unwrap();
        tasks.entry(person).or_default().push(task.to_owned());
    }

    fn tasks_of(&self, person: usize) -> Vec<String> {
        let tasks = self.tasks.lock().unwrap();
        tasks.get(&person).cloned().unwrap_or_default()
    }

    /// The latest task of somebody else, if there is one yet.
    fn foreign(&self, person: usize) -> Option<String> {
        self.tasks_of((person + 1) % PEOPLE.len()).pop()
    }
}

/// The lives of the tasks of a session: created, looked at, waited for.
async fn legacy(town: Arc<Town>, address: SocketAddr, person: usize) {
    let client = met(address, person).await;
    for life in 0..LIVES {
        let word = format!("v1-{person}-{life}");
        let task = client.task("say", json!({ "word": word })).await;
        town.note(person, &task);
        assert_eq!(client.status(&task).await["result"]["status"], "working");
        let mut waiting = client.result(&task).await;
        assert!(waiting.is_stream());
        town.open(&word);
        let answer = waiting.rest().await.pop().unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], word);
        let related = &answer["result"]["_meta"]["io.modelcontextprotocol/related-task"];
        assert_eq!(*related, json!({ "taskId": task }));
        assert_eq!(client.status(&task).await["result"]["status"], "completed");
        if let Some(foreign) = town.foreign(person) {
            assert_eq!(client.status(&foreign).await["error"]["code"], -32602);
        }
    }
}

/// The lives of the calls of a modern client: promoted and looked at, promoted and listened to, or as quick as it comes.
async fn modern(town: Arc<Town>, address: SocketAddr, person: usize) {
    let http = Http {
        address,
        token: Some(PEOPLE[person]),
        can: everything(),
    };
    for life in 0..LIVES {
        let word = format!("v2-{person}-{life}");
        let call = json!({ "name": "say", "arguments": { "word": word } });
        if life % 3 == 2 {
            town.open(&word);
        }
        let answer = http.call("tools/call", call).await["result"].clone();
        let result = match answer["resultType"].as_str() {
            Some("task") => {
                let task = answer["taskId"].as_str().unwrap();
                town.note(person, task);
                match life % 3 {
                    0 => {
                        assert_eq!(http.status(task).await["status"], "working");
                        town.open(&word);
                    }
                    1 => listen(&town, &http, person, task, &word).await,
                    _ => {}
                }
                http.until(task, "completed").await["result"].clone()
            }
            // Nobody is answered before the gate is open.
            _ => {
                assert_eq!(life % 3, 2, "{answer}");
                answer
            }
        };
        assert_eq!(result["content"][0]["text"], word);
        if let Some(foreign) = town.foreign(person) {
            let refused = http.refused("tasks/get", json!({ "taskId": foreign }), &[]);
            assert_eq!(refused.await, (200, -32602));
        }
    }
}

/// Wishes to hear of a task and of a foreign one; hears of its own alone, up to its end.
async fn listen(town: &Town, http: &Http, person: usize, task: &str, word: &str) {
    let mut wish = vec![task.to_owned()];
    wish.extend(town.foreign(person));
    let wish = json!({ "notifications": { "taskIds": wish } });
    let mut stream = http.ask("subscriptions/listen", wish).await;
    let ack = next(&mut stream, "subscriptions/listen").await;
    let accepted = &ack["params"]["notifications"];
    assert_eq!(*accepted, json!({ "taskIds": [task] }));
    town.open(word);
    loop {
        let told = next(&mut stream, "subscriptions/listen").await["params"].clone();
        assert_eq!(told["taskId"], task);
        if told["status"] == "completed" {
            assert_eq!(told["result"]["content"][0]["text"], word);
            return;
        }
    }
}

/// A person's list has what the person made in either era, and nothing else; what others made is not there.
async fn check_what_is_listed(town: &Town, address: SocketAddr, person: usize) {
    let client = met(address, person).await;
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
    let mut made = town.tasks_of(person);
    // All of the old era, and of the new one all that waited at their gate.
    assert!(made.len() >= LIVES + LIVES / 3 * 2);
    listed.sort();
    made.sort();
    assert_eq!(listed, made);
}

/// A session of a person.
async fn met(address: SocketAddr, person: usize) -> HttpClient {
    let mut client = HttpClient::stranger(address);
    client.token = Some(PEOPLE[person]);
    client.introduce("2025-11-25").await;
    client
}

/// The names are the secrets, too.
const PEOPLE: [&str; 10] = [
    "ada", "bob", "cleo", "dan", "eve", "finn", "gwen", "hugo", "ines", "jack",
];

/// The lives that each client of a person goes through.
const LIVES: usize = 15;

/// Far longer than all of it takes.
const PATIENCE: Duration = Duration::from_secs(120);
