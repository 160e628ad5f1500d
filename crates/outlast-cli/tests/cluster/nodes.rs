//! Three gateways on one PostgreSQL database, each with its own home directory, behind nginx.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use outlast_testkit::mcp::{HttpClient, HttpConnection, HttpResponse, MODERN};
use outlast_testkit::{
    LoadBalancer, PostgresServer, ServerProcess, example, free_port, until, wait_for_end,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use crate::launcher::outlast;

/// The nodes and the load balancer until they are dropped.
///
/// Each node serves three servers: at `/mcp/child` and `/mcp/legacy` processes that it starts, which
/// have state, and at `/mcp/remote` one server at a URL, without state.
pub(crate) struct Cluster {
    pub(crate) balancer: LoadBalancer,
    pub(crate) nodes: Vec<Node>,
    folder: TempDir,
    _remote: ServerProcess,
}

/// A gateway that can be stopped, and started again at the same address.
pub(crate) struct Node {
    pub(crate) address: SocketAddr,
    home: PathBuf,
    words: Vec<String>,
    process: Option<ServerProcess>,
}

impl Cluster {
    /// Starts three nodes behind nginx.
    pub(crate) fn start() -> Self {
        Self::behind(LoadBalancer::nginx)
    }

    /// Starts three nodes behind the load balancer that `balancer` starts.
    pub(crate) fn behind(balancer: impl FnOnce(&Path, &[SocketAddr]) -> LoadBalancer) -> Self {
        let folder = TempDir::new().expect("a folder");
        let here = folder.path().to_str().expect("a path");
        let counted = example("counted");
        let mut remote = Command::new(&counted);
        let remote = ServerProcess::start(remote.args([here, "127.0.0.1:0"]), 1);
        let config = json!({
            "mcpServers": {
                "child": { "command": counted, "args": [here], "outlast": { "era": "modern" } },
                "legacy": { "command": counted, "args": [here], "outlast": { "era": "legacy" } },
                "remote": { "url": remote.url(), "outlast": { "era": "modern" } },
            },
            "outlast": { "openTasksPerOwner": 1000 },
        });
        let write = |name: &str, text: String| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).expect("the folder can be written");
            file.to_str().expect("a path").to_owned()
        };
        let words = [
            "--no-probe".to_owned(),
            format!("--store={}", PostgresServer::shared().fresh_url()),
            format!("--config={}", write("mcp.json", config.to_string())),
            format!(
                "--tokens={}",
                write("tokens.json", json!({ "ada": TOKEN }).to_string())
            ),
        ];
        let mut nodes: Vec<_> = (1..=NODES)
            .map(|number| {
                let home = folder.path().join(number.to_string());
                std::fs::create_dir(&home).expect("the folder can be written");
                Node {
                    address: ([127, 0, 0, 1], free_port()).into(),
                    home,
                    words: words.to_vec(),
                    process: None,
                }
            })
            .collect();
        nodes.iter_mut().for_each(Node::start);
        nodes.iter().for_each(Node::until_ready);
        let addresses: Vec<_> = nodes.iter().map(|node| node.address).collect();
        Self {
            balancer: balancer(folder.path(), &addresses),
            nodes,
            folder,
            _remote: remote,
        }
    }

    /// A client of this server through the load balancer, without a session.
    pub(crate) fn client(&self, server: &str) -> HttpClient {
        HttpClient {
            token: Some(TOKEN),
            path: format!("/mcp/{server}"),
            ..HttpClient::without_session(self.balancer.address())
        }
    }

    /// The same for a modern client.
    pub(crate) fn modern_client(&self, server: &str) -> HttpClient {
        HttpClient {
            version: MODERN,
            ..self.client(server)
        }
    }

    /// A client of this server through the load balancer, with a session of 2025-11-25.
    pub(crate) async fn session(&self, server: &str) -> HttpClient {
        let mut client = self.client(server);
        client.introduce("2025-11-25").await;
        client
    }

    /// How many times each call was run, by its argument `id`.
    pub(crate) fn runs(&self) -> BTreeMap<String, usize> {
        let text = std::fs::read_to_string(self.folder.path().join("runs"));
        let mut runs = BTreeMap::new();
        for id in text.unwrap_or_default().lines() {
            *runs.entry(id.to_owned()).or_default() += 1;
        }
        runs
    }

    /// Asserts that each node has got about a third of the requests.
    pub(crate) fn assert_balanced(&self) {
        let nodes: Vec<_> = self.nodes.iter().map(|node| node.address).collect();
        self.balancer.assert_balanced(&nodes);
    }
}

impl Node {
    /// Starts the gateway.
    pub(crate) fn start(&mut self) {
        let mut options = File::options();
        let log = options.create(true).append(true);
        let log = log.open(self.home.join("stderr")).expect("a file");
        let mut command = outlast(&self.home);
        command
            .args(["serve", "--http", &self.address.to_string()])
            .args(&self.words);
        self.process = Some(ServerProcess::start(command.stderr(log), 3));
    }

    /// Waits until it accepts new tasks and knows the other nodes.
    pub(crate) fn until_ready(&self) {
        until("the node is ready", || {
            let response = self.get("/readyz");
            response.status == 200
        });
    }

    /// Sends it a GET request, not through the load balancer.
    pub(crate) fn get(&self, path: &str) -> HttpResponse {
        HttpConnection::open(&self.address.to_string()).get(path)
    }

    /// Kills it like `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.running().end();
        self.process = None;
    }

    /// Pauses it.
    pub(crate) fn pause(&mut self) {
        self.signal(Signal::STOP);
    }

    /// Continues it after a pause.
    pub(crate) fn resume(&mut self) {
        self.signal(Signal::CONT);
    }

    /// Stops it like a service manager, and waits until it has ended.
    pub(crate) fn stop(&mut self) {
        self.signal(Signal::TERM);
        let status = wait_for_end(self.running().child());
        assert!(status.success(), "{status}");
        self.process = None;
    }

    fn signal(&mut self, signal: Signal) {
        let id = i32::try_from(self.running().id()).expect("a process id");
        let id = Pid::from_raw(id).expect("it is not 0");
        kill_process(id, signal).expect("it runs");
    }

    fn running(&mut self) -> &mut ServerProcess {
        self.process.as_mut().expect("it runs")
    }
}

/// The same at every node. Each node also has its own local token.
pub(crate) const TOKEN: &str = "the-token-of-ada-at-every-node";

const NODES: usize = 3;
