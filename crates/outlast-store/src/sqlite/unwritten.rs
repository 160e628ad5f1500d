//! What the ledger has and the tables do not: the newest version of every task that changed of late, and of records.
//!
//! The writer adds to it, the filler takes from it. What the filler is about to write stays here until the tables have
//! it, so that nobody ever finds a promised thing in neither place.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outlast_engine::store::{Record, RecordKey, RecordWrite};
use outlast_engine::{Task, TaskId};
use outlast_wire::Timestamp;

use super::row::{self, BadRow, Columns, RowId};
use super::spread::SpreadMap;

/// What the tables have yet to be told, shared by the writer, the filler and readers.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// What has come since the filler last took something.
    fresh: Changes,
    /// What the filler writes now.
    filling: Option<Arc<Changes>>,
}

/// Changes up to one place in the ledger, the last of every task and record.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) tasks: SpreadMap<TaskId, Change>,
    /// `None` for those that are deleted.
    pub(super) records: HashMap<RecordKey, Option<Record>>,
    /// Records that have expired by then shall go.
    pub(super) forget: Option<Timestamp>,
    /// The last frame of the ledger that is in here.
    pub(super) upto: u64,
    /// No task has had this place in the order of creation, nor a later one.
    pub(super) next_position: u64,
    /// What it is in the ledger; about what it takes in the tables.
    pub(super) bytes: usize,
}

/// What the tables have yet to be told of a task.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// How the tables have it, if they do.
    pub(super) from: Option<Stood>,
    /// Where it belongs.
    pub(super) row: RowId,
    /// How it is; `None` if it is gone.
    pub(super) image: Option<Image>,
}

/// How the tables have a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stood {
    pub(super) row: RowId,
    pub(super) had_ended: bool,
}

/// A task as the ledger has it: blocks of columns in its frames.
#[derive(Clone, Debug)]
pub(super) struct Image {
    /// What never changes; without it, the tables have it.
    pub(super) request: Option<Block>,
    /// What may change.
    pub(super) course: Block,
    /// Whether the course brings the body.
    pub(super) has_body: bool,
    /// An earlier course that brought it; without either, the tables may have one.
    pub(super) body: Option<Block>,
    pub(super) has_ended: bool,
}

/// A block of columns in a frame.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) frame: Arc<Vec<u8>>,
    pub(super) at: usize,
}

impl Block {
    fn add_to<'a>(&'a self, columns: &mut Columns<'a>) {
        columns
            .add(&self.frame[self.at..])
            .expect("a block that we wrote or have read");
    }
}

impl Change {
    /// Adds what became of the task after this. How the tables have it stays as it was.
    fn become_of(&mut self, next: Self) {
        self.row = next.row;
        let before = self.image.take();
        self.image = match (before, next.image) {
            (Some(before), Some(mut image)) => {
                image.request = image.request.or(before.request);
                if !image.has_body {
                    let brought = before.has_body.then_some(before.course);
                    image.body = image.body.or(brought).or(before.body);
                }
                Some(image)
            }
            (_, image) => image,
        };
    }
}

