//! A gateway as a process that can be killed, with its own home directory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use outlast_testkit::mcp::{HttpConnection, HttpResponse};
use outlast_testkit::{RunCommand, ServerProcess, example};

use rusqlite::{Connection, OpenFlags};

pub(crate) use crate::launcher::outlast;

/// A gateway until it is dropped.
pub(crate) struct GatewayProcess {
    pub(crate) process: ServerProcess,
    pub(crate) home: PathBuf,
}

impl GatewayProcess {
    /// Starts a gateway that prints this number of URLs.
    pub(crate) fn start(home: &Path, address: &str, words: &[&str], urls: usize) -> Self {
        let mut command = outlast(home);
        command.args(["serve", "--http", address]).args(words);
        Self {
            process: ServerProcess::start(command.stderr(log(home)), urls),
            home: home.to_owned(),
        }
    }

    /// The URLs that it printed.
    pub(crate) fn urls(&self) -> &[String] {
        self.process.urls()
    }

    /// A gateway for the sample server without tasks.
    pub(crate) fn for_sample_server(home: &Path, address: &str) -> Self {
        let behind = example("behind");
        Self::start(home, address, &["--", behind.to_str().expect("a path")], 1)
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.home.join(LOG)).expect("a log")
    }

    pub(crate) fn token(&self) -> String {
        let folder = self.home.join("outlast");
        let next_to_the_store = folder.join("tasks.db.token");
        // A store without a file has no other place.
        let path = if next_to_the_store.exists() {
            next_to_the_store
        } else {
            folder.join("token")
        };
        std::fs::read_to_string(path)
            .expect("a token")
            .trim()
            .to_owned()
    }

    /// Runs `outlast` with `words` and the token. `{}` is replaced by the first URL.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        let words = words.iter().map(|word| match *word {
            "{}" => self.process.url(),
            word => word,
        });
        outlast(&self.home)
            .args(words)
            .env("OUTLAST_TOKEN", self.token())
            .stdin(Stdio::null())
            .run()
    }

    pub(crate) fn run_ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{words:?}: {out}{err}");
        out.trim().to_owned()
    }

    /// Sends a GET request without a token.
    pub(crate) fn get(&self, path: &str) -> HttpResponse {
        self.connect().get(path)
    }

    /// Opens a connection for requests.
    pub(crate) fn connect(&self) -> HttpConnection {
        HttpConnection::open(self.authority())
    }

    pub(crate) fn authority(&self) -> &str {
        self.process.authority()
    }

    /// The ids of its stored tasks that match a condition in SQL.
    pub(crate) fn stored_tasks(&self, condition: &str) -> Vec<String> {
        let file = self.home.join("outlast/tasks.db");
        let store = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY);
        let store = store.expect("a store");
        let select = format!("SELECT id FROM tasks WHERE {condition}");
        let mut select = store.prepare(&select).expect("a query");
        let ids = select.query_map([], |row| row.get(0)).expect("rows");
        ids.collect::<Result<_, _>>().expect("ids")
    }

    /// Kills the gateway like `kill -9`, and returns its address.
    pub(crate) fn kill(self) -> String {
        let authority = self.authority().to_owned();
        self.process.kill();
        authority
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Opens the log file for appending.
fn log(home: &Path) -> File {
    let mut options = File::options();
    let file = options.create(true).append(true).open(home.join(LOG));
    file.expect("a file")
}

/// A task of the gateway whose server has created its own task.
pub(crate) const ATTACHED: &str = "handle IS NOT NULL";

const LOG: &str = "stderr";
