//! `server/discover`: versions, capabilities and server info (V2-DISC-1).

use outlast_wire::envelope::ErrorObject;
use outlast_wire::object::{self, NotAnObject};
use outlast_wire::v2;
use outlast_wire::{Raw, RawRef, codes};

use super::ModernRequest;
use super::finish::{CACHE, DraftReply};
use super::request_meta::VERSIONS;
use crate::server::BackendDescription;

impl ModernRequest {
    pub(super) async fn discover(&self) -> Result<DraftReply, ErrorObject> {
        let description = self.description().await?;
        let capabilities = capabilities(&description)?;
        Ok(DraftReply::Final(v2::discover_result(
            &VERSIONS,
            capabilities.borrow(),
            description.instructions.as_deref(),
            description.info.borrow(),
            CACHE,
        )))
    }
}

/// The capabilities of the server, as this era declares them.
pub(super) fn capabilities(description: &BackendDescription) -> Result<Raw, ErrorObject> {
    let declared = || {
        // V2-CAP-15: the V1 declaration is removed.
        let mut all = v2::strip_legacy_tasks(description.capabilities.borrow())?;
        // The server side sends change notifications for every backend.
        for list in ["tools", "prompts", "resources"] {
            if object::find(all.borrow(), &[list]).is_some_and(RawRef::is_object) {
                let supported = Raw::encode(&true).expect("a bool is JSON");
                all = object::set(all.borrow(), &[list, "listChanged"], supported.borrow())?;
            }
        }
        if description.tasks {
            v2::declare_tasks(all.borrow())
        } else {
            Ok(all)
        }
    };
    declared().map_err(|_: NotAnObject| codes::internal("the capabilities are not an object"))
}
