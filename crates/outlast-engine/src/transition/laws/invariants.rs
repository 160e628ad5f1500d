//! Invariants of every history: legal transitions, one outcome, and revisions and timestamps that
//! never go back.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::subsequence;

use super::scripts::{history, outcome};
use crate::laws::fixtures;
use crate::outcome::{Ending, Outcome};
use crate::store::TaskSummary;
use crate::task::{State, Task, Timeline, TimelineEvent};
use crate::transition::{Command, Effect, Next, Refused};

proptest! {
    // V1-LIFE-3, V2-LIFE-6, V2-CANCEL-8, P2.
    #[test]
    fn an_ended_task_is_only_extended_or_removed(history in history()) {
        for event in history.iter().filter(|event| event.before.state.ending().is_some()) {
            match (&event.command, &event.reply) {
                (_, Err(_)) => {}
                (Command::Due, Ok(step)) => prop_assert_eq!(&step.next, &Next::Removed),
                (Command::Extend { .. }, Ok(step)) => {
                    let (before, next) = event.stored().expect("it stays");
                    prop_assert_eq!(&next.state, &before.state);
                    prop_assert_eq!(&next.message, &before.message);
                    prop_assert_eq!(next.attempt, before.attempt);
                    let Next::Stored(_, body) = &step.next else { unreachable!() };
                    prop_assert_eq!(body, &None);
                }
                (command, Ok(_)) => prop_assert!(false, "{:?} moved an ended task", command),
            }
        }
    }

    // V1-LIFE-1, V1-LIFE-2, V2-LIFE-1, S0-31: every transition has its commands, and there are no
    // others.
    #[test]
    fn only_the_transitions_of_the_table_occur(history in history()) {
        use Command::{
            CancelNow, Claim, Due, End, Extend, ProvideInput, RequestInput, WithdrawInput,
        };
        for event in &history {
            let Some((before, next)) = event.stored() else { continue };
            let command = &event.command;
            let allowed = match (&before.state, &next.state) {
                (State::Ended(ended), State::Ended(still)) => {
                    ended == still && matches!(command, Extend { .. })
                }
                (State::Ended(_), _) => false,
                (_, State::Ended(_)) => matches!(command, End { .. } | CancelNow | Due),
                (State::Working, State::AwaitingInput(_)) => matches!(command, RequestInput { .. }),
                (State::AwaitingInput(_), State::Working) => {
                    matches!(command, ProvideInput(_) | WithdrawInput { .. } | Claim { .. })
                }
                (State::Working, State::Working) => {
                    let moves = matches!(command, RequestInput { .. } | ProvideInput(_) | WithdrawInput { .. });
                    !moves && !matches!(command, End { .. } | CancelNow)
                }
                (State::AwaitingInput(_), State::AwaitingInput(_)) => {
                    !matches!(command, End { .. } | CancelNow)
                }
            };
            prop_assert!(allowed, "{:?} by {:?} to {:?}", before.state, command, next.state);
        }
    }

    #[test]
    fn revision_grows_by_one_with_every_stored_step(history in history()) {
        for (before, next) in history.iter().filter_map(|event| event.stored()) {
            prop_assert_eq!(next.revision.0, before.revision.0 + 1);
        }
    }

    // V1-LIFE-9.
    #[test]
    fn updated_never_goes_back(history in history()) {
        for event in &history {
            let Some((before, next)) = event.stored() else { continue };
            prop_assert!(next.updated >= next.created);
            prop_assert_eq!(next.updated, before.updated.max(event.now));
        }
    }

    #[test]
    fn the_identity_of_a_task_never_changes(history in history()) {
        for (before, next) in history.iter().filter_map(|event| event.stored()) {
            prop_assert_eq!(next.id, before.id);
            prop_assert_eq!(&next.owner, &before.owner);
            prop_assert_eq!(&next.origin, &before.origin);
            prop_assert_eq!(&next.request_key, &before.request_key);
            prop_assert_eq!(next.created, before.created);
            prop_assert_eq!(next.lifetime.granted_ttl_ms, before.lifetime.granted_ttl_ms);
        }
    }

    // P2, P5: the attempt number refuses writes of an old executor.
    #[test]
    fn another_attempt_is_refused(history in history()) {
        for event in &history {
            let (Some(given), before) = (event.command.attempt(), &event.before) else { continue };
            if given == before.attempt {
                continue;
            }
            let refused = match before.state.ending() {
                _ if before.is_expired(event.now) => Refused::Expired,
                Some(ending) => Refused::AlreadyEnded(ending),
                None => Refused::Superseded { given, current: before.attempt },
            };
            prop_assert_eq!(&event.reply, &Err(refused));
        }
    }

    #[test]
    fn attempt_grows_only_with_a_takeover(history in history()) {
        for event in &history {
            let Some((before, next)) = event.stored() else { continue };
            let taken_over = matches!(event.command, Command::Claim { .. });
            prop_assert_eq!(next.attempt.0, before.attempt.0 + u32::from(taken_over));
            prop_assert_eq!(next.executor == before.executor, !taken_over);
        }
    }

    #[test]
    fn a_body_comes_only_with_the_end(history in history()) {
        for event in &history {
            let Ok(step) = &event.reply else { continue };
            let Next::Stored(next, body) = &step.next else { continue };
            let ends = event.before.state.ending().is_none() && next.state.ending().is_some();
            let cancelled = next.state.ending() == Some(Ending::Cancelled);
            prop_assert_eq!(body.is_some(), ends && !cancelled);
        }
    }

    // P6: an engine that only reads the stored task performs at least the effects of the step.
    #[test]
    fn effects_follow_from_the_stored_state(history in history()) {
        for event in &history {
            let (Ok(step), Some((_, next))) = (&event.reply, event.stored()) else { continue };
            let implied = Effect::implied_by(next);
            for effect in step.effects.iter() {
                prop_assert!(implied.contains(effect), "{:?} is not in {:?}", effect, implied);
            }
        }
    }

    // S2-21: the transition decides what is sent: every change that a client can see is published,
    // and a refused command publishes nothing because it has no step.
    #[test]
    fn every_visible_change_is_published(history in history()) {
        for event in &history {
            let (Ok(step), Some((before, next))) = (&event.reply, event.stored()) else { continue };
            let visible = |task: &Task| {
                (task.state.clone(), task.message.clone(), task.lifetime.ttl_ms)
            };
            if visible(before) != visible(next) {
                prop_assert!(step.effects.contains(&Effect::Publish), "{:?}", event.command);
            }
        }
    }

    #[test]
    fn waiters_are_woken_at_the_end_and_the_work_stopped(history in history()) {
        for event in &history {
            let Ok(step) = &event.reply else { continue };
            let over = match &step.next {
                Next::Removed => true,
                Next::Stored(next, _) => {
                    event.before.state.ending().is_none() && next.state.ending().is_some()
                }
            };
            prop_assert_eq!(step.effects.contains(&Effect::Wake), over);
            prop_assert_eq!(step.effects.contains(&Effect::Stop), over);
        }
    }

    // P8.
    #[test]
    fn the_timeline_is_bounded_and_retains_its_first_entry(history in history()) {
        for (before, next) in history.iter().filter_map(|event| event.stored()) {
            let entries = &next.timeline.entries;
            prop_assert!(entries.len() <= Timeline::MAX_ENTRIES);
            prop_assert_eq!(&entries[0].event, &TimelineEvent::Created);
            prop_assert!(next.timeline.dropped >= before.timeline.dropped);
        }
    }

    // P11: a store can restore a task after any history.
    #[test]
    fn every_stored_task_can_be_restored(history in history()) {
        for (_, next) in history.iter().filter_map(|event| event.stored()) {
            let restored = Task::restore((**next).clone());
            prop_assert_eq!(restored.as_ref(), Ok(next));
        }
    }

    #[test]
    fn a_summary_agrees_with_its_task(history in history()) {
        for (_, next) in history.iter().filter_map(|event| event.stored()) {
            let Some(summary) = TaskSummary::of(next) else {
                prop_assert_eq!(next.state.ending(), None);
                continue;
            };
            prop_assert_eq!(Some(summary.ending), next.state.ending());
            prop_assert_eq!((summary.id, &summary.owner), (next.id, &next.owner));
            prop_assert_eq!((summary.revision, summary.attempt), (next.revision, next.attempt));
            prop_assert_eq!((summary.created, summary.updated), (next.created, next.updated));
            prop_assert_eq!((&summary.message, summary.ttl_ms), (&next.message, next.lifetime.ttl_ms));
            prop_assert_eq!((summary.expires(), &summary.request_key), (next.due(), &next.request_key));
        }
    }

    // V1-CANCEL-1, V1-CANCEL-4, V1-LIFE-10, P2.
    #[test]
    fn one_outcome_wins_whatever_the_order(
        outcomes in proptest::collection::vec(outcome(), 3),
        order in subsequence((0..6).collect::<Vec<_>>(), 2..=6).prop_shuffle(),
    ) {
        let deadline = fixtures::CREATED.plus(5);
        let mut task = fixtures::task(1);
        let intent = Arc::new(task.clone()).apply(Command::RequestCancel { deadline }, fixtures::CREATED);
        let Next::Stored(cancelling, _) = intent.expect("an open task can be cancelled").next else {
            unreachable!()
        };
        task = Arc::unwrap_or_clone(cancelling);
        let racers = |n: usize| match n {
            0..3 => (fixtures::end(&fixtures::task(1), outcomes[n].clone()), outcomes[n].ending()),
            3 => (Command::CancelNow, Ending::Cancelled),
            _ => (Command::Due, Ending::Cancelled),
        };
        let mut won = None;
        for racer in order {
            let (command, ending) = racers(racer);
            match Arc::new(task.clone()).apply(command, deadline) {
                Ok(step) => {
                    prop_assert_eq!(won, None, "a second outcome won");
                    let Next::Stored(next, _) = step.next else { unreachable!() };
                    task = Arc::unwrap_or_clone(next);
                    won = Some(ending);
                }
                Err(refused) => {
                    prop_assert!(won.is_some());
                    prop_assert!(matches!(refused, Refused::AlreadyEnded(_) | Refused::NotDue));
                }
            }
            prop_assert_eq!(task.state.ending(), won);
        }
    }
}

