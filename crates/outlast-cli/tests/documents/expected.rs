//! Compares the lines of a document with what a program printed.

use std::collections::BTreeMap;

/// The ids in a document, by their first letters, and the ids of this run that replace them.
#[derive(Default)]
pub(crate) struct Ids(BTreeMap<String, String>);

/// How many letters of an id are compared: as many as `outlast` shows if there is little space.
const ID_LETTERS: usize = 8;

impl Ids {
    /// Replaces an id of the document by the id of this run, cut to the same length.
    pub(crate) fn real_id<'a>(&'a self, word: &'a str) -> &'a str {
        let known = word.get(..ID_LETTERS).and_then(|begin| self.0.get(begin));
        let known = known.filter(|_| is_id(word));
        known.map_or(word, |known| known.get(..word.len()).unwrap_or(known))
    }

    /// Checks that `printed` contains all `lines`, in this order. Other lines may be between them.
    pub(crate) fn find_all(&mut self, lines: &[String], printed: &str) -> Result<(), String> {
        let mut rest = printed.lines();
        for line in lines {
            if !rest.any(|found| self.matches_line(line, found)) {
                return Err(line.clone());
            }
        }
        Ok(())
    }

    fn matches_line(&mut self, expected: &str, found: &str) -> bool {
        let mut new = Vec::new();
        let mut found = found.split_whitespace();
        let mut words = expected.split_whitespace().peekable();
        while let Some(word) = words.next() {
            if word == "…" {
                // It matches any words until the next word of the line.
                let Some(next) = words.next() else {
                    break;
                };
                if !found.any(|found| self.same(next, found, &mut new)) {
                    return false;
                }
                continue;
            }
            let Some(other) = found.next() else {
                return false;
            };
            let is_rest = words.peek().is_none() && found.next().is_some();
            if is_rest || !self.same(word, other, &mut new) {
                return false;
            }
        }
        self.0.extend(new);
        true
    }

    fn same(&self, word: &str, found: &str, new: &mut Vec<(String, String)>) -> bool {
        let short = |word: &str| word.trim_end_matches('…').to_owned();
        let (id, real) = (short(word), short(found));
        if is_id(&id) && is_id(&real) {
            let begin = &id[..ID_LETTERS];
            return match self.0.get(begin) {
                Some(known) => known[..ID_LETTERS] == real[..ID_LETTERS],
                None => {
                    new.push((begin.to_owned(), real));
                    true
                }
            };
        }
        let is_number = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
        // A long number is an example, for instance of a process id, which may be short.
        word == found || (word.len() > 3 && is_number(word) && is_number(found))
    }
}

/// Whether a word is a task id, whole or shortened.
fn is_id(word: &str) -> bool {
    let letters = word.bytes();
    [ID_LETTERS, 26].contains(&word.len())
        && letters
            .clone()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        && letters.clone().any(|b| b.is_ascii_digit())
        && letters.clone().any(|b| b.is_ascii_lowercase())
}

#[test]
fn only_ids_and_long_numbers_may_differ() {
    let mut ids = Ids::default();
    for (expected, found, fits) in [
        ("5ksmzk71  working  …", "1abcdef2 working 3 s", true),
        ("5ksmzk71… ended", "1abcdef2… ended", true),
        ("5ksmzk71… ended", "9abcdef9… ended", false),
        ("process 2048", "process 17", true),
        ("process 2048", "process x", false),
        ("process 17", "process 18", false),
        ("a … c", "a b c", true),
        ("a b", "a b c", false),
        ("a", "b", false),
    ] {
        assert_eq!(
            ids.matches_line(expected, found),
            fits,
            "{expected} / {found}"
        );
    }
    assert_eq!(ids.real_id("5ksmzk715k9jk0by6w40gkgzj6"), "1abcdef2");
}
