//! The names of methods and notifications that both eras share.
//!
//! Those of tools are in [`crate::tool`], of log messages in [`crate::log`], of progress and
//! cancellation in [`crate::notice`], and those of a single era in [`crate::v1::method`] and
//! [`crate::v2::method`].

/// Checks whether the peer responds.
pub const PING: &str = "ping";
/// Lists prompts.
pub const PROMPTS_LIST: &str = "prompts/list";
/// Returns the messages of a prompt.
pub const PROMPTS_GET: &str = "prompts/get";
/// Lists resources.
pub const RESOURCES_LIST: &str = "resources/list";
/// Lists templates of resource URIs.
pub const RESOURCE_TEMPLATES_LIST: &str = "resources/templates/list";
/// Returns the contents of a resource.
pub const RESOURCES_READ: &str = "resources/read";
/// Subscribes to changes of a resource.
pub const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
/// Ends a subscription.
pub const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
/// Completes an argument.
pub const COMPLETE: &str = "completion/complete";
/// Requests the roots of the client.
pub const ROOTS_LIST: &str = "roots/list";
/// Requests a response of the client's model.
pub const CREATE_MESSAGE: &str = "sampling/createMessage";
/// Requests input of the user.
pub const ELICIT: &str = "elicitation/create";

/// The list of tools has changed.
pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// The list of prompts has changed.
pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
/// The list of resources has changed.
pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
/// A resource has changed.
pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
/// The client's roots have changed.
pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
/// A url elicitation is complete.
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
