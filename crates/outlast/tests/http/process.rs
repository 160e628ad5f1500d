//! An example as a server in a process of its own, which can be killed.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use outlast_testkit::example;

/// A server that listens, until it is dropped or killed.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Process {
    /// Starts the example `name`, which prints its URL.
    pub(crate) fn start(name: &str, args: &[&str]) -> Self {
        let mut child = Command::new(example(name))
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut url)
            .unwrap();
        let address = url
            .trim_end()
            .strip_prefix("http://")
            .and_then(|rest| rest.strip_suffix("/mcp"))
            .and_then(|address| address.parse().ok());
        Self {
            child,
            address: address.unwrap_or_else(|| panic!("{url:?} is no URL of ours")),
        }
    }

    /// Kills it as `kill -9` does: it has no time for a last word.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // Gone already is as good as killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}
