//! Sessions in which tasks were left, by URL: who comes back later finds the tasks there.
//!
//! A server that cannot tell callers apart by a token shows a task only to the session that made it. The file is readable
//! by its owner only, because the name of a session lets in whoever knows it.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use outlast::transport::http_client::{SavedSession, Session};

use crate::place;

/// The session in which something was left at `url`, or a new one.
pub(crate) fn at(url: &str) -> Session {
    let found = read().remove(url);
    found.map_or_else(Session::new, Session::again)
}

/// Takes note of what became of the session at `url`. What cannot be written is told: the task is not lost, but hard
/// to find again.
pub(crate) fn remember(url: &str, session: &Session) {
    let mut all = read();
    let changed = match session.saved().filter(|_| session.is_kept()) {
        Some(saved) => {
            all.insert(url.to_owned(), saved);
            true
        }
        None => all.remove(url).is_some(),
    };
    if changed && let Err(error) = write(&all) {
        eprintln!("outlast: the session with {url} could not be noted: {error}");
    }
}

fn read() -> BTreeMap<String, SavedSession> {
    let text = path().and_then(std::fs::read);
    // A file that is missing or broken has nothing to go on in.
    text.ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default()
}

fn write(all: &BTreeMap<String, SavedSession>) -> std::io::Result<()> {
    let path = path()?;
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&fresh)?;
    file.write_all(&serde_json::to_vec(all)?)?;
    file.sync_all()?;
    std::fs::rename(fresh, path)
}

fn path() -> std::io::Result<PathBuf> {
    Ok(place::data_folder()?.join("sessions.json"))
}
