//! `capabilities.tasks` of both sides: which requests may become tasks, and which task methods are
//! supported.
//!
//! Every flag is an object whose presence means yes (V1-CAP-2). The specification's text calls them
//! boolean, so `true` is read as yes too; null and `false` are no.

use crate::json::write::ObjectWriter;
use crate::object::{self, NotAnObject};
use crate::raw::{Raw, RawRef};

/// The task support of a server (V1-CAP-3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerTasks {
    /// `tasks/list` is supported.
    pub list: bool,
    /// `tasks/cancel` is supported.
    pub cancel: bool,
    /// `tools/call` may be augmented.
    pub tools_call: bool,
}

/// The task support of a client (V1-CAP-4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientTasks {
    /// `tasks/list` is supported.
    pub list: bool,
    /// `tasks/cancel` is supported.
    pub cancel: bool,
    /// `sampling/createMessage` may be augmented.
    pub sampling: bool,
    /// `elicitation/create` may be augmented.
    pub elicitation: bool,
}

impl ServerTasks {
    /// Reads a server's capabilities. Returns `None` if they have no `tasks`.
    pub fn read(capabilities: RawRef<'_>) -> Option<Self> {
        let tasks = tasks(capabilities)?;
        Some(Self {
            list: flag(tasks, &["list"]),
            cancel: flag(tasks, &["cancel"]),
            tools_call: flag(tasks, &["requests", "tools", "call"]),
        })
    }

    /// Returns a server's capabilities with this declaration instead of any other.
    pub fn declare(self, capabilities: RawRef<'_>) -> Result<Raw, NotAnObject> {
        let requests: &[_] = if self.tools_call {
            &[("tools", "call")]
        } else {
            &[]
        };
        declare(capabilities, self.list, self.cancel, requests)
    }
}

impl ClientTasks {
    /// Reads a client's capabilities. Returns `None` if they have no `tasks`.
    pub fn read(capabilities: RawRef<'_>) -> Option<Self> {
        let tasks = tasks(capabilities)?;
        Some(Self {
            list: flag(tasks, &["list"]),
            cancel: flag(tasks, &["cancel"]),
            sampling: flag(tasks, &["requests", "sampling", "createMessage"]),
            elicitation: flag(tasks, &["requests", "elicitation", "create"]),
        })
    }

    /// Returns a client's capabilities with this declaration instead of any other.
    pub fn declare(self, capabilities: RawRef<'_>) -> Result<Raw, NotAnObject> {
        let mut requests = Vec::new();
        if self.sampling {
            requests.push(("sampling", "createMessage"));
        }
        if self.elicitation {
            requests.push(("elicitation", "create"));
        }
        declare(capabilities, self.list, self.cancel, &requests)
    }
}

fn tasks(capabilities: RawRef<'_>) -> Option<RawRef<'_>> {
    object::find(capabilities, &["tasks"]).filter(|tasks| tasks.is_object())
}

fn flag(tasks: RawRef<'_>, path: &[&str]) -> bool {
    object::find(tasks, path).is_some_and(|flag| flag.is_object() || flag.boolean() == Some(true))
}

fn declare(
    capabilities: RawRef<'_>,
    list: bool,
    cancel: bool,
    requests: &[(&str, &str)],
) -> Result<Raw, NotAnObject> {
    let mut tasks = String::new();
    let mut fields = ObjectWriter::begin(&mut tasks);
    if list {
        fields.json("list", "{}");
    }
    if cancel {
        fields.json("cancel", "{}");
    }
    if !requests.is_empty() {
        fields.nested("requests", |out| {
            let mut fields = ObjectWriter::begin(out);
            for (area, request) in requests {
                fields.keyed(area, |out| {
                    let mut fields = ObjectWriter::begin(out);
                    fields.keyed(request, |out| out.push_str("{}"));
                    fields.end();
                });
            }
            fields.end();
        });
    }
    fields.end();
    object::set(capabilities, &["tasks"], RawRef::scanned(&tasks))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V1-CAP-2.
    #[test]
    fn presence_means_yes() {
        let read = |text: &str| ServerTasks::read(RawRef::parse(text).unwrap());
        let full =
            read(r#"{"tasks":{"list":{},"cancel":{"x":1},"requests":{"tools":{"call":{}}}}}"#);
        assert_eq!(
            full,
            Some(ServerTasks {
                list: true,
                cancel: true,
                tools_call: true
            })
        );
        let odd =
            read(r#"{"tasks":{"list":true,"cancel":null,"requests":{"tools":{"call":false}}}}"#);
        assert_eq!(
            odd,
            Some(ServerTasks {
                list: true,
                ..ServerTasks::default()
            })
        );
        assert_eq!(read(r#"{"tasks":{}}"#), Some(ServerTasks::default()));
        assert_eq!(read(r#"{"tasks":null,"tools":{}}"#), None);
    }

    #[test]
    fn declarations_read_back_and_change_nothing_else() {
        let others = RawRef::parse(r#"{"tools":{"listChanged":true},"tasks":{"old":1}}"#).unwrap();
        let server = ServerTasks {
            list: false,
            cancel: true,
            tools_call: true,
        };
        let declared = server.declare(others).unwrap();
        assert_eq!(
            declared.as_str(),
            r#"{"tools":{"listChanged":true},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}"#
        );
        assert_eq!(ServerTasks::read(declared.borrow()), Some(server));
        let client = ClientTasks {
            list: true,
            cancel: false,
            sampling: true,
            elicitation: true,
        };
        let declared = client.declare(RawRef::parse("{}").unwrap()).unwrap();
        assert_eq!(ClientTasks::read(declared.borrow()), Some(client));
    }
}
