//! Stored sessions with unfinished tasks, by URL, so that a later command can access the tasks.
//!
//! Without a token, a server shows a task only to the session that created it. A session keeps the
//! capabilities that were declared when it was opened, so a new call resumes a stored session only
//! if it declares the same. A session id grants access to the tasks of the session, so only the
//! owner can read the file.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use outlast::transport::http_client::{HttpSession, SavedSession};
use outlast_store::private_file;
use serde::{Deserialize, Serialize};

use crate::dirs;
use crate::exit::Failure;
use crate::terminal;
use crate::terminal_host::TerminalHost;

/// The purpose of a connection, which selects the stored session to resume.
#[derive(Clone, Copy)]
pub(crate) enum Purpose<'a> {
    /// New calls: a session with the same capabilities.
    Calls,
    /// A task: the session that created it, or one with the same capabilities.
    Task(&'a str),
    /// All tasks: the session that was used last.
    Tasks,
}

/// The capabilities that a session was opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DeclaredInput {
    /// All input requests, also as tasks.
    Tasks,
    /// All input requests.
    Everything,
    Nothing,
}

impl DeclaredInput {
    /// Returns the capabilities that a client declares for `host`.
    pub(crate) fn by(host: &TerminalHost) -> Self {
        match host {
            TerminalHost::Interactive(..) => Self::Tasks,
            TerminalHost::Deferred => Self::Everything,
            TerminalHost::Absent => Self::Nothing,
        }
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct StoredSession {
    session: SavedSession,
    pub(crate) declared: DeclaredInput,
    /// The ids of unfinished tasks in the session.
    tasks: Vec<String>,
}

/// The stored sessions at a URL. The one that was used last is at the end.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct SessionsAtUrl(Vec<StoredSession>);

impl StoredSession {
    /// Resumes this session in `session`.
    pub(crate) fn resume(&self, session: &HttpSession) {
        session.resume(self.session.clone());
    }
}

impl SessionsAtUrl {
    fn find(&self, purpose: Purpose<'_>, declares: DeclaredInput) -> Option<&StoredSession> {
        let same = || self.0.iter().find(|stored| stored.declared == declares);
        match purpose {
            Purpose::Calls => same(),
            Purpose::Task(id) => {
                // An id may be shortened.
                let made =
                    |stored: &&StoredSession| stored.tasks.iter().any(|task| task.starts_with(id));
                self.0.iter().find(made).or_else(same)
            }
            Purpose::Tasks => self.0.last(),
        }
    }

    /// Stores the session that was opened with `declared`, and adds the task `unfinished` to it. If
    /// `saved` is `None`, the server has ended the session, and it is removed.
    fn record(
        &mut self,
        declared: DeclaredInput,
        saved: Option<SavedSession>,
        unfinished: Option<&str>,
    ) {
        let at = self.0.iter().position(|stored| stored.declared == declared);
        let before = at.map(|at| self.0.remove(at));
        let Some(session) = saved else { return };
        let mut tasks = before.map(|stored| stored.tasks).unwrap_or_default();
        tasks.extend(unfinished.map(str::to_owned));
        let too_many = tasks.len().saturating_sub(MAX_TASKS);
        tasks.drain(..too_many);
        self.0.push(StoredSession {
            session,
            declared,
            tasks,
        });
    }
}

/// Returns the session to resume at `url`, if there is one.
pub(crate) fn find(
    url: &str,
    purpose: Purpose<'_>,
    declares: DeclaredInput,
) -> Option<StoredSession> {
    read().get(url)?.find(purpose, declares).cloned()
}

/// Stores the state of a session at `url` and an unfinished task in it. An error is only printed:
/// the task is not lost, but hard to find again.
pub(crate) fn store(
    url: &str,
    session: &HttpSession,
    declared: DeclaredInput,
    unfinished: Option<&str>,
) {
    let mut all = read();
    let saved = session.saved().filter(|_| session.is_kept());
    if saved.is_none() && !all.contains_key(url) {
        return;
    }
    let here = all.entry(url.to_owned()).or_default();
    here.record(declared, saved, unfinished);
    if here.0.is_empty() {
        all.remove(url);
    }
    if let Err(error) = write(&all) {
        terminal::say!("outlast: cannot store the session with {url}: {error}");
    }
}

fn read() -> BTreeMap<String, SessionsAtUrl> {
    let path = path().ok();
    let text = path.and_then(|path| private_file::read_to_string(&path).ok());
    // A file that is missing, corrupt or of an older version contains no session to resume.
    text.and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default()
}

fn write(all: &BTreeMap<String, SessionsAtUrl>) -> Result<(), Failure> {
    let path = path()?;
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = private_file::create(&fresh)?;
    file.write_all(&serde_json::to_vec(all).map_err(std::io::Error::from)?)?;
    file.sync_all()?;
    Ok(std::fs::rename(fresh, path)?)
}

fn path() -> Result<PathBuf, Failure> {
    Ok(dirs::data_folder()?.join("sessions.json"))
}

/// How many task ids of a session are stored.
const MAX_TASKS: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(id: &str) -> SavedSession {
        let text = format!(r#"{{"id":"{id}","introduction":{{}}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    fn find_session(
        at: &SessionsAtUrl,
        purpose: Purpose<'_>,
        declares: DeclaredInput,
    ) -> Option<String> {
        let stored = at.find(purpose, declares)?;
        let session = serde_json::to_value(&stored.session).unwrap();
        session["id"].as_str().map(str::to_owned)
    }

    #[test]
    fn a_call_resumes_only_a_session_with_its_capabilities() {
        let (silent, asking) = (DeclaredInput::Nothing, DeclaredInput::Everything);
        let mut at = SessionsAtUrl::default();
        at.record(silent, Some(saved("silent")), Some("t1"));
        assert_eq!(find_session(&at, Purpose::Calls, asking), None);
        at.record(asking, Some(saved("asking")), Some("t2"));
        let of = |purpose, declares| find_session(&at, purpose, declares).unwrap();
        assert_eq!(of(Purpose::Calls, silent), "silent");
        assert_eq!(of(Purpose::Calls, asking), "asking");
        // A task is found in its session, whatever the later command declares.
        assert_eq!(of(Purpose::Task("t1"), asking), "silent");
        assert_eq!(of(Purpose::Task("t2"), silent), "asking");
        assert_eq!(of(Purpose::Task("t3"), silent), "silent");
        assert_eq!(of(Purpose::Tasks, silent), "asking");
    }

    #[test]
    fn an_ended_session_is_removed_and_the_other_stays() {
        let mut at = SessionsAtUrl::default();
        at.record(DeclaredInput::Nothing, Some(saved("silent")), None);
        at.record(DeclaredInput::Everything, Some(saved("asking")), None);
        at.record(DeclaredInput::Everything, None, None);
        assert_eq!(at.0.len(), 1);
        assert_eq!(at.0[0].declared, DeclaredInput::Nothing);
    }
}
