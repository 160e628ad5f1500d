//! A server in a separate process, which prints its URLs and can be killed.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use crate::{OutputLines, example};

/// A server that listens until it is dropped or killed.
pub struct ServerProcess {
    child: Child,
    urls: Vec<String>,
}

impl ServerProcess {
    /// Starts a program that prints `urls` URLs on its standard output, one on each line, when it
    /// listens.
    pub fn start(command: &mut Command, urls: usize) -> Self {
        let spawned = command.stdout(Stdio::piped()).spawn();
        let mut child = spawned.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdout = child.stdout.take().expect("a pipe");
        let mut lines = OutputLines::read(stdout);
        let mut server = Self {
            child,
            urls: Vec::new(),
        };
        for _ in 0..urls {
            let url = lines.next().unwrap_or_default();
            assert!(url.starts_with("http://"), "{command:?} printed {url:?}");
            server.urls.push(url);
        }
        server
    }

    /// Starts the example `name`, which prints its URL.
    pub fn example(name: &str, args: &[&str]) -> Self {
        Self::start(Command::new(example(name)).args(args), 1)
    }

    /// The URLs that it printed.
    pub fn urls(&self) -> &[String] {
        &self.urls
    }

    /// The first URL.
    pub fn url(&self) -> &str {
        &self.urls[0]
    }

    /// Host and port of the first URL.
    pub fn authority(&self) -> &str {
        let rest = self.url().strip_prefix("http://").expect("it was checked");
        rest.split('/').next().unwrap_or_default()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        let address = self.authority().parse();
        address.unwrap_or_else(|error| panic!("{}: {error}", self.url()))
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The process.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Kills it as `kill -9` does.
    pub fn kill(mut self) {
        self.end();
    }

    /// The same for a server whose URL is still needed.
    pub fn end(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.end();
    }
}