impl Image {
    /// All columns that the ledger has.
    pub(super) fn columns(&self) -> Columns<'_> {
        let mut columns = Columns::none();
        if let Some(body) = &self.body {
            body.add_to(&mut columns);
            // The rest of an earlier course is over, also what this one does not have.
            columns.keep_body();
        }
        for block in self.request.iter().chain([&self.course]) {
            block.add_to(&mut columns);
        }
        columns
    }

    /// The task, given how the tables have it where they have a part of it.
    pub(super) fn task(&self, in_file: Option<&Task>) -> Result<Option<Task>, BadRow> {
        let columns = self.columns();
        match (&self.request, in_file) {
            (Some(_), _) => row::task(&columns).map(Some),
            (None, Some(before)) => row::changed(before, &columns).map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// What the filler should hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grown {
    /// There is something where there was nothing.
    Begun,
    /// There is so much that it should not wait.
    Much,
    /// Nothing new.
    More,
}

impl Changes {
    /// Notes what became of a task.
    pub(super) fn note(&mut self, id: TaskId, change: Change) {
        self.next_position = self.next_position.max(change.row.position().0 + 1);
        match self.tasks.get_mut(&id) {
            None => {
                // One that the tables never saw and that is gone leaves nothing.
                if change.from.is_some() || change.image.is_some() {
                    self.tasks.insert(id, change);
                }
            }
            Some(known) if known.from.is_none() && change.image.is_none() => {
                self.tasks.remove(&id);
            }
            Some(known) => known.become_of(change),
        }
    }

    /// Notes what became of a record.
    pub(super) fn note_record(&mut self, write: RecordWrite) {
        let (key, record) = match write {
            RecordWrite::Put(record) => (record.key.clone(), Some(record)),
            RecordWrite::Delete(key) => (key, None),
        };
        self.records.insert(key, record);
    }

    /// Whether there is anything that the tables need.
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.records.is_empty() && self.forget.is_none() && self.upto == 0
    }

    fn is_much(&self) -> bool {
        self.tasks.len() >= MANY || self.bytes >= MUCH
    }

    /// How the tables will have a task that is in here; `None` if it is not in here.
    fn standing(&self, id: TaskId) -> Option<Option<Stood>> {
        let change = self.tasks.get(&id)?;
        Some(change.image.as_ref().map(|image| Stood {
            row: change.row,
            had_ended: image.has_ended,
        }))
    }
}

/// What a text takes in the tables, whose pages it does not fill.
pub(super) fn room_for(text: usize) -> usize {
    text + text / 8
}

impl Unwritten {
    /// With what a ledger held when it was found.
    pub(super) fn found(changes: Changes) -> Self {
        let fresh = changes;
        let state = Mutex::new(State {
            fresh,
            filling: None,
        });
        Self {
            state,
            filled: Condvar::new(),
        }
    }

    /// Adds the changes that `add` notes.
    pub(super) fn add(&self, add: impl FnOnce(&mut Adding<'_>)) -> Grown {
        let mut state = self.state();
        let State { fresh, filling } = &mut *state;
        let (was_empty, was_much) = (fresh.is_empty(), fresh.is_much());
        let filling = filling.as_deref();
        add(&mut Adding { fresh, filling });
        match state.fresh.is_much() && !was_much {
            true => Grown::Much,
            false if was_empty && !state.fresh.is_empty() => Grown::Begun,
            false => Grown::More,
        }
    }

    /// Hands out what there is to be written; the same again until it is [`Unwritten::filled`].
    pub(super) fn take(&self) -> Option<Arc<Changes>> {
        let mut state = self.state();
        if state.filling.is_none() && !state.fresh.is_empty() {
            let next = Changes {
                tasks: SpreadMap::with_capacity_and_hasher(
                    state.fresh.tasks.len(),
                    Default::default(),
                ),
                ..Changes::default()
            };
            state.filling = Some(Arc::new(std::mem::replace(&mut state.fresh, next)));
        }
        state.filling.clone()
    }

    /// Notes that the tables have what was handed out.
    pub(super) fn filled(&self) {
        let filled = self.state().filling.take();
        self.filled.notify_all();
        // Thousands of tasks are dropped here, while nobody waits for the lock.
        drop(filled);
    }

    /// What is known of a task that the tables lack.
    pub(super) fn change(&self, id: TaskId) -> Option<Change> {
        let state = self.state();
        let [filling, fresh] = [state.filling.as_deref(), Some(&state.fresh)]
            .map(|changes| changes.and_then(|changes| changes.tasks.get(&id)).cloned());
        match (filling, fresh) {
            (Some(mut change), Some(next)) => {
                change.become_of(next);
                Some(change)
            }
            (filling, fresh) => fresh.or(filling),
        }
    }

    /// Whether something has come since the filler last took something.
    pub(super) fn waits(&self) -> bool {
        !self.state().fresh.is_empty()
    }

    /// The rows of tasks that are gone.
    pub(super) fn removals(&self) -> Vec<RowId> {
        let state = self.state();
        let changes = state.each().flat_map(|changes| changes.tasks.values());
        let gone = changes.filter(|change| change.image.is_none());
        gone.filter_map(|change| Some(change.from?.row)).collect()
    }

    /// What is known of a record that the tables lack; `Some(None)` if it is deleted.
    pub(super) fn record(&self, key: &RecordKey) -> Option<Option<Record>> {
        let state = self.state();
        state
            .each()
            .find_map(|changes| changes.records.get(key).cloned())
    }

    /// All records of a kind that the tables lack, deleted ones among them.
    pub(super) fn records(&self, kind: &str) -> HashMap<RecordKey, Option<Record>> {
        let state = self.state();
        let mut all = HashMap::new();
        for changes in state.each() {
            for (key, record) in changes.records.iter().filter(|(key, _)| &*key.kind == kind) {
                all.entry(key.clone()).or_insert_with(|| record.clone());
            }
        }
        all
    }

    /// When the first of the records that the tables lack expires.
    pub(super) fn next_expiry(&self) -> Option<Timestamp> {
        let state = self.state();
        let records = state.each().flat_map(|changes| changes.records.values());
        records.flatten().filter_map(|record| record.expires).min()
    }

    /// About what it all takes in the tables.
    pub(super) fn bytes(&self) -> usize {
        self.state().bytes()
    }

    /// Waits until there is less than `limit` bytes of it, for a while; says whether there is.
    pub(super) fn sinks_below(&self, limit: usize, patience: Duration) -> bool {
        let state = self.state();
        if state.bytes() < limit {
            return true;
        }
        let waited = self
            .filled
            .wait_timeout_while(state, patience, |state| state.bytes() >= limit);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.bytes() < limit
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in a critical section panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The newest first.
    fn each(&self) -> impl Iterator<Item = &Changes> {
        std::iter::once(&self.fresh).chain(self.filling.as_deref())
    }

    fn bytes(&self) -> usize {
        self.each().map(|changes| changes.bytes).sum()
    }
}

/// Changes, seen by whoever adds to them.
pub(super) struct Adding<'a> {
    fresh: &'a mut Changes,
    filling: Option<&'a Changes>,
}

impl Adding<'_> {
    /// Notes what became of a task. `change` says how the tables would have it if they had everything until then.
    pub(super) fn task(&mut self, id: TaskId, mut change: Change) {
        if let Some(standing) = self.filling.and_then(|filling| filling.standing(id)) {
            change.from = standing;
        }
        self.fresh.note(id, change);
    }

