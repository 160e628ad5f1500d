//! Tools of this process as what stands behind a front.

use std::sync::Arc;

use async_trait::async_trait;
use outlast_wire::envelope::ErrorObject;
use outlast_wire::v1::TaskSupport;
use outlast_wire::{Raw, codes, params};
use serde_json::json;

use super::Tools;
use crate::front::{About, Client, Introduction, Offer, RUNNER, Reply, Service};

/// A server that is made of tools.
pub(crate) struct Own {
    tools: Arc<Tools>,
    about: About,
    runner: Arc<str>,
}

impl Own {
    pub(crate) fn new(tools: Arc<Tools>, about: About) -> Self {
        Self {
            tools,
            about,
            runner: RUNNER.into(),
        }
    }
}

#[async_trait]
impl Service for Own {
    async fn introduce(&self, _: &Arc<Client>) -> Result<Introduction, ErrorObject> {
        let About {
            name,
            version,
            instructions,
        } = &self.about;
        let encoded = |value| Raw::encode(&value).expect("objects of strings are JSON");
        Ok(Introduction {
            capabilities: encoded(json!({ "tools": {}, "logging": {} })),
            info: encoded(json!({ "name": name, "version": version })),
            instructions: instructions.clone(),
            tasks: self.tools.any_task(),
        })
    }

    async fn list_tools(&self, _: &Arc<Client>, params: Option<&Raw>) -> Reply {
        match params::cursor(params.map(Raw::borrow)) {
            Ok(None) => {}
            Ok(Some(_)) => return Reply::from(codes::invalid_params("invalid cursor")),
            Err(error) => return Reply::from(error),
        }
        let tools = self.tools.iter().map(|tool| {
            let mut listed = tool.listed();
            // V1-TOOL-8, S2-31: forbidden is left out.
            if tool.support() != TaskSupport::Forbidden {
                listed["execution"] = json!({ "taskSupport": tool.support().as_str() });
            }
            listed
        });
        match Raw::encode(&json!({ "tools": tools.collect::<Vec<_>>() })) {
            Ok(result) => Reply::Result(result),
            Err(error) => Reply::from(codes::internal(error.to_string())),
        }
    }

    async fn offer(&self, _: &Arc<Client>, tool: &str) -> Result<Option<Offer>, ErrorObject> {
        Ok(self.tools.get(tool).map(|tool| Offer {
            runner: self.runner.clone(),
            support: tool.support(),
            retry: tool.hints.retry(),
            immediate: tool.immediate.clone(),
            delivery: tool.delivery(),
            needs: tool.needs,
            headers: tool.headers.clone(),
        }))
    }
}
