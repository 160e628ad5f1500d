//! `tools/list`: every tool on one page, with its task support where the client can use that.

use outlast_wire::v1::TaskSupport;
use outlast_wire::{Raw, RawRef, codes, params};
use serde_json::json;

use crate::front::{Reply, Session};

impl Session {
    pub(super) fn list_tools(&self, tasks: bool, params: Option<RawRef<'_>>) -> Reply {
        match params::cursor(params) {
            Ok(None) => {}
            Ok(Some(_)) => return Reply::from(codes::invalid_params("invalid cursor")),
            Err(error) => return Reply::from(error),
        }
        let tools: Vec<_> = self
            .front
            .tools
            .iter()
            .map(|tool| {
                let mut listed = tool.listed();
                // V1-TOOL-8, S2-31: forbidden is left out.
                if tasks && tool.support() != TaskSupport::Forbidden {
                    listed["execution"] = json!({ "taskSupport": tool.support().as_str() });
                }
                listed
            })
            .collect();
        match Raw::encode(&json!({ "tools": tools })) {
            Ok(result) => Reply::Result(result),
            Err(error) => Reply::from(codes::internal(error.to_string())),
        }
    }
}
