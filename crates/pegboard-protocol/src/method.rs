//! The names of requests and notifications.

/// What a request does to the server that gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It belongs to the connection itself.
    Connection,
    /// It shows what the server has.
    Read,
    /// It may run something.
    Run,
    /// A server sends it to its client.
    Client,
}

/// A request, and what else follows from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestMethod {
    /// The name.
    pub name: &'static str,
    /// What it does to the server.
    pub access: Access,
    /// Whether it changes nothing, so that it may be sent again after a session was lost.
    pub is_repeatable: bool,
    /// The key in the params that holds the name or address that the request is about. A header repeats it (modern).
    pub subject: Option<&'static str>,
}

impl RequestMethod {
    /// The request with this name, if the protocol has one.
    pub fn find(name: &str) -> Option<&'static Self> {
        REQUESTS.iter().find(|request| request.name == name)
    }
}

/// Declares the requests: a constant with the name of each, and their table.
macro_rules! requests {
    ( $( $(#[doc = $doc:literal])+ $name:ident = $text:literal: $access:ident $($repeatable:ident)? $(, about $subject:literal)?; )+ ) => {
        $( $(#[doc = $doc])+ pub const $name: &str = $text; )+

        /// All requests.
        pub const REQUESTS: &[RequestMethod] = &[
            $( RequestMethod {
                name: $text,
                access: Access::$access,
                is_repeatable: requests!(@repeatable $($repeatable)?),
                subject: requests!(@subject $($subject)?),
            }, )+
        ];
    };
    ( @repeatable repeatable ) => { true };
    ( @repeatable ) => { false };
    ( @subject $subject:literal ) => { Some($subject) };
    ( @subject ) => { None };
}

requests! {
    /// Begins a legacy session.
    INITIALIZE = "initialize": Connection;
    /// Asks whether the other side is there (legacy).
    PING = "ping": Connection repeatable;
    /// Asks what a server is and offers (modern).
    SERVER_DISCOVER = "server/discover": Connection;
    /// Lists tools.
    TOOLS_LIST = "tools/list": Read;
    /// Calls a tool.
    TOOLS_CALL = "tools/call": Run, about "name";
    /// Lists resources.
    RESOURCES_LIST = "resources/list": Read repeatable;
    /// Lists resource templates.
    RESOURCES_TEMPLATES_LIST = "resources/templates/list": Read repeatable;
    /// Reads a resource.
    RESOURCES_READ = "resources/read": Read repeatable, about "uri";
    /// Subscribes to changes of a resource (legacy).
    RESOURCES_SUBSCRIBE = "resources/subscribe": Read;
    /// Ends a subscription to a resource (legacy).
    RESOURCES_UNSUBSCRIBE = "resources/unsubscribe": Read;
    /// Lists prompts.
    PROMPTS_LIST = "prompts/list": Read repeatable;
    /// Gets a prompt.
    PROMPTS_GET = "prompts/get": Read repeatable, about "name";
    /// Asks for values of an argument.
    COMPLETION_COMPLETE = "completion/complete": Read repeatable;
    /// Sets the lowest level of log messages (legacy).
    LOGGING_SET_LEVEL = "logging/setLevel": Connection;
    /// Subscribes to notifications of a server (modern).
    SUBSCRIPTIONS_LISTEN = "subscriptions/listen": Read;
    /// Asks for the state of a task.
    TASKS_GET = "tasks/get": Run repeatable;
    /// Waits for the result of a task.
    TASKS_RESULT = "tasks/result": Run repeatable;
    /// Cancels a task.
    TASKS_CANCEL = "tasks/cancel": Run;
    /// Lists tasks.
    TASKS_LIST = "tasks/list": Run;
    /// Gives a task the input that it waits for (modern).
    TASKS_UPDATE = "tasks/update": Run;
    /// Asks the client for its roots.
    ROOTS_LIST = "roots/list": Client;
    /// Asks the client's model for a message.
    SAMPLING_CREATE_MESSAGE = "sampling/createMessage": Client;
    /// Asks the client's user for input.
    ELICITATION_CREATE = "elicitation/create": Client;
}

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
