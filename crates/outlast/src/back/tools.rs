//! The tools of a server, read page by page and remembered until the server says that they have changed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use outlast_wire::v1::{TaskSupport, task_support};
use outlast_wire::{Raw, RawRef, object, params, tool};

use super::connection::Up;
use super::ears::Ears;
use super::fault::Fault;

/// A tool of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolInfo {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it runs as a task; absent and unknown mean that it does not (V1-TOOL-7, V1-TOOL-10).
    pub task_support: TaskSupport,
    /// Its description as it came: schemas, annotations, everything.
    pub raw: Raw,
}

/// What is remembered.
#[derive(Default)]
pub(crate) struct ToolShelf(Mutex<Option<Known>>);

struct Known {
    tools: Arc<[ToolInfo]>,
    changes: u64,
    up: Weak<Up>,
}

impl ToolShelf {
    /// The tools, from memory where they are still the same.
    pub(crate) async fn tools(
        &self,
        up: &Arc<Up>,
        ears: &Ears,
        patience: Duration,
    ) -> Result<Arc<[ToolInfo]>, Fault> {
        let changes = ears.tools_changed();
        let known = {
            let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let current = |known: &&Known| {
                known.changes == changes && Weak::ptr_eq(&known.up, &Arc::downgrade(up))
            };
            known
                .as_ref()
                .filter(current)
                .map(|known| known.tools.clone())
        };
        if let Some(tools) = known {
            return Ok(tools);
        }
        let tools: Arc<[ToolInfo]> = list(up, patience).await?.into();
        let known = Known {
            tools: tools.clone(),
            changes,
            up: Arc::downgrade(up),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        Ok(tools)
    }
}

/// All pages of `tools/list`.
async fn list(up: &Arc<Up>, patience: Duration) -> Result<Vec<ToolInfo>, Fault> {
    let mut tools = Vec::new();
    let mut pages = Pages::default();
    loop {
        let params = params::continuing(pages.cursor());
        let page = up
            .exchange
            .request(tool::LIST, Some(params.borrow()), patience)
            .await?;
        let found = object::find(page.borrow(), &["tools"]).and_then(object::elements);
        let found = found.ok_or_else(|| Fault::Malformed("`tools` is not an array".into()))?;
        tools.extend(found.into_iter().filter_map(read));
        let next = object::find(page.borrow(), &["nextCursor"]).and_then(RawRef::text);
        if !pages.turn(next.map(std::borrow::Cow::into_owned), tools.len())? {
            return Ok(tools);
        }
    }
}

/// A tool without a name cannot be called and is left out.
fn read(raw: RawRef<'_>) -> Option<ToolInfo> {
    let name = object::find(raw, &["name"]).and_then(RawRef::text)?;
    Some(ToolInfo {
        name: name.into(),
        task_support: task_support(raw),
        raw: raw.to_raw(),
    })
}

/// The way through a list of pages. Cursors are opaque (V1-PAGE-1); a server that leads in circles or on for ever is
/// not followed.
#[derive(Default)]
pub(crate) struct Pages {
    cursor: Option<String>,
    seen: BTreeSet<String>,
}

impl Pages {
    pub(crate) fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// Goes on to the next page; says whether there is one. `found` is how much there was on the pages so far.
    pub(crate) fn turn(&mut self, next: Option<String>, found: usize) -> Result<bool, Fault> {
        let Some(next) = next else { return Ok(false) };
        if !self.seen.insert(next.clone()) || self.seen.len() > PAGES || found > ENTRIES {
            return Err(Fault::Malformed("its list does not end".into()));
        }
        self.cursor = Some(next);
        Ok(true)
    }
}

/// The most pages of one list.
const PAGES: usize = 10_000;

/// The most entries of one list.
const ENTRIES: usize = 1_000_000;
