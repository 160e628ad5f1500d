//! `subscriptions/listen`: the notifications that a client requests, and those that it will receive
//! (V2-SUB).

use crate::codes::invalid_params;
use crate::envelope::{ErrorObject, Id};
use crate::json::write::ObjectWriter;
use crate::meta;
use crate::object::{self, pick};
use crate::raw::{Raw, RawRef};

/// The notifications of one stream, requested or acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Changes of the tool list.
    pub tools_list_changed: bool,
    /// Changes of the prompt list.
    pub prompts_list_changed: bool,
    /// Changes of the resource list.
    pub resources_list_changed: bool,
    /// Changes of these resources.
    pub resource_subscriptions: Vec<String>,
    /// Changes of these tasks. `None` if the member is absent, which needs no extension
    /// (V2-NOTIF-4).
    pub task_ids: Option<Vec<String>>,
}

impl Filter {
    /// Reads the params of a listen request or of its acknowledgement.
    pub fn read(params: Option<RawRef<'_>>) -> Result<Self, ErrorObject> {
        let names = [
            "toolsListChanged",
            "promptsListChanged",
            "resourcesListChanged",
            "resourceSubscriptions",
            "taskIds",
        ];
        let [tools, prompts, resources, uris, tasks] = params
            .and_then(|params| pick(params, ["notifications"]).ok()?[0])
            .and_then(|filter| pick(filter, names).ok())
            .ok_or_else(|| invalid_params("`notifications` must be an object"))?;
        let requested = |flag: Option<RawRef<'_>>| flag.and_then(RawRef::boolean) == Some(true);
        Ok(Self {
            tools_list_changed: requested(tools),
            prompts_list_changed: requested(prompts),
            resources_list_changed: requested(resources),
            resource_subscriptions: texts(uris, "resourceSubscriptions")?.unwrap_or_default(),
            task_ids: texts(tasks, "taskIds")?,
        })
    }

    fn write(&self, out: &mut String) {
        let mut fields = ObjectWriter::begin(out);
        for (name, requested) in [
            ("toolsListChanged", self.tools_list_changed),
            ("promptsListChanged", self.prompts_list_changed),
            ("resourcesListChanged", self.resources_list_changed),
        ] {
            if requested {
                fields.plain(name, true);
            }
        }
        if !self.resource_subscriptions.is_empty() {
            fields.texts("resourceSubscriptions", &self.resource_subscriptions);
        }
        if let Some(tasks) = &self.task_ids {
            fields.texts("taskIds", tasks);
        }
        fields.end();
    }
}

/// The params of a listen request, without the per-request metadata.
pub fn listen_params(filter: &Filter) -> Raw {
    Raw::written(|out| {
        let mut fields = ObjectWriter::begin(out);
        fields.nested("notifications", |out| filter.write(out));
        fields.end();
    })
}

/// The params of the first message on the stream of the request `subscription`: the notifications
/// that it will carry (V2-SUB-2, V2-NOTIF-3).
pub fn acknowledged_params(subscription: &Id, filter: &Filter) -> Raw {
    Raw::written(|out| {
        let mut fields = ObjectWriter::begin(out);
        fields.nested(meta::META, |out| write_subscription(out, subscription));
        fields.nested("notifications", |out| filter.write(out));
        fields.end();
    })
}

/// The result that ends the stream in order (V2-SUB-7).
pub fn listen_result(subscription: &Id) -> Raw {
    Raw::written(|out| {
        let mut fields = ObjectWriter::begin(out);
        fields.text("resultType", "complete");
        fields.nested(meta::META, |out| write_subscription(out, subscription));
        fields.end();
    })
}

fn write_subscription(out: &mut String, subscription: &Id) {
    let mut fields = ObjectWriter::begin(out);
    fields.plain(meta::SUBSCRIPTION_ID, subscription);
    fields.end();
}

fn texts(list: Option<RawRef<'_>>, name: &str) -> Result<Option<Vec<String>>, ErrorObject> {
    let Some(list) = list.filter(|list| !list.is_null()) else {
        return Ok(None);
    };
    let text = |item: RawRef<'_>| Some(item.text()?.into_owned());
    object::elements(list)
        .and_then(|items| items.into_iter().map(text).collect::<Option<_>>())
        .map(Some)
        .ok_or_else(|| invalid_params(format!("`{name}` must be an array of strings")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_reads_back() {
        for filter in [
            Filter::default(),
            Filter {
                tools_list_changed: true,
                prompts_list_changed: false,
                resources_list_changed: true,
                resource_subscriptions: vec!["file:///a".into()],
                task_ids: Some(vec!["t".into(), "u".into()]),
            },
            Filter {
                task_ids: Some(Vec::new()),
                ..Filter::default()
            },
        ] {
            let params = listen_params(&filter);
            assert_eq!(Filter::read(Some(params.borrow())), Ok(filter.clone()));
            let acknowledged = acknowledged_params(&Id::from(0), &filter);
            assert_eq!(Filter::read(Some(acknowledged.borrow())), Ok(filter));
        }
    }

    #[test]
    fn an_invalid_filter_is_refused() {
        assert!(Filter::read(None).is_err());
        for params in [
            "{}",
            r#"{"notifications":[]}"#,
            r#"{"notifications":{"taskIds":"t"}}"#,
            r#"{"notifications":{"taskIds":[1]}}"#,
        ] {
            assert!(
                Filter::read(Some(RawRef::parse(params).unwrap())).is_err(),
                "{params}"
            );
        }
    }
}
