//! The laws every [`Store`] obeys, one function per law. A store runs them all with
//! [`store_laws!`](crate::store_laws).
//!
//! A law is given an empty store and may rely on nothing but the trait. The numbers P1 to P11 name the
//! promises to users that a law guards. What a *task* may do is checked beside its transitions.

pub mod body;
pub mod conflict;
pub mod given;
pub mod listing;
pub mod ownership;
pub mod visibility;

use std::sync::Arc;

use crate::store::Store;

/// Writes one test per law against the store that `$open` opens, so that a failure names the law.
///
/// `$open` is a future of an empty store, or of a pair of a store and what must outlive it, such as a
/// directory. It is evaluated anew for every law. The caller has `tokio` with `macros` and `rt`.
///
/// ```ignore
/// outlast_engine::store_laws!(async { MemoryStore::new() });
/// ```
#[macro_export]
macro_rules! store_laws {
    ($open:expr) => {
        $crate::store_laws! { @each $open;
            visibility {
                created_task_is_visible_at_once
                unknown_task_is_not_found
                writes_in_sequence_are_all_visible
                open_task_is_shown_in_full
                ended_task_is_shown_in_brief
                history_survives_the_end
                odd_texts_survive
            }
            conflict {
                stale_revision_is_refused
                future_revision_is_refused
                stale_revision_is_refused_after_the_end
                replace_of_an_unknown_task_is_a_conflict
                replace_of_a_removed_task_is_a_conflict
                existing_id_is_refused
                id_of_an_ended_task_is_refused
                of_many_inserts_of_one_id_one_wins
                of_many_writers_one_wins
                of_racing_outcomes_one_wins
            }
            body {
                no_body_before_the_end
                body_is_kept_byte_for_byte
                error_is_a_body
                cancelled_task_has_no_body
                body_survives_an_extension
                large_body_survives
                body_is_gone_with_its_task
            }
            ownership {
                foreign_task_is_not_found
                own_task_is_found
                list_shows_own_tasks_only
            }
            listing {
                list_is_newest_first
                list_of_an_unknown_owner_is_empty
                pages_are_full_until_the_last
                list_shows_tasks_as_they_stand
                changed_tasks_keep_their_place
                walk_goes_on_behind_a_removed_task
                walk_sees_every_staying_task_once
                walk_beside_writers_sees_every_staying_task_once
            }
        }
    };
    (@each $open:expr; $($subject:ident { $($law:ident)+ })+) => {
        $($(
            #[tokio::test]
            async fn $law() {
                let (store, _guard) = $crate::laws::Opened::parts($open.await);
                $crate::laws::$subject::$law(&store).await;
            }
        )+)+
    };
}

/// What [`store_laws!`](crate::store_laws) can open: a store, or a store and what must outlive it.
pub trait Opened {
    /// What must outlive the store.
    type Guard;

    /// The store and what must outlive it.
    fn parts(self) -> (Arc<dyn Store>, Self::Guard);
}

impl<S: Store> Opened for S {
    type Guard = ();

    fn parts(self) -> (Arc<dyn Store>, ()) {
        (Arc::new(self), ())
    }
}

impl<S: Store, G> Opened for (S, G) {
    type Guard = G;

    fn parts(self) -> (Arc<dyn Store>, G) {
        (Arc::new(self.0), self.1)
    }
}
