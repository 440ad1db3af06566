//! The tests of views, and of the gateway's settings and tokens.

use super::Row;

/// The settings of the gateway take effect in the command that serves.
const SERVE: &str = "../../pegboard-cli/tests/command_line/serve.rs";
const SERVE_TLS: &str = "../../pegboard-cli/tests/command_line/serve_tls.rs";
const SERVE_SCOPES: &str = "../../pegboard-cli/tests/command_line/serve_scopes.rs";

const SERVE_OAUTH: &str = "../../pegboard-cli/tests/command_line/serve_oauth.rs";

/// What a gateway does with access tokens is tested without the command.
const ACCESS_TOKENS: &str = "../../pegboard-gateway/tests/gateway/http/access_tokens.rs";
const ACCESS_RULES: &str = "../../pegboard-gateway/tests/gateway/http/access_rules.rs";
const INTROSPECTION: &str = "../../pegboard-gateway/tests/gateway/http/introspection.rs";

/// What replicas of a gateway share.
const REPLICAS: &str = "../../pegboard-cli/tests/whole_machine/deployment/replicas.rs";

const CLUSTER: &str = "../../pegboard-cli/tests/whole_machine/deployment/cluster.rs";

/// So do those of the HTTP API.
const SIGN_IN_TOOLS: &str = "../../pegboard-daemon/tests/daemon/sign_in/sign_in_tools.rs";
const DASHBOARD: &str = "../../pegboard-cli/tests/command_line/dashboard.rs";
const TELEMETRY: &str = "../../pegboard-cli/tests/command_line/telemetry.rs";
const METRICS: &str = "../../pegboard-cli/tests/command_line/metrics.rs";
const ACCESS_LOG: &str = "../../pegboard-cli/tests/command_line/access_log.rs";
const HTTP_API: &str = "../../pegboard-cli/tests/command_line/http_api.rs";

