//! The row number of a task: its minute of expiry and its creation number.

use outlast_engine::store::Position;
use outlast_wire::Timestamp;

/// The row number: the minute of expiry in the high bits, then the creation number. Tasks that
/// expire together are next to each other, so that deleting them frees whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::sqlite) struct RowId(pub(in crate::sqlite) i64);

impl RowId {
    pub(in crate::sqlite) fn new(expires: Timestamp, position: Position) -> Self {
        let bucket = (expires.0 / MINUTE_MS).min(LAST_BUCKET);
        Self((bucket << POSITION_BITS | position.0 & LAST_POSITION).cast_signed())
    }

    pub(in crate::sqlite) fn position(self) -> Position {
        Position(self.0.cast_unsigned() & LAST_POSITION)
    }

    /// The row of the same task if it expires at that time.
    pub(in crate::sqlite) fn expiring(self, expires: Timestamp) -> Self {
        Self::new(expires, self.position())
    }
}

/// The largest creation number that fits into a row number.
pub(in crate::sqlite) const LAST_POSITION: u64 = (1 << POSITION_BITS) - 1;

const POSITION_BITS: u32 = 36;

/// The remaining bits of a positive number. They are exhausted in the year 2225.
const LAST_BUCKET: u64 = (1 << (63 - POSITION_BITS)) - 1;

const MINUTE_MS: u64 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_ordered_by_expiry_minute_then_creation() {
        let at =
            |minute: u64, position| RowId::new(Timestamp(minute * MINUTE_MS), Position(position));
        assert!(at(5, LAST_POSITION) < at(6, 1));
        assert!(at(6, 1) < at(6, 2));
        assert_eq!(at(6, 9).position(), Position(9));
        assert_eq!(
            at(6, 9).expiring(Timestamp(8 * MINUTE_MS + 59_999)),
            at(8, 9)
        );
        let last = RowId::new(Timestamp(u64::MAX), Position(LAST_POSITION));
        assert_eq!(last, RowId(i64::MAX));
    }
}
