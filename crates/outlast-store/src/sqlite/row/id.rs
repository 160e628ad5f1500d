//! The number of a row: when its task expires, and when it was created.

use outlast_engine::store::Position;
use outlast_wire::Timestamp;

/// Where a task stands in its table: the minute in which it expires, then its place in the order of
/// creation. What expires together lies together, so that deleting it frees whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::sqlite) struct RowId(pub(in crate::sqlite) i64);

impl RowId {
    pub(in crate::sqlite) fn new(expires: Timestamp, position: Position) -> Self {
        let bucket = (expires.0 / MINUTE).min(LAST_BUCKET);
        Self((bucket << POSITION_BITS | position.0 & LAST_POSITION).cast_signed())
    }

    pub(in crate::sqlite) fn position(self) -> Position {
        Position(self.0.cast_unsigned() & LAST_POSITION)
    }

    /// The same task where it belongs if it expires then.
    pub(in crate::sqlite) fn expiring(self, expires: Timestamp) -> Self {
        Self::new(expires, self.position())
    }
}

/// The last place in the order of creation that a row can have.
pub(in crate::sqlite) const LAST_POSITION: u64 = (1 << POSITION_BITS) - 1;

const POSITION_BITS: u32 = 36;

/// What is left of a positive number; reached in the year 2225.
const LAST_BUCKET: u64 = (1 << (63 - POSITION_BITS)) - 1;

const MINUTE: u64 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_ordered_by_the_minute_of_expiry_and_then_by_creation() {
        let at = |minute: u64, position| RowId::new(Timestamp(minute * MINUTE), Position(position));
        assert!(at(5, LAST_POSITION) < at(6, 1));
        assert!(at(6, 1) < at(6, 2));
        assert_eq!(at(6, 9).position(), Position(9));
        assert_eq!(at(6, 9).expiring(Timestamp(8 * MINUTE + 59_999)), at(8, 9));
        let last = RowId::new(Timestamp(u64::MAX), Position(LAST_POSITION));
        assert_eq!(last, RowId(i64::MAX));
    }
}
