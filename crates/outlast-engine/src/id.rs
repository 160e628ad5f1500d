//! Identifiers: tasks, nodes, revisions, attempts, input requests.
//!
//! A [`TaskId`] is 128 random bits, drawn by an [`Ids`](crate::Ids) and written as 26 characters that
//! are safe in a header, a URL and a shell. Knowing one is not permission to use it.

use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::owner::Owner;

/// Names one task for ever.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TaskId([u8; 16]);

impl Ord for TaskId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // As numbers, which a processor compares at once.
        self.bits().cmp(&other.bits())
    }
}

impl PartialOrd for TaskId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl TaskId {
    /// The id with these bits. They must come from a secure source.
    pub fn from_bits(bits: u128) -> Self {
        Self(bits.to_be_bytes())
    }

    /// The bits of the id.
    pub fn bits(self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// The written form, without an allocation.
    pub fn text(self) -> IdText {
        let mut bits = self.bits();
        let mut text = [0; TEXT];
        for slot in text.iter_mut().rev() {
            *slot = ALPHABET[(bits & 31) as usize];
            bits >>= 5;
        }
        IdText(text)
    }
}

/// The text is not an id that Outlast could have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a task id")]
pub struct BadTaskId;

impl FromStr for TaskId {
    type Err = BadTaskId;

    fn from_str(text: &str) -> Result<Self, BadTaskId> {
        // 26 × 5 bits hold two more than an id has: the first character is at most '7'.
        let fits = text.len() == TEXT && text.as_bytes()[0] <= b'7';
        if !fits {
            return Err(BadTaskId);
        }
        text.bytes()
            .try_fold(0u128, |bits, byte| match DIGITS[usize::from(byte)] {
                NO_DIGIT => Err(BadTaskId),
                digit => Ok(bits << 5 | u128::from(digit)),
            })
            .map(Self::from_bits)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text().as_str())
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Hash for TaskId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The bits are random already; eight of the sixteen bytes are enough for a table.
        let [high, ..] = self.halves();
        state.write_u64(high);
    }
}

impl TaskId {
    pub(crate) fn halves(self) -> [u64; 2] {
        let bits = self.bits();
        [(bits >> 64) as u64, bits as u64]
    }
}

/// A [`TaskId`] as text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct IdText([u8; TEXT]);

impl IdText {
    /// The 26 characters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("the alphabet is ASCII")
    }
}

/// A map keyed by [`TaskId`] or by another key that needs no hashing.
pub type IdMap<V, K = TaskId> = std::collections::HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Hashes keys whose bits no caller chooses: passes the random bits of a [`TaskId`] through, and spreads
/// numbers that follow each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, bits: u64) {
        self.0 = bits;
    }

    /// A number in a sequence, such as that of a row. A table picks the bucket by the low bits and tells
    /// neighbours apart by the high ones.
    fn write_i64(&mut self, number: i64) {
        let number = number.cast_unsigned();
        self.0 = number ^ number << 57;
    }
}

/// Whose tasks a caller may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The tasks of this owner; every other task is not found.
    Of(Owner),
    /// Any task whose id the caller knows: the engine itself, an operator, or a front where the id
    /// is the secret.
    Anyone,
}

impl Scope {
    /// Whether a task of `owner` is in reach.
    pub fn reaches(&self, owner: &Owner) -> bool {
        match self {
            Self::Of(own) => own == owner,
            Self::Anyone => true,
        }
    }
}

/// Names one engine among those that share a store. Drawn anew at every start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

/// Counts the stored changes of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u32);

impl Revision {
    /// The revision after this one.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Counts the times a call was started; writes of an earlier attempt are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt(pub u32);

impl Attempt {
    /// The attempt after this one.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Names one question of a task; never used twice within it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AskKey(Arc<str>);

impl AskKey {
    /// The key of that name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const TEXT: usize = 26;

/// Crockford's digits: no `i`, `l`, `o`, `u`. In the order of their codes, so that text sorts as bits.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// What every byte is as a digit: each look at a task reads an id.
const DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < ALPHABET.len() {
        digits[ALPHABET[digit] as usize] = digit as u8;
        digit += 1;
    }
    digits
};

const NO_DIGIT: u8 = u8::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_id_survives_its_text(bits: u128) {
            let id = TaskId::from_bits(bits);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            prop_assert!(id.to_string().bytes().all(|b| b.is_ascii_alphanumeric()));
        }

        #[test]
        fn no_two_texts_name_one_id(text in "[0-9a-z]{26}") {
            if let Ok(id) = text.parse::<TaskId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }

    #[test]
    fn strange_texts_are_no_ids() {
        for text in [
            "",
            "8zzzzzzzzzzzzzzzzzzzzzzzzz",
            "0000000000000000000000000U",
            "é0000000000000000000000000",
        ] {
            assert_eq!(text.parse::<TaskId>(), Err(BadTaskId), "{text}");
        }
    }
}
