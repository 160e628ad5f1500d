//! The tests and checks that passed in the last run of `cargo xtask test`.
//!
//! A row names a test (`package::target::path`), a conversation with a peer (`script: title`) or a
//! whole part (`cargo xtask test lints`).

use std::collections::BTreeSet;

use super::document::quoted;
use crate::record::{NewestSource, PartRecord};

/// All names that a row can use.
pub(super) struct Proofs {
    tests: BTreeSet<String>,
    peers: BTreeSet<String>,
    sources: NewestSource,
}

impl Proofs {
    /// Reads the records of tests and peers, which must be newer than the sources.
    pub(super) fn of_last_run() -> Result<Self, String> {
        let sources = NewestSource::find()?;
        let mut peers = PartRecord::read("peers", &sources)?.passed().clone();
        peers.extend(
            PartRecord::read("cluster", &sources)?
                .passed()
                .iter()
                .cloned(),
        );
        Ok(Self {
            tests: PartRecord::read("tests", &sources)?.passed().clone(),
            peers,
            sources,
        })
    }

    /// Whether the test or check that a row names passed.
    pub(super) fn check(&self, name: &str) -> Result<(), String> {
        if let Some(part) = name.strip_prefix("cargo xtask test ") {
            return PartRecord::read(part, &self.sources)?.whole();
        }
        if name.contains(": ") {
            return if self.peers.contains(name) {
                Ok(())
            } else {
                Err(format!(
                    "no check of `cargo xtask peers` passed as {name:?}"
                ))
            };
        }
        if self.tests.contains(name) {
            return Ok(());
        }
        let last = name.rsplit("::").next().unwrap_or(name);
        let similar = self.tests.iter().find(|test| test.ends_with(last));
        Err(match similar {
            Some(similar) => format!("no test {name} passed in the last run; is it {similar}?"),
            None => format!("no test {name} passed in the last run"),
        })
    }

    /// Returns the differences between the table of checks with peers and the checks that passed. A
    /// check is in the last cell of a row and is called `SCRIPT over stdio`, `over HTTP`, `behind
    /// the gateway`, `through the gateway` or `through three nodes`.
    pub(super) fn compare_interop(&self, document: &str) -> Vec<String> {
        let listed: BTreeSet<_> = document
            .lines()
            .filter(|line| line.starts_with('|'))
            .filter_map(|line| line.trim_end_matches('|').rsplit('|').next())
            .flat_map(quoted)
            .collect();
        let passed: BTreeSet<_> = self.peers.iter().filter(|name| is_check(name)).collect();
        let not_passed = listed
            .iter()
            .filter(|name| !passed.contains(name))
            .map(|name| format!("no check of `cargo xtask peers` passed as {name:?}"));
        let not_listed = passed
            .iter()
            .filter(|name| !listed.contains(**name))
            .map(|name| format!("the table does not list the check {name:?}"));
        not_passed.chain(not_listed).collect()
    }
}

/// Whether a line of the record is a check, not a conversation or the whole part.
fn is_check(name: &str) -> bool {
    let connectors = [" over ", " behind ", " through "];
    !name.contains(": ") && connectors.iter().any(|way| name.contains(way))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proofs() -> Proofs {
        Proofs {
            tests: BTreeSet::from(["a::lib::works".to_owned()]),
            peers: BTreeSet::from(["p/c.py: a_task".to_owned(), "p/c.py over stdio".to_owned()]),
            sources: NewestSource::find().expect("the sources can be read"),
        }
    }

    #[test]
    fn a_name_counts_only_if_it_passed() {
        let proofs = proofs();
        assert_eq!(proofs.check("a::lib::works"), Ok(()));
        assert_eq!(proofs.check("p/c.py: a_task"), Ok(()));
        for (name, fault) in [
            ("b::lib::works", "is it a::lib::works?"),
            ("a::lib::fails", "no test a::lib::fails passed"),
            ("p/c.py: another", "no check"),
            ("../README.md: a_task", "no check"),
            ("cargo xtask test nothing", "no record"),
        ] {
            let why = proofs.check(name).expect_err("it did not pass");
            assert!(why.contains(fault), "{name}: {why}");
        }
    }

    #[test]
    fn the_table_of_peers_lists_exactly_what_passed() {
        let proofs = proofs();
        let row = |check: &str| format!("| a client | `code` in another cell | `{check}` |\n");
        assert_eq!(proofs.compare_interop(&row("p/c.py over stdio")), [""; 0]);
        assert_eq!(
            proofs.compare_interop(&row("p/c.py over HTTP")),
            [
                "no check of `cargo xtask peers` passed as \"p/c.py over HTTP\"",
                "the table does not list the check \"p/c.py over stdio\"",
            ]
        );
    }
}
