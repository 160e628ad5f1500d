//! Runs the commands of a document: in its own home directory, on a terminal.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use outlast_testkit::{Pty, TerminalProcess, example};
use tempfile::TempDir;

use crate::expected::Ids;

/// The address in the documents. Each document gets another port.
const ADDRESS: &str = "127.0.0.1:8040";
/// The home directory in the documents.
const HOME: &str = "/home/ada";
/// Longer than any command takes on a busy machine.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);
const TERMINAL_COLUMNS: u16 = 200;

pub(crate) struct DocumentRunner {
    home: TempDir,
    address: String,
    ids: Ids,
    /// Commands that run until they are stopped: servers.
    servers: Vec<TerminalProcess>,
}

impl DocumentRunner {
    pub(crate) fn new() -> Self {
        let home = TempDir::new().expect("a temporary folder");
        let programs = home.path().join("bin");
        std::fs::create_dir(&programs).expect("it is writable");
        let outlast = env!("CARGO_BIN_EXE_outlast");
        std::os::unix::fs::symlink(outlast, programs.join("outlast")).expect("it is writable");
        // Replaces the server that the documents start with npx, because a test has no network.
        let everything = example("everything");
        std::os::unix::fs::symlink(everything, programs.join("npx")).expect("it is writable");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it listens").to_string();
        Self {
            home,
            address,
            ids: Ids::default(),
            servers: Vec::new(),
        }
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.home.path().join(name), text).expect("it is writable");
    }

    /// Runs a command of the document at `at`, and compares its output.
    pub(crate) fn run(&mut self, at: &str, line: &str, printed: &[String]) {
        let mut words = self.words(line);
        assert_eq!(
            words.first().map(String::as_str),
            Some("outlast"),
            "{at}: {line}"
        );
        let is_console = line.starts_with("outlast inspect");
        let is_server = is_console
            || line.starts_with("outlast serve")
            || line.starts_with("outlast demo --http");
        if line.starts_with("outlast serve") && !line.contains("--http") {
            words.splice(2..2, ["--http".to_owned(), self.address.clone()]);
        }
        let terminal = Pty::new(TERMINAL_COLUMNS).start(self.command(&words));
        let mut printed = printed.to_vec();
        if printed.is_empty() && is_server && !is_console {
            printed.push(format!("http://{ADDRESS}/mcp"));
        }
        let began = Instant::now();
        let mut terminal = terminal;
        loop {
            let ended = terminal.exit_status();
            let shown = self.as_documented(&terminal.received());
            let missing = self.ids.find_all(&printed, &shown).err();
            let is_ready = is_server && (!is_console || shown.contains("the link works once"));
            let complete = missing.is_none() && (is_ready || ended.is_some());
            if complete {
                assert!(
                    ended.is_none_or(|status| status.success()),
                    "{at}: {line} failed:\n{shown}"
                );
                break;
            }
            let over = ended.is_some() || began.elapsed() > COMMAND_TIMEOUT;
            assert!(
                !over,
                "{at}: {line}\ndoes not print: {}\nbut:\n{shown}",
                missing.unwrap_or_else(|| "its end".into()),
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        if is_server {
            self.servers.push(terminal);
        }
    }

    /// Starts a gateway with `text` as its configuration file.
    pub(crate) fn check_configuration(&mut self, at: &str, text: &str) {
        self.write("configuration.json", text);
        let line = "outlast serve --no-probe --store memory: --config configuration.json";
        let printed = [format!("http://{ADDRESS}/mcp")];
        self.run(at, line, &printed);
        self.servers.clear();
    }

    /// Splits a command line into words, with the address, ids and files of this run.
    fn words(&self, line: &str) -> Vec<String> {
        let line = line.replace(ADDRESS, &self.address);
        let mut words = Vec::new();
        let (mut word, mut quote, mut is_word) = (String::new(), None, false);
        for c in line.chars() {
            match (c, quote) {
                ('\'' | '"', None) => (quote, is_word) = (Some(c), true),
                (_, Some(open)) if c == open => quote = None,
                // A comment ends the command.
                ('#', None) if !is_word => break,
                (' ', None) if is_word => {
                    words.push(std::mem::take(&mut word));
                    is_word = false;
                }
                (' ', None) => {}
                _ => {
                    word.push(c);
                    is_word = true;
                }
            }
        }
        if is_word {
            words.push(word);
        }
        words
            .iter()
            .map(|word| self.ids.real_id(word).to_owned())
            .collect()
    }

    fn command(&self, words: &[String]) -> Command {
        let programs: PathBuf = self.home.path().join("bin");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(programs.join(&words[0]));
        command
            .args(&words[1..])
            .current_dir(self.home.path())
            .env_clear()
            .env("PATH", format!("{}:{path}", programs.display()))
            .env("HOME", self.home.path())
            .env("NO_COLOR", "1");
        command
    }

    /// The output as the document would show it.
    fn as_documented(&self, seen: &str) -> String {
        let text = without_escapes(seen).replace('\r', "\n");
        let home = self.home.path().display().to_string();
        text.replace(&home, HOME).replace(&self.address, ADDRESS)
    }
}

/// The text without the sequences that move the cursor or clear a line.
fn without_escapes(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic());
        plain.push('\n');
        plain.push_str(end.map_or("", |end| &part[end + 1..]));
    }
    plain
}
