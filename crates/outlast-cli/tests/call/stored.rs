//! A server with a store file: exit codes that are the same for both, a server that is killed and
//! restarted, shortened ids.

use std::time::Duration;

use outlast_testkit::{CommandOutput, RunCommand};

use crate::harness::DemoServer;

impl DemoServer {
    /// Runs the same command for the task in the store and at the server.
    fn run_at_store_and_server(&self, words: &[&str], task: &str) -> [CommandOutput; 2] {
        let store = self.store();
        let at_store = [words, &["--store", &store, task]].concat();
        let at_server = [words, &["--as", "v1", "{}", task]].concat();
        [self.run(&at_store), self.run(&at_server)]
    }

    /// Calls a tool and detaches its task.
    fn detach(&self, words: &[&str]) -> String {
        let output = self.run(&[&["call", "--as", "v1", "--detach", "{}"], words].concat());
        assert_eq!(output.code, Some(0), "{}", output.err);
        output.out.trim().to_owned()
    }
}

#[test]
fn exit_codes_are_the_same_for_store_and_server() {
    let server = DemoServer::with_store(Duration::from_millis(20));
    let flaky = server.detach(&["flaky"]);
    let counted = server.detach(&["countdown", "from=1"]);
    let cancelled = server.detach(&["countdown", "from=1000"]);
    server.run(&["tasks", "cancel", "--as", "v1", "{}", &cancelled]);
    // The tasks end at the server before they are read in the store.
    for (task, code) in [(&flaky, 7), (&counted, 0), (&cancelled, 8)] {
        let waited = server.run(&["tasks", "result", "--as", "v1", "{}", task]);
        assert_eq!(waited.code, Some(code), "{}", waited.err);
        for output in server.run_at_store_and_server(&["tasks", "result", "--json"], task) {
            assert_eq!(output.code, Some(code), "{}", output.err);
        }
        for output in server.run_at_store_and_server(&["tasks", "watch"], task) {
            assert_eq!(output.code, Some(code), "{}", output.err);
        }
    }
    for unknown in ["nonsense", "00000000000000000000000000"] {
        for output in server.run_at_store_and_server(&["tasks", "get"], unknown) {
            assert_eq!(output.code, Some(3), "{}", output.err);
            assert!(output.err.contains("next:"), "{}", output.err);
        }
    }
}

#[test]
fn an_unknown_outcome_has_its_own_exit_code() {
    let mut server = DemoServer::with_store(Duration::from_secs(60));
    let task = server.detach(&["flaky"]);
    server.kill();
    server.start_again();
    for output in server.run_at_store_and_server(&["tasks", "result"], &task) {
        assert_eq!(output.code, Some(9), "{}{}", output.out, output.err);
        assert!(
            output.err.contains("the outcome is unknown"),
            "{}",
            output.err
        );
    }
}

#[test]
fn a_data_directory_that_cannot_be_used_is_named() {
    let server = DemoServer::start();
    let file = server.home.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let output = server
        .command(&["tasks", "list"])
        .env("XDG_DATA_HOME", &file)
        .run();
    let output = CommandOutput::from(output);
    assert_eq!(output.code, Some(5), "{}", output.err);
    assert!(
        output.err.contains(file.to_str().expect("text")),
        "{}",
        output.err
    );
    assert!(output.err.contains("next:"), "{}", output.err);
}

#[test]
fn a_call_reports_that_its_server_became_unreachable() {
    let mut server = DemoServer::with_store(Duration::from_millis(100));
    let mut call = server.begin(&["call", "--as", "v1", "{}", "countdown", "from=20"]);
    call.until("Working: task");
    server.kill();
    call.until("server unreachable for");
    server.start_again();
    let output = call.end();
    assert_eq!(
        (output.out.as_str(), output.code),
        ("lift-off\n", Some(0)),
        "{}",
        output.err
    );
    assert!(!output.err.contains("lost"), "{}", output.err);
}

#[test]
fn detaching_while_the_server_is_down_prints_the_next_command() {
    let mut server = DemoServer::with_store(Duration::from_millis(100));
    let mut call = server.begin(&["call", "--as", "v1", "{}", "countdown", "from=20"]);
    call.until("Working: task");
    server.kill();
    call.until("server unreachable for");
    call.interrupt();
    let left = call.end();
    assert_eq!(left.code, Some(0), "{}", left.err);
    let last = left.err.lines().last().unwrap_or_default();
    let next = format!("outlast tasks result {} {}", server.url, left.out.trim());
    assert!(last.contains(&next), "{}", left.err);
    server.start_again();
    let found = server.run(&["tasks", "watch", "--as", "v1", "{}", left.out.trim()]);
    assert_eq!(found.out, "lift-off\n", "{}", found.err);
}

#[test]
fn tasks_that_no_process_runs_are_marked() {
    let mut server = DemoServer::with_store(Duration::from_secs(60));
    let task = server.detach(&["countdown", "from=5"]);
    let store = server.store();
    let list = |server: &DemoServer| server.run(&["tasks", "list", "--store", &store]);
    let running = list(&server);
    assert!(running.out.contains("working"), "{}", running.out);
    assert!(!running.err.contains("no process"), "{}", running.err);
    server.kill();
    let stopped = list(&server);
    assert!(stopped.out.contains("working (stopped)"), "{}", stopped.out);
    assert!(
        stopped.err.contains("no process runs it"),
        "{}",
        stopped.err
    );
    let json = server.run(&["tasks", "get", "--json", "--store", &store, &task]);
    assert_eq!(json.json()["running"], false);
    server.start_again();
    let json = server.run(&["tasks", "get", "--json", "--store", &store, &task]);
    assert_eq!(json.json()["running"], true);
}

#[test]
fn an_id_can_be_shortened() {
    let server = DemoServer::with_store(Duration::from_millis(20));
    let task = server.detach(&["countdown", "from=1"]);
    let other = server.detach(&["countdown", "from=1"]);
    let same = task
        .bytes()
        .zip(other.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    for output in server.run_at_store_and_server(&["tasks", "get", "--json"], &task[..=same]) {
        assert_eq!(output.json()["taskId"], task.as_str(), "{}", output.err);
    }
    if same > 0 {
        for output in server.run_at_store_and_server(&["tasks", "get"], &task[..same]) {
            assert_eq!(output.code, Some(2), "{}", output.err);
        }
    }
}

#[test]
fn colours_follow_the_option_and_the_environment() {
    let server = DemoServer::with_store(Duration::from_millis(20));
    server.detach(&["countdown", "from=1000"]);
    let store = server.store();
    for (words, variables, expected) in [
        (&[][..], &[][..], false),
        (&["--color", "always"], &[("NO_COLOR", "1")], true),
        (&[], &[("CLICOLOR_FORCE", "1")], true),
        (&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
        (&["--color", "never"], &[("CLICOLOR_FORCE", "1")], false),
    ] {
        let words = [words, &["tasks", "list", "--store", &store]].concat();
        let mut command = server.command(&words);
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        let output = command.envs(variables.iter().copied()).run();
        let output = CommandOutput::from(output);
        let is_coloured = output.out.contains("\x1b[36mworking\x1b[0m");
        assert_eq!(
            is_coloured, expected,
            "{words:?} {variables:?} {}",
            output.out
        );
    }
}
