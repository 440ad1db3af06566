//! The names of requests and notifications.

/// Begins a legacy session.
pub const INITIALIZE: &str = "initialize";
/// Asks whether the other side is there (legacy).
pub const PING: &str = "ping";
/// Asks what a server is and offers (modern).
pub const SERVER_DISCOVER: &str = "server/discover";

/// Lists tools.
pub const TOOLS_LIST: &str = "tools/list";
/// Calls a tool.
pub const TOOLS_CALL: &str = "tools/call";

/// Lists resources.
pub const RESOURCES_LIST: &str = "resources/list";
/// Lists resource templates.
pub const RESOURCES_TEMPLATES_LIST: &str = "resources/templates/list";
/// Reads a resource.
pub const RESOURCES_READ: &str = "resources/read";
/// Subscribes to changes of a resource (legacy).
pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
/// Ends a subscription to a resource (legacy).
pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";

/// Lists prompts.
pub const PROMPTS_LIST: &str = "prompts/list";
/// Gets a prompt.
pub const PROMPTS_GET: &str = "prompts/get";

/// Asks for values of an argument.
pub const COMPLETION_COMPLETE: &str = "completion/complete";
/// Sets the lowest level of log messages (legacy).
pub const LOGGING_SET_LEVEL: &str = "logging/setLevel";
/// Subscribes to notifications of a server (modern).
pub const SUBSCRIPTIONS_LISTEN: &str = "subscriptions/listen";

/// Asks for the state of a task.
pub const TASKS_GET: &str = "tasks/get";
/// Waits for the result of a task.
pub const TASKS_RESULT: &str = "tasks/result";
/// Cancels a task.
pub const TASKS_CANCEL: &str = "tasks/cancel";
/// Lists tasks.
pub const TASKS_LIST: &str = "tasks/list";
/// Gives a task the input that it waits for (modern).
pub const TASKS_UPDATE: &str = "tasks/update";

/// Asks the client for its roots.
pub const ROOTS_LIST: &str = "roots/list";
/// Asks the client's model for a message.
pub const SAMPLING_CREATE_MESSAGE: &str = "sampling/createMessage";
/// Asks the client's user for input.
pub const ELICITATION_CREATE: &str = "elicitation/create";

/// The names of all requests.
pub const REQUESTS: &[&str] = &[
    INITIALIZE,
    PING,
    SERVER_DISCOVER,
    TOOLS_LIST,
    TOOLS_CALL,
    RESOURCES_LIST,
    RESOURCES_TEMPLATES_LIST,
    RESOURCES_READ,
    RESOURCES_SUBSCRIBE,
    RESOURCES_UNSUBSCRIBE,
    PROMPTS_LIST,
    PROMPTS_GET,
    COMPLETION_COMPLETE,
    LOGGING_SET_LEVEL,
    SUBSCRIPTIONS_LISTEN,
    TASKS_GET,
    TASKS_RESULT,
    TASKS_CANCEL,
    TASKS_LIST,
    TASKS_UPDATE,
    ROOTS_LIST,
    SAMPLING_CREATE_MESSAGE,
    ELICITATION_CREATE,
];

/// The names of notifications.
pub mod notification {
    /// The client has read the answer to `initialize` (legacy).
    pub const INITIALIZED: &str = "notifications/initialized";
    /// The sender of a request does not want its response any more.
    pub const CANCELLED: &str = "notifications/cancelled";
    /// How far a request has come.
    pub const PROGRESS: &str = "notifications/progress";
    /// A log message.
    pub const MESSAGE: &str = "notifications/message";
    /// The list of tools has changed.
    pub const TOOLS_LIST_CHANGED: &str = "notifications/tools/list_changed";
    /// The list of resources has changed.
    pub const RESOURCES_LIST_CHANGED: &str = "notifications/resources/list_changed";
    /// A resource has changed.
    pub const RESOURCES_UPDATED: &str = "notifications/resources/updated";
    /// The list of prompts has changed.
    pub const PROMPTS_LIST_CHANGED: &str = "notifications/prompts/list_changed";
    /// The roots of the client have changed.
    pub const ROOTS_LIST_CHANGED: &str = "notifications/roots/list_changed";
    /// What a subscription covers (modern).
    pub const SUBSCRIPTIONS_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
    /// The user has done what a page asked for.
    pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
    /// The state of a task (legacy).
    pub const TASKS_STATUS: &str = "notifications/tasks/status";
    /// The state of a task (modern).
    pub const TASKS: &str = "notifications/tasks";

    /// The names of all notifications.
    pub const ALL: &[&str] = &[
        INITIALIZED,
        CANCELLED,
        PROGRESS,
        MESSAGE,
        TOOLS_LIST_CHANGED,
        RESOURCES_LIST_CHANGED,
        RESOURCES_UPDATED,
        PROMPTS_LIST_CHANGED,
        ROOTS_LIST_CHANGED,
        SUBSCRIPTIONS_ACKNOWLEDGED,
        ELICITATION_COMPLETE,
        TASKS_STATUS,
        TASKS,
    ];
}
