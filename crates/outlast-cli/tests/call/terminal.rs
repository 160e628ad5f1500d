//! The output on a terminal.

use outlast_testkit::{Pty, example};

use crate::harness::DemoServer;
use crate::launcher::outlast;

/// The output of a call on a terminal with this number of columns.
fn terminal_output(columns: u16, variables: &[(&str, &str)], call: &[&str]) -> String {
    let server = DemoServer::start();
    let mut command = server.command(&[&["call", "--as", "v1", "{}"], call].concat());
    command
        .env_remove("NO_COLOR")
        .envs(variables.iter().copied());
    Pty::new(columns).run(command, "")
}

#[test]
fn a_terminal_line_is_redrawn_and_the_last_stays() {
    // S4-58, S4-60, S4-68.
    let seen = terminal_output(200, &[], &["countdown", "from=20"]);
    let frames: Vec<_> = seen.split("\r\x1b[2K").collect();
    let turning = |sign: &str| {
        let begin = format!("{sign} Working: task ");
        frames
            .iter()
            .any(|frame| frame.starts_with(&begin) && frame.contains("/20"))
    };
    assert!(turning("|") && turning("/"), "{seen:?}");
    let last = frames.last().expect("there is one");
    assert!(
        last.starts_with("\x1b[32m✔\x1b[0m Completed: task "),
        "{last:?}"
    );
    assert!(last.contains("[####################] 20/20"), "{last:?}");
}

#[test]
fn a_spinner_turns_while_the_command_connects() {
    let home = tempfile::TempDir::new().expect("a folder");
    let behind = example("behind").display().to_string();
    let script = format!("sleep 1; exec {behind}");
    let mut command = outlast(home.path());
    command.args(["tools", "--", "sh", "-c", &script]);
    let seen = Pty::new(200).run(command, "");
    let frames: Vec<_> = seen.split("\r\x1b[2K").collect();
    for sign in ["|", "/", "-", "\\"] {
        let frame = format!("{sign} Connecting to sh");
        let turns = frames.iter().any(|seen| seen.starts_with(&frame));
        assert!(turns, "{frame}: {seen:?}");
    }
    // The line is removed before the output.
    let last = frames.last().expect("there is one");
    assert!(
        last.contains("Says it again.") && !last.contains("Connecting"),
        "{last:?}"
    );
}

#[test]
fn a_line_is_cut_to_the_width_of_the_terminal() {
    let seen = terminal_output(30, &[("NO_COLOR", "1")], &["countdown", "from=20"]);
    let mut frames: Vec<_> = seen.split("\r\x1b[2K").collect();
    let last = frames.pop().expect("there is one");
    assert!(last.starts_with("✔ Completed: task "), "{last:?}");
    let working = frames.iter().filter(|frame| frame.contains("Working"));
    for frame in working.clone() {
        assert!(frame.trim_end().chars().count() <= 30, "{frame:?}");
    }
    assert!(working.count() > 0, "{seen:?}");
}

#[test]
fn a_long_call_on_a_narrow_terminal_leaves_one_line() {
    let topic = "topic=ocean acidification and coral reefs";
    for columns in [40, 80] {
        let seen = terminal_output(columns, &[("NO_COLOR", "1")], &["research", topic]);
        for frame in seen.split("\r\x1b[2K") {
            let line = frame.trim_end_matches(['\r', '\n']);
            let line = line.lines().next().unwrap_or_default();
            let width = line.trim_end().chars().count();
            assert!(width <= usize::from(columns), "{columns}: {line:?}");
        }
        let lines = seen.matches('\n').count();
        // The status and the result.
        assert_eq!(lines, 2, "{columns}: {seen:?}");
    }
}

#[test]
fn doctor_and_tools_have_colours_and_fit_into_the_terminal() {
    let server = DemoServer::start();
    for words in [["doctor", "{}"], ["tools", "{}"]] {
        let mut command = server.command(&words);
        command.env_remove("NO_COLOR");
        let seen = Pty::new(40).run(command, "");
        let printed = seen.rsplit("\r\x1b[2K").next().unwrap_or_default();
        assert!(
            printed.contains("\x1b[1m") && printed.contains('…'),
            "{seen:?}"
        );
        assert!(printed.contains("countdown"), "{seen:?}");
        for line in printed.lines() {
            // Without the colours, such as ESC[1m.
            let parts = line.split('\x1b').enumerate();
            let plain = parts.map(|(at, part)| match part.split_once('m') {
                Some((_, text)) if at > 0 => text,
                _ => part,
            });
            let width = plain.map(|text| text.chars().count()).sum::<usize>();
            assert!(width <= 40, "{words:?}: {line:?}");
        }
    }
}

#[test]
fn a_failed_call_gets_no_check_mark() {
    let seen = terminal_output(80, &[("NO_COLOR", "1")], &["flaky"]);
    assert!(!seen.contains('✔'), "{seen:?}");
    assert!(seen.contains("✘ Failed: task "), "{seen:?}");
}
