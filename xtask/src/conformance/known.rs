//! The list of known failures of one leg: `scenario:check-id  reason`, one a line.

use std::collections::BTreeMap;
use std::path::Path;

/// Checks that are known not to succeed, and why.
pub(super) struct Known(BTreeMap<String, String>);

impl Known {
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
            if reason.trim().is_empty() || !check.contains(':') {
                return Err(format!("`{line}` is not like `scenario:check-id  reason`"));
            }
            known.insert(check.to_owned(), reason.trim().to_owned());
        }
        Ok(Self(known))
    }

    pub(super) fn contains(&self, check: &str) -> bool {
        self.0.contains_key(check)
    }

    pub(super) fn checks(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_a_reason() {
        assert_eq!(Known::parse("# words\n\na:b  because\n").unwrap().len(), 1);
        for odd in ["a:b", "a:b   ", "a because"] {
            assert!(Known::parse(odd).is_err(), "{odd}");
        }
    }
}
