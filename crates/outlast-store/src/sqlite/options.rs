//! The options for opening a store file.

use std::fmt;
use std::sync::Arc;

use super::failpoint::{DiskFailure, FailPoint, FailPoints};

/// The options for opening a store file.
#[derive(Clone)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// The maximum size of the file. New tasks are refused a little earlier, so that running tasks
    /// can finish.
    pub max_bytes: Option<u64>,
    /// How many bytes of bodies are cached after they were written or read.
    pub body_cache_bytes: usize,
    /// The number of connections that read bodies, at least one.
    pub readers: usize,
    /// Where tests inject disk failures.
    pub fail_points: Option<Arc<dyn FailPoints>>,
}

outlast_engine::option_setters! { SqliteOptions:
    set with_durability(durability: Durability);
    some with_max_bytes(max_bytes: u64);
    set with_body_cache_bytes(body_cache_bytes: usize);
    set with_readers(readers: usize);
    some with_fail_points(fail_points: Arc<dyn FailPoints>);
}

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Power loss: every commit waits for the disk.
    #[default]
    Power,
    /// The end of the process, but not a power loss. A single caller is about seven times faster.
    Process,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Power,
            max_bytes: None,
            body_cache_bytes: 8 << 20,
            readers: 2,
            fail_points: None,
        }
    }
}

impl SqliteOptions {
    /// Returns the failure to inject at `point`.
    pub(super) fn failure_at(&self, point: FailPoint) -> Option<DiskFailure> {
        self.fail_points.as_ref()?.reached(point)
    }
}

impl fmt::Debug for SqliteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteOptions")
            .field("durability", &self.durability)
            .field("max_bytes", &self.max_bytes)
            .field("body_cache_bytes", &self.body_cache_bytes)
            .field("readers", &self.readers)
            .field("fail_points", &self.fail_points.is_some())
            .finish()
    }
}
