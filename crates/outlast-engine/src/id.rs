//! Identifiers of tasks, nodes, revisions, attempts and input requests.
//!
//! A [`TaskId`] is 128 random bits, made by an [`Ids`](crate::Ids) and written as 26 characters
//! that are safe in a header, a URL and a shell. An id alone gives no access where callers have
//! owners: see [`Scope`].

use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::owner::Owner;

/// The id of a task. Never used for another task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TaskId([u8; 16]);

impl Ord for TaskId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // One integer comparison instead of sixteen bytes.
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

    /// The text of the id, without an allocation.
    pub fn text(self) -> TaskIdText {
        let mut bits = self.bits();
        let mut text = [0; ID_TEXT_BYTES];
        for slot in text.iter_mut().rev() {
            *slot = ALPHABET[(bits & 31) as usize];
            bits >>= 5;
        }
        TaskIdText(text)
    }
}

/// The text is not the text of a [`TaskId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a task id: expected 26 characters of 0-9 and a-z without i, l, o and u")]
pub struct TaskIdParseError;

impl FromStr for TaskId {
    type Err = TaskIdParseError;

    fn from_str(text: &str) -> Result<Self, TaskIdParseError> {
        // 26 × 5 bits are two more than an id has: the first character is at most '7'.
        let fits = text.len() == ID_TEXT_BYTES && text.as_bytes()[0] <= b'7';
        if !fits {
            return Err(TaskIdParseError);
        }
        text.bytes()
            .try_fold(0u128, |bits, byte| match DIGITS[usize::from(byte)] {
                INVALID_DIGIT => Err(TaskIdParseError),
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
        // The bits are random already; eight of the sixteen bytes are enough for a hash table.
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

/// The text of a [`TaskId`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TaskIdText([u8; ID_TEXT_BYTES]);

impl TaskIdText {
    /// The 26 characters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("the alphabet is ASCII")
    }
}

/// A map whose keys are [`TaskId`]s or other keys that need no hashing.
pub type IdMap<V, K = TaskId> = std::collections::HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Hashes keys that no caller chooses: passes the random bits of a [`TaskId`] through, and spreads
/// consecutive numbers.
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

    /// A number in a sequence, such as a row number. A hash table picks the bucket by the low bits
    /// and compares the high bits.
    fn write_i64(&mut self, number: i64) {
        let number = number.cast_unsigned();
        self.0 = number ^ number << 57;
    }
}

/// The tasks that a caller may access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The tasks of this owner; every other task is not found.
    OwnedBy(Owner),
    /// Any task whose id the caller knows: for the engine, an operator, and endpoints where the id
    /// is the secret.
    AnyTask,
}

impl Scope {
    /// Whether the caller may access a task of `owner`.
    pub fn includes(&self, owner: &Owner) -> bool {
        match self {
            Self::OwnedBy(own) => own == owner,
            Self::AnyTask => true,
        }
    }
}

/// The id of one engine among those that share a store. Each start of an engine makes a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

impl NodeId {
    /// The executor of a detached task: no engine runs its work, and no engine claims it.
    pub const DETACHED: Self = Self(0);
}

/// The number of stored changes of one task.
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

/// The number of times that a call was started. Writes of an earlier attempt are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt(pub u32);

impl Attempt {
    /// The attempt after this one.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// The key of one input request. Never used twice within a task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InputKey(Arc<str>);

impl InputKey {
    /// The key with that name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InputKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const ID_TEXT_BYTES: usize = 26;

/// Crockford's base 32 digits, without `i`, `l`, `o` and `u`, in ASCII order, so that the texts
/// sort like the bits.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The value of every byte as a digit. A table, because every poll parses an id.
const DIGITS: [u8; 256] = {
    let mut digits = [INVALID_DIGIT; 256];
    let mut digit = 0;
    while digit < ALPHABET.len() {
        digits[ALPHABET[digit] as usize] = digit as u8;
        digit += 1;
    }
    digits
};

const INVALID_DIGIT: u8 = u8::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_text_of_an_id_parses_back(bits: u128) {
            let id = TaskId::from_bits(bits);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            prop_assert!(id.to_string().bytes().all(|b| b.is_ascii_alphanumeric()));
        }

        #[test]
        fn each_id_has_one_text(text in "[0-9a-z]{26}") {
            if let Ok(id) = text.parse::<TaskId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "8zzzzzzzzzzzzzzzzzzzzzzzzz",
            "0000000000000000000000000U",
            "é0000000000000000000000000",
        ] {
            assert_eq!(text.parse::<TaskId>(), Err(TaskIdParseError), "{text}");
        }
    }
}
