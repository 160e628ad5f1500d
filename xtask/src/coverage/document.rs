//! The document: sections that say how many requirements they have, and a row for each.

use std::collections::BTreeMap;

/// The requirements and what shows each.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Document {
    pub(super) rows: Vec<Row>,
    /// Requirements of parts that are not built yet.
    pub(super) to_come: Vec<String>,
}

/// One requirement.
#[derive(Debug, PartialEq)]
pub(super) struct Row {
    pub(super) line: usize,
    pub(super) id: String,
    pub(super) proof: Proof,
}

/// Why a requirement is thought to be met.
#[derive(Debug, PartialEq)]
pub(super) enum Proof {
    /// These tests show it.
    Shown(Vec<String>),
    /// It does not concern us, for a reason that the document gives.
    DoesNotApply,
}

impl Proof {
    pub(super) fn is_shown(&self) -> bool {
        matches!(self, Self::Shown(_))
    }
}

impl Document {
    /// Reads the document, or says everything that is wrong with it.
    pub(super) fn read(text: &str) -> Result<Self, Vec<String>> {
        let mut document = Self::default();
        let mut faults = Vec::new();
        let mut counts = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = (number + 1, line.trim());
            let read = match line.1 {
                text if text.starts_with('#') => heading(text, &mut counts),
                text if text.starts_with('|') => document.row(line.0, text),
                text if text.starts_with(TO_COME) => document.later(&text[TO_COME.len()..]),
                _ => Ok(()),
            };
            if let Err(why) = read {
                faults.push(format!("line {}: {why}", line.0));
            }
        }
        document.compare(&counts, &mut faults);
        match faults.is_empty() {
            true => Ok(document),
            false => Err(faults),
        }
    }

    fn row(&mut self, line: usize, text: &str) -> Result<(), String> {
        let cells: Vec<_> = text.trim_matches('|').split('|').map(str::trim).collect();
        let [id, meaning, proof] = cells[..] else {
            return Err(format!("a row has three cells, not {}", cells.len()));
        };
        if id == "id" || id.starts_with("--") {
            return Ok(());
        }
        let (_, _) = parts(id).ok_or_else(|| format!("{id} is no id"))?;
        if meaning.is_empty() {
            return Err(format!("{id} does not say what is required"));
        }
        let proof = read_proof(proof).map_err(|why| format!("{id} {why}"))?;
        self.rows.push(Row {
            line,
            id: id.to_owned(),
            proof,
        });
        Ok(())
    }

    fn later(&mut self, text: &str) -> Result<(), String> {
        for id in text.trim_end_matches('.').split(',').map(str::trim) {
            parts(id).ok_or_else(|| format!("{id} is no id"))?;
            self.to_come.push(id.to_owned());
        }
        Ok(())
    }

    /// Every section has as many requirements as its heading says, each once, and there are no others.
    fn compare(&self, counts: &BTreeMap<String, usize>, faults: &mut Vec<String>) {
        let mut found: BTreeMap<&str, usize> = BTreeMap::new();
        for id in self.rows.iter().map(|row| &row.id).chain(&self.to_come) {
            *found.entry(id).or_default() += 1;
        }
        for (id, times) in &found {
            if *times > 1 {
                faults.push(format!("{id} is there {times} times"));
            }
            let of = parts(id).and_then(|(section, number)| Some((counts.get(section)?, number)));
            if !of.is_some_and(|(count, number)| (1..=*count).contains(&number)) {
                faults.push(format!("{id} is in no section's count"));
            }
        }
        for (section, count) in counts {
            for number in 1..=*count {
                let id = format!("{section}-{number}");
                if !found.contains_key(id.as_str()) {
                    faults.push(format!("{id} is missing"));
                }
            }
        }
    }
}

/// A heading such as `### V1-CAP (14)` says that there are V1-CAP-1 to V1-CAP-14.
fn heading(text: &str, counts: &mut BTreeMap<String, usize>) -> Result<(), String> {
    let text = text.trim_start_matches('#').trim();
    let Some((section, count)) = text
        .strip_suffix(')')
        .and_then(|text| text.rsplit_once(" ("))
    else {
        return Ok(());
    };
    let section = section.split(':').next().unwrap_or_default();
    let Ok(count) = count.parse() else {
        return Ok(());
    };
    match counts.insert(section.to_owned(), count) {
        None => Ok(()),
        Some(_) => Err(format!("{section} has two sections")),
    }
}

fn read_proof(text: &str) -> Result<Proof, String> {
    if let Some(reason) = text.strip_prefix("does not apply") {
        let reason = reason.trim_start_matches(':').trim();
        return match reason.split(' ').count() {
            0..3 => Err("does not apply, but no reason is given".into()),
            _ => Ok(Proof::DoesNotApply),
        };
    }
    // Between every second pair of backticks is a name.
    let tests: Vec<_> = text
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect();
    match tests.is_empty() {
        true => Err("names no test".into()),
        false => Ok(Proof::Shown(tests)),
    }
}

/// The section and the number of an id.
fn parts(id: &str) -> Option<(&str, usize)> {
    let (section, number) = id.rsplit_once('-')?;
    let fine = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-';
    (!section.is_empty() && section.bytes().all(fine)).then_some(())?;
    Some((section, number.parse().ok()?))
}

const TO_COME: &str = "To come:";

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
            | S9-3 | another | does not apply: nobody needs it here |\n\n\
            To come: S9-2.\n";
        let document = Document::read(text).expect("nothing is wrong");
        assert_eq!(document.to_come, ["S9-2"]);
        let tests = vec!["a::b::c".to_owned(), "d::e::f".to_owned()];
        assert_eq!(document.rows[0].proof, Proof::Shown(tests));
        assert_eq!(document.rows[1].proof, Proof::DoesNotApply);
    }

    #[test]
    fn holes_are_found() {
        for (rows, fault) in [
            ("| S9-1 | a thing | |", "names no test"),
            ("| S9-1 | a thing | soon |", "names no test"),
            ("| S9-1 | | `a::b` |", "does not say what"),
            ("| S9-1 | a thing | does not apply |", "no reason"),
            ("| S9-1 | a thing | does not apply: no |", "no reason"),
            ("| S9-1 | a thing |", "three cells"),
            ("| s9 | a thing | `a::b` |", "is no id"),
            ("", "S9-1 is missing"),
            (
                "| S9-1 | a thing | `a::b` |\n| S9-2 | more | `a::b` |",
                "S9-2 is in no section's count",
            ),
            (
                "| S9-1 | a thing | `a::b` |\n\nTo come: S9-1",
                "is there 2 times",
            ),
        ] {
            let found = faults(&format!("## S9 (1)\n{rows}\n"));
            assert!(
                found.iter().any(|found| found.contains(fault)),
                "{rows}: {found:?}"
            );
        }
    }
}
