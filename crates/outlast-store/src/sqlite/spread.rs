//! Tables whose keys need no hashing: ids are random, and rows are numbered one after the other.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table whose keys are spread by themselves. Whoever makes a key does not choose its bits.
pub(super) type SpreadMap<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

/// Passes the bits of an id through, and lets rows that follow each other lie side by side.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    /// The bits of an id.
    fn write_u64(&mut self, bits: u64) {
        self.0 = bits;
    }

    /// The number of a row. Tables choose a place by the low bits and tell its neighbours apart by the high ones.
    fn write_i64(&mut self, row: i64) {
        let row = row.cast_unsigned();
        self.0 = row ^ row << 57;
    }
}
