//! The fields at the top of a config file.

use std::collections::BTreeMap;

use super::{
    audit_table::audit,
    calls::queue,
    results::masking,
    serve_table::serve,
    server_table::server::{self as of},
    view_table::{NAMING_KINDS, view},
};
use crate::{
    board_limits::BoardLimits,
    field::{DefaultValue, Kind},
    from_setting::Naming,
    key::{Nested, choice, count, either, map, nested, plain, section, size},
    policy::Queue,
    preset::Preset,
};
use pegboard_base::name::NameStyle;

section! {
    top = "config" {
        PRESET: Preset = choice("preset", "The preset that provides the defaults of every server.");
        QUEUES: BTreeMap<String, Queue> = map(
            "queues",
            &Kind::Either(&[Kind::Count { min: 1, max: 1_000_000 }, Kind::Table(&queue::SECTION)]),
            "Queues that calls wait in, by name, with the most calls in flight at once.",
        )
        .shown(DefaultValue::EmptyTable);
        MASKING: Nested<masking::In> = nested(
            "masking",
            Kind::Either(&[Kind::Bool, Kind::Table(&masking::SECTION)]),
            "What is masked in the output of every server.",
        );
        AUDIT: Nested<audit::In> = nested(
            "audit",
            Kind::Either(&[Kind::Text, Kind::Table(&audit::SECTION)]),
            "The audit log of all calls: a file, or a table. Without it there is none.",
        )
        .aka(&["audit_log"]);
        MAX_SERVERS: usize = count("max_servers", (1, 1000), BoardLimits::DEFAULT.max_servers, "The most servers; further ones are refused.");
        MAX_PROCESSES: usize = count("max_processes", (1, 65_536), BoardLimits::DEFAULT.max_processes, "The most child processes at once.");
        MAX_STARTS: usize = count("max_starts", (1, 1000), BoardLimits::DEFAULT.max_starts, "The most servers that start at once; the others wait.")
            .aka(&["start_concurrency"]);
        MAX_BUFFERED: usize = size(
            "max_buffered",
            (1 << 20, 1 << 40),
            BoardLimits::DEFAULT.max_buffered,
            "The most bytes that the messages of all servers may buffer together; one connection may use a quarter of them in each direction, and messages of up to 64KiB do not count.",
        );
        NAMING: Naming = either(
            "naming",
            NAMING_KINDS,
            Naming(Ok(NameStyle::Dunder)),
            DefaultValue::Text("dunder"),
            "How tools are named for models: a style, or a template such as `{server}_{tool}`.",
        );
        VIEWS: BTreeMap<String, Nested<view::In>> = map(
            "views",
            &Kind::Table(&view::SECTION),
            "Named views: parts of the board for clients of the gateway, by name.",
        )
        .shown(DefaultValue::EmptyTable);
        SERVE: Nested<serve::In> = nested("serve", Kind::Table(&serve::SECTION), "Settings of the gateway, `pegboard serve`.");
    }
    unkeyed {
        // Settings of servers, for every server that does not set them itself.
        of::TRANSPORTS.field.for_all().aka(&["allow_transports"]).doc("The transports that servers may use; a server's own list overrides it.");
        of::SUMMARISE.field.for_all()
            .aka(&["summarize", "summarization", "summarisation"])
            .doc("When long results are summarised, and by which model; servers may override it.");
        of::CALL_ARGUMENTS.field.for_all().aka(&["tool_arguments"]);
        of::OUTPUT_CHECK.field.for_all();
        of::RESULT.field.for_all().aka(&["results"]).doc("How the results of every server are limited and formatted.");
        of::CONNECT_TIMEOUT.field.for_all().aka(&["startup_timeout", "init_timeout", "connection_timeout"]);
        of::LIST_TIMEOUT.field.for_all();
        of::CALL_TIMEOUT.field.for_all().aka(&["default_timeout", "request_timeout", "tool_timeout"]);
        of::CALL_TOTAL_TIMEOUT.field.for_all();
        of::WRITE_TIMEOUT.field.for_all();
        of::ERA_SILENCE.field.for_all();
        of::STOP_TIMEOUT.field.for_all();
        of::MAX_MESSAGE.field.for_all();
        of::MAX_PAGES.field.for_all();
        of::MAX_ITEMS.field.for_all();
        of::MAX_IN_FLIGHT.field.for_all();
        of::REQUIRED.field.for_all().doc("Whether the board is ready only when every server is ready; a server's own setting overrides it.");
        of::START.field.for_all();
        of::ERA.field.for_all();
        of::SCOPE.field.for_all();
        of::RESTART.field.for_all();
        of::IDLE_STOP.field.for_all();
        of::HEALTH_PROBE.field.for_all();
        of::HEALTH_INTERVAL.field.for_all();
        of::HEALTH_TIMEOUT.field.for_all();
        of::BREAKER.field.for_all().aka(&["circuit_breaker"]);
        of::RETRY.field.for_all();
        of::ENV_POLICY.field.for_all();
        of::CAPABILITIES.field.for_all();
        of::CASE_INSENSITIVE.field.for_all();
        of::APPROVAL.field.for_all();
        of::CROSSING.field.for_all();
        of::PINS.field.for_all();
        of::SCAN.field.for_all();
        of::RATE.field.for_all();
        of::LOOP_LIMIT.field.for_all();
        of::TAINT.field.for_all();
        of::MAX_RESULT.field.for_all();
        of::STRUCTURED.field.for_all();
        plain("inputs", Kind::Any, "").foreign();
    }
}
