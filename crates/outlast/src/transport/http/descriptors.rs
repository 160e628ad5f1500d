//! File descriptors: the limit of the process, and how many of them connections can use.
//!
//! Connections never use the descriptors that are reserved for the store, for the servers behind a
//! gateway and for the rest of the process. So many connections cannot prevent that a task is
//! stored.

use std::fs::File;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard limit, which needs no privilege, and returns the
/// new limit. `None` means no limit.
///
/// Call it at the start of a server program: a process usually starts with a soft limit of 1,024.
/// Child processes inherit the limit.
pub fn raise_open_file_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!(%error, limit = limit.current, "could not raise the limit of open files");
    }
    open_file_limit()
}

/// The maximum of connections: `wanted`, or less if the limit of open files requires it.
pub(super) fn max_connections(wanted: usize) -> usize {
    match open_file_limit() {
        Some(limit) => wanted.min(without_reserve(limit)).max(1),
        None => wanted.max(1),
    }
}

/// Why no file can be opened now; `None` if one can.
pub(super) fn exhausted() -> Option<String> {
    let error = File::open("/dev/null").err()?;
    let error = error.raw_os_error().map(Errno::from_raw_os_error);
    let limit = open_file_limit().map_or("unknown".to_owned(), |limit| limit.to_string());
    match error? {
        Errno::MFILE => Some(format!("no file descriptor is free (limit: {limit})")),
        Errno::NFILE => Some("the system has no file descriptor left".to_owned()),
        // Other errors say nothing about descriptors.
        _ => None,
    }
}

fn open_file_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

fn without_reserve(limit: u64) -> usize {
    let reserved = (limit / 4).max(MIN_RESERVED_DESCRIPTORS);
    usize::try_from(limit.saturating_sub(reserved)).unwrap_or(usize::MAX)
}

/// Enough for a store, a listener, a runtime and one server behind a gateway.
const MIN_RESERVED_DESCRIPTORS: u64 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_reserved_for_the_store() {
        let limits = [20, 64, 160, 1_024, 1_048_576].map(without_reserve);
        assert_eq!(limits, [0, 24, 120, 768, 786_432]);
    }
}
