//! `cargo xtask coverage`: `docs/coverage.md` has a row for every requirement of
//! `docs/checklist.md`, and each row names tests that passed in the last run.
//!
//! Tests, conversations with peers and parts of `cargo xtask test` count only if the record of that
//! run has them (`record.rs`). The checks with peers that `docs/interop.md` lists are exactly those
//! that passed.

mod checklist;
mod document;
mod proofs;

use crate::npm::root;
use checklist::Checklist;
use document::{Document, Proof};
use proofs::Proofs;

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if let Some(arg) = args.first() {
        return Err(format!(
            "cargo xtask coverage takes no argument (got {arg})"
        ));
    }
    let checklist = Checklist::read(&text("docs/checklist.md")?)?;
    let document = Document::read(&text(COVERAGE)?).map_err(|faults| list(COVERAGE, &faults))?;
    let mut faults = checklist.compare(&document);
    // Errors of the document are reported before a missing test run.
    if !faults.is_empty() {
        return Err(list(COVERAGE, &faults));
    }
    let proofs = Proofs::of_last_run()?;
    for row in &document.rows {
        let Proof::Tests(names) = &row.proof else {
            continue;
        };
        for name in names {
            if let Err(why) = proofs.check(name) {
                faults.push(format!("line {}: {}: {why}", row.line, row.id));
            }
        }
    }
    if !faults.is_empty() {
        return Err(list(COVERAGE, &faults));
    }
    let faults = proofs.compare_interop(&text(INTEROP)?);
    if !faults.is_empty() {
        return Err(list(INTEROP, &faults));
    }
    let count = |wanted: fn(&Proof) -> bool| {
        let rows = document.rows.iter();
        rows.filter(|row| wanted(&row.proof)).count()
    };
    println!(
        "{} requirements: {} shown by tests that passed, {} do not apply, {} to come",
        document.rows.len(),
        count(|proof| matches!(proof, Proof::Tests(_))),
        count(|proof| *proof == Proof::DoesNotApply),
        count(|proof| *proof == Proof::ToCome),
    );
    Ok(())
}

fn text(file: &str) -> Result<String, String> {
    let file = root().join(file);
    std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))
}

fn list(file: &str, faults: &[String]) -> String {
    format!("{file}:\n  {}", faults.join("\n  "))
}

const COVERAGE: &str = "docs/coverage.md";
const INTEROP: &str = "docs/interop.md";
