//! Text of a server reaches a terminal without control characters.

use std::process::Stdio;

use outlast_testkit::{Pty, ServerProcess, example, until};
use tempfile::TempDir;

use crate::launcher::outlast;

/// The example `hostile`, until it is dropped.
struct Hostile {
    process: ServerProcess,
    store: String,
    home: TempDir,
}

impl Hostile {
    fn start() -> Self {
        let home = TempDir::new().expect("a folder");
        let store = format!("sqlite:{}", home.path().join("tasks.db").display());
        Self {
            process: ServerProcess::example("hostile", &[&store, "127.0.0.1:0"]),
            store,
            home,
        }
    }

    /// A gateway with the example as its upstream.
    fn behind_gateway() -> Self {
        let home = TempDir::new().expect("a folder");
        let program = example("hostile");
        let mut gateway = outlast(home.path());
        gateway
            .args(["serve", "--http", "127.0.0.1:0", "--no-token", "--"])
            .args([program.as_os_str(), "memory:".as_ref(), "stdio".as_ref()])
            .stderr(Stdio::null());
        let store = home.path().join("outlast/tasks.db");
        Self {
            process: ServerProcess::start(&mut gateway, 1),
            store: format!("sqlite:{}", store.display()),
            home,
        }
    }

    /// The output on a terminal of `outlast` with `words`, where `{}` is the URL.
    fn terminal_output(&self, words: &[&str], typed: &str) -> String {
        let words = words.iter().map(|word| match *word {
            "{}" => self.process.url(),
            word => word,
        });
        let mut command = outlast(self.home.path());
        command.args(words).env("NO_COLOR", "1");
        Pty::new(80).run(command, typed)
    }

    /// The same, with the checks that it is only text, that no line is forged, and that it contains
    /// `expected`.
    fn check(&self, words: &[&str], typed: &str, expected: &str) -> String {
        let seen = self.check_result(words, typed, expected);
        for line in seen.split(['\n', '\r']) {
            assert!(!line.starts_with("forged"), "{words:?}: {seen:?}");
        }
        seen
    }

    /// The same for a command that prints the text of a tool, which may have several lines.
    fn check_result(&self, words: &[&str], typed: &str, expected: &str) -> String {
        let seen = self.terminal_output(words, typed);
        for bad in ["\x1b]", "\x1b[2J", "\x07", "\u{9b}", "\u{9d}", "\u{202e}"] {
            assert!(!seen.contains(bad), "{words:?}: {bad:?} in {seen:?}");
        }
        assert!(seen.contains(expected), "{words:?}: {expected} in {seen:?}");
        seen
    }

    /// The id of a task of `tool` that continues at the server.
    fn detach(&self, tool: &str) -> String {
        let seen = self.check(&["call", "--as", "v1", "--detach", "{}", tool], "", "next:");
        let id = seen
            .split(|c: char| !c.is_ascii_alphanumeric())
            .find(|word| word.len() == 26);
        id.unwrap_or_else(|| panic!("an id: {seen:?}")).to_owned()
    }

    /// Waits until the server and the store show the status message of the task. The tool sets it
    /// once, after the creation is acknowledged, and the server stores it later.
    fn wait_for_status(&self, id: &str) {
        let get =
            |place: &[&str]| self.terminal_output(&[&["tasks", "get"], place, &[id]].concat(), "");
        until("the server and the store have the status message", || {
            get(&["--as", "v1", "{}"]).contains(CLEANED)
                && get(&["--store", &self.store]).contains(CLEANED)
        });
    }
}

/// The name of a tool of the example.
const HOSTILE_TOOL: &str = "n\x1b[2J\u{202e}\nforged: tool";

/// The start of the hostile text after cleaning.
const CLEANED: &str = "a\u{fffd}]0;title\u{fffd}\u{fffd}[2J";

