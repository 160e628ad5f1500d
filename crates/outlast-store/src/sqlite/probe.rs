//! Named points in the life of a write at which somebody may look on, or let it fail.
//!
//! A store without a probe asks nobody. With one, operators can count commits and tests can make
//! the disk fail, or end the process, exactly where it hurts.

/// Is asked at every [`Moment`]. Called on the threads that write: whoever waits here holds them up.
pub trait Probe: Send + Sync + 'static {
    /// Says how `moment` goes.
    fn at(&self, moment: Moment) -> Verdict;
}

/// A point in the life of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// A batch is about to be written into the ledger.
    BeforeCommit,
    /// The batch is durable; nobody can see it.
    AfterCommit,
    /// The batch is durable and visible; nobody has been told. A failure here changes nothing.
    BeforeAck,
    /// Tasks that are durable and visible have been written into a transaction of the tables that is not committed.
    BeforeFill,
    /// The tables have them.
    AfterFill,
    /// A store that is down is about to be opened again.
    BeforeReopen,
}

/// How a [`Moment`] goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As if nobody had been asked.
    Go,
    /// As if the disk had failed.
    Fail(FailAs),
}

/// How a disk fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailAs {
    /// It does not confirm that the bytes are on it.
    FsyncError,
    /// It has no room.
    DiskFull,
}
