//! `outlast gateway`, `outlast adopt`, the local token, and signals.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use outlast_testkit::{OutputLines, example, until, wait_for_end};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    RunningServe, call_echo, close_host, outlast, run, start_host, start_host_with, status,
    stdout_of, text,
};

#[test]
fn the_gateway_command_shows_stops_and_logs() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let none = run(home, &["gateway", "status"]);
    assert_eq!(none.status.code(), Some(1));
    let why = text(&none.stderr);
    assert!(
        why.contains("no gateway runs on sqlite:") && why.contains("next:"),
        "{why}"
    );
    assert_eq!(status(home), json!({ "running": false, "gateway": null }));
    let mut host = start_host(home);
    let shown = stdout_of(home, &["gateway", "status"]);
    for part in [
        "in the background",
        "tasks.db",
        "hosts    1",
        "server   behind-",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    let id = host.task("wait", json!({ "ms": 1 }));
    host.call("tasks/result", json!({ "taskId": id }));
    close_host(host);
    // `tasks list` and `tasks get` print the same whether a gateway runs or not.
    let shown = || {
        let list = stdout_of(home, &["tasks", "list"]);
        // The age and the time that is left change.
        let words = list.split_whitespace();
        let words = words.filter(|word| word.parse::<u64>().is_err());
        let list: Vec<_> = words.map(str::to_owned).collect();
        (list, stdout_of(home, &["tasks", "get", &id]))
    };
    let while_it_runs = shown();
    assert!(while_it_runs.0.contains(&id), "{while_it_runs:?}");
    stdout_of(home, &["gateway", "stop"]);
    assert_eq!(shown(), while_it_runs);
    assert_eq!(run(home, &["gateway", "stop"]).status.code(), Some(1));
    // The log of the last gateway still exists.
    let log = stdout_of(home, &["gateway", "logs", "-n", "1"]);
    assert_eq!(log.lines().count(), 1, "{log}");
}

#[test]
fn a_log_that_is_a_symbolic_link_is_not_read() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    close_host(start_host(home));
    stdout_of(home, &["gateway", "stop"]);
    let secret = home.join("secret");
    std::fs::write(&secret, "precious\n").expect("it is written");
    let log = home.join("outlast/tasks.db.log");
    assert!(log.exists(), "the gateway wrote {}", log.display());
    let older = home.join("outlast/tasks.db.log.1");
    for name in [&older, &log] {
        let _ = std::fs::remove_file(name);
        std::os::unix::fs::symlink(&secret, name).expect("it is ours");
        let output = run(home, &["gateway", "logs"]);
        let (out, why) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(2), "{why}");
        assert!(!out.contains("precious"), "{out}");
        assert!(
            why.contains("is a symbolic link") && why.contains("next:"),
            "{why}"
        );
    }
}

