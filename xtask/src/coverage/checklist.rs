//! The checklist: every requirement with its id. The table of tests is derived from it.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use super::document::{Document, cells, heading, parts};

/// The ids and texts of all requirements.
#[derive(Debug)]
pub(super) struct Checklist {
    texts: BTreeMap<String, String>,
    /// The number of requirements in each section.
    counts: BTreeMap<String, usize>,
}

impl Checklist {
    /// Reads the list, in which each section numbers its requirements from 1.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut texts = BTreeMap::new();
        let mut headings = BTreeMap::new();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for line in text.lines() {
            if let Some((section, count)) = heading(line) {
                headings.insert(section, count);
            }
            let Some([id, text]) = cells(line) else {
                continue;
            };
            let Some((section, _)) = parts(id) else {
                continue;
            };
            match texts.entry(id.to_owned()) {
                Entry::Vacant(entry) if !text.is_empty() => entry.insert(text.to_owned()),
                _ => return Err(format!("docs/checklist.md: {id} is empty or occurs twice")),
            };
            *counts.entry(section.to_owned()).or_default() += 1;
        }
        if counts == headings && !texts.is_empty() {
            Ok(Self { texts, counts })
        } else {
            Err("docs/checklist.md: a heading has another count than its rows".into())
        }
    }

    /// Returns the differences to the document: missing and unknown ids, rows with another text,
    /// and headings with another count.
    pub(super) fn compare(&self, document: &Document) -> Vec<String> {
        let rows: BTreeSet<_> = document.rows.iter().map(|row| row.id.clone()).collect();
        let ids: BTreeSet<_> = self.texts.keys().cloned().collect();
        let missing = ids.difference(&rows);
        let unknown = rows.difference(&ids);
        let changed = document.rows.iter().filter(|row| {
            let text = self.texts.get(&row.id);
            text.is_some_and(|text| *text != row.text)
        });
        let mut faults: Vec<_> = missing
            .map(|id| format!("{id} of docs/checklist.md is missing"))
            .chain(unknown.map(|id| format!("{id} is not in docs/checklist.md")))
            .chain(changed.map(|row| {
                let (line, id) = (row.line, &row.id);
                format!("line {line}: {id} does not have its text from docs/checklist.md")
            }))
            .collect();
        for (section, count) in &self.counts {
            match document.counts.get(section) {
                Some(output) if output == count => {}
                Some(output) => faults.push(format!(
                    "{section} has {count} requirements in docs/checklist.md, not {output}"
                )),
                None => faults.push(format!("no heading gives the count of {section}")),
            }
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str =
        "## S9 (2)\n| id | requirement |\n|---|---|\n| S9-1 | a thing |\n| S9-2 | another |\n";

    fn faults(table: &str) -> Vec<String> {
        let list = Checklist::read(LIST).expect("it is a list");
        list.compare(&Document::read(table).expect("it is a document"))
    }

    #[test]
    fn a_row_cannot_be_dropped_with_its_count() {
        let rows = "| S9-1 | a thing | `a::b` |\n| S9-2 | another | to come: the web page |\n";
        assert_eq!(faults(&format!("## S9 (2)\n{rows}")), [""; 0]);
        assert_eq!(
            faults("## S9 (1)\n| S9-1 | a thing | `a::b` |\n"),
            [
                "S9-2 of docs/checklist.md is missing",
                "S9 has 2 requirements in docs/checklist.md, not 1"
            ]
        );
        assert_eq!(
            faults(&format!("## S9 (2)\n{rows}| S9-3 | more | `a::b` |\n")),
            ["S9-3 is not in docs/checklist.md"]
        );
        assert_eq!(faults(rows), ["no heading gives the count of S9"]);
    }

    #[test]
    fn a_row_keeps_the_text_of_its_requirement() {
        let table = "## S9 (2)\n| S9-1 | half of it | `a::b` |\n| S9-2 | another | `c::d` |\n";
        assert_eq!(
            faults(table),
            ["line 2: S9-1 does not have its text from docs/checklist.md"]
        );
    }

    #[test]
    fn a_list_counts_its_rows() {
        let text = LIST.replace("(2)", "(3)");
        assert!(Checklist::read(&text).is_err());
        assert!(Checklist::read("").is_err());
    }
}
