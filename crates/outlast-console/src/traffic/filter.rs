//! Which messages are shown.

use super::entry::TrafficEntry;

/// Which messages are shown. An empty part accepts every message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrafficFilter {
    /// The beginning of the method.
    pub method: String,
    /// The name of the server.
    pub server: String,
    /// The beginning of the task id.
    pub task: String,
}

impl TrafficFilter {
    /// Whether `entry` is shown.
    pub fn accepts(&self, entry: &TrafficEntry) -> bool {
        let begins = |found: Option<&str>, wanted: &str| {
            wanted.is_empty() || found.is_some_and(|found| found.starts_with(wanted))
        };
        begins(entry.method.as_deref(), self.method.trim())
            && (self.server.is_empty() || *entry.connection.server == *self.server)
            && begins(entry.task.as_deref(), self.task.trim())
    }

    /// Whether every message is shown.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