#[test]
fn results_and_errors_of_tools_are_only_text() {
    let server = Hostile::start();
    for era in ["v1", "v2"] {
        server.check_result(&["call", "--as", era, "{}", "fails"], "", CLEANED);
        server.check_result(&["call", "--as", era, "{}", "says"], "", CLEANED);
        server.check(&["call", "--as", era, "{}", "nothing"], "", "forged: tool");
    }
    server.check(&["call", "--json", "{}", "says"], "", "\\u001b]0;title");
    server.check(&["call", "{}", "structured"], "", "\\u001b]0;title");
    server.check(&["tools", "{}"], "", CLEANED);
    server.check(&["tools", "--json", "{}"], "", "\\u001b]0;title");
    server.check(&["doctor", "{}"], "", CLEANED);
    server.check(&["doctor", "--json", "{}"], "", "\\u001b]0;title");
    let (store, program) = ("memory:", example("hostile"));
    let program = program.to_str().expect("text");
    let words = ["doctor", "--verbose", "--", program, store, "stdio"];
    server.check(&words, "", "server: a\u{fffd}]0;title");
}

#[test]
fn input_requests_of_servers_are_only_text() {
    let server = Hostile::start();
    let call = |tool| ["call", "--interactive", "--as", "v1", "{}", tool];
    let seen = server.check(&call("asks"), "y\n\n\n", CLEANED);
    assert!(seen.contains("  │ forged: line"), "{seen:?}");
    let seen = server.check(&call("opens"), "d\n", "are not allowed in an address");
    assert!(seen.contains("host: example.com"), "{seen:?}");
    server.check(&call("samples"), "d\n", CLEANED);

    let id = server.detach("asks");
    let get = ["tasks", "get", "--as", "v1", "{}", &id];
    until("the task has sent its input request", || {
        server.terminal_output(&get, "").contains("input_required")
    });
    let answer = ["tasks", "answer", "--interactive", "--as", "v1", "{}", &id];
    let seen = server.check(&answer, "y\n\n\n", CLEANED);
    assert!(seen.contains("answered; task"), "{seen:?}");
}

#[test]
fn changes_of_stored_tasks_are_only_text() {
    let server = Hostile::behind_gateway();
    let id = server.detach(HOSTILE_TOOL);
    let get = ["tasks", "get", "--store", &server.store, &id];
    until("the task has ended", || {
        server.terminal_output(&get, "").contains("completed")
    });
    server.check(&get, "", "n\u{fffd}[2J");
    let refused = ["tasks", "rerun", &id];
    let seen = server.check(&refused, "", "effect twice");
    assert!(seen.contains("n\u{fffd}[2J"), "{seen:?}");
    server.check(&["tasks", "rerun", &id, "--yes"], "", "outlast tasks watch");
    server.check(&["tasks", "delete", &id], "", "deleted");
}

#[test]
fn tasks_of_servers_and_stores_are_only_text() {
    let server = Hostile::start();
    let id = server.detach("wait");
    server.wait_for_status(&id);
    let store = server.store.as_str();
    server.check(&["tasks", "list", "--as", "v1", "{}"], "", "a\u{fffd}");
    server.check(&["tasks", "list", "--store", store], "", "a\u{fffd}");
    server.check(
        &["tasks", "list", "--json", "--store", store],
        "",
        "\\u001b]0;",
    );
    server.check(&["tasks", "get", "--as", "v1", "{}", &id], "", CLEANED);
    server.check(&["tasks", "get", "--store", store, &id], "", CLEANED);
    server.check(
        &["tasks", "cancel", "--as", "v1", "{}", &id],
        "",
        "cancelled",
    );
    server.check(
        &["tasks", "watch", "--as", "v1", "{}", &id],
        "",
        "Cancelled",
    );
    server.check(&["tasks", "watch", "--store", store, &id], "", "cancelled");

    let id = server.detach("fails");
    let remote = ["tasks", "result", "--json", "--as", "v1", "{}", &id];
    server.check(&remote, "", "\\u001b]0;title");
    let stored = ["tasks", "result", "--json", "--store", store, &id];
    server.check(&stored, "", "\\u001b]0;title");
    let late = ["tasks", "answer", "--decline", "--as", "v1", "{}", &id];
    server.check(&late, "", "has no open input request");
}
