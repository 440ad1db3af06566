//! The tests of results, masking and summaries.

use super::Row;

pub(super) const ROWS: &[Row] = &[
    (
        "engine/settings/results.rs",
        "a_result_above_a_limit_is_truncated",
        &["result.max_bytes", "result.max_lines", "result.max_tokens"],
    ),
    (
        "engine/settings/results.rs",
        "the_mode_says_what_becomes_of_a_long_result",
        &["result.mode"],
    ),
    (
        "engine/settings/results.rs",
        "a_server_raises_the_limit_up_to_the_ceiling",
        &["result.ceiling"],
    ),
    (
        "engine/settings/results.rs",
        "the_blocks_of_a_result_are_joined",
        &["result.join"],
    ),
    (
        "engine/settings/results.rs",
        "the_form_of_a_result_that_is_its_text_is_chosen",
        &["result.structured"],
    ),
    (
        "engine/settings/results.rs",
        "a_text_is_fenced_and_cleaned",
        &["result.fence", "result.clean"],
    ),
    (
        "engine/settings/results.rs",
        "images_stay_blocks_or_are_spilled",
        &["result.images"],
    ),
    (
        "engine/settings/results.rs",
        "images_in_a_text_are_searched",
        &["result.find_images"],
    ),
    (
        "engine/settings/masking.rs",
        "settings_choose_the_patterns",
        &[
            "masking.enabled",
            "masking.defaults",
            "masking.groups",
            "masking.patterns",
            "masking.except",
        ],
    ),
    (
        "engine/settings/masking.rs",
        "the_style_says_whether_the_name_is_masked_too",
        &["masking.style"],
    ),
    (
        "engine/settings/masking.rs",
        "a_custom_pattern_has_a_replacement_and_a_description",
        &["pattern.pattern", "pattern.replacement", "pattern.description"],
    ),
    (
        "engine/settings/summaries.rs",
        "a_result_from_the_threshold_on_is_summarised",
        &["summarise.enabled", "summarise.threshold_tokens"],
    ),
    (
        "engine/settings/summaries.rs",
        "the_model_is_told_the_size_of_the_summary",
        &["summarise.max_tokens"],
    ),
    (
        "engine/settings/summaries.rs",
        "a_summary_is_waited_for_until_its_timeout",
        &["summarise.timeout"],
    ),
    (
        "engine/settings/summaries.rs",
        "summaries_are_written_by_the_model_of_the_config",
        &["summarise.url", "summarise.model", "summarise.api_key"],
    ),
];
