//! How a store file is opened.

use std::fmt;
use std::sync::Arc;

use super::probe::{Moment, Probe, Verdict};

/// How a store file is opened.
#[derive(Clone)]
pub struct SqliteOptions {
    /// What a confirmed write survives.
    pub durability: Durability,
    /// How large the file may become. New tasks are refused a little before, so that those which
    /// exist can be finished.
    pub max_bytes: Option<u64>,
    /// How many bytes of bodies are kept in memory after they were written or read.
    pub recent_bytes: usize,
    /// How many connections read bodies, at least one.
    pub readers: usize,
    /// Who is asked at the points where a disk may fail.
    pub probe: Option<Arc<dyn Probe>>,
}

/// What a confirmed write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The loss of power: every commit waits for the disk.
    #[default]
    Power,
    /// The death of the process, not of the machine: a single caller is about seven times faster.
    Process,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Power,
            max_bytes: None,
            recent_bytes: 8 << 20,
            readers: 2,
            probe: None,
        }
    }
}

impl SqliteOptions {
    /// Asks whoever wants to be asked.
    pub(super) fn ask(&self, moment: Moment) -> Verdict {
        match &self.probe {
            None => Verdict::Go,
            Some(probe) => probe.at(moment),
        }
    }
}

impl fmt::Debug for SqliteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteOptions")
            .field("durability", &self.durability)
            .field("max_bytes", &self.max_bytes)
            .field("recent_bytes", &self.recent_bytes)
            .field("readers", &self.readers)
            .field("probe", &self.probe.is_some())
            .finish()
    }
}
