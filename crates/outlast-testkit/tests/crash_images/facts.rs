//! What the store was asked for, what it acknowledged, and the comparison with what an image holds.
//!
//! A thing is a task or a record. It has versions; each is known by its number and a fingerprint of
//! its whole content. One worker at a time changes a thing, and waits for the acknowledgement.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What a process says in the record, between its operations on files.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ProcessNote {
    /// The store is about to be asked for these changes, which take place together or not at all.
    Requested {
        request: u64,
        changes: Vec<VersionChange>,
    },
    /// The store has acknowledged the request.
    Acknowledged { request: u64 },
    /// The process has opened the store and found this, and nothing else.
    Found(Versions),
}

/// The next version of a thing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct VersionChange {
    pub(crate) thing: String,
    pub(crate) version: u64,
    /// The fingerprint, or nothing if the thing is removed.
    pub(crate) fingerprint: Option<u64>,
}

/// Everything in a store: version and fingerprint of each thing.
pub(crate) type Versions = BTreeMap<String, (u64, u64)>;

/// What is known of a store from the outside at one moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Facts {
    things: BTreeMap<String, Thing>,
    /// Requests without an acknowledgement.
    open: BTreeMap<u64, Vec<VersionChange>>,
    /// How many processes have opened the store.
    processes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Thing {
    /// The acknowledged state, then those that were asked for and may have taken place.
    states: Vec<ThingState>,
    /// Whether anything was acknowledged.
    is_fact: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ThingState {
    version: u64,
    fingerprint: Option<u64>,
}

/// How an image contradicts the facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Contradiction {
    /// The store does not open, does not answer, or cannot be written.
    Refused(String),
    /// Something panicked.
    Panicked(String),
    /// An acknowledged version is not there.
    Lost(String),
    /// A removed thing is there again.
    Returned(String),
    /// A thing has a content that no request gave it.
    Changed(String),
    /// A thing is there that no request made.
    Invented(String),
    /// Of the changes of one request some took place.
    Split(String),
}

impl Facts {
    /// Records a note. Fails if a process found something that contradicts the facts.
    pub(crate) fn note(&mut self, note: &ProcessNote) -> Result<(), Vec<Contradiction>> {
        match note {
            ProcessNote::Requested { request, changes } => {
                for change in changes {
                    let thing = self.things.entry(change.thing.clone()).or_default();
                    thing.states.push(ThingState {
                        version: change.version,
                        fingerprint: change.fingerprint,
                    });
                }
                self.open.insert(*request, changes.clone());
            }
            ProcessNote::Acknowledged { request } => {
                for change in self.open.remove(request).unwrap_or_default() {
                    let thing = self.things.entry(change.thing).or_default();
                    thing.states.retain(|state| state.version >= change.version);
                    thing.is_fact = true;
                }
            }
            ProcessNote::Found(contents) => {
                let broken = self.contradictions(contents);
                if !broken.is_empty() {
                    return Err(broken);
                }
                // The store acknowledged these: from here on they are facts.
                for (name, thing) in &mut self.things {
                    let found = thing.matching(contents.get(name));
                    thing.states = found.cloned().into_iter().collect();
                    thing.is_fact = true;
                }
                self.open.clear();
                self.processes += 1;
            }
        }
        Ok(())
    }

    /// How many processes have opened the store.
    pub(crate) fn processes(&self) -> u64 {
        self.processes
    }

    /// How many acknowledged facts there are.
    pub(crate) fn count(&self) -> usize {
        self.things.values().filter(|thing| thing.is_fact).count()
    }

    /// Everything in which `contents` contradicts the facts.
    pub(crate) fn contradictions(&self, contents: &Versions) -> Vec<Contradiction> {
        let mut broken = Vec::new();
        for (name, thing) in &self.things {
            let found = contents.get(name);
            if thing.matching(found).is_some() {
                continue;
            }
            let text = format!(
                "{name}: found {found:?}, expected one of {:?}",
                thing.states
            );
            let oldest = thing.states.first().map_or(0, |state| state.version);
            broken.push(match found {
                None => Contradiction::Lost(text),
                Some(_) if thing.states.iter().all(|state| state.fingerprint.is_none()) => {
                    Contradiction::Returned(text)
                }
                Some((version, _)) if *version < oldest => Contradiction::Lost(text),
                Some(_) => Contradiction::Changed(text),
            });
        }
        for (name, found) in contents {
            if !self.things.contains_key(name) {
                broken.push(Contradiction::Invented(format!("{name}: {found:?}")));
            }
        }
        for (request, changes) in &self.open {
            let took_place = |change: &VersionChange| {
                let thing = self.things.get(&change.thing)?;
                let state = thing.matching(contents.get(&change.thing))?;
                Some(state.version >= change.version)
            };
            let mut each = changes.iter().filter_map(took_place);
            let first = each.next();
            if each.any(|other| Some(other) != first) {
                broken.push(Contradiction::Split(format!(
                    "request {request}: {changes:?}"
                )));
            }
        }
        broken
    }
}

impl Thing {
    /// The state that was found, if it is one of those that are possible.
    fn matching(&self, found: Option<&(u64, u64)>) -> Option<&ThingState> {
        let found = found.map(|(_, fingerprint)| *fingerprint);
        let mut states = self.states.iter().rev();
        states.find(|state| state.fingerprint == found)
    }
}

impl Default for Thing {
    /// A thing that was never requested.
    fn default() -> Self {
        Self {
            states: vec![ThingState {
                version: 0,
                fingerprint: None,
            }],
            is_fact: false,
        }
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
