//! The contract of an index, clause by clause, on each of them.

mod addresses;
mod apart;
mod cleaning;
mod fencing;
mod fronts;
mod in_chroma;
mod in_postgres;
mod in_sqlite;
mod reading;
mod switching;
mod vectors;
mod world;

use world::World;

/// Runs each clause on each index.
macro_rules! on_each_index {
    ($($room:ident::$clause:ident),+ $(,)?) => {
        on_each_index!(@sqlite: $($room::$clause),+);
        on_each_index!(@postgres: $($room::$clause),+);
        on_each_index!(@chroma_and_sqlite: $($room::$clause),+);
        on_each_index!(@chroma_and_postgres: $($room::$clause),+);
    };
    (@$index:ident: $($room:ident::$clause:ident),+) => {
        mod $index {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $clause() {
                super::$room::$clause(&super::World::$index()).await;
            })+
        }
    };
}

on_each_index!(
    apart::another_tenant_waits_for_nobody,
    cleaning::a_remover_that_was_stopped_removes_nothing_that_is_read,
    cleaning::the_condemned_are_never_led_to,
    cleaning::the_versions_that_may_be_asked_for_again_are_kept,
    fencing::a_token_of_another_tenant_is_refused,
    fencing::an_older_token_is_refused_by_each_call,
    reading::a_generation_is_seen_by_nobody_before_its_time,
    reading::a_round_is_published_whole_and_found_again,
    reading::no_answer_holds_two_generations,
    reading::nothing_is_there_before_the_first_round,
    reading::tenants_are_listed_in_the_order_of_their_names,
    switching::a_rollback_says_what_it_led_away_from,
    switching::a_round_is_recorded_once,
    switching::of_many_moves_from_one_version_one_is_made,
    switching::the_alias_moves_from_the_version_that_was_seen,
    switching::the_same_operation_again_is_answered_with_what_it_did,
    switching::what_cannot_be_read_is_not_led_to,
    vectors::a_generation_that_is_begun_again_is_empty,
    vectors::a_vector_that_does_not_fit_is_refused,
    vectors::kept_vectors_are_there_until_nobody_uses_them,
    vectors::what_is_written_twice_is_there_once,
    vectors::what_was_published_is_not_written_any_more,
);