pub(super) const ROWS: &[Row] = &[
    (
        "engine/settings/views.rs",
        "a_view_shows_some_servers_and_some_of_their_tools",
        &["view.servers", "view.tools", "view.deny"],
    ),
    (
        "engine/settings/views.rs",
        "a_view_has_names_of_its_own",
        &["view.naming"],
    ),
    (
        "engine/settings/views.rs",
        "a_view_with_a_small_budget_lists_the_tools_that_find_others",
        &["view.budget"],
    ),
    (
        "engine/settings/views.rs",
        "a_view_asks_a_person_where_it_is_stricter_than_the_server",
        &["view.approval"],
    ),
    (
        "engine/settings/views.rs",
        "a_view_grants_capabilities_and_offers_resources_to_its_clients",
        &["view.grants", "view.resource_tools"],
    ),
    (
        HTTP_API,
        "a_server_that_the_config_does_not_have_needs_the_flag",
        &["serve.allow_new_servers"],
    ),
    (
        SIGN_IN_TOOLS,
        "the_config_keeps_links_out_of_what_a_model_reads",
        &["serve.links_in_text"],
    ),
    (
        DASHBOARD,
        "without_the_setting_there_are_no_pages",
        &["serve.dashboard"],
    ),
    (
        DASHBOARD,
        "calls_are_recorded_as_the_setting_says",
        &["serve.dashboard_calls"],
    ),
    (
        ACCESS_LOG,
        "each_request_has_a_line_in_the_file_that_the_config_names",
        &["serve.access_log"],
    ),
    (SERVE, "it_listens_where_the_config_says", &["serve.listen"]),
    (
        SERVE,
        "hosts_and_origins_are_let_in_by_name",
        &["serve.hosts", "serve.origins"],
    ),
    (SERVE, "a_body_above_the_limit_is_refused", &["serve.max_body"]),
    (SERVE, "so_many_sessions_are_open_at_once", &["serve.max_sessions"]),
    (
        SERVE,
        "an_idle_session_ends_and_makes_room_for_another",
        &["serve.session_idle"],
    ),
    (
        SERVE,
        "further_connections_wait_until_one_ends",
        &["serve.max_connections"],
    ),
    (
        SERVE,
        "further_requests_are_refused_at_once_with_a_time_to_retry",
        &["serve.max_in_flight"],
    ),
    (
        REPLICAS,
        "replicas_with_one_key_finish_each_others_questions",
        &["serve.state_key"],
    ),
    (
        REPLICAS,
        "a_key_is_changed_in_two_steps_and_ends_no_session",
        &["serve.previous_state_key"],
    ),
    (
        CLUSTER,
        "a_session_of_a_replica_that_was_killed_goes_on_at_one_other",
        &["serve.store"],
    ),
    (
        CLUSTER,
        "a_replica_is_reached_at_the_address_that_it_names",
        &["serve.replicas.listen", "serve.replicas.address"],
    ),
    (
        SERVE,
        "a_token_lets_its_holder_in_until_it_expires",
        &["token.sha256", "token.expires"],
    ),
    (
        SERVE,
        "a_token_with_a_view_reaches_that_view_only",
        &["token.view", "view.description"],
    ),
    (
        SERVE_TLS,
        "clients_reach_the_gateway_over_tls",
        &["serve.tls.cert", "serve.tls.key"],
    ),
    (
        SERVE_SCOPES,
        "the_scopes_of_a_token_say_what_it_may_do",
        &["token.scopes"],
    ),
    (
        ACCESS_TOKENS,
        "keys_without_end_elsewhere_or_of_another_issuer_are_not_taken",
        &["serve.oauth.issuer", "serve.oauth.jwks_url"],
    ),
    (
        ACCESS_TOKENS,
        "a_key_is_found_without_its_id_and_only_allowed_algorithms_count",
        &["serve.oauth.algorithms"],
    ),
    (
        ACCESS_TOKENS,
        "the_clocks_may_differ_by_as_much_as_the_config_says",
        &["serve.oauth.clock_skew"],
    ),
    (
        ACCESS_TOKENS,
        "what_is_no_access_token_is_refused",
        &["serve.oauth.id_tokens"],
    ),
    (
        ACCESS_TOKENS,
        "clients_are_led_to_the_authorization_server",
        &["serve.public_url"],
    ),
    (
        ACCESS_RULES,
        "required_scopes_the_claim_of_the_principal_and_the_audience_are_those_of_the_config",
        &[
            "serve.oauth.audience",
            "serve.oauth.required_scopes",
            "serve.oauth.scopes_supported",
            "serve.oauth.principal",
        ],
    ),
    (
        SERVE_OAUTH,
        "rules_make_views_and_scopes_of_claims_on_every_route",
        &[
            "serve.oauth.rule.claim",
            "serve.oauth.rule.has",
            "serve.oauth.rule.view",
            "serve.oauth.rule.scopes",
        ],
    ),
    (
        SERVE_OAUTH,
        "each_user_of_an_access_token_has_the_rate_and_the_number_of_calls_of_its_rule",
        &["serve.oauth.rule.rate", "serve.oauth.rule.concurrent"],
    ),
    (
        INTROSPECTION,
        "the_server_is_asked_once_about_an_opaque_token",
        &[
            "serve.oauth.introspection.url",
            "serve.oauth.introspection.client_id",
            "serve.oauth.introspection.client_secret",
        ],
    ),
    (
        TELEMETRY,
        "metrics_and_log_lines_reach_the_collector",
        &[
            "serve.telemetry.service_name",
            "serve.telemetry.resource",
            "serve.telemetry.metrics_interval",
        ],
    ),
    (
        TELEMETRY,
        "content_is_masked_and_only_there_if_it_is_asked_for",
        &[
            "serve.telemetry.content",
            "serve.telemetry.compression",
            "serve.telemetry.headers",
        ],
    ),
    (
        TELEMETRY,
        "a_client_that_does_not_record_its_trace_gets_no_spans_and_its_context_is_passed_on",
        &["serve.telemetry.sampler", "serve.telemetry.ratio"],
    ),
    (
        TELEMETRY,
        "signals_that_are_off_are_not_sent_and_a_collector_that_hangs_is_left_in_time",
        &[
            "serve.telemetry.endpoint",
            "serve.telemetry.traces",
            "serve.telemetry.metrics",
            "serve.telemetry.logs",
            "serve.telemetry.timeout",
        ],
    ),
    (
        METRICS,
        "calls_are_counted_by_tool_principal_and_view_within_bounds",
        &["serve.metrics.max_tools", "serve.metrics.max_principals"],
    ),
    (SERVE, "a_token_has_a_rate_that_its_sessions_share", &["token.rate"]),
    (SERVE, "a_token_has_a_number_of_calls_at_once", &["token.concurrent"]),
];