    pub(super) fn record(&mut self, write: RecordWrite) {
        self.fresh.note_record(write);
    }

    pub(super) fn forget(&mut self, now: Timestamp) {
        self.fresh.forget = self.fresh.forget.max(Some(now));
    }

    /// Says that everything up to this frame of the ledger has been added, and about how many bytes that was.
    pub(super) fn upto(&mut self, frame: u64, bytes: usize) {
        self.fresh.upto = frame;
        self.fresh.bytes += bytes;
    }
}

/// What a row takes besides its large texts.
pub(super) const OVERHEAD: usize = 400;

/// So many tasks are written together.
const MANY: usize = 1_024;

/// So many bytes are not kept waiting.
const MUCH: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use outlast_engine::laws::given;

    use super::*;
    use crate::sqlite::ledger::Entries;

    /// A task that changes after its end keeps the body and nothing else of what was before.
    #[test]
    fn a_later_course_takes_the_place_of_one_that_brought_the_body() {
        let plain = given::task(1);
        let said = given::change(&plain, given::status(&plain, "on"), given::CREATED).next;
        let from = Stood {
            row: RowId(7),
            had_ended: false,
        };
        let mut changes = Changes::default();
        for (task, body) in [(&*said, Some(given::raw("1"))), (&plain, None)] {
            let (mut frame, mut scratch) = (Vec::new(), Vec::new());
            let mut entries = Entries::new(&mut frame, &mut scratch);
            let blocks = entries.changed(from, from.row, task, body.as_ref());
            let image = Some(blocks.image(&Arc::new(frame)));
            let change = Change {
                from: Some(from),
                row: from.row,
                image,
            };
            changes.note(plain.id, change);
        }
        let image = changes.tasks[&plain.id].image.as_ref();
        let image = image.expect("it is there");
        let task = image.task(Some(&plain)).expect("it is a task");
        assert_eq!(task, Some(plain));
        let body = row::body(&image.columns()).expect("it is JSON");
        assert_eq!(body, Some(given::raw("1")));
    }
}
