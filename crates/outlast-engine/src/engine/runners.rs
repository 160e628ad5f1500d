//! The runners of an engine, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Engine, EngineError, Inner, Runner};
use crate::runtime::atomic::{AtomicBool, Ordering};
use crate::runtime::{Mutex, MutexGuard};

pub(crate) type RunnerMap = BTreeMap<Arc<str>, Arc<dyn Runner>>;

/// The runners that the engine was opened with, which are found without a lock, and those added
/// later.
pub(crate) struct Runners {
    initial: RunnerMap,
    added: Mutex<RunnerMap>,
    /// Whether a runner was added later.
    has_added: AtomicBool,
    /// Takes over recovered tasks whose runner is not known yet.
    absent: Option<Arc<dyn Runner>>,
}

impl Runners {
    pub(crate) fn new(initial: RunnerMap, absent: Option<Arc<dyn Runner>>) -> Self {
        Self {
            initial,
            added: Mutex::default(),
            has_added: AtomicBool::new(false),
            absent,
        }
    }

    /// Returns a runner, and the shared copy of its name.
    fn find(&self, name: &Arc<str>) -> Option<(Arc<str>, Arc<dyn Runner>)> {
        let of = |named: &RunnerMap| {
            let (name, runner) = named.get_key_value(name)?;
            Some((name.clone(), runner.clone()))
        };
        if self.has_added.load(Ordering::Acquire) {
            of(&self.added()).or_else(|| of(&self.initial))
        } else {
            of(&self.initial)
        }
    }

    fn added(&self) -> MutexGuard<'_, RunnerMap> {
        self.added.lock()
    }
}

impl Engine {
    /// Registers the runner of the calls whose origin names `name`. Tasks that a previous run left
    /// under that name were recovered without it, by the [absent
    /// runner](super::EngineBuilder::absent_runner) if there is one.
    pub fn add_runner(&self, name: impl Into<Arc<str>>, runner: Arc<dyn Runner>) {
        let runners = &self.inner.runners;
        runners.added().insert(name.into(), runner);
        runners.has_added.store(true, Ordering::Release);
    }
}

impl Inner {
    pub(crate) fn runner(&self, name: &Arc<str>) -> Result<Arc<dyn Runner>, EngineError> {
        self.named_runner(name).map(|(_, runner)| runner)
    }

    /// Returns the runner that takes over a recovered task.
    pub(super) fn runner_at_recovery(&self, name: &Arc<str>) -> Option<Arc<dyn Runner>> {
        let found = self.runner(name).ok();
        found.or_else(|| self.runners.absent.clone())
    }

    pub(super) fn named_runner(
        &self,
        name: &Arc<str>,
    ) -> Result<(Arc<str>, Arc<dyn Runner>), EngineError> {
        let found = self.runners.find(name);
        found.ok_or_else(|| EngineError::NoRunner(name.clone()))
    }
}
