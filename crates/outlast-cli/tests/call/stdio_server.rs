//! Commands with a server that they start, which locks its store.

use std::io::Write;
use std::process::Stdio;

use outlast_testkit::{CommandOutput, RunCommand, example, output_of};
use tempfile::TempDir;

use crate::launcher::outlast;

/// The program of the server and its store in `home`.
fn survey_server(home: &TempDir) -> [String; 2] {
    let program = example("survey").display().to_string();
    let store = home.path().join("survey.db");
    [program, format!("sqlite:{}", store.display())]
}

#[test]
fn a_form_of_several_fields_is_completed_on_the_terminal() {
    let home = TempDir::new().expect("a folder");
    let [program, store] = survey_server(&home);
    let mut call = outlast(home.path())
        .args(["call", "--interactive", "survey", "--", &program, &store])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let typed = [
        "f",   // fill in the form
        "old", // not a number
        "151", // too large
        "36",
        "blue", // not a choice
        "2",    // the number of a choice
        "ada",  // not an email address
        "ada@example.org",
        "A", // too short
        "Ada",
        "", // may be left out
        "maybe",
        "yes",
    ];
    let mut stdin = call.stdin.take().expect("a pipe");
    for line in typed {
        writeln!(stdin, "{line}").expect("it reads");
    }
    drop(stdin);
    let output = CommandOutput::from(output_of(call));
    assert_eq!(output.code, Some(0), "{}", output.err);
    let expected =
        r#"{"age":36,"colour":"green","mail":"ada@example.org","name":"Ada","weekly":true}"#;
    let filled: serde_json::Value = serde_json::from_str(&output.out).expect("JSON");
    let expected: serde_json::Value = serde_json::from_str(expected).expect("JSON");
    assert_eq!(filled, expected, "{}", output.err);
    // Each field with what may be typed, the choices with numbers, and why a line was refused.
    let mut rest = output.err.as_str();
    for part in [
        "About you:",
        "age [whole number, 0 to 150; required]",
        "type a whole number",
        "at most 150",
        "colour [one choice; required]",
        "1  red",
        "2  green",
        "`blue` is not a choice",
        "mail [email address; required]",
        "type an email address",
        "Your name [text",
        "note [text; may be empty]",
        "weekly [yes or no; required]",
        "type yes or no",
    ] {
        let at = rest.find(part);
        let at = at.unwrap_or_else(|| panic!("{part}: {}", output.err));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn doctor_examines_both_eras_of_a_store_locking_server() {
    // The first process of the server ends before the second one starts.
    let home = TempDir::new().expect("a folder");
    let [program, store] = survey_server(&home);
    let output = outlast(home.path())
        .args(["doctor", "--", &program, &store])
        .run();
    let output = CommandOutput::from(output);
    assert_eq!(output.code, Some(0), "{}", output.err);
    for part in [
        "server    survey 1",
        "protocol  2026-07-28",
        "also      2025-11-25",
    ] {
        assert!(output.out.contains(part), "{part}: {}", output.out);
    }
    assert!(!output.out.contains("unknown"), "{}", output.out);
}
