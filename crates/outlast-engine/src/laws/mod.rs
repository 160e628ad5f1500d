//! The laws of stores. A law is a test function that every implementation of [`Store`] must pass.
//! [`store_laws!`](crate::store_laws) runs them all.
//!
//! A law gets an empty store and uses only the trait. Ids such as P1 in comments are promises of
//! `docs/promises.md`. The laws of tasks are in `transition`.

pub mod body;
pub mod burst;
pub mod closing;
pub mod conflict;
pub mod deadlines;
pub mod fixtures;
pub mod listing;
pub mod nodes;
pub mod ownership;
pub mod quota;
pub mod records;
pub mod removal;
pub mod request_keys;
pub mod search;
pub mod store_events;
pub mod visibility;

use std::sync::Arc;

use crate::store::Store;

/// Generates one test per law for the store that `$open` opens, so that a failure names the law.
///
/// `$open` is a future of an empty store, or of a pair of a store and a guard that must outlive it,
/// such as a directory. It is evaluated for every law. The caller has `tokio` with `macros` and
/// `rt`.
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
                snapshot_of_an_open_task_is_complete
                snapshot_of_an_ended_task_is_a_summary
                history_survives_the_end
                unusual_texts_survive
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
                body_is_stored_byte_for_byte
                error_is_a_body
                cancelled_task_has_no_body
                body_survives_an_extension
                large_body_survives
                body_is_removed_with_its_task
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
                list_shows_the_current_state_of_tasks
                changed_tasks_keep_their_position
                listing_continues_after_a_removed_task
                listing_returns_every_stored_task_once
                listing_with_concurrent_writers_returns_every_task_once
            }
            search {
                search_covers_all_owners_newest_first
                search_by_owner_shows_own_tasks_only
                search_by_status_follows_the_state
                search_by_names_time_and_text
                search_continues_at_its_position
                search_finds_one_task_among_many
            }
            removal {
                remove_is_compare_and_set
                remove_returns_the_removed_ids
                removed_task_is_not_found
                of_many_removals_one_succeeds
                of_a_change_and_a_removal_one_wins
            }
            deadlines {
                nothing_is_due_in_an_empty_store
                task_is_due_at_its_deadline
                due_task_stays_due
                due_names_the_newest_revision
                next_deadline_is_the_earliest_of_the_remaining_tasks
                due_is_limited
                removed_task_is_never_due
                extension_moves_the_deadline
                cancel_deadline_is_due
                run_limit_is_due_while_the_task_works
            }
            quota {
                running_tasks_of_an_owner_are_limited
                retained_tasks_of_an_owner_are_limited
                retained_tasks_are_limited
                running_tasks_are_limited_in_all
                a_quota_of_nothing_admits_nothing
                refused_insert_changes_nothing
                end_frees_running_quota
                removal_frees_all_quota
                running_limit_holds_under_concurrency
                total_running_limit_holds_under_concurrency
                owner_limit_holds_under_concurrency
                total_limit_holds_under_concurrency
            }
            request_keys {
                repeated_create_names_the_first_task
                other_keys_and_other_owners_are_free
                key_is_known_after_the_end
                key_is_free_after_removal
                refused_insert_leaves_its_key_free
                repeated_create_needs_no_room
                of_many_creates_under_one_key_one_is_new
            }
            records {
                record_is_read_back
                put_replaces
                deleted_record_is_not_found
                record_writes_count_in_order
                records_are_listed_by_kind_and_owner
                record_expires_exactly
                expiry_deletes_no_live_record
                record_is_written_with_an_insert
                refused_insert_writes_no_record
                record_is_written_with_a_change
                conflicting_change_writes_no_record
                record_outlives_its_task
                swap_puts_a_record_if_there_is_none
                swap_compares_the_stored_bytes
                expired_record_is_absent_for_a_swap
                of_many_first_swaps_one_succeeds
                of_many_equal_swaps_one_succeeds
            }
            nodes {
                tasks_of_a_joined_node_are_not_offered
                orphans_are_offered_once
                offer_shows_the_current_task
                detached_tasks_are_never_offered
                tasks_of_an_unknown_node_are_offered
                ended_tasks_are_not_offered
                offers_are_limited
                offer_returns_when_its_node_leaves
                offer_survives_the_write_of_another
                task_taken_over_belongs_to_its_new_executor
                removed_task_is_not_offered
                of_many_nodes_one_is_offered_an_orphan
                joined_nodes_are_listed_with_their_load
                address_is_kept_when_a_node_joins_again
            }
            store_events {
                other_nodes_receive_a_change
                other_nodes_receive_an_end
                other_nodes_receive_a_removal
                other_nodes_receive_progress
                change_by_an_unknown_node_is_received
                event_arrives_after_the_change_is_visible
                other_nodes_receive_the_departure_of_a_node
            }
            closing {
                open_store_is_ready
                closed_store_reports_it
                closed_store_refuses
            }
            burst {
                counts_add_up_after_a_burst
                counts_add_up_after_a_burst_of_many
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

/// What [`store_laws!`](crate::store_laws) can open: a store, or a store and a guard.
pub trait Opened {
    /// A value that must outlive the store.
    type Guard;

    /// The store and the guard.
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
