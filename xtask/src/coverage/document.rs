//! The table of tests: sections with the number of their requirements, and a row for each.

use std::collections::{BTreeMap, BTreeSet};

/// The requirements and their proofs.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Document {
    pub(super) rows: Vec<Row>,
    /// The number of requirements in each heading.
    pub(super) counts: BTreeMap<String, usize>,
}

/// One requirement.
#[derive(Debug, PartialEq)]
pub(super) struct Row {
    pub(super) line: usize,
    pub(super) id: String,
    pub(super) text: String,
    pub(super) proof: Proof,
}

/// The proof of a requirement.
#[derive(Debug, PartialEq)]
pub(super) enum Proof {
    /// These tests prove it.
    Tests(Vec<String>),
    /// It does not apply, for a reason that the document gives.
    DoesNotApply,
    /// The feature is not built.
    ToCome,
}

impl Document {
    /// Reads the document, or returns all its errors.
    pub(super) fn read(text: &str) -> Result<Self, Vec<String>> {
        let mut document = Self::default();
        let mut faults = Vec::new();
        let mut ids = BTreeSet::new();
        for (number, line) in text.lines().enumerate() {
            let number = number + 1;
            if let Some((section, count)) = heading(line)
                && document.counts.insert(section.clone(), count).is_some()
            {
                faults.push(format!("line {number}: {section} has two sections"));
            }
            match row(number, line) {
                None => {}
                Some(Ok(row)) if !ids.insert(row.id.clone()) => {
                    faults.push(format!("line {number}: {} occurs twice", row.id));
                }
                Some(Ok(row)) => document.rows.push(row),
                Some(Err(why)) => faults.push(format!("line {number}: {why}")),
            }
        }
        if faults.is_empty() {
            Ok(document)
        } else {
            Err(faults)
        }
    }
}

/// The row of a line, if it is one.
fn row(line: usize, text: &str) -> Option<Result<Row, String>> {
    let text = text.trim();
    if !text.starts_with('|') {
        return None;
    }
    let Some([id, meaning, proof]) = cells(text) else {
        return Some(Err("a row has three cells".into()));
    };
    if id == "id" || id.starts_with("--") {
        return None;
    }
    if parts(id).is_none() {
        return Some(Err(format!("{id} is not an id")));
    }
    if meaning.is_empty() {
        return Some(Err(format!("{id} does not say what is required")));
    }
    Some(match read_proof(proof) {
        Ok(proof) => Ok(Row {
            line,
            id: id.to_owned(),
            text: meaning.to_owned(),
            proof,
        }),
        Err(why) => Err(format!("{id} {why}")),
    })
}

fn read_proof(text: &str) -> Result<Proof, String> {
    for (words, proof) in [
        ("does not apply", Proof::DoesNotApply),
        ("to come", Proof::ToCome),
    ] {
        let Some(reason) = text.strip_prefix(words) else {
            continue;
        };
        let reason = reason.trim_start_matches(':').trim();
        return match reason.split(' ').count() {
            0..3 => Err(format!("says \"{words}\" and gives no reason")),
            _ => Ok(proof),
        };
    }
    let names = quoted(text);
    if names.is_empty() {
        Err("names no test".into())
    } else {
        Ok(Proof::Tests(names))
    }
}

/// The text between backticks.
pub(super) fn quoted(text: &str) -> Vec<String> {
    let names = text.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

/// The cells of a line of a table, if it has `N`.
pub(super) fn cells<const N: usize>(line: &str) -> Option<[&str; N]> {
    let line = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let cells: Vec<_> = line.split('|').map(str::trim).collect();
    cells.try_into().ok()
}

/// Reads a heading such as `### V1-CAP (14)`, which stands for V1-CAP-1 to V1-CAP-14.
pub(super) fn heading(line: &str) -> Option<(String, usize)> {
    let text = line.strip_prefix('#')?.trim_start_matches('#').trim();
    let (section, count) = text.strip_suffix(')')?.rsplit_once(" (")?;
    let section = section.split(':').next()?;
    Some((section.to_owned(), count.parse().ok()?))
}

/// The section and the number of an id.
pub(super) fn parts(id: &str) -> Option<(&str, usize)> {
    let (section, number) = id.rsplit_once('-')?;
    let is_allowed = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-';
    (!section.is_empty() && section.bytes().all(is_allowed)).then_some(())?;
    Some((section, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        Document::read(text).expect_err("something is wrong")
    }

    #[test]
    fn a_complete_document_is_read() {
        let text = "\
            # Coverage\n\
            ## S9: a seed (3)\n\
            | id | what | shown by |\n|---|---|---|\n\
            | S9-1 | a thing | `a::b::c`, `d::e::f` |\n\
            | S9-2 | another | to come: the web page |\n\
            | S9-3 | a third | does not apply: it concerns another program |\n";
        let document = Document::read(text).expect("nothing is wrong");
        let tests = vec!["a::b::c".to_owned(), "d::e::f".to_owned()];
        let proofs: Vec<_> = document.rows.iter().map(|row| &row.proof).collect();
        assert_eq!(
            proofs,
            [&Proof::Tests(tests), &Proof::ToCome, &Proof::DoesNotApply]
        );
        assert_eq!(document.counts, BTreeMap::from([("S9".to_owned(), 3)]));
    }

    #[test]
    fn faults_are_found() {
        for (rows, fault) in [
            ("| S9-1 | a thing | |", "names no test"),
            ("| S9-1 | a thing | soon |", "names no test"),
            ("| S9-1 | | `a::b` |", "does not say what"),
            ("| S9-1 | a thing | does not apply |", "no reason"),
            ("| S9-1 | a thing | does not apply: no |", "no reason"),
            ("| S9-1 | a thing | to come |", "no reason"),
            ("| S9-1 | a thing |", "three cells"),
            ("| s9 | a thing | `a::b` |", "is not an id"),
            (
                "| S9-1 | a thing | `a::b` |\n| S9-1 | a thing | `a::b` |",
                "occurs twice",
            ),
            ("## S9 (2)", "two sections"),
        ] {
            let found = faults(&format!("## S9 (1)\n{rows}\n"));
            assert!(
                found.iter().any(|found| found.contains(fault)),
                "{rows}: {found:?}"
            );
        }
    }
}
