//! 500 tools of twenty similar services, and queries that use other words than they do.

use serde_json::json;

use crate::catalog::{Catalog, HeaderRule, Tool};
use pegboard_base::name::ServerName;

/// A service and its resources: each with a description and three arguments.
type Service = (&'static str, [(&'static str, &'static str, &'static str); 5]);

const SERVICES: &[Service] = &[
    (
        "github",
        [
            ("issue", "bug report or task of a repository", "title body labels"),
            (
                "pull_request",
                "proposed change that is reviewed and merged",
                "title head base",
            ),
            (
                "release",
                "published version of a repository with notes",
                "tag_name notes draft",
            ),
            (
                "workflow_run",
                "run of a continuous integration workflow",
                "workflow ref inputs",
            ),
            ("gist", "small shared snippet of code", "filename content public"),
        ],
    ),
    (
        "gitlab",
        [
            (
                "merge_request",
                "proposed change of a project",
                "source_branch target_branch title",
            ),
            ("pipeline", "sequence of build jobs", "ref variables project_id"),
            (
                "milestone",
                "goal with a due date that groups work",
                "title due_date project_id",
            ),
            ("wiki_page", "page of a project's wiki", "slug content format"),
            ("runner", "machine that executes build jobs", "tag_list paused token"),
        ],
    ),
    (
        "jira",
        [
            (
                "ticket",
                "unit of work that moves through statuses",
                "summary project assignee",
            ),
            ("sprint", "time box in which a team works", "name start_date goal"),
            ("board", "kanban or scrum board of a team", "name type filter_id"),
            (
                "worklog",
                "time that was spent on a ticket",
                "ticket_key time_spent started",
            ),
            ("epic", "large body of work that is split up", "name summary color"),
        ],
    ),
    (
        "slack",
        [
            (
                "message",
                "text that people read in a channel",
                "channel text thread_ts",
            ),
            ("channel", "room in which a team talks", "name is_private topic"),
            ("reaction", "emoji on a message", "emoji timestamp channel"),
            ("reminder", "note to somebody at a later time", "text time user"),
            (
                "usergroup",
                "named group of people that can be mentioned",
                "handle name users",
            ),
        ],
    ),
    (
        "kubernetes",
        [
            ("pod", "group of running containers", "name namespace image"),
            (
                "deployment",
                "set of replicas that is kept running",
                "name namespace replicas",
            ),
            ("service", "stable network address for pods", "name namespace port"),
            ("configmap", "settings that pods read", "name namespace data"),
            (
                "namespace",
                "part of a cluster with its own names",
                "name labels annotations",
            ),
        ],
    ),
    (
        "aws",
        [
            ("s3_bucket", "place where objects are stored", "bucket region acl"),
            (
                "ec2_instance",
                "virtual machine in the cloud",
                "instance_type ami region",
            ),
            (
                "lambda_function",
                "code that runs without a server",
                "function_name runtime handler",
            ),
            ("iam_role", "identity with permissions", "role_name policy trust"),
            (
                "dynamodb_table",
                "key-value table without a schema",
                "table_name key_schema billing_mode",
            ),
        ],
    ),
    (
        "stripe",
        [
            ("customer", "person or company that buys", "email name phone"),
            ("invoice", "bill that a customer must pay", "customer amount due_date"),
            (
                "subscription",
                "recurring payment for a plan",
                "customer price trial_days",
            ),
            (
                "refund",
                "money that is given back for a charge",
                "charge amount reason",
            ),
            ("coupon", "discount on future payments", "percent_off duration code"),
        ],
    ),
    (
        "notion",
        [
            ("page", "document in a workspace", "parent title content"),
            (
                "database",
                "collection of pages with properties",
                "parent title properties",
            ),
            ("block", "paragraph, heading or list inside a page", "parent type text"),
            ("comment", "remark on a page", "page_id text discussion"),
            ("workspace_user", "person who may see a workspace", "name email role"),
        ],
    ),
    (
        "calendar",
        [
            ("event", "meeting at a time and place", "summary start end"),
            (
                "attendee",
                "person who is invited to a meeting",
                "email event_id optional",
            ),
            ("room", "bookable conference room", "name capacity building"),
            ("availability", "free and busy hours of a person", "email from to"),
            ("holiday", "day on which nobody works", "date country name"),
        ],
    ),
    (
        "mail",
        [
            ("draft", "unsent e-mail", "to subject body"),
            ("thread", "conversation of e-mails", "query label max"),
            ("label", "tag that sorts e-mails", "name color visibility"),
            ("filter", "rule that sorts incoming e-mail", "from subject action"),
            (
                "attachment",
                "file that travels with an e-mail",
                "message_id filename data",
            ),
        ],
    ),
    (
        "postgres",
        [
            ("row", "record of a relational table", "table values where"),
            ("view", "stored query that looks like a table", "name definition schema"),
            ("index", "structure that makes queries quick", "table columns unique"),
            ("backup", "dump of the whole database", "path format compress"),
            (
                "replication_slot",
                "position of a standby in the write-ahead log",
                "name plugin temporary",
            ),
        ],
    ),
    (
        "redis",
        [
            ("key", "cached value with a time to live", "key value ttl"),
            ("stream", "append-only log of entries", "stream fields maxlen"),
            ("sorted_set", "members ordered by a score", "key member score"),
            (
                "pubsub_topic",
                "topic to which subscribers listen",
                "topic payload pattern",
            ),
            ("hash_field", "field of a hash", "key field value"),
        ],
    ),
    (
        "browser",
        [
            ("tab", "open page in the browser", "url index active"),
            (
                "screenshot",
                "picture of what a page looks like",
                "selector full_page format",
            ),
            ("cookie", "small value that a site keeps", "name value domain"),
            (
                "form_field",
                "input on a page that can be filled in",
                "selector value submit",
            ),
            ("network_request", "traffic that a page caused", "url method status"),
        ],
    ),
    (
        "files",
        [
            ("file", "text file on this computer", "path content encoding"),
            ("folder", "directory on this computer", "path recursive hidden"),
            ("symlink", "link from one path to another", "path target force"),
            ("archive", "zip or tar file", "path members compression"),
            ("file_permission", "who may read and write a path", "path mode owner"),
        ],
    ),
    (
        "terraform",
        [
            (
                "plan",
                "preview of changes to infrastructure",
                "workspace target destroy",
            ),
            (
                "state_entry",
                "what is known of one piece of infrastructure",
                "address id module",
            ),
            ("variable", "input of a configuration", "key value sensitive"),
            ("module", "reusable piece of configuration", "source version inputs"),
            ("policy_check", "rule that a plan must obey", "name level path"),
        ],
    ),
    (
        "datadog",
        [
            ("dashboard", "page of charts", "title widgets layout"),
            ("metric", "series of measurements over time", "name points tags"),
            ("log_query", "question to the collected logs", "query from to"),
            (
                "slo",
                "objective for how reliable a service is",
                "name target timeframe",
            ),
            (
                "synthetic_test",
                "check that visits an endpoint regularly",
                "url frequency locations",
            ),
        ],
    ),
    (
        "sentry",
        [
            (
                "exception",
                "crash that an application reported",
                "project fingerprint level",
            ),
            (
                "alert_rule",
                "condition on which somebody is told of crashes",
                "name conditions actions",
            ),
            (
                "stack_trace",
                "lines of code that led to a crash",
                "event_id frames raw",
            ),
            (
                "source_map",
                "file that turns minified code back",
                "release url artifact",
            ),
            (
                "environment",
                "stage such as production or staging",
                "name project hidden",
            ),
        ],
    ),
    (
        "pagerduty",
        [
            (
                "incident",
                "outage that somebody must look at now",
                "title service urgency",
            ),
            ("on_call_shift", "time in which a person is on call", "user start end"),
            (
                "escalation_policy",
                "who is called when nobody answers",
                "name rules repeat",
            ),
            (
                "status_update",
                "news for those who wait for a repair",
                "incident message subscribers",
            ),
            (
                "maintenance_window",
                "time in which nobody is woken",
                "services start end",
            ),
        ],
    ),
    (
        "maps",
        [
            ("route", "way from one place to another", "origin destination mode"),
            ("place", "shop, restaurant or sight", "query location radius"),
            ("geocode", "coordinates of a street address", "address country language"),
            ("traffic_report", "how congested roads are", "area time severity"),
            ("elevation", "height above the sea", "latitude longitude samples"),
        ],
    ),
    (
        "spotify",
        [
            ("playlist", "list of songs", "name tracks public"),
            ("track", "song of an artist", "title artist market"),
            (
                "podcast_episode",
                "spoken show that can be listened to",
                "show episode language",
            ),
            (
                "playback",
                "what is being played at the moment",
                "device volume position",
            ),
            ("album", "record of an artist", "name artist year"),
        ],
    ),
];

