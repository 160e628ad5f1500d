//! A sorted map for keys that mostly come in ascending order, such as positions in a list and deadlines.
//!
//! Such a key goes to the end of the last chunk: nothing is searched for, and no tree grows. The chunks before it are in
//! a tree, so that any other operation costs what it costs there.

use std::collections::BTreeMap;

/// A sorted map in chunks.
#[derive(Debug)]
pub(super) struct Ascending<K, V> {
    /// All chunks but the last. None is empty, and no key in a chunk is less than the one it is filed under.
    filed: BTreeMap<K, Chunk<K, V>>,
    /// The greatest keys. Empty only if there are none at all.
    last: Chunk<K, V>,
}

/// Up to [`FULL`] entries in order.
type Chunk<K, V> = Vec<(K, V)>;

impl<K, V> Default for Ascending<K, V> {
    fn default() -> Self {
        Self {
            filed: BTreeMap::new(),
            last: Vec::new(),
        }
    }
}

impl<K: Copy + Ord, V> Ascending<K, V> {
    /// Puts `value` under `key`, in the place of what was there.
    pub(super) fn insert(&mut self, key: K, value: V) {
        if self.last.last().is_none_or(|(last, _)| *last < key) {
            if self.last.len() == FULL {
                self.file_last(FULL);
                // Where so many came, more will.
                self.last.reserve_exact(FULL);
            }
            self.last.push((key, value));
            return;
        }
        match self.chunk(key) {
            Some(chunk) => match find(chunk, key) {
                Ok(at) => chunk[at].1 = value,
                Err(at) => {
                    chunk.insert(at, (key, value));
                    if chunk.len() > FULL {
                        self.split(key);
                    }
                }
            },
            None => {
                self.filed.insert(key, vec![(key, value)]);
            }
        }
    }

    /// What is under `key`.
    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let chunk = self.chunk(key)?;
        let at = find(chunk, key).ok()?;
        Some(&mut chunk[at].1)
    }

    /// Takes out what is under `key`.
    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        let chunk = self.chunk(key)?;
        let at = find(chunk, key).ok()?;
        let (_, value) = chunk.remove(at);
        if chunk.is_empty() {
            self.drop_empty(key);
        } else if chunk.capacity() > 8 && chunk.len() * 4 <= chunk.capacity() {
            // Few that stay long do not keep the room of many.
            chunk.shrink_to(chunk.len() * 2);
        }
        Some(value)
    }

    /// All entries, least key first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.filed.values().chain([&self.last]).flatten()
    }

    /// The entries with keys less than `key`, greatest first.
    pub(super) fn before(&self, key: K) -> impl Iterator<Item = &(K, V)> {
        let filed = self.filed.range(..key).rev().map(|(_, chunk)| chunk);
        let chunks = std::iter::once(&self.last).chain(filed);
        chunks.flat_map(move |chunk| {
            let end = chunk.partition_point(|(known, _)| *known < key);
            chunk[..end].iter().rev()
        })
    }

    /// The chunk where `key` is or belongs, unless it is less than all others.
    fn chunk(&mut self, key: K) -> Option<&mut Chunk<K, V>> {
        match self.last.first() {
            Some((first, _)) if *first <= key => Some(&mut self.last),
            _ => self.filed.range_mut(..=key).next_back().map(|(_, c)| c),
        }
    }

    /// Files the first `count` entries of the last chunk.
    fn file_last(&mut self, count: usize) {
        let rest = self.last.split_off(count);
        let filed = std::mem::replace(&mut self.last, rest);
        if let Some((first, _)) = filed.first() {
            self.filed.insert(*first, filed);
        }
    }

    /// Makes two of the chunk where `key` is.
    fn split(&mut self, key: K) {
        let is_last = self.last.first().is_some_and(|(first, _)| *first <= key);
        if is_last {
            return self.file_last(FULL / 2);
        }
        let upper = self.chunk(key).map(|chunk| chunk.split_off(FULL / 2));
        if let Some(upper) = upper
            && let Some((first, _)) = upper.first()
        {
            self.filed.insert(*first, upper);
        }
    }

    /// Forgets the chunk where `key` was, which has become empty.
    fn drop_empty(&mut self, key: K) {
        if self.last.is_empty() {
            self.last = self.filed.pop_last().map(|(_, c)| c).unwrap_or_default();
            return;
        }
        let filed_under = self
            .filed
            .range(..=key)
            .next_back()
            .map(|(under, _)| *under);
        if let Some(under) = filed_under {
            self.filed.remove(&under);
        }
    }
}

fn find<K: Ord, V>(chunk: &Chunk<K, V>, key: K) -> Result<usize, usize> {
    chunk.binary_search_by(|(known, _)| known.cmp(&key))
}

/// How many entries a chunk has at most.
const FULL: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Deed {
        /// A key greater than all before, by so much.
        Append(u16),
        Insert(u16),
        Change(u16),
        Remove(u16),
        /// Takes out the least keys.
        Expire(u8),
        Look(u16),
    }

    fn deed() -> impl Strategy<Value = Deed> {
        prop_oneof![
            8 => (1..4u16).prop_map(Deed::Append),
            2 => (0..2_000u16).prop_map(Deed::Insert),
            2 => (0..2_000u16).prop_map(Deed::Change),
            3 => (0..2_000u16).prop_map(Deed::Remove),
            1 => (0..80u8).prop_map(Deed::Expire),
            1 => (0..2_000u16).prop_map(Deed::Look),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_sorted_map(deeds in proptest::collection::vec(deed(), 0..1_500)) {
            let (mut ours, mut model) = (Ascending::default(), BTreeMap::new());
            let mut greatest = 0;
            for (n, deed) in deeds.into_iter().enumerate() {
                match deed {
                    Deed::Append(more) => {
                        greatest += more;
                        ours.insert(greatest, n);
                        model.insert(greatest, n);
                    }
                    Deed::Insert(key) => {
                        greatest = greatest.max(key);
                        ours.insert(key, n);
                        model.insert(key, n);
                    }
                    Deed::Change(key) => {
                        prop_assert_eq!(ours.get_mut(key), model.get_mut(&key));
                        if let Some(value) = ours.get_mut(key) {
                            *value = n;
                            model.insert(key, n);
                        }
                    }
                    Deed::Remove(key) => prop_assert_eq!(ours.remove(key), model.remove(&key)),
                    Deed::Expire(count) => {
                        for _ in 0..count {
                            let Some((key, value)) = model.pop_first() else { break };
                            prop_assert_eq!(ours.remove(key), Some(value));
                        }
                    }
                    Deed::Look(key) => {
                        let before: Vec<_> = ours.before(key).copied().collect();
                        let expected: Vec<_> =
                            model.range(..key).rev().map(|(key, value)| (*key, *value)).collect();
                        prop_assert_eq!(before, expected);
                    }
                }
            }
            let all: Vec<_> = ours.iter().copied().collect();
            let expected: Vec<_> = model.into_iter().collect();
            prop_assert_eq!(all, expected);
        }
    }

    #[test]
    fn what_is_left_of_many_keeps_the_room_of_few() {
        let mut map = Ascending::default();
        for key in 0..64_000 {
            map.insert(key, ());
        }
        for key in (0..64_000).filter(|key| key % 64 != 0) {
            map.remove(key);
        }
        let room: usize = map.filed.values().map(Vec::capacity).sum();
        assert_eq!(map.iter().count(), 1_000);
        assert!(room <= 8 * 1_000, "{room}");
    }
}
