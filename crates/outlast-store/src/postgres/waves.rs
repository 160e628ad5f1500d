//! The steps of a batch as JSON for the function `write_batch`, in *waves*.
//!
//! The database executes all steps of one kind in a wave with one statement. So the steps of a wave
//! concern different tasks, request keys and records; a step that follows another one on the same
//! subject is in a later wave. The order of other steps is free: none has been acknowledged.

use std::collections::{HashMap, HashSet};

use outlast_engine::store::{RecordKey, RecordWrite};
use outlast_engine::{Owner, TaskId};
use serde::Serialize;

use super::batch::Operation;
use super::columns::{RecordColumns, StateColumns, TaskColumns, bounded, hex};

/// The steps of operations, in waves.
#[derive(Default)]
pub(super) struct Waves<'a> {
    waves: Vec<Wave<'a>>,
    /// The last wave with a step on this subject.
    last: HashMap<Subject<'a>, usize>,
    steps: usize,
}

/// What a step concerns.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Subject<'a> {
    Task(TaskId),
    Request(&'a Owner, &'a str),
    Record(&'a RecordKey),
}

#[derive(Default, Serialize)]
struct Wave<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    removes: Vec<Remove>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    replaces: Vec<Replace<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inserts: Vec<Insert<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    records: Vec<RecordStep<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    swaps: Vec<Swap<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    progress: Vec<Progress<'a>>,
}

#[derive(Serialize)]
struct Remove {
    step: usize,
    writer: i64,
    id: String,
    expected: u32,
}

#[derive(Serialize)]
struct Replace<'a> {
    step: usize,
    writer: i64,
    expected: u32,
    #[serde(flatten)]
    columns: StateColumns<'a>,
}

#[derive(Serialize)]
struct Insert<'a> {
    step: usize,
    owner_open: u32,
    owner_retained: u32,
    all_open: i64,
    all_retained: i64,
    #[serde(flatten)]
    columns: TaskColumns<'a>,
}

/// A record that is written if its step takes place.
#[derive(Serialize)]
struct RecordStep<'a> {
    step: usize,
    #[serde(flatten)]
    columns: RecordColumns<'a>,
}

#[derive(Serialize)]
struct Swap<'a> {
    step: usize,
    now: i64,
    expected: Option<String>,
    record: RecordColumns<'a>,
}

#[derive(Serialize)]
struct Progress<'a> {
    step: usize,
    node: i64,
    id: String,
    progress: &'a str,
}

impl<'a> Waves<'a> {
    /// The steps of these operations.
    pub(super) fn of(operations: impl IntoIterator<Item = &'a Operation>) -> Self {
        let mut waves = Self::default();
        for operation in operations {
            waves.add(operation);
        }
        waves
    }

    /// The number of steps. `write_batch` counts them from 0, in the order of the operations.
    pub(super) fn steps_len(&self) -> usize {
        self.steps
    }

    /// The parameter of `write_batch`.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(&self.waves).expect("numbers and texts are JSON")
    }

    fn add(&mut self, operation: &'a Operation) {
        match operation {
            Operation::Insert(insert, _) => {
                let (task, quota) = (&insert.task, &insert.quota);
                let request = task.request_key.as_deref();
                let request = request.map(|key| Subject::Request(&task.owner, key));
                let subjects = [Subject::Task(task.id)].into_iter().chain(request);
                let subjects = subjects.chain(records_of(&insert.records));
                let (step, wave) = self.place(subjects);
                wave.inserts.push(Insert {
                    step,
                    owner_open: quota.owner_open,
                    owner_retained: quota.owner_retained,
                    all_open: bounded(quota.open),
                    all_retained: bounded(quota.retained),
                    columns: TaskColumns::of(task, None),
                });
                wave.add_records(step, &insert.records);
            }
            Operation::Replace(replace, _) => {
                let subjects = [Subject::Task(replace.next.id)].into_iter();
                let (step, wave) = self.place(subjects.chain(records_of(&replace.records)));
                wave.replaces.push(Replace {
                    step,
                    writer: replace.node.0.cast_signed(),
                    expected: replace.expected.0,
                    columns: StateColumns::of(&replace.next, replace.body.as_ref()),
                });
                wave.add_records(step, &replace.records);
            }
            Operation::Remove(node, tasks, _) => {
                for (id, expected) in tasks {
                    let (step, wave) = self.place([Subject::Task(*id)].into_iter());
                    wave.removes.push(Remove {
                        step,
                        writer: node.0.cast_signed(),
                        id: id.to_string(),
                        expected: expected.0,
                    });
                }
            }
            Operation::Records(writes, _) => {
                let (step, wave) = self.place(records_of(writes));
                wave.add_records(step, writes);
            }
            Operation::Swap(swap, now, _) => {
                let (step, wave) = self.place([Subject::Record(&swap.record.key)].into_iter());
                wave.swaps.push(Swap {
                    step,
                    now: bounded(now.0),
                    expected: swap.expected.as_deref().map(hex),
                    record: RecordColumns::put(&swap.record),
                });
            }
            Operation::Progress(..) => {
                for (id, node, text) in operation.progress() {
                    let (step, wave) = self.place([Subject::Task(*id)].into_iter());
                    wave.progress.push(Progress {
                        step,
                        node: node.0.cast_signed(),
                        id: id.to_string(),
                        progress: text,
                    });
                }
            }
        }
    }

    /// The number of the next step, and the first wave in which it may be.
    fn place(
        &mut self,
        subjects: impl Iterator<Item = Subject<'a>> + Clone,
    ) -> (usize, &mut Wave<'a>) {
        let before = subjects
            .clone()
            .filter_map(|subject| self.last.get(&subject));
        let at = before.max().map_or(0, |last| last + 1);
        for subject in subjects {
            self.last.insert(subject, at);
        }
        if self.waves.len() <= at {
            self.waves.push(Wave::default());
        }
        let step = self.steps;
        self.steps += 1;
        (step, &mut self.waves[at])
    }
}

impl<'a> Wave<'a> {
    /// Of several writes of one record, the last counts.
    fn add_records(&mut self, step: usize, writes: &'a [RecordWrite]) {
        let mut keys = HashSet::new();
        for write in writes.iter().rev() {
            if keys.insert(key_of(write)) {
                self.records.push(RecordStep {
                    step,
                    columns: RecordColumns::of(write),
                });
            }
        }
    }
}

fn records_of(writes: &[RecordWrite]) -> impl Iterator<Item = Subject<'_>> + Clone {
    writes.iter().map(|write| Subject::Record(key_of(write)))
}

fn key_of(write: &RecordWrite) -> &RecordKey {
    match write {
        RecordWrite::Put(record) => &record.key,
        RecordWrite::Delete(key) => key,
    }
}
