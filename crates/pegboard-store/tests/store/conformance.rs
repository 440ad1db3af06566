//! What every store does. Each function is a sentence about it, and [`conforms`] makes a test of each.

mod leases;
mod logs;
mod rates;
mod values;

pub(crate) use leases::*;
pub(crate) use logs::*;
pub(crate) use rates::*;
pub(crate) use values::*;

/// Tests a store with all sentences. `$open` is an async function that returns a [`Fixture`](crate::fixture::Fixture).
macro_rules! conforms {
    ($open:path, $($attribute:tt)*) => {
        $crate::conformance::conforms!(@each $open, ($($attribute)*),
            a_value_is_the_one_that_was_put_last
            a_value_may_be_anything_under_any_name
            a_value_is_gone_when_its_time_is_over
            putting_a_value_again_gives_it_a_new_time
            put_new_stores_only_where_nothing_is
            one_of_many_put_news_stores
            a_value_is_taken_by_exactly_one_caller
            a_replacement_needs_the_version_that_stands
            no_change_is_lost_between_racing_replacements
            a_listing_has_the_values_right_below_its_key
            a_listing_is_bounded
            a_value_that_is_too_large_is_refused
            values_logs_buckets_and_leases_do_not_share_names
            the_shortest_and_the_longest_time_to_live_work
            a_store_answers
            a_log_is_read_after_a_position
            a_log_drops_its_oldest_entries_and_says_so
            a_log_is_bounded_in_bytes
            no_entry_of_racing_appends_is_lost
            positions_rise_after_a_log_expired
            a_position_that_a_log_never_had_is_missed
            one_read_of_a_log_is_bounded
            a_bucket_gives_its_burst_and_then_says_how_long_to_wait
            a_bucket_refills
            racing_draws_get_no_more_than_the_burst
            a_draw_of_more_than_the_burst_empties_the_bucket
            a_lease_has_one_holder
            a_lease_that_was_released_is_given_with_a_higher_fence
            a_lease_that_expired_is_given_with_a_higher_fence
            one_of_many_gets_the_lease
            a_lease_lasts_while_it_is_renewed
            a_late_holder_cannot_write
            the_name_of_a_holder_is_bounded
        );
    };
    (@each $open:path, $attributes:tt, $($sentence:ident)*) => {
        $(
            #[tokio::test $attributes]
            async fn $sentence() {
                let fixture = $open().await;
                $crate::conformance::$sentence(&fixture).await;
            }
        )*
    };
}

pub(crate) use conforms;
