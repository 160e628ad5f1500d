//! After the ledger has it: what was written becomes visible, then everybody is told.

use outlast_engine::index::Index;
use outlast_engine::store::Inserted;
use outlast_engine::{Committed, StoreError, Task, TaskId};

use super::op::{Op, Removal, Reply};
use super::plan::{Plan, Verdict};
use crate::sqlite::filler::Filler;
use crate::sqlite::row::RowId;

/// What is to be said to whom.
#[derive(Debug, Default)]
pub(super) struct Published {
    pub(super) answers: Vec<Answer>,
    /// Removals that are not through.
    pub(super) unfinished: Vec<Removal>,
}

/// An answer to one caller.
#[derive(Debug)]
pub(super) enum Answer {
    Insert(Reply<Inserted>, Result<Inserted, StoreError>),
    Replace(Reply<Committed<Task>>, Result<Committed<Task>, StoreError>),
    Remove(Reply<Vec<TaskId>>, Vec<TaskId>),
    Records(Reply<()>),
    /// When the tables have everything.
    Settled(Reply<()>),
    Refused(Op, StoreError),
}

/// Makes a batch visible that is durable.
pub(super) fn publish(ops: Vec<Op>, plan: Plan, index: &Index<RowId>) -> Published {
    let mut published = Published::default();
    let answers = &mut published.answers;
    answers.reserve(ops.len());
    let changes = &plan.changes;
    for (op, verdict) in ops.into_iter().zip(plan.verdicts) {
        match (op, verdict) {
            (Op::Insert(insert, reply), Verdict::Insert(number)) => {
                let row = changes[number].row;
                let task = index.admit(insert.task, row.position(), row);
                answers.push(Answer::Insert(reply, Ok(Inserted::New(task))));
            }
            (Op::Insert(_, reply), Verdict::Known(id)) => {
                answers.push(Answer::Insert(reply, Ok(Inserted::Known(id))));
            }
            (Op::Replace(replace, reply), Verdict::Replace(number)) => {
                let row = changes[number].row;
                let replaced =
                    index.replace(replace.node, replace.expected, replace.next, |_, _| row);
                answers.push(Answer::Replace(
                    reply,
                    replaced.map(|replaced| replaced.now),
                ));
            }
            (Op::Remove(mut removal), Verdict::Remove { seen, gone }) => {
                removal.left.drain(..seen);
                for (id, revision) in gone {
                    index.remove(removal.node, id, revision);
                    removal.removed.push(id);
                }
                if removal.left.is_empty() {
                    answers.push(Answer::Remove(removal.reply, removal.removed));
                } else {
                    published.unfinished.push(removal);
                }
            }
            (Op::Records(_, reply), Verdict::Done) => answers.push(Answer::Records(reply)),
            (Op::Settle(reply), Verdict::Done) => answers.push(Answer::Settled(reply)),
            (op, Verdict::Refused(error)) => answers.push(Answer::Refused(op, error)),
            // Nobody waits for expired records to go, and no other pair is ever planned.
            (_, _) => {}
        }
    }
    published
}

impl Answer {
    /// Tells the caller, if it is still there.
    pub(super) fn send(self, filler: &Filler) {
        match self {
            Self::Insert(reply, answer) => drop(reply.send(answer)),
            Self::Replace(reply, answer) => drop(reply.send(answer)),
            Self::Remove(reply, gone) => drop(reply.send(Ok(gone))),
            Self::Records(reply) => drop(reply.send(Ok(()))),
            Self::Settled(reply) => {
                let filled = filler.flush();
                drop(reply.send(filled.map_err(|fault| fault.error())));
            }
            Self::Refused(op, error) => op.refuse(error),
        }
    }
}
