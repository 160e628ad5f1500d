//! A call to run, as the server side passes it to the engine.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use super::{EngineError, Inner, Runner};
use crate::id::NodeId;
use crate::origin::Origin;
use crate::owner::Owner;
use crate::policy::{SizeLimits, millis};
use crate::store::RecordWrite;
use crate::task::{NewTask, ResumeState, Task};

/// A call to run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewCall {
    /// The owner of the call.
    pub owner: Owner,
    /// The request.
    pub origin: Origin,
    /// The TTL that the caller requests for its task.
    pub ttl: Option<Duration>,
    /// The first status message of its task.
    pub message: Option<Arc<str>>,
    /// The resume state, if the work started before the task.
    pub resume_state: Option<ResumeState>,
    /// Identifies this request among those of its owner: the same key with the same request finds
    /// the same task.
    pub request_key: Option<Arc<str>>,
    /// Stored in the same transaction as the task.
    pub records: Vec<RecordWrite>,
    /// Data for the runner in this process. Never stored.
    pub local_data: Option<LocalData>,
    /// Who does the work.
    pub work: Work,
}

/// Who does the work of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// The runner of this engine.
    #[default]
    Runner,
    /// Other code, which reports by [`Engine::detached`](super::Engine::detached). The task has no
    /// executor.
    Detached,
}

/// The type of [`NewCall::local_data`].
pub type LocalData = Arc<dyn Any + Send + Sync>;

impl NewCall {
    /// A call without options.
    pub fn new(owner: Owner, origin: Origin) -> Self {
        Self {
            owner,
            origin,
            ttl: None,
            message: None,
            resume_state: None,
            request_key: None,
            records: Vec::new(),
            local_data: None,
            work: Work::Runner,
        }
    }

    fn check(&self, sizes: &SizeLimits) -> Result<(), EngineError> {
        let named =
            |what, text: &str| sizes.check(what, text.len(), sizes.name_bytes, "name_bytes");
        named("the owner's name", &self.owner.to_storage())?;
        named(
            "the request key",
            self.request_key.as_deref().unwrap_or_default(),
        )?;
        sizes.check(
            "the request",
            self.origin.size(),
            sizes.payload_bytes,
            "payload_bytes",
        )
    }
}

impl Inner {
    /// Checks that `call` may run here, and makes its task.
    pub(crate) fn admit(
        &self,
        mut call: NewCall,
    ) -> Result<(Arc<Task>, Arc<dyn Runner>), EngineError> {
        self.check_open()?;
        call.check(&self.policy.sizes)?;
        let (name, runner) = self.named_runner(&call.origin.runner)?;
        // All tasks share one copy of the name.
        call.origin.runner = name;
        let new = NewTask {
            id: self.ids.task(),
            owner: call.owner,
            origin: Arc::new(call.origin),
            request_key: call.request_key,
            executor: match call.work {
                Work::Runner => self.node,
                Work::Detached => NodeId::DETACHED,
            },
            lifetime: self.policy.lifetime(call.ttl.map(millis)),
            poll_interval_ms: self.policy.poll_interval_ms(),
        };
        let message = call.message.as_deref();
        let message = message.map(|message| self.policy.sizes.cut_status(message).into());
        let task = Task::new(new, self.now());
        let task = task
            .with_message(message)
            .with_resume_state(call.resume_state);
        Ok((Arc::new(task), runner))
    }
}

impl SizeLimits {
    pub(crate) fn check(
        &self,
        what: &'static str,
        size: usize,
        limit: usize,
        setting: &'static str,
    ) -> Result<(), EngineError> {
        if size <= limit {
            Ok(())
        } else {
            Err(EngineError::TooLarge {
                what,
                size,
                limit,
                setting,
            })
        }
    }
}
