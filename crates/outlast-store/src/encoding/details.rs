//! The column `details`: values that most tasks do not have, as one JSON object. A missing member
//! has its default value.

use std::collections::{BTreeMap, BTreeSet};

use outlast_engine::task::{CancelIntent, Lifetime, TtlPolicy};
use outlast_engine::{
    InputKey, InputKind, InputRequest, InputResponse, InputTiming, Outstanding, Task,
};
use outlast_wire::{Raw, Timestamp};
use serde::{Deserialize, Deserializer, Serialize};

/// Writes the details of a task, or nothing if all have their default values.
pub(crate) fn write(out: &mut Vec<u8>, task: &Task) {
    let lifetime = &task.lifetime;
    let usual = Lifetime::new(lifetime.ttl_ms, TtlPolicy::Strict, None);
    let plain = *lifetime == usual
        && task.cancel.is_none()
        && task.timeline.dropped == 0
        && task.input.keys.is_empty()
        && task.input.responses.is_empty()
        && task.outstanding().is_none();
    if plain {
        return;
    }
    let unusual = |number: u64, usual: u64| (number != usual).then_some(number);
    let details = DetailsRef {
        granted: unusual(lifetime.granted_ttl_ms, usual.granted_ttl_ms),
        keep: (lifetime.ttl_policy != usual.ttl_policy).then_some(WHILE_LIVE),
        run_limit: lifetime.run_limit_ms,
        waited: unusual(lifetime.waited_ms, usual.waited_ms),
        waiting_since: lifetime.waiting_since.map(|since| since.0),
        cancel: task.cancel.map(Cancel::from),
        timeline_dropped: (task.timeline.dropped != 0).then_some(task.timeline.dropped),
        keys: (!task.input.keys.is_empty()).then_some(&task.input.keys),
        open: task.outstanding().map(open_requests),
        responses: (!task.input.responses.is_empty()).then_some(&task.input.responses),
    };
    serde_json::to_writer(out, &details)
        .expect("strings, numbers and valid JSON are JSON, and memory takes it");
}

/// The details of a task, as they are stored.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Details {
    granted: Option<u64>,
    keep: Option<StoredTtlPolicy>,
    run_limit: Option<u64>,
    waited: u64,
    waiting_since: Option<u64>,
    cancel: Option<Cancel>,
    pub(crate) timeline_dropped: u32,
    #[serde(rename = "asked")]
    pub(crate) keys: BTreeSet<InputKey>,
    #[serde(rename = "asks")]
    open: Vec<StoredRequest>,
    #[serde(rename = "answers")]
    pub(crate) responses: BTreeMap<InputKey, InputResponse>,
}

impl Details {
    pub(crate) fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    pub(crate) fn lifetime(&self, ttl_ms: u64) -> Lifetime {
        Lifetime {
            ttl_ms,
            granted_ttl_ms: self.granted.unwrap_or(ttl_ms),
            ttl_policy: match self.keep {
                None => TtlPolicy::Strict,
                Some(StoredTtlPolicy::WhileLive) => TtlPolicy::KeepLive,
            },
            run_limit_ms: self.run_limit,
            waited_ms: self.waited,
            waiting_since: self.waiting_since.map(Timestamp),
        }
    }

    pub(crate) fn cancel(&self) -> Option<CancelIntent> {
        self.cancel.as_ref().map(|cancel| CancelIntent {
            requested: Timestamp(cancel.requested),
            deadline: Timestamp(cancel.deadline),
        })
    }

    /// Returns the open input requests, if there are any.
    pub(crate) fn take_input_requests(&mut self) -> Option<Outstanding> {
        let open = std::mem::take(&mut self.open).into_iter().map(|stored| {
            let request = InputRequest {
                kind: stored.kind,
                params: stored.params,
                timing: stored.timing,
            };
            (stored.key, request)
        });
        Outstanding::new(open.collect())
    }
}

fn open_requests(outstanding: &Outstanding) -> Vec<StoredRequestRef<'_>> {
    let requests = outstanding.iter().map(|(key, request)| StoredRequestRef {
        key,
        kind: request.kind,
        timing: request.timing,
        params: request.params.as_ref(),
    });
    requests.collect()
}

#[derive(Serialize)]
struct DetailsRef<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    granted: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep: Option<StoredTtlPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waited: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_since: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel: Option<Cancel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline_dropped: Option<u32>,
    #[serde(rename = "asked", skip_serializing_if = "Option::is_none")]
    keys: Option<&'a BTreeSet<InputKey>>,
    #[serde(rename = "asks", skip_serializing_if = "Option::is_none")]
    open: Option<Vec<StoredRequestRef<'a>>>,
    #[serde(rename = "answers", skip_serializing_if = "Option::is_none")]
    responses: Option<&'a BTreeMap<InputKey, InputResponse>>,
}

/// The stored form of the TTL policy, unless it is strict.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredTtlPolicy {
    WhileLive,
}

const WHILE_LIVE: StoredTtlPolicy = StoredTtlPolicy::WhileLive;

#[derive(Serialize, Deserialize)]
struct Cancel {
    requested: u64,
    deadline: u64,
}

impl From<CancelIntent> for Cancel {
    fn from(intent: CancelIntent) -> Self {
        Self {
            requested: intent.requested.0,
            deadline: intent.deadline.0,
        }
    }
}

#[derive(Serialize)]
struct StoredRequestRef<'a> {
    key: &'a InputKey,
    kind: InputKind,
    timing: InputTiming,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a Raw>,
}

#[derive(Deserialize)]
struct StoredRequest {
    key: InputKey,
    kind: InputKind,
    timing: InputTiming,
    #[serde(default, deserialize_with = "present")]
    params: Option<Raw>,
}

/// Keeps a member that exists, also if it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Raw>, D::Error> {
    Raw::deserialize(deserializer).map(Some)
}
