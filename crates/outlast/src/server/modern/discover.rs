//! `server/discover`: versions, capabilities, and who answers (V2-DISC-1).

use outlast_wire::envelope::ErrorObject;
use outlast_wire::object::{self, NotAnObject};
use outlast_wire::v2;
use outlast_wire::{Raw, RawRef, codes};

use super::Request;
use super::finish::{Answer, CACHE};
use super::request_meta::VERSIONS;
use crate::server::Introduction;

impl Request {
    pub(super) async fn discover(&self) -> Result<Answer, ErrorObject> {
        let about = self.introduction().await?;
        let capabilities = capabilities(&about)?;
        Ok(Answer::Finished(v2::discover_result(
            &VERSIONS,
            capabilities.borrow(),
            about.instructions.as_deref(),
            about.info.borrow(),
            CACHE,
        )))
    }
}

/// What the server can do, as it is said in this era.
pub(super) fn capabilities(about: &Introduction) -> Result<Raw, ErrorObject> {
    let declared = || {
        // V2-CAP-15: the V1 declaration has no place here.
        let mut all = v2::strip_legacy_tasks(about.capabilities.borrow())?;
        // The front tells of changes whatever stands behind it.
        for list in ["tools", "prompts", "resources"] {
            if object::find(all.borrow(), &[list]).is_some_and(RawRef::is_object) {
                let yes = Raw::encode(&true).expect("a truth is JSON");
                all = object::set(all.borrow(), &[list, "listChanged"], yes.borrow())?;
            }
        }
        if about.tasks {
            v2::declare_tasks(all.borrow())
        } else {
            Ok(all)
        }
    };
    declared().map_err(|_: NotAnObject| codes::internal("the capabilities are not an object"))
}