// V2-LIFE-5. The last status text of the work does not describe its end.
#[test]
fn the_message_at_the_end_is_that_of_the_outcome() {
    let task = fixtures::task(1);
    let status =
        Arc::new(task.clone()).apply(fixtures::status(&task, "drawing"), fixtures::CREATED);
    let Next::Stored(task, _) = status.expect("it works").next else {
        unreachable!()
    };
    for outcome in [
        fixtures::result("1"),
        Outcome::ToolError(fixtures::raw("1"), Some("no paper".into())),
        Outcome::Cancelled,
    ] {
        let message = outcome.message();
        let over =
            Arc::new(Task::clone(&task)).apply(fixtures::end(&task, outcome), fixtures::CREATED);
        let Next::Stored(over, _) = over.expect("it works").next else {
            unreachable!()
        };
        assert_eq!(over.message, message);
    }
}

// P8: a task with many status texts stays small.
#[test]
fn a_long_history_has_a_bounded_timeline() {
    let mut task = fixtures::task(1);
    for n in 0..1_000 {
        let status = fixtures::status(&task, &format!("page {n}"));
        task =
            Arc::unwrap_or_clone(fixtures::change(&task, status, fixtures::CREATED.plus(n)).next);
    }
    assert_eq!(task.timeline.entries.len(), Timeline::MAX_ENTRIES);
    assert_eq!(
        task.timeline.dropped as usize + Timeline::MAX_ENTRIES,
        1_001,
        "nothing is lost without being counted"
    );
}
