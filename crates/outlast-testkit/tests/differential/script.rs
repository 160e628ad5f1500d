//! Random scripts of operations on a store. Few ids are used, so that operations collide.

use outlast_engine::Outcome;
use outlast_engine::laws::fixtures::{raw, result};
use outlast_engine::task::TtlPolicy;
use outlast_engine::transition::Takeover;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// The number of tasks, owners and nodes, and of request, input and record keys.
pub(crate) const TASKS: u8 = 8;
pub(crate) const OWNERS: u8 = 3;
pub(crate) const NODES: u8 = 3;
pub(crate) const KEYS: u8 = 4;

/// One operation.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Insert(TaskTemplate),
    /// A command is applied to a task, and the step stored.
    Change {
        task: u8,
        template: CommandTemplate,
        /// Whether the step is computed from the newest revision.
        revision: RevisionChoice,
        /// How far the clock of the caller is off.
        skew: i64,
        records: Vec<RecordChange>,
    },
    Remove(Vec<(u8, RevisionChoice)>),
    /// A read of a task in the scope of an owner, or in the scope of all tasks.
    Get {
        task: u8,
        owner: Option<u8>,
    },
    /// All pages of an owner's list.
    List {
        owner: u8,
        limit: usize,
    },
    /// The clock advances, and all due tasks are read.
    Due {
        after: u64,
    },
    /// The number of due tasks up to a limit.
    DueCount {
        limit: usize,
    },
    Usage(u8),
    Write(Vec<RecordChange>),
    /// A record is written if the expected text is stored, or none.
    Swap {
        expected: Option<u8>,
        kind: u8,
        key: u8,
        ttl_ms: Option<u64>,
        text: u8,
    },
    Read(u8, u8),
    ReadAll(u8, Option<u8>),
    Join(u8),
    Leave(u8),
    Claim(u8),
    /// The store is closed and opened again.
    Reopen,
}

/// A task to be added.
#[derive(Clone, Debug)]
pub(crate) struct TaskTemplate {
    pub(crate) task: u8,
    pub(crate) owner: u8,
    pub(crate) key: Option<u8>,
    pub(crate) executor: u8,
    pub(crate) ttl: u64,
    pub(crate) ttl_policy: TtlPolicy,
    pub(crate) run_limit: Option<u64>,
    /// The quota of running tasks, of tasks, of all running tasks, of all tasks.
    pub(crate) quota: (u32, u32, u64, u64),
    pub(crate) records: Vec<RecordChange>,
}

/// The revision that a caller names in a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RevisionChoice {
    Newest,
    First,
}

/// A command without the parts that depend on the task.
#[derive(Clone, Debug)]
pub(crate) enum CommandTemplate {
    RequestInput(u8),
    WithdrawInput(u8),
    ProvideInput(u8),
    ConfirmInput(u8),
    Status(u8),
    SaveResumeState,
    CancelNow,
    RequestCancel(u64),
    End(Outcome),
    Due,
    Extend(u64),
    Claim(u8, Takeover),
}

/// A change to a record.
#[derive(Clone, Debug)]
pub(crate) enum RecordChange {
    Put {
        kind: u8,
        key: u8,
        owner: Option<u8>,
        ttl_ms: Option<u64>,
        text: u8,
    },
    Delete(u8, u8),
}

pub(crate) fn script() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..80)
}

fn step() -> impl Strategy<Value = Step> {
    let task = || 0..TASKS;
    let change = (
        task(),
        template(),
        revision(),
        -500i64..500,
        record_changes(),
    );
    prop_oneof![
        8 => task_template().prop_map(Step::Insert),
        16 => change.prop_map(|(task, template, revision, skew, records)| Step::Change {
            task, template, revision, skew, records,
        }),
        3 => vec((task(), revision()), 0..3).prop_map(Step::Remove),
        4 => (task(), option::of(0..OWNERS)).prop_map(|(task, owner)| Step::Get { task, owner }),
        3 => (0..OWNERS, 1usize..4).prop_map(|(owner, limit)| Step::List { owner, limit }),
        3 => (0u64..4_000).prop_map(|after| Step::Due { after }),
        1 => (0usize..4).prop_map(|limit| Step::DueCount { limit }),
        2 => (0..OWNERS).prop_map(Step::Usage),
        2 => record_changes().prop_map(Step::Write),
        2 => swap(),
        2 => (0..2u8, 0..KEYS).prop_map(|(kind, key)| Step::Read(kind, key)),
        2 => (0..2u8, option::of(0..OWNERS)).prop_map(|(kind, owner)| Step::ReadAll(kind, owner)),
        2 => (0..NODES).prop_map(Step::Join),
        1 => (0..NODES).prop_map(Step::Leave),
        3 => (0..NODES).prop_map(Step::Claim),
        1 => Just(Step::Reopen),
    ]
}