/// The operations on each resource.
const VERBS: [(&str, &str); 5] = [
    ("create", "Creates a"),
    ("list", "Lists every"),
    ("get", "Returns the details of one"),
    ("update", "Changes an existing"),
    ("delete", "Permanently deletes a"),
];

pub(super) fn tools() -> Vec<std::sync::Arc<Tool>> {
    let mut tools = Vec::new();
    for (service, things) in SERVICES {
        let items = things.iter().flat_map(|(thing, about, arguments)| {
            VERBS.map(|(verb, does)| {
                let name = format!("{verb}_{thing}");
                let thing = thing.replace('_', " ");
                let properties: serde_json::Map<_, _> = arguments
                    .split(' ')
                    .map(|name| (name.to_owned(), json!({"type": "string"})))
                    .collect();
                json!({
                    "name": name, "description": format!("{does} {thing}: {about}."),
                    "inputSchema": {"type": "object", "properties": properties},
                })
            })
        });
        let mut catalog = Catalog::default();
        catalog.read_tools(
            &ServerName::parse(service).unwrap(),
            items.collect(),
            HeaderRule::Ignored,
        );
        tools.extend(catalog.tools);
    }
    tools
}

/// Queries, each with the tool that it means.
pub(super) const QUESTIONS: &[(&str, &str)] = &[
    ("file a bug in the repo", "github.create_issue"),
    ("which issues are open on github", "github.list_issue"),
    ("open a PR", "github.create_pull_request"),
    ("show me that pull request", "github.get_pull_request"),
    ("publish a new version with release notes", "github.create_release"),
    ("trigger the CI workflow again", "github.create_workflow_run"),
    ("share a code snippet", "github.create_gist"),
    ("throw away my gist", "github.delete_gist"),
    ("make a merge request", "gitlab.create_merge_request"),
    ("show the build pipelines", "gitlab.list_pipeline"),
    ("move the milestone's due date", "gitlab.update_milestone"),
    ("write a wiki page", "gitlab.create_wiki_page"),
    ("assign the jira ticket to Ann", "jira.update_ticket"),
    ("log the time I spent", "jira.create_worklog"),
    ("begin a new sprint", "jira.create_sprint"),
    ("post a text to the team channel", "slack.create_message"),
    ("make a private chat room", "slack.create_channel"),
    ("put an emoji on it", "slack.create_reaction"),
    ("remind me tomorrow", "slack.create_reminder"),
    ("what pods are running", "kubernetes.list_pod"),
    ("scale the deployment to five replicas", "kubernetes.update_deployment"),
    ("remove a namespace from the k8s cluster", "kubernetes.delete_namespace"),
    ("look at a configmap", "kubernetes.get_configmap"),
    ("new bucket in S3", "aws.create_s3_bucket"),
    ("start a virtual machine", "aws.create_ec2_instance"),
    ("list serverless functions", "aws.list_lambda_function"),
    ("which permissions does this IAM role have", "aws.get_iam_role"),
    ("give the money back", "stripe.create_refund"),
    ("bill the customer", "stripe.create_invoice"),
    ("cancel the recurring payment plan", "stripe.delete_subscription"),
    ("discount code for a customer", "stripe.create_coupon"),
    ("add a paragraph to the document", "notion.create_block"),
    ("remark on a notion page", "notion.create_comment"),
    ("schedule a meeting on Monday", "calendar.create_event"),
    ("when is Bob free", "calendar.get_availability"),
    ("invite somebody to the meeting", "calendar.create_attendee"),
    ("book a conference room", "calendar.create_room"),
    ("write an email but do not send it", "mail.create_draft"),
    ("rule for incoming mail", "mail.create_filter"),
    ("get the attached file of the mail", "mail.get_attachment"),
    ("insert a record into a table", "postgres.create_row"),
    ("dump the whole database", "postgres.create_backup"),
    (
        "make queries on this table faster with an index",
        "postgres.create_index",
    ),
    ("set a cached value with ttl", "redis.create_key"),
    ("read the member's score", "redis.get_sorted_set"),
    ("take a picture of the web page", "browser.create_screenshot"),
    ("fill in the form", "browser.update_form_field"),
    ("open a new tab with this url", "browser.create_tab"),
    (
        "which network traffic did the page cause",
        "browser.list_network_request",
    ),
    ("read a file from disk", "files.get_file"),
    ("what is in this directory", "files.list_folder"),
    ("make a zip of these", "files.create_archive"),
    ("who may write this path", "files.get_file_permission"),
    ("preview infrastructure changes", "terraform.create_plan"),
    ("build a page of charts", "datadog.create_dashboard"),
    ("ask the logs", "datadog.get_log_query"),
    ("how reliable must the service be", "datadog.get_slo"),
    ("show crashes of the application", "sentry.list_exception"),
    ("stacktrace of the crash", "sentry.get_stack_trace"),
    ("declare an outage", "pagerduty.create_incident"),
    ("who is on call now", "pagerduty.get_on_call_shift"),
    (
        "nobody should be woken during the repair",
        "pagerduty.create_maintenance_window",
    ),
    ("how do I get from the station to the hotel", "maps.get_route"),
    ("coordinates of an address", "maps.get_geocode"),
    ("is there a traffic jam", "maps.get_traffic_report"),
    ("find a restaurant nearby", "maps.list_place"),
    ("make a list of songs", "spotify.create_playlist"),
    ("what song is being played", "spotify.get_playback"),
];
