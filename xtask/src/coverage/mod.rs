//! `cargo xtask coverage`: every requirement in `docs/coverage.md` names a test, and that test exists and runs.
//!
//! The document is the list of requirements; nothing outside the project is looked at. A test is named
//! `package::target::path::to::test`, where the target is `lib`, a binary or a file under `tests`; a
//! conversation with a peer by its script and its title.

mod document;
mod known;

use crate::npm::root;
use document::{Document, Proof};
use known::Known;

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if let Some(arg) = args.first() {
        return Err(format!(
            "cargo xtask coverage takes no argument (got {arg})"
        ));
    }
    let file = root().join("docs/coverage.md");
    let text =
        std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let document = Document::read(&text).map_err(|faults| listed("docs/coverage.md", &faults))?;
    let known = Known::list()?;
    let mut faults = Vec::new();
    for row in &document.rows {
        let Proof::Shown(tests) = &row.proof else {
            continue;
        };
        for test in tests {
            if let Err(why) = known.runs(test) {
                faults.push(format!("line {}: {}: {why}", row.line, row.id));
            }
        }
    }
    if !faults.is_empty() {
        return Err(listed("docs/coverage.md", &faults));
    }
    let shown = document.rows.iter().filter(|row| row.proof.is_shown());
    println!(
        "{} requirements: {} shown by tests, {} do not apply, {} to come",
        document.rows.len() + document.to_come.len(),
        shown.count(),
        document
            .rows
            .iter()
            .filter(|row| !row.proof.is_shown())
            .count(),
        document.to_come.len(),
    );
    Ok(())
}

fn listed(what: &str, faults: &[String]) -> String {
    format!("{what}:\n  {}", faults.join("\n  "))
}
