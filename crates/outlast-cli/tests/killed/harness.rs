//! The harness: a gateway that can be killed, and a server that records the calls of its tools.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use outlast_testkit::mcp::caller::Caller;
use outlast_testkit::mcp::endpoint::{ServerEndpoint, Transport};
use outlast_testkit::{ServerProcess, example, within};
use serde_json::json;
use tempfile::TempDir;

use crate::cell::{Cell, ServerKind};
use crate::gateway::GatewayProcess;

pub(crate) struct Harness {
    home: TempDir,
    /// The arguments of `outlast serve`.
    words: Vec<String>,
    gateway: Option<GatewayProcess>,
    /// The server, if it is not a child of the gateway.
    _server: Option<ServerProcess>,
}

impl Harness {
    /// A gateway with a grace period of `grace` milliseconds.
    pub(crate) fn new(cell: Cell, grace: u64) -> Self {
        let home = TempDir::new().unwrap();
        let folder = home.path().to_str().unwrap().to_owned();
        let program = example("every_kind").to_str().unwrap().to_owned();
        let kind = if cell.server.has_tasks() {
            "tasks"
        } else {
            "plain"
        };
        let era = match cell.server {
            ServerKind::PlainLegacy | ServerKind::V1 => "legacy",
            ServerKind::PlainModern | ServerKind::V2 => "modern",
        };
        let settings = json!({ "era": era, "graceMs": grace, "budgetMs": grace + 300 });
        let settings = settings.to_string();
        let mut words = ["--name", "behind", "--no-probe", "--settings", &settings]
            .map(str::to_owned)
            .to_vec();
        let mut server = None;
        match cell.server_transport {
            Transport::Pipe => words.extend(["--".into(), program, folder, kind.into()]),
            Transport::Http => {
                let mut command = Command::new(program);
                command.args([&folder, kind, "127.0.0.1:0"]);
                let process = ServerProcess::start(&mut command, 1);
                words.extend(["--url".into(), process.url().into()]);
                server = Some(process);
            }
        }
        let mut harness = Self {
            home,
            words,
            gateway: None,
            _server: server,
        };
        harness.start("127.0.0.1:0");
        harness
    }

    fn start(&mut self, address: &str) {
        let words: Vec<_> = self.words.iter().map(String::as_str).collect();
        self.gateway = Some(GatewayProcess::start(self.home.path(), address, &words, 1));
    }

    /// Kills the gateway, and starts it again at the same address.
    pub(crate) fn kill_and_start(&mut self) {
        let address = self.gateway.take().unwrap().kill();
        self.start(&address);
    }

    pub(crate) async fn caller(&self, cell: Cell) -> Caller {
        Caller::connect(cell.client, &self.endpoint()).await
    }

    pub(crate) fn endpoint(&self) -> ServerEndpoint {
        let gateway = self.gateway.as_ref().unwrap();
        ServerEndpoint::Http {
            authority: gateway.authority().to_owned(),
            token: Some(gateway.token()),
        }
    }

    /// Lets every call continue.
    pub(crate) fn release_calls(&self) {
        std::fs::write(self.file("go"), "").unwrap();
    }

    /// The number of calls of a tool.
    pub(crate) fn runs(&self) -> usize {
        self.lines("runs")
    }

    /// Waits for this number of calls.
    pub(crate) async fn until_runs(&self, runs: usize) {
        for _ in 0..3_000 {
            if self.runs() >= runs {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it was run {} times", self.runs());
    }

    /// Waits until the gateway has stored a task that matches a condition in SQL.
    pub(crate) async fn until_stored(&self, condition: &str) {
        let gateway = self.gateway.as_ref().unwrap();
        // Not `eventually`: the future of an async closure cannot be spawned.
        let stored = async {
            while gateway.stored_tasks(condition).is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        within(&format!("a task with {condition}"), stored).await;
    }

    /// Whether a call has received its input response.
    pub(crate) fn is_answered(&self) -> bool {
        self.lines("answers") > 0
    }

    fn lines(&self, file: &str) -> usize {
        let text = std::fs::read_to_string(self.file(file));
        text.map_or(0, |text| text.lines().count())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }
}