#[test]
fn requests_sent_before_the_pipe_closes_are_answered() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "by-hand", "version": "1" },
    } });
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let call = |id: u32, tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    // What the relay prints, as in `printf … | outlast stdio -- COMMAND`.
    let printed = |calls: &[Value]| {
        let mut relay = outlast(home)
            .args(["stdio", "--"])
            .arg(example("behind"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut stdin = relay.stdin.take().expect("a pipe");
        for message in [&initialize, &initialized].into_iter().chain(calls) {
            writeln!(stdin, "{message}").expect("it reads");
        }
        drop(stdin);
        let printed = OutputLines::read(relay.stdout.take().expect("a pipe")).finish();
        assert!(wait_for_end(&mut relay).success(), "{printed}");
        printed
    };
    // The first relay starts the gateway, the second one finds it.
    for _ in 0..2 {
        let calls = [
            call(1, "echo", json!({ "say": "hi" })),
            call(2, "wait", json!({ "ms": 500 })),
        ];
        let printed = printed(&calls);
        assert!(printed.contains(r#""text":"hi""#), "{printed}");
        assert!(printed.contains(r#""text":"waited""#), "{printed}");
        assert!(!printed.contains("error"), "{printed}");
    }
    // A call that takes too long is cancelled with the connection. The gateway has not stopped.
    let printed = printed(&[call(3, "wait", json!({ "ms": 3_600_000 }))]);
    assert!(!printed.contains("stopped"), "{printed}");
    assert!(printed.contains(r#""id":0"#), "{printed}");
}

#[test]
fn the_token_is_shown_once_and_its_file_is_private() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let none = run(home, &["gateway", "token"]);
    assert_eq!(none.status.code(), Some(2));
    let mut first = RunningServe::start(home);
    let token = stdout_of(home, &["gateway", "token"]);
    assert!(token.starts_with("outlast_"), "{token}");
    first.stderr.until(&token);
    stdout_of(home, &["gateway", "stop"]);
    let file = home.join("outlast/tasks.db.token");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let mut second = RunningServe::start(home);
    second
        .stderr
        .until("`outlast gateway token` prints the TOKEN");
    let mode = std::fs::metadata(&file)
        .expect("a token")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(stdout_of(home, &["gateway", "token"]), token);
    stdout_of(home, &["gateway", "stop"]);
    let printed = second.stderr.finish();
    assert!(!printed.contains(&token), "{printed}");
}

#[test]
fn the_gateway_finds_tasks_of_every_owner_by_shortened_ids() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let serving = RunningServe::start(home);
    let words = [
        "call",
        &serving.url,
        "wait",
        "ms=3600000",
        "--task",
        "--detach",
    ];
    let task = stdout_of(home, &words);
    // Its owner is the principal of the token, not the local user.
    let cancelled = run(home, &["tasks", "cancel", &task[..8]]);
    assert!(cancelled.status.success(), "{}", text(&cancelled.stderr));
    let got = stdout_of(home, &["tasks", "get", &task[..8], "--json"]);
    assert!(got.contains("\"cancelled\""), "{got}");
}

#[test]
fn ended_tasks_of_any_owner_are_found_rerun_and_deleted() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let serving = RunningServe::start(home);
    let ids = |words: &[&str]| {
        let words = [&["tasks", "list", "--json"], words].concat();
        let list: Value = serde_json::from_str(&stdout_of(home, &words)).expect("JSON");
        let ids = list.as_array().expect("a list").iter();
        ids.map(|task| task["taskId"].as_str().expect("an id").to_owned())
            .collect::<Vec<_>>()
    };
    let call = ["call", "--as", "v1", &serving.url, "--task", "wait"];
    stdout_of(home, &[&call[..], &["ms=1"]].concat());
    let [ended] = &ids(&[])[..] else {
        panic!("one task")
    };
    let open = stdout_of(home, &[&call[..], &["ms=3600000", "--detach"]].concat());
    for (words, expected) in [
        (&["--status", "completed,failed"][..], ended),
        (&["--status", "working", "--tool", "wait"], &open),
        (&["--since", "1h", "--text", &open[..9]], &open),
    ] {
        assert_eq!(ids(words), std::slice::from_ref(expected), "{words:?}");
    }
    assert!(ids(&["--server", "another"]).is_empty());
    assert!(ids(&["--since", "2100-01-01T00:00:00Z"]).is_empty());

    // The tool `wait` does not declare that it only reads.
    let refused = run(home, &["tasks", "rerun", &ended[..9]]);
    let why = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{why}");
    assert!(
        why.contains("effect twice") && why.contains("--yes"),
        "{why}"
    );
    let again = stdout_of(home, &["tasks", "rerun", &ended[..9], "--yes"]);
    assert_ne!(&again, ended);
    stdout_of(home, &["tasks", "result", &serving.url, &again]);

    // A task that has not ended stays, and does not keep the others.
    let mixed = run(home, &["tasks", "delete", &open, ended]);
    let why = text(&mixed.stderr);
    assert_eq!(mixed.status.code(), Some(1), "{why}");
    assert!(
        why.contains("has not ended") && why.contains("next:"),
        "{why}"
    );
    assert_eq!(ids(&[]), [again.clone(), open.clone()]);
    let missing = run(home, &["tasks", "delete", ended]);
    assert_eq!(missing.status.code(), Some(3), "{}", text(&missing.stderr));
    assert_eq!(run(home, &["tasks", "rerun", ended]).status.code(), Some(3));

    stdout_of(home, &["tasks", "cancel", &open]);
    stdout_of(home, &["gateway", "stop"]);
    let stopped = run(home, &["tasks", "delete", &again]);
    let why = text(&stopped.stderr);
    assert!(why.contains("no gateway runs on"), "{why}");
}

#[test]
fn the_second_signal_ends_serve_at_once() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let mut serving = RunningServe::start(home);
    let words = [
        "call",
        &serving.url,
        "wait",
        "ms=3600000",
        "--task",
        "--detach",
    ];
    stdout_of(home, &words);
    kill_process(serving.pid(), Signal::TERM).expect("it runs");
    serving.stderr.until("again stops at once");
    assert!(serving.child.try_wait().expect("a child").is_none());
    kill_process(serving.pid(), Signal::INT).expect("it runs");
    assert_ends_soon(&mut serving.child);
}

#[test]
fn demo_drains_on_either_signal_and_ends_on_the_second() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    for signal in [Signal::INT, Signal::TERM] {
        let log = home.join("stderr");
        let mut child = outlast(home)
            .args(["demo", "--step-ms", "60000", "--store", "memory:"])
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).expect("a file"))
            .spawn()
            .expect("it starts");
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.expect("a pid");
        let logged = |part: &str| {
            let log = std::fs::read_to_string(&log).expect("a log");
            log.contains(part)
        };
        until("tasks run", || logged("working"));
        kill_process(pid, signal).expect("it runs");
        until("the first signal is reported", || {
            logged("again stops at once")
        });
        assert!(child.try_wait().expect("a child").is_none(), "{signal:?}");
        kill_process(pid, signal).expect("it runs");
        assert_ends_soon(&mut child);
    }
}

