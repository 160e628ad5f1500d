//! The example with a real Redis queue: the task ends although the server and a worker that has the
//! job are killed.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use outlast_testkit::mcp::HttpClient;
use outlast_testkit::{ServerProcess, eventually, example, within};
use serde_json::json;

/// A process that is killed at the end of the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn redis(folder: &Path, port: u16) -> Running {
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--save", "", "--port"]);
    command.arg(port.to_string()).arg("--dir").arg(folder);
    let started = command.stdout(Stdio::null()).spawn();
    Running(started.expect("redis-server is installed: apt-get install redis-server"))
}

fn worker(url: &str) -> Running {
    let mut command = Command::new(example("redis_queue"));
    Running(command.args(["worker", url]).spawn().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs redis-server; `cargo xtask peers queue` runs it"]
async fn a_redis_task_survives_kills_of_server_and_worker() {
    let folder = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let _redis = redis(folder.path(), port);
    let url = format!("redis://127.0.0.1:{port}");
    eventually("redis listens", async || {
        tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .is_ok()
    })
    .await;
    let store = folder.path().join("tasks.db");
    let store = store.to_str().unwrap();
    let server = ServerProcess::example("redis_queue", &["server", &url, "127.0.0.1:0", store]);
    let address = server.address();
    let client = HttpClient::connect(address).await;
    let task = client.task("shout", json!({ "text": "hello" })).await;
    let queue = redis::Client::open(url.as_str()).unwrap();
    let mut queue = queue.get_multiplexed_async_connection().await.unwrap();
    let mut length = async |list: &str| {
        let mut command = redis::cmd("LLEN");
        command.arg(list);
        command.query_async::<usize>(&mut queue).await.unwrap()
    };
    within("a job in the queue", async {
        while length("jobs").await == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let bound = address.to_string();
    server.kill();

    // It takes the job, and repeats its report because there is no server.
    let lost = worker(&url);
    within("a worker takes the job", async {
        while length("active").await == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(lost);
    assert_eq!((length("jobs").await, length("active").await), (0, 1));

    let _server = ServerProcess::example("redis_queue", &["server", &url, &bound, store]);
    assert_eq!(client.status(&task).await["result"]["status"], "working");
    let _worker = worker(&url);
    client.until(&task, "completed").await;
    let result = client.result(&task).await.json().await;
    assert_eq!(result["result"]["content"][0]["text"], "HELLO");
    within("the job is removed", async {
        while length("active").await + length("jobs").await > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
