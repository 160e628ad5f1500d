//! Tables whose keys need no hashing: ids are random, and rows are numbered in sequence.

use outlast_engine::IdMap;

/// A table by task id or by row.
pub(super) type SpreadMap<K, V> = IdMap<V, K>;
