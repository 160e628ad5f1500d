//! Ctrl-C while a call is followed: asks once whether to cancel or to detach. A detached task can
//! be found again.

use outlast_testkit::RunningCommand;

use crate::harness::DemoServer;

/// Follows a task of `steps` steps that has started.
fn follow_task(server: &DemoServer, options: &[&str], steps: &str) -> RunningCommand {
    let mut words = vec!["call"];
    words.extend(options);
    words.extend(["{}", "countdown", steps]);
    let mut running = server.begin(&words);
    running.until("Working: task");
    running
}

#[test]
fn the_first_ctrl_c_asks_and_the_task_is_cancelled() {
    let server = DemoServer::start();
    let mut call = follow_task(&server, &["--interactive"], "from=1000");
    call.interrupt();
    call.until("[c]ancel the task, [d]etach and leave it running, or [s]tay?");
    call.type_line("c");
    let output = call.end();
    assert_eq!(output.code, Some(8), "{}", output.err);
}

#[test]
fn the_first_ctrl_c_asks_and_the_call_continues() {
    let server = DemoServer::start();
    let mut call = follow_task(&server, &["--interactive"], "from=50");
    call.interrupt();
    call.until("or [s]tay?");
    call.type_line("s");
    let output = call.end();
    assert_eq!(
        (output.out.as_str(), output.code),
        ("lift-off\n", Some(0)),
        "{}",
        output.err
    );
}

#[test]
fn a_detached_task_is_watched_to_its_end() {
    let server = DemoServer::start();
    let mut call = follow_task(&server, &["--interactive"], "from=100");
    call.interrupt();
    call.until("or [s]tay?");
    call.type_line("d");
    let left = call.end();
    assert_eq!(left.code, Some(0), "{}", left.err);
    assert!(
        left.err.contains("The task continues at the server"),
        "{}",
        left.err
    );
    let watched = server.run(&["tasks", "watch", "{}", left.out.trim()]);
    assert_eq!(
        (watched.out.as_str(), watched.code),
        ("lift-off\n", Some(0)),
        "{}",
        watched.err
    );
}

#[test]
fn the_second_ctrl_c_detaches_without_an_answer() {
    let server = DemoServer::start();
    let mut call = follow_task(&server, &["--interactive"], "from=1000");
    call.interrupt();
    call.until("or [s]tay?");
    call.interrupt();
    let left = call.end();
    assert_eq!(left.code, Some(0), "{}", left.err);
    let got = server.run(&["tasks", "get", "--json", "{}", left.out.trim()]);
    assert_eq!(got.json()["status"], "working", "{}", got.err);
}

#[test]
fn without_a_terminal_tasks_are_detached_and_plain_calls_cancelled() {
    let server = DemoServer::start();
    let call = follow_task(&server, &[], "from=1000");
    call.interrupt();
    let left = call.end();
    assert_eq!(left.code, Some(0), "{}", left.err);
    let got = server.run(&["tasks", "get", "--json", "{}", left.out.trim()]);
    assert_eq!(got.json()["status"], "working", "{}", got.err);

    let mut call = server.begin(&["call", "--no-task", "{}", "countdown", "from=1000"]);
    call.until("] 1/1000");
    call.interrupt();
    let output = call.end();
    assert_eq!(output.code, Some(8), "{}", output.err);
}

#[test]
fn ctrl_c_does_not_cancel_a_watched_task() {
    let server = DemoServer::start();
    let left = server.run(&["call", "--detach", "{}", "countdown", "from=1000"]);
    let task = left.out.trim();
    let mut watch = server.begin(&["tasks", "watch", "{}", task]);
    watch.until("Working: task");
    watch.interrupt();
    let output = watch.end();
    assert_eq!(output.code, Some(0), "{}", output.err);
    let got = server.run(&["tasks", "get", "--json", "{}", task]);
    assert_eq!(got.json()["status"], "working", "{}", got.err);
}
