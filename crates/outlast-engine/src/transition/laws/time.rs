//! Deadlines: expiry, run limit, and the deadline of a cancellation.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::scripts::{ScriptStep, history, lifetime};
use crate::laws::fixtures::{self, CREATED};
use crate::outcome::{Ending, ErrorCode};
use crate::task::{Lifetime, Task, TtlPolicy};
use crate::transition::{Command, Next, Refused};

proptest! {
    // V1-TTL-7, V1-TTL-9, V2-TTL-5, P3.
    #[test]
    fn only_a_strict_open_task_expires_exactly_at_its_ttl(history in history()) {
        for (_, next) in history.iter().filter_map(ScriptStep::stored) {
            let expiry = next.expires();
            prop_assert_eq!(expiry, next.created.plus(next.lifetime.ttl_ms));
            let just_before = outlast_wire::Timestamp(expiry.0 - 1);
            prop_assert!(!next.is_expired(just_before));
            let kept = next.lifetime.ttl_policy == TtlPolicy::KeepLive && next.state.ending().is_none();
            prop_assert_eq!(next.is_expired(expiry), !kept);
        }
    }

    // V2-TTL-4, V2-TTL-7.
    #[test]
    fn an_expired_task_can_only_be_removed(history in history()) {
        for event in history.iter().filter(|event| event.before.is_expired(event.now)) {
            match (&event.command, &event.reply) {
                (Command::Due, reply) => {
                    let removed = reply.as_ref().is_ok_and(|step| step.next == Next::Removed);
                    prop_assert!(removed, "{:?}", reply);
                }
                (_, reply) => prop_assert_eq!(reply, &Err(Refused::Expired)),
            }
        }
    }

    // P3: a task that has not expired is never removed.
    #[test]
    fn a_task_that_has_not_expired_is_never_removed(history in history()) {
        for event in &history {
            if let Ok(step) = &event.reply && step.next == Next::Removed {
                prop_assert!(event.before.is_expired(event.now));
                prop_assert!(matches!(event.command, Command::Due));
            }
        }
    }

    #[test]
    fn a_task_is_due_from_its_deadline_on(history in history()) {
        for event in history.iter().filter(|event| matches!(event.command, Command::Due)) {
            let comes = event.now >= event.before.due();
            prop_assert_eq!(event.reply.is_ok(), comes, "{:?}", event);
            if !comes {
                prop_assert_eq!(&event.reply, &Err(Refused::NotDue));
            }
        }
    }

    // A due task is not due again immediately after it was handled, otherwise the engine would
    // loop.
    #[test]
    fn a_handled_deadline_is_not_due_again(history in history()) {
        for event in history.iter().filter(|event| matches!(event.command, Command::Due)) {
            if let Some((_, next)) = event.stored() {
                prop_assert!(next.due() > event.now, "{:?}", event);
            }
        }
    }

    // P3: with `KeepLive`, an outcome is stored for the granted TTL after the end.
    #[test]
    fn a_kept_outcome_is_stored_for_the_granted_ttl(history in history()) {
        for event in &history {
            let Some((before, next)) = event.stored() else { continue };
            let ends = before.state.ending().is_none() && next.state.ending().is_some();
            match next.lifetime.ttl_policy {
                TtlPolicy::KeepLive if ends => {
                    prop_assert!(next.expires() >= event.now.plus(next.lifetime.granted_ttl_ms));
                    prop_assert!(next.expires() >= before.expires());
                }
                // V1-TTL-10.
                TtlPolicy::Strict if ends => prop_assert_eq!(next.expires(), before.expires()),
                _ => {}
            }
        }
    }

    // V1-TTL-10: the reported TTL changes only with the real one.
    #[test]
    fn the_ttl_changes_by_extension_or_at_a_kept_end(history in history()) {
        for event in &history {
            let Some((before, next)) = event.stored() else { continue };
            let kept = next.lifetime.ttl_policy == TtlPolicy::KeepLive;
            let may = match event.command {
                Command::Extend { .. } => true,
                Command::Due => kept,
                _ => kept && next.state.ending().is_some(),
            };
            prop_assert!(may || next.lifetime.ttl_ms == before.lifetime.ttl_ms);
        }
    }

    // V2-CANCEL-4, V2-CANCEL-5: the work decides until the deadline, then the task is cancelled.
    #[test]
    fn a_cancel_intent_ends_at_its_deadline(lifetime in lifetime(), timeout_ms in 1u64..30_000) {
        let lifetime = Lifetime { run_limit_ms: None, ..lifetime };
        let deadline = CREATED.plus(timeout_ms);
        let task = apply_after(&fixtures::task_with_lifetime(1, lifetime), Command::RequestCancel { deadline }, 0);
        let just_before = Arc::new(task.clone()).apply(Command::Due, CREATED.plus(timeout_ms - 1));
        if let Ok(step) = just_before && let Next::Stored(next, _) = step.next {
            prop_assert_eq!(next.state.ending(), None);
        }
        match Arc::new(task.clone()).apply(Command::Due, deadline).expect("it is due").next {
            Next::Removed => prop_assert!(task.is_expired(deadline)),
            Next::Stored(next, body) => {
                prop_assert_eq!(next.state.ending(), Some(Ending::Cancelled));
                prop_assert_eq!(body, None);
            }
        }
    }

    // V2-CANCEL-7: a second request does not move the deadline.
    #[test]
    fn a_cancel_intent_is_set_once(history in history()) {
        for (before, next) in history.iter().filter_map(ScriptStep::stored) {
            prop_assert!(before.cancel.is_none() || next.cancel == before.cancel);
        }
    }

    // The run limit counts work, not waiting.
    #[test]
    fn the_run_limit_excludes_waiting(limit in 1u64..5_000, spans in vec((1u64..900, 1u64..900), 1..12)) {
        let lifetime = Lifetime::new(u64::MAX >> 8, TtlPolicy::KeepLive, Some(limit));
        let mut task = fixtures::task_with_lifetime(1, lifetime);
        let (mut now, mut worked) = (0, 0);
        for (n, (works, waits)) in spans.into_iter().enumerate() {
            let left = limit - worked;
            prop_assert_eq!(task.due(), CREATED.plus(now + left));
            if works >= left {
                let over = apply_after(&task, Command::Due, now + left);
                prop_assert_eq!(over.state.ending(), Some(Ending::Error(ErrorCode(-32_603))));
                return Ok(());
            }
            worked += works;
            now += works;
            let key = n.to_string();
            task = apply_after(&task, fixtures::request_input(&task, &key), now);
            now += waits;
            let reply = Arc::new(task.clone()).apply(Command::Due, CREATED.plus(now));
            prop_assert_eq!(reply, Err(Refused::NotDue), "no limit while it waits");
            task = apply_after(&task, fixtures::provide_input(&key), now);
        }
    }
}

fn apply_after(task: &Task, command: Command, millis: u64) -> Task {
    Arc::unwrap_or_clone(fixtures::change(task, command, CREATED.plus(millis)).next)
}