#[test]
fn a_demo_stopped_once_drains_and_reports_stored_tasks() {
    // The calls have 10 s: with short steps they end in that time.
    for (step, open) in [("500", 0), ("60000", 3)] {
        let folder = TempDir::new().expect("a folder");
        let home = folder.path();
        let mut demo = outlast(home)
            .args(["demo", "--step-ms", step])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut stderr = OutputLines::read(demo.stderr.take().expect("a pipe"));
        let is_answered = |line: &str| line.starts_with("confirm") && line.contains("Completed");
        stderr.find("the input request is answered", is_answered);
        kill_process(Pid::from_child(&demo), Signal::TERM).expect("it runs");
        let printed = stderr.finish();
        assert!(wait_for_end(&mut demo).success(), "{printed}");
        let says = |text: &str| printed.contains(text);
        assert_eq!(says("Every outcome is stored"), open == 0, "{printed}");
        assert_eq!(says("3 tasks have no outcome yet"), open == 3, "{printed}");
        let tasks: Value =
            serde_json::from_str(&stdout_of(home, &["tasks", "list", "--json"])).expect("JSON");
        let tasks = tasks.as_array().expect("a list");
        assert_eq!(tasks.len(), 4, "{tasks:?}");
        let working = tasks.iter().filter(|task| task["status"] == "working");
        assert_eq!(working.count(), open, "{tasks:?}");
    }
}

/// Checks that a process ends before the 10 s that its calls have.
fn assert_ends_soon(child: &mut Child) {
    let begun = Instant::now();
    let ended = wait_for_end(child);
    assert!(!ended.success(), "{ended}");
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn an_adopted_file_starts_its_servers_through_the_relay() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let file = home.join("mcp.json");
    let original = format!(
        "{{\n  // mine\n  \"servers\": {{\n    \"behind\": {{ \"command\": {:?} }},\n    \"web\": {{ \"url\": \"http://127.0.0.1:1/mcp\" }},\n  }}\n}}\n",
        example("behind")
    );
    std::fs::write(&file, &original).expect("it is written");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).expect("it is ours");
    let shown = stdout_of(home, &["adopt", "mcp.json", "--dry-run"]);
    assert!(shown.contains("\"stdio\", \"--\""), "{shown}");
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), original);
    stdout_of(home, &["adopt", "mcp.json"]);
    let adopted = std::fs::read_to_string(&file).expect("a file");
    assert!(adopted.contains("// mine"), "{adopted}");
    let mode = std::fs::metadata(&file)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    let backup = home.join("mcp.json.before-outlast");
    assert_eq!(
        std::fs::read_to_string(&backup).expect("a backup"),
        original
    );
    // The command that the host then starts.
    let adopted = adopted.replace("// mine", "").replace("},\n  }", "}\n  }");
    let adopted: Value = serde_json::from_str(&adopted).expect("JSON");
    let server = &adopted["servers"]["behind"];
    let mut command = std::process::Command::new(server["command"].as_str().expect("a command"));
    let args = server["args"].as_array().expect("arguments").iter();
    command.args(args.map(|arg| arg.as_str().expect("a text")));
    command
        .env("XDG_DATA_HOME", home)
        .env("OUTLAST_BACKGROUND_IDLE_MS", "700");
    let mut host = start_host_with(command.current_dir(home));
    call_echo(&mut host, "adopted");
    close_host(host);
    stdout_of(home, &["adopt", "mcp.json", "--undo"]);
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), original);
    assert!(!backup.exists());
}

#[test]
fn serve_starts_the_command_behind_a_relay_and_not_itself() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let behind = example("behind").display().to_string();
    let config = json!({ "mcpServers": { "mine": { "command": behind } } });
    std::fs::write(home.join("mcp.json"), config.to_string()).expect("it is written");
    stdout_of(home, &["adopt", "mcp.json"]);
    let program = env!("CARGO_BIN_EXE_outlast");
    for server in [
        &["--config", "mcp.json"][..],
        &["--", program, "stdio", "--", &behind],
    ] {
        let serving = RunningServe::begin_with(home, server).started();
        let said = stdout_of(home, &["call", &serving.url, "echo", "say=once"]);
        assert_eq!(said, "once");
        // A relay would be a host of this gateway.
        let status = status(home);
        assert_eq!(status["gateway"]["hosts"], 0, "{server:?}: {status}");
        stdout_of(home, &["gateway", "stop"]);
    }
    // The relay of a host resolves the file in the same way.
    let mut host = start_host_with(outlast(home).args(["stdio", "--config", "mcp.json", "mine"]));
    call_echo(&mut host, "through the file");
    let status = status(home);
    assert_eq!(status["gateway"]["hosts"], 1, "{status}");
    close_host(host);
    let nested = [
        "serve", "--", program, "stdio", "--config", "mcp.json", "mine",
    ];
    let refused = run(home, &nested);
    let why = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{why}");
    assert!(
        why.contains("would serve itself") && why.contains("next:"),
        "{why}"
    );
}