/// With few texts, so that the expected one is sometimes stored.
fn swap() -> impl Strategy<Value = Step> {
    let fields = (
        option::of(0..3u8),
        0..2u8,
        0..KEYS,
        option::of(0u64..9_000),
        0..3u8,
    );
    fields.prop_map(|(expected, kind, key, ttl_ms, text)| Step::Swap {
        expected,
        kind,
        key,
        ttl_ms,
        text,
    })
}

fn task_template() -> impl Strategy<Value = TaskTemplate> {
    let keep = prop_oneof![Just(TtlPolicy::Strict), Just(TtlPolicy::KeepLive)];
    let life = (1u64..20_000, keep, option::of(0u64..20_000));
    let quota = (1u32..5, 1u32..6, 1u64..8, 1u64..9);
    let names = (0..TASKS, 0..OWNERS, option::of(0..KEYS), 0..NODES);
    (names, life, quota, record_changes()).prop_map(|(names, life, quota, records)| {
        let (task, owner, key, executor) = names;
        let (ttl, keep, run_limit) = life;
        TaskTemplate {
            task,
            owner,
            key,
            executor,
            ttl,
            ttl_policy: keep,
            run_limit,
            quota,
            records,
        }
    })
}

fn revision() -> impl Strategy<Value = RevisionChoice> {
    prop_oneof![5 => Just(RevisionChoice::Newest), 1 => Just(RevisionChoice::First)]
}

fn template() -> impl Strategy<Value = CommandTemplate> {
    let key = || 0..KEYS;
    let how = prop_oneof![Just(Takeover::Rerun), Just(Takeover::Reattach)];
    prop_oneof![
        4 => key().prop_map(CommandTemplate::RequestInput),
        1 => key().prop_map(CommandTemplate::WithdrawInput),
        3 => key().prop_map(CommandTemplate::ProvideInput),
        1 => key().prop_map(CommandTemplate::ConfirmInput),
        3 => key().prop_map(CommandTemplate::Status),
        1 => Just(CommandTemplate::SaveResumeState),
        1 => Just(CommandTemplate::CancelNow),
        1 => (0u64..9_000).prop_map(CommandTemplate::RequestCancel),
        3 => outcome().prop_map(CommandTemplate::End),
        2 => Just(CommandTemplate::Due),
        2 => (1u64..30_000).prop_map(CommandTemplate::Extend),
        2 => (0..NODES, how).prop_map(|(node, how)| CommandTemplate::Claim(node, how)),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(result(r#"{ "content": [] }"#)),
        Just(result("null")),
        Just(Outcome::ToolError(
            raw("[2]"),
            Some("no \"paper\"\n🦀".into())
        )),
        Just(Outcome::ToolError(raw("{}"), None)),
        any::<i64>().prop_map(|code| Outcome::error(outlast_engine::ErrorCode(code), "no ink")),
        Just(Outcome::Cancelled),
    ]
}

fn record_changes() -> impl Strategy<Value = Vec<RecordChange>> {
    let put = (
        0..2u8,
        0..KEYS,
        option::of(0..OWNERS),
        option::of(0u64..9_000),
        0..6u8,
    );
    let change = prop_oneof![
        3 => put.prop_map(|(kind, key, owner, ttl_ms, text)| RecordChange::Put { kind, key, owner, ttl_ms, text }),
        1 => (0..2u8, 0..KEYS).prop_map(|(kind, key)| RecordChange::Delete(kind, key)),
    ];
    vec(change, 0..3)
}
