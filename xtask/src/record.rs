//! What passed in each part of `cargo xtask test`: one file per part in `target/record`.
//!
//! The first line is the start time of the part, every other line names one thing that passed.
//! `cargo xtask coverage` reads these files and accepts a record only if it started after the last
//! change of a source file.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::npm::{self, root};

/// The line of a part that passed as a whole.
const WHOLE: &str = "the whole part";

/// The record of the last run of a part.
pub(crate) struct PartRecord {
    part: String,
    began: SystemTime,
    passed: BTreeSet<String>,
}

/// Starts the record of `part` and removes the old one.
pub(crate) fn begin(part: &str) -> Result<(), String> {
    let file = file(part);
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let folder = file.parent().expect("the file lies in a folder");
    std::fs::create_dir_all(folder).map_err(failed)?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_err(|error| error.to_string())?;
    std::fs::write(&file, format!("{}\n", now.as_millis())).map_err(failed)
}

/// Adds things that passed in `part`.
pub(crate) fn add(part: &str, passed: &[String]) -> Result<(), String> {
    let file = file(part);
    let lines: String = passed.iter().map(|name| format!("{name}\n")).collect();
    // One write, so that concurrent programs do not mix their lines.
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(&file)
        .and_then(|mut record| record.write_all(lines.as_bytes()))
        .map_err(|error| format!("{}: {error}", file.display()))
}

/// The lines of `part` since its start.
pub(crate) fn raw(part: &str) -> Result<Vec<String>, String> {
    let file = file(part);
    let text =
        std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(text.lines().skip(1).map(str::to_owned).collect())
}

/// Records that `part` passed as a whole.
pub(crate) fn end(part: &str) -> Result<(), String> {
    add(part, &[WHOLE.to_owned()])
}

impl PartRecord {
    /// Reads the record of `part`, which must be newer than every source file.
    pub(crate) fn read(part: &str, sources: &NewestSource) -> Result<Self, String> {
        let advice = format!("run `cargo xtask test {part} coverage`");
        let text = std::fs::read_to_string(file(part))
            .map_err(|_| format!("there is no record of a run of the part {part}: {advice}"))?;
        let record = Self::parse(part, &text)
            .ok_or_else(|| format!("the record of the part {part} cannot be read: {advice}"))?;
        if record.began < sources.changed {
            return Err(format!(
                "{} changed after the part {part} ran: {advice}",
                sources.file.display()
            ));
        }
        Ok(record)
    }

    fn parse(part: &str, text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let began = Duration::from_millis(lines.next()?.parse().ok()?);
        Some(Self {
            part: part.to_owned(),
            began: UNIX_EPOCH + began,
            passed: lines.map(str::to_owned).collect(),
        })
    }

    /// What passed.
    pub(crate) fn passed(&self) -> &BTreeSet<String> {
        &self.passed
    }

    /// Whether the part passed as a whole.
    pub(crate) fn whole(&self) -> Result<(), String> {
        if self.passed.contains(WHOLE) {
            Ok(())
        } else {
            Err(format!("the part {} did not pass", self.part))
        }
    }
}

/// The source file that changed last.
pub(crate) struct NewestSource {
    file: PathBuf,
    changed: SystemTime,
}

impl NewestSource {
    pub(crate) fn find() -> Result<Self, String> {
        let mut newest = Self {
            file: root().join("Cargo.lock"),
            changed: UNIX_EPOCH,
        };
        for name in SOURCES {
            newest.visit(&root().join(name))?;
        }
        Ok(newest)
    }

    fn visit(&mut self, path: &Path) -> Result<(), String> {
        if path == root().join(COVERAGE) {
            return Ok(());
        }
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        if path.is_dir() {
            for entry in std::fs::read_dir(path).map_err(failed)? {
                let path = entry.map_err(failed)?.path();
                // Cargo writes one next to a crate outside the workspace. It is not committed.
                if !path.ends_with("Cargo.lock") {
                    self.visit(&path)?;
                }
            }
            return Ok(());
        }
        let changed = path
            .metadata()
            .and_then(|metadata| metadata.modified())
            .map_err(failed)?;
        if changed > self.changed {
            self.changed = changed;
            self.file = path.to_owned();
        }
        Ok(())
    }
}

/// What the tests read: code, and documents whose commands and examples are run.
const SOURCES: [&str; 8] = [
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "crates",
    "docs",
    "examples",
    "peers",
    "xtask",
];

/// The table that is compared with the records. No test reads it.
const COVERAGE: &str = "docs/coverage.md";

fn file(part: &str) -> PathBuf {
    npm::target().join("record").join(format!("{part}.txt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_older_than_a_source_file_is_refused() {
        let part = format!("unit-test-{}", std::process::id());
        begin(&part).expect("it is written");
        add(&part, &["a::b".to_owned()]).expect("it is written");
        let sources = |seconds: i64| {
            let now = SystemTime::now();
            let changed = match seconds {
                0.. => now + Duration::from_secs(seconds.unsigned_abs()),
                _ => now - Duration::from_secs(seconds.unsigned_abs()),
            };
            NewestSource {
                file: "crates/a.rs".into(),
                changed,
            }
        };
        let record = PartRecord::read(&part, &sources(-60)).expect("it is younger");
        assert!(record.passed().contains("a::b"));
        let why = PartRecord::read(&part, &sources(60))
            .err()
            .expect("it is older");
        assert!(why.contains("crates/a.rs changed after"), "{why}");
        // A new run removes the old record.
        begin(&part).expect("it is written");
        let record = PartRecord::read(&part, &sources(-60)).expect("it is younger");
        assert!(record.passed().is_empty());
        std::fs::remove_file(file(&part)).expect("it is there");
        assert!(PartRecord::read(&part, &sources(-60)).is_err());
    }

    #[test]
    fn documents_that_tests_run_are_sources() {
        let newest = |path: &str| {
            let mut newest = NewestSource {
                file: PathBuf::new(),
                changed: UNIX_EPOCH,
            };
            newest
                .visit(&root().join(path))
                .expect("the file can be read");
            newest.file
        };
        assert_eq!(newest("docs/terminal.md"), root().join("docs/terminal.md"));
        assert!(newest("docs").starts_with(root().join("docs")));
        assert_eq!(newest(COVERAGE), PathBuf::new());
        assert!(root().join(COVERAGE).exists());
    }

    #[test]
    fn a_record_contains_its_start_and_what_passed() {
        let record = PartRecord::parse("tests", "5000\na::b\nc::d\n").expect("it is a record");
        assert_eq!(record.began, UNIX_EPOCH + Duration::from_secs(5));
        assert_eq!(record.passed.len(), 2);
        let failed = record.whole().expect_err("its part did not pass");
        assert_eq!(failed, "the part tests did not pass");
        let record =
            PartRecord::parse("lints", &format!("5000\n{WHOLE}\n")).expect("it is a record");
        assert_eq!(record.whole(), Ok(()));
        assert!(PartRecord::parse("tests", "a::b\n").is_none());
    }
}
