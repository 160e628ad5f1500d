//! `outlast demo` for a user: run, killed, run again.

#[path = "launcher/outlast.rs"]
mod launcher;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use outlast_testkit::{OutputLines, RunCommand};
use serde_json::Value;

use launcher::outlast;

#[test]
fn a_demo_that_is_killed_loses_no_finished_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("tasks.db");
    let finished = demo(&store, 20);
    assert!(finished.status.success(), "{finished:?}");
    let before = list_tasks(&store);
    assert_eq!(before.len(), 4, "{before:?}");
    assert!(
        before.iter().all(|task| task["status"] != "working"),
        "{before:?}"
    );

    // Steps of a minute: when the input request is answered, all other calls are still running.
    let mut child = with_store(&["demo", "--step-ms", "60000"], &store)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the demo starts");
    let mut lines = OutputLines::read(child.stderr.take().expect("a pipe"));
    let answered = |line: &str| line.starts_with("confirm") && line.contains("Completed");
    lines.find("the answer to the question", answered);
    child.kill().expect("the demo can be killed");
    child.wait().expect("the demo is gone");
    let killed = list_tasks(&store);
    assert_eq!(killed.len(), 8, "{killed:?}");
    for task in &before {
        assert!(killed.contains(task), "{task} is gone or changed");
    }

    let again = demo(&store, 20);
    let output = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(again.status.success(), "{output}");
    let unfinished: Vec<_> = killed
        .iter()
        .filter(|task| task["status"] == "working")
        .map(|task| {
            let text = |name: &str| task[name].as_str().expect("text").to_owned();
            (text("tool"), text("taskId"))
        })
        .collect();
    assert_eq!(unfinished.len(), 3, "{killed:?}");
    assert!(output.contains("while 3 tasks were running"), "{output}");
    let lines = |tool: &str, id: &str| -> Vec<&str> {
        let of_task = |line: &&str| line.contains(tool) && line.contains(&id[..8]);
        output.lines().filter(of_task).collect()
    };
    for (tool, id) in &unfinished {
        let lines = lines(tool, id);
        let (became, outcome) = match tool.as_str() {
            "countdown" => ("runs again", "lift-off"),
            "research" => ("runs again", "A report about tides."),
            _ => ("not run again", "outcome unknown"),
        };
        assert!(
            lines.first().is_some_and(|line| line.contains(became)),
            "{output}"
        );
        // The same client, with the same id, gets the outcome.
        assert!(
            lines.last().is_some_and(|line| line.contains(outcome)),
            "{output}"
        );
    }
    let after = list_tasks(&store);
    assert_eq!(after.len(), 8, "{after:?}");
    assert!(
        after.iter().all(|task| task["status"] != "working"),
        "{after:?}"
    );
    let new = demo(&store, 20);
    let output = String::from_utf8_lossy(&new.stderr).into_owned();
    assert!(!output.contains("The previous process ended"), "{output}");
    assert_eq!(list_tasks(&store).len(), 12);
}

#[test]
fn rows_have_colours_if_the_option_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("tasks.db");
    for (choice, is_coloured) in [("always", true), ("never", false)] {
        let args = ["--color", choice, "demo", "--step-ms", "5"];
        let output = run(&args, &store);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{printed}");
        for status in [
            "\x1b[32mCompleted",
            "\x1b[31mFailed",
            "\x1b[33mInput Required",
        ] {
            assert_eq!(printed.contains(status), is_coloured, "{status}: {printed}");
        }
    }
}

#[test]
fn the_result_of_a_task_is_read_by_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("tasks.db");
    demo(&store, 5);
    for task in list_tasks(&store) {
        let id = task["taskId"].as_str().expect("an id");
        let result = run(&["tasks", "result", id], &store);
        let result: Value = serde_json::from_slice(&result.stdout).expect("JSON");
        assert!(result["content"].is_array(), "{result}");
        let shown = run(&["tasks", "get", id], &store);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(
            shown.contains("created") && shown.contains("ended"),
            "{shown}"
        );
    }
}

#[test]
fn errors_name_a_next_step_and_have_own_exit_codes() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("tasks.db");
    let missing = run(&["tasks", "list"], &store);
    let output = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert_eq!(missing.status.code(), Some(5), "{output}");
    assert!(output.contains("there is no store at"), "{output}");
    demo(&store, 5);
    for (args, code, part) in [
        (
            vec!["tasks", "get", "00000000000000000000000000"],
            3,
            "outlast tasks list",
        ),
        (
            vec!["tasks", "get", "nonsense"],
            3,
            "no task nonsense in this store",
        ),
        (vec!["tasks", "list", "--limit", "many"], 2, "--limit"),
    ] {
        let failed = run(&args, &store);
        let output = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert_eq!(failed.status.code(), Some(code), "{args:?}: {output}");
        assert!(output.contains(part), "{args:?}: {output}");
    }
    let store = folder.path().join("other.db");
    std::fs::write(&store, "this is not a database, but it is needed").expect("a file");
    let failed = run(&["tasks", "list"], &store);
    assert_eq!(failed.status.code(), Some(5), "{failed:?}");
    let kept = std::fs::read_to_string(&store).expect("the file is there");
    assert_eq!(kept, "this is not a database, but it is needed");
}

fn demo(store: &Path, step: u32) -> Output {
    run(&["demo", "--step-ms", &step.to_string()], store)
}

fn list_tasks(store: &Path) -> Vec<Value> {
    let list = run(&["tasks", "list", "--json"], store);
    let list: Value = serde_json::from_slice(&list.stdout).expect("JSON");
    list.as_array().expect("an array").clone()
}

fn run(args: &[&str], store: &Path) -> Output {
    with_store(args, store).run()
}

/// `outlast` with `args` on this store.
fn with_store(args: &[&str], store: &Path) -> Command {
    let mut command = outlast(store.parent().expect("a folder"));
    command.args(args).arg("--store").arg(store);
    command
}
