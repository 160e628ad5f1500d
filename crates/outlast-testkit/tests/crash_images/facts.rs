//! The requests to the store, its acknowledgements, and the comparison with the content of an
//! image.
//!
//! An item is a task or a record. Each of its versions has a number and a fingerprint of the whole
//! content. One worker at a time changes an item, and waits for the acknowledgement.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What a process writes to the recording, between its operations on files.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ProcessNote {
    /// The process is about to request these changes, which take place together or not at all.
    Requested {
        request: u64,
        changes: Vec<VersionChange>,
    },
    /// The store has acknowledged the request.
    Acknowledged { request: u64 },
    /// The process has opened the store and found this, and nothing else.
    Found(Versions),
}

/// The next version of an item.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct VersionChange {
    pub(crate) item: String,
    pub(crate) version: u64,
    /// `None` if the item is removed.
    pub(crate) fingerprint: Option<u64>,
}

/// The version and the fingerprint of each item in a store.
pub(crate) type Versions = BTreeMap<String, (u64, u64)>;

/// The requested and acknowledged changes of a store until one moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Facts {
    items: BTreeMap<String, Item>,
    /// Requests without an acknowledgement.
    open: BTreeMap<u64, Vec<VersionChange>>,
    /// How many processes have opened the store.
    processes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Item {
    /// The acknowledged state, then the requested states that may have taken place.
    states: Vec<ItemState>,
    /// Whether anything was acknowledged.
    is_fact: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ItemState {
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
    /// A removed item is there again.
    Returned(String),
    /// An item has a content that no request gave it.
    Changed(String),
    /// An item is there that no request created.
    Invented(String),
    /// Only some of the changes of one request took place.
    Split(String),
}

impl Facts {
    /// Records a note. Fails if a process found something that contradicts the facts.
    pub(crate) fn note(&mut self, note: &ProcessNote) -> Result<(), Vec<Contradiction>> {
        match note {
            ProcessNote::Requested { request, changes } => {
                for change in changes {
                    let item = self.items.entry(change.item.clone()).or_default();
                    item.states.push(ItemState {
                        version: change.version,
                        fingerprint: change.fingerprint,
                    });
                }
                self.open.insert(*request, changes.clone());
            }
            ProcessNote::Acknowledged { request } => {
                for change in self.open.remove(request).unwrap_or_default() {
                    let item = self.items.entry(change.item).or_default();
                    item.states.retain(|state| state.version >= change.version);
                    item.is_fact = true;
                }
            }
            ProcessNote::Found(contents) => {
                let broken = self.contradictions(contents);
                if !broken.is_empty() {
                    return Err(broken);
                }
                // The store acknowledged these: from here on they are facts.
                for (name, item) in &mut self.items {
                    let found = item.matching(contents.get(name));
                    item.states = found.cloned().into_iter().collect();
                    item.is_fact = true;
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
        self.items.values().filter(|item| item.is_fact).count()
    }

    /// Everything in which `contents` contradicts the facts.
    pub(crate) fn contradictions(&self, contents: &Versions) -> Vec<Contradiction> {
        let mut broken = Vec::new();
        for (name, item) in &self.items {
            let found = contents.get(name);
            if item.matching(found).is_some() {
                continue;
            }
            let text = format!("{name}: found {found:?}, expected one of {:?}", item.states);
            let oldest = item.states.first().map_or(0, |state| state.version);
            broken.push(match found {
                None => Contradiction::Lost(text),
                Some(_) if item.states.iter().all(|state| state.fingerprint.is_none()) => {
                    Contradiction::Returned(text)
                }
                Some((version, _)) if *version < oldest => Contradiction::Lost(text),
                Some(_) => Contradiction::Changed(text),
            });
        }
        for (name, found) in contents {
            if !self.items.contains_key(name) {
                broken.push(Contradiction::Invented(format!("{name}: {found:?}")));
            }
        }
        for (request, changes) in &self.open {
            let took_place = |change: &VersionChange| {
                let item = self.items.get(&change.item)?;
                let state = item.matching(contents.get(&change.item))?;
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

impl Item {
    /// The state that was found, if it is one of those that are possible.
    fn matching(&self, found: Option<&(u64, u64)>) -> Option<&ItemState> {
        let found = found.map(|(_, fingerprint)| *fingerprint);
        let mut states = self.states.iter().rev();
        states.find(|state| state.fingerprint == found)
    }
}

impl Default for Item {
    /// An item that was never requested.
    fn default() -> Self {
        Self {
            states: vec![ItemState {
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
