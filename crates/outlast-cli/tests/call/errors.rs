//! Errors name the URL, path, port or command and a next step, and are printed once.

use std::net::TcpListener;

use outlast_testkit::{CommandOutput, RunCommand, RunningCommand, example};
use tempfile::TempDir;

use crate::launcher::outlast;

/// Runs `outlast` with `words` and its own home directory.
fn run(words: &[&str]) -> CommandOutput {
    let home = TempDir::new().expect("a folder");
    outlast(home.path()).args(words).run().into()
}

fn gateway_backend() -> String {
    example("behind").to_str().expect("a path").to_owned()
}

/// Checks an error: its exit code, its parts, one next step, and that each part occurs once.
fn check(output: &CommandOutput, code: i32, parts: &[&str]) {
    assert_eq!(output.code, Some(code), "{}", output.err);
    for part in parts.iter().chain(&["next:"]) {
        assert_eq!(
            output.err.matches(part).count(),
            1,
            "{part}: {}",
            output.err
        );
    }
}

#[test]
fn output_of_a_wrong_command_is_quoted_without_control_characters() {
    let home = TempDir::new().expect("a folder");
    let script = home.path().join("script");
    let text = r"printf '\033[2Jusage: thing\n'; echo 'no such option' >&2; exit 3";
    std::fs::write(&script, text).expect("it is written");
    for command in ["tools", "doctor"] {
        let output = run(&[command, "--", "sh", script.to_str().expect("a path")]);
        let parts = [
            "is not an MCP server",
            "exit status: 3",
            "[2Jusage: thing",
            "| no such option",
        ];
        check(&output, 6, &parts);
        assert!(!output.err.contains('\u{1b}'), "{:?}", output.err);
    }
    check(
        &run(&["call", "x", "--", "true"]),
        6,
        &[
            "the command `true` is not an MCP server",
            "it printed nothing",
        ],
    );
    // The command echoes each request.
    check(
        &run(&["call", "x", "--", "cat"]),
        6,
        &["the command `cat` is not an MCP server"],
    );
    check(
        &run(&["tools", "--", "no-such-command"]),
        6,
        &[
            "cannot start the command `no-such-command`: No such file",
            "on the PATH",
        ],
    );
}

#[test]
fn a_silent_command_is_reported_while_it_is_awaited() {
    let home = TempDir::new().expect("a folder");
    let script = "cat > /dev/null";
    let mut call =
        RunningCommand::start(outlast(home.path()).args(["tools", "--", "sh", "-c", script]));
    call.until("has not answered for 5 s; still waiting");
}

#[test]
fn a_port_in_use_is_named_by_every_server() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("it is bound").to_string();
    let behind = gateway_backend();
    for words in [
        &["serve", "--http", &address, "--", &behind][..],
        &["demo", "--http", &address],
        &["inspect", "--http", &address, "--", &behind],
    ] {
        let message = format!("cannot listen on {address}");
        let output = run(words);
        check(&output, 2, &[&message, "--http"]);
        assert_eq!(output.err.lines().count(), 2, "{}", output.err);
    }
}

#[test]
fn an_unusable_data_directory_is_named_by_every_command() {
    let home = TempDir::new().expect("a folder");
    let file = home.path().join("file");
    std::fs::write(&file, "").expect("it is written");
    let path = file.join("outlast");
    let path = path.to_str().expect("a path");
    let behind = gateway_backend();
    for words in [
        &["tasks", "list"][..],
        &["demo"],
        &["serve", "--http", "127.0.0.1:0", "--", &behind],
        &["stdio", "--", &behind],
        &["gateway", "status"],
        &["gateway", "stop"],
        &["gateway", "logs"],
        &["gateway", "token"],
    ] {
        let mut command = outlast(home.path());
        let output = command.args(words).env("XDG_DATA_HOME", &file).run();
        let output = CommandOutput::from(output);
        check(&output, 5, &[path, "XDG_DATA_HOME"]);
    }
}

#[test]
fn a_mistyped_store_is_an_error_and_no_new_store() {
    let home = TempDir::new().expect("a folder");
    let path = home.path().join("typo.db");
    let store = format!("sqlite:{}", path.display());
    let id = "0".repeat(26);
    let copy = home.path().join("copy.db");
    let copy = copy.to_str().expect("a path");
    for words in [
        &["tasks", "list", "--store", &store][..],
        &["tasks", "get", "--store", &store, &id],
        &["tasks", "result", "--store", &store, &id],
        &["tasks", "watch", "--store", &store, &id],
        &["store", "backup", copy, "--store", &store],
    ] {
        let output = CommandOutput::from(outlast(home.path()).args(words).run());
        check(&output, 5, &[path.to_str().expect("a path"), "--store"]);
        assert!(!path.exists(), "{words:?}");
    }
}

#[test]
fn an_unusable_store_folder_is_named_by_every_server() {
    let home = TempDir::new().expect("a folder");
    let folder = home.path().join("missing");
    let store = format!("sqlite:{}", folder.join("tasks.db").display());
    let folder = folder.to_str().expect("a path");
    let behind = gateway_backend();
    for words in [
        &["demo", "--store", &store][..],
        &[
            "serve",
            "--http",
            "127.0.0.1:0",
            "--store",
            &store,
            "--",
            &behind,
        ],
        &["stdio", "--store", &store, "--", &behind],
    ] {
        let output = CommandOutput::from(outlast(home.path()).args(words).run());
        check(&output, 5, &[folder, "--store"]);
    }
}

#[test]
fn every_network_address_warns_and_the_snippet_can_be_used() {
    let home = TempDir::new().expect("a folder");
    let behind = gateway_backend();
    let words = ["serve", "--http", "0.0.0.0:0", "--no-probe", "--", &behind];
    let mut serving = RunningCommand::start(outlast(home.path()).args(words));
    serving.until("warning: on 0.0.0.0 other machines can connect");
    serving.until("\"url\": \"http://127.0.0.1:");
    serving.interrupt();
    let output = serving.end();
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert!(!output.err.contains("http://0.0.0.0"), "{}", output.err);
    assert!(
        output.out.starts_with("http://127.0.0.1:"),
        "{}",
        output.out
    );
}
