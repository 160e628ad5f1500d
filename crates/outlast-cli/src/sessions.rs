//! Sessions in which tasks were left, by URL: a later command finds the tasks there.
//!
//! A server that cannot tell callers apart by a token shows a task only to the session that made it. A session keeps the
//! capabilities that were declared when it was opened, so a new call goes on in a stored session only if it declares the same.
//! The file is readable by its owner only, because a session id grants access to the session's tasks.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use outlast::store::private_file;
use outlast::transport::http_client::{SavedSession, Session};
use serde::{Deserialize, Serialize};

use crate::exit::Failure;
use crate::person::Person;
use crate::place;
use crate::terminal;

/// What a connection is for, which decides in which stored session it goes on.
#[derive(Clone, Copy)]
pub(crate) enum Purpose<'a> {
    /// New calls: a session with the same capabilities.
    Calls,
    /// A task: the session that made it, or one with the same capabilities.
    Task(&'a str),
    /// Whatever tasks there are: the session that was used last.
    Tasks,
}

/// Which capabilities a session was opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Declared {
    /// Every input request, also as a task.
    Tasks,
    /// Every input request.
    Everything,
    Nothing,
}

impl Declared {
    /// What a session is opened with for `person`.
    pub(crate) fn by(person: &Person) -> Self {
        match person {
            Person::There(..) => Self::Tasks,
            Person::Later => Self::Everything,
            Person::Away => Self::Nothing,
        }
    }
}

/// A stored session.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Stored {
    session: SavedSession,
    pub(crate) declared: Declared,
    /// The tasks that were left in it.
    tasks: Vec<String>,
}

/// The stored sessions at a URL, the one that was used last at the end.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct AtUrl(Vec<Stored>);

impl Stored {
    /// Goes on in it with `session`.
    pub(crate) fn resume(&self, session: &Session) {
        session.resume(self.session.clone());
    }
}

impl AtUrl {
    fn find(&self, purpose: Purpose<'_>, declares: Declared) -> Option<&Stored> {
        let same = || self.0.iter().find(|stored| stored.declared == declares);
        match purpose {
            Purpose::Calls => same(),
            Purpose::Task(id) => {
                // An id may be given by its beginning.
                let made = |stored: &&Stored| stored.tasks.iter().any(|task| task.starts_with(id));
                self.0.iter().find(made).or_else(same)
            }
            Purpose::Tasks => self.0.last(),
        }
    }

    /// Takes note of the session that was opened with `declared`: what to go on with, if it is kept, and a task left in it.
    fn note(&mut self, declared: Declared, saved: Option<SavedSession>, left: Option<&str>) {
        let at = self.0.iter().position(|stored| stored.declared == declared);
        let before = at.map(|at| self.0.remove(at));
        let Some(session) = saved else { return };
        let mut tasks = before.map(|stored| stored.tasks).unwrap_or_default();
        tasks.extend(left.map(str::to_owned));
        let too_many = tasks.len().saturating_sub(MAX_TASKS);
        tasks.drain(..too_many);
        self.0.push(Stored {
            session,
            declared,
            tasks,
        });
    }
}

/// The session to go on in at `url`, if there is one.
pub(crate) fn find(url: &str, purpose: Purpose<'_>, declares: Declared) -> Option<Stored> {
    read().get(url)?.find(purpose, declares).cloned()
}

/// Takes note of what became of a session at `url`, and of a task that was left in it. What cannot be written is reported: the
/// task is not lost, but hard to find again.
pub(crate) fn remember(url: &str, session: &Session, declared: Declared, left: Option<&str>) {
    let mut all = read();
    let saved = session.saved().filter(|_| session.is_kept());
    if saved.is_none() && !all.contains_key(url) {
        return;
    }
    let here = all.entry(url.to_owned()).or_default();
    here.note(declared, saved, left);
    if here.0.is_empty() {
        all.remove(url);
    }
    if let Err(error) = write(&all) {
        terminal::say!("outlast: cannot store the session with {url}: {error}");
    }
}

fn read() -> BTreeMap<String, AtUrl> {
    let path = path().ok();
    let text = path.and_then(|path| private_file::read_to_string(&path).ok());
    // A file that is missing, broken or of an older version has nothing to go on in.
    text.and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default()
}

fn write(all: &BTreeMap<String, AtUrl>) -> Result<(), Failure> {
    let path = path()?;
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = private_file::create(&fresh)?;
    file.write_all(&serde_json::to_vec(all).map_err(std::io::Error::from)?)?;
    file.sync_all()?;
    Ok(std::fs::rename(fresh, path)?)
}

fn path() -> Result<PathBuf, Failure> {
    Ok(place::data_folder()?.join("sessions.json"))
}

/// How many tasks of a session are remembered.
const MAX_TASKS: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(id: &str) -> SavedSession {
        let text = format!(r#"{{"id":"{id}","introduction":{{}}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    fn found(at: &AtUrl, purpose: Purpose<'_>, declares: Declared) -> Option<String> {
        let stored = at.find(purpose, declares)?;
        let session = serde_json::to_value(&stored.session).unwrap();
        session["id"].as_str().map(str::to_owned)
    }

    #[test]
    fn a_call_goes_on_only_in_a_session_with_its_capabilities() {
        let (silent, asking) = (Declared::Nothing, Declared::Everything);
        let mut at = AtUrl::default();
        at.note(silent, Some(saved("silent")), Some("t1"));
        assert_eq!(found(&at, Purpose::Calls, asking), None);
        at.note(asking, Some(saved("asking")), Some("t2"));
        let of = |purpose, declares| found(&at, purpose, declares).unwrap();
        assert_eq!(of(Purpose::Calls, silent), "silent");
        assert_eq!(of(Purpose::Calls, asking), "asking");
        // A task is found in its session, whatever the later command can answer.
        assert_eq!(of(Purpose::Task("t1"), asking), "silent");
        assert_eq!(of(Purpose::Task("t2"), silent), "asking");
        assert_eq!(of(Purpose::Task("t3"), silent), "silent");
        assert_eq!(of(Purpose::Tasks, silent), "asking");
    }

    #[test]
    fn a_session_that_is_gone_is_forgotten_and_the_other_stays() {
        let mut at = AtUrl::default();
        at.note(Declared::Nothing, Some(saved("silent")), None);
        at.note(Declared::Everything, Some(saved("asking")), None);
        at.note(Declared::Everything, None, None);
        assert_eq!(at.0.len(), 1);
        assert_eq!(at.0[0].declared, Declared::Nothing);
    }
}
