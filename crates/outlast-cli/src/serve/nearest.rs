//! Which of the words that are known somebody may have meant.

/// The word of `known` that is most like `word`, if any is.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let by_distance = known.iter().map(|known| (distance(word, known), *known));
    let (distance, found) = by_distance.min_by_key(|(distance, _)| *distance)?;
    (distance <= word.len().max(found.len()) / 2).then_some(found)
}

/// How many letters have to be put in, taken out or changed to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (place, theirs) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *theirs);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_understood_and_another_word_is_not() {
        let known = ["task", "graceMs", "ttlMs", "timeoutMs", "retry"];
        assert_eq!(nearest("grace", &known), Some("graceMs"));
        assert_eq!(nearest("timeoutms", &known), Some("timeoutMs"));
        assert_eq!(nearest("tasks", &known), Some("task"));
        assert_eq!(nearest("banana", &known), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
