//! Every help text and the messages of invalid usage, in one file for review:
//! `tests/snapshots/messages.txt`.
//!
//! `OUTLAST_WRITE_DOCS=1 cargo test -p outlast-cli --test messages` writes it. Review the
//! difference: does each message say what happened, to what, and what to do next?

#![cfg(target_os = "linux")]

mod cases;
mod sandbox;

use std::path::Path;

use sandbox::Sandbox;

const SNAPSHOT: &str = "tests/snapshots/messages.txt";
const UPDATE: &str = "OUTLAST_WRITE_DOCS";

#[test]
fn help_texts_and_messages_are_those_of_the_snapshot() {
    let sandbox = Sandbox::new();
    let mut found = String::from(
        "Help texts and messages of `outlast`, as tests/messages prints them. Paths, ports, process ids, task ids and\n\
         times are replaced. OUTLAST_WRITE_DOCS=1 rewrites this file.\n",
    );
    found.push_str("\n=== Help ===\n");
    help(&sandbox, &mut Vec::new(), &mut found);
    cases::print_all(&sandbox, &mut found);

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(SNAPSHOT);
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, &found).expect("the snapshot can be written");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let different = expected
        .lines()
        .zip(found.lines())
        .position(|(expected, found)| expected != found);
    let line = different.unwrap_or_else(|| expected.lines().count().min(found.lines().count()));
    assert!(
        expected == found,
        "{SNAPSHOT} differs from line {} on.\n  in the file: {:?}\n  printed:     {:?}\n  next: if the new text is good, set \
         {UPDATE}=1 and run the test again",
        line + 1,
        expected.lines().nth(line).unwrap_or_default(),
        found.lines().nth(line).unwrap_or_default(),
    );
}

/// Prints the help of the command `words` and of all its subcommands.
fn help(sandbox: &Sandbox, words: &mut Vec<String>, found: &mut String) {
    let mut args: Vec<&str> = words.iter().map(String::as_str).collect();
    args.push("--help");
    let printed = sandbox.run(&args);
    found.push_str(&printed);
    let commands = printed
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1);
    let names = commands
        .take_while(|line| line.starts_with("  "))
        // A wrapped description is indented further.
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next());
    for name in names.filter(|name| *name != "help") {
        words.push(name.to_owned());
        help(sandbox, words, found);
        words.pop();
    }
}
