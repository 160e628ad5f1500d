//! Named points in the course of a write at which tests inject failures.
//!
//! A store without [`FailPoints`] skips them. With them, an operator can count commits, and a test
//! can make the disk fail or end the process at a chosen point.

/// Receives every [`FailPoint`] that a store reaches. Called on the writer thread: an
/// implementation that blocks delays all writes.
pub trait FailPoints: Send + Sync + 'static {
    /// The failure to inject at `point`, or `None` to go on.
    fn reached(&self, point: FailPoint) -> Option<DiskFailure>;
}

/// A point during a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailPoint {
    /// A batch is written in a transaction that is not committed.
    BeforeCommit,
    /// The batch is durable and not visible.
    AfterCommit,
    /// The batch is durable and visible, and its callers have no reply yet. A failure here has no
    /// effect.
    BeforeAck,
    /// A store that is down is about to be opened again.
    BeforeReopen,
}

/// How a disk fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFailure {
    /// A sync fails: it is unknown which bytes are on the disk.
    SyncError,
    /// The disk is full.
    Full,
}
