//! The runners of an engine, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Engine, EngineError, Inner, Runner};
use crate::runtime::atomic::{AtomicBool, Ordering};
use crate::runtime::{Mutex, MutexGuard};

/// Runners by name.
pub(crate) type Named = BTreeMap<Arc<str>, Arc<dyn Runner>>;

/// Those an engine was opened with, which are found without a lock, and those that came later.
pub(crate) struct Runners {
    first: Named,
    later: Mutex<Named>,
    /// Whether any came later.
    more: AtomicBool,
    /// Takes over recovered tasks whose runner is not known yet.
    absent: Option<Arc<dyn Runner>>,
}

impl Runners {
    pub(crate) fn new(first: Named, absent: Option<Arc<dyn Runner>>) -> Self {
        Self {
            first,
            later: Mutex::default(),
            more: AtomicBool::new(false),
            absent,
        }
    }

    /// A runner, and its name as it is kept here.
    fn find(&self, name: &Arc<str>) -> Option<(Arc<str>, Arc<dyn Runner>)> {
        let of = |named: &Named| {
            let (name, runner) = named.get_key_value(name)?;
            Some((name.clone(), runner.clone()))
        };
        if self.more.load(Ordering::Acquire) {
            of(&self.later()).or_else(|| of(&self.first))
        } else {
            of(&self.first)
        }
    }

    fn later(&self) -> MutexGuard<'_, Named> {
        self.later.lock()
    }
}

impl Engine {
    /// Runs the calls whose origin names `name` by `runner` from now on. Tasks that a previous run left under that name
    /// were settled without it, by the [absent runner](super::EngineBuilder::absent_runner) if there is one.
    pub fn add_runner(&self, name: impl Into<Arc<str>>, runner: Arc<dyn Runner>) {
        let runners = &self.inner.runners;
        runners.later().insert(name.into(), runner);
        runners.more.store(true, Ordering::Release);
    }
}

impl Inner {
    pub(crate) fn runner(&self, name: &Arc<str>) -> Result<Arc<dyn Runner>, EngineError> {
        self.named_runner(name).map(|(_, runner)| runner)
    }

    /// The runner that takes over a recovered task.
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
