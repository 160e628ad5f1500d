//! Suggests the known word that a mistyped word most likely means.

/// Returns the word of `known` that is most similar to `word`, if one is similar enough.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let distance = |known: &&str| strsim::levenshtein(&lower, &known.to_lowercase());
    let found = known.iter().copied().min_by_key(distance)?;
    (distance(&found) <= word.len().max(found.len()) / 2).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_similar_word_is_suggested() {
        let known = ["task", "graceMs", "ttlMs", "timeoutMs", "retry"];
        assert_eq!(nearest("grace", &known), Some("graceMs"));
        assert_eq!(nearest("timeoutms", &known), Some("timeoutMs"));
        assert_eq!(nearest("tasks", &known), Some("task"));
        assert_eq!(nearest("banana", &known), None);
    }
}
