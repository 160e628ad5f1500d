//! The list of one leg, one entry per line: known failures, `scenario:check-id  reason`, and
//! excluded scenarios, `scenario  reason`.

use std::collections::BTreeMap;
use std::path::Path;

/// Known failures and excluded scenarios, each with its reason.
pub(super) struct KnownFailures(BTreeMap<String, String>);

impl KnownFailures {
    pub(super) fn read(file: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        Self::parse(&text).map_err(|why| format!("{}: {why}", file.display()))
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut known = BTreeMap::new();
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (check, reason) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            if reason.trim().is_empty() {
                return Err(format!("`{line}` has no reason"));
            }
            known.insert(check.to_owned(), reason.trim().to_owned());
        }
        Ok(Self(known))
    }

    pub(super) fn contains(&self, check: &str) -> bool {
        self.0.contains_key(check)
    }

    pub(super) fn checks(&self) -> impl Iterator<Item = &str> {
        self.entries().filter(|entry| entry.contains(':'))
    }

    pub(super) fn excluded(&self) -> impl Iterator<Item = &str> {
        self.entries().filter(|entry| !entry.contains(':'))
    }

    pub(super) fn len(&self) -> usize {
        self.checks().count()
    }

    fn entries(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_a_reason() {
        let known = KnownFailures::parse("# words\n\na:b  because\nauth/x  no\n").unwrap();
        assert_eq!(known.checks().collect::<Vec<_>>(), ["a:b"]);
        assert_eq!(known.excluded().collect::<Vec<_>>(), ["auth/x"]);
        for odd in ["a:b", "a:b   ", "a"] {
            assert!(KnownFailures::parse(odd).is_err(), "{odd}");
        }
    }
}
