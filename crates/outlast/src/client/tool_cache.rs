//! The tools of a server, read page by page and cached until the server reports a change.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use outlast_engine::Outcome;
use outlast_wire::headers::{self, HeaderParam, InvalidAnnotation};
use outlast_wire::v1::{TaskSupport, task_support};
use outlast_wire::v2::CacheHint;
use outlast_wire::{Raw, RawRef, object, params, tool};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::conversation::{Conversation, RequestDraft};
use super::error::Error;
use super::inbound::InboundHandler;
use super::modern;
use super::server_description::Generation;
use crate::schema;

/// A tool of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolInfo {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it runs as a task. A missing or unknown value means that it does not (V1-TOOL-7,
    /// V1-TOOL-10). In V2 the server decides for each call.
    pub task_support: TaskSupport,
    /// The whole description as the server sent it.
    pub raw: Raw,
}

/// The cached tool list.
#[derive(Default)]
pub(crate) struct ToolCache(Mutex<Option<CachedTools>>);

struct CachedTools {
    tools: Arc<[ToolInfo]>,
    changes: u64,
    conversation: Weak<Conversation>,
    /// When the cache hint of the server expires, if it sent one (V2-CACHE-4).
    fresh_until: Option<Instant>,
}

/// How old the cached list may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// As old as the cache hint of the server allows.
    AsServerAllows,
    /// Any age. The server reports changes.
    Any,
}

impl ToolCache {
    /// The tools, from the cache if it is valid.
    pub(crate) async fn tools(
        &self,
        conversation: &Arc<Conversation>,
        inbound: &InboundHandler,
        freshness: Freshness,
        options: ListOptions,
    ) -> Result<Arc<[ToolInfo]>, Error> {
        let changes = inbound.tools_changed();
        let cached = {
            let cached = self.0.lock();
            let current = |cached: &&CachedTools| {
                let fresh = cached
                    .fresh_until
                    .is_none_or(|until| Instant::now() < until);
                cached.changes == changes
                    && Weak::ptr_eq(&cached.conversation, &Arc::downgrade(conversation))
                    && (fresh || freshness == Freshness::Any)
            };
            cached
                .as_ref()
                .filter(current)
                .map(|cached| cached.tools.clone())
        };
        if let Some(tools) = cached {
            return Ok(tools);
        }
        // Boxed because it is large and seldom needed.
        let (tools, fresh_until) = Box::pin(list(conversation, options)).await?;
        let tools: Arc<[ToolInfo]> = tools.into();
        let cached = CachedTools {
            tools: tools.clone(),
            changes,
            conversation: Arc::downgrade(conversation),
            fresh_until,
        };
        *self.0.lock() = Some(cached);
        Ok(tools)
    }

    /// Why the outcome of a call does not match the `outputSchema` of its tool, if the tool is
    /// cached (V1-TLS-6).
    pub(crate) fn output_mismatch(&self, tool: &str, outcome: &Outcome) -> Option<String> {
        let Outcome::Result(result) = outcome else {
            return None;
        };
        let tools = self.0.lock().as_ref().map(|cached| cached.tools.clone())?;
        let tool = tools.iter().find(|cached| &*cached.name == tool)?;
        let schema = object::find(tool.raw.borrow(), &["outputSchema"])?;
        match object::find(result.borrow(), &["structuredContent"]) {
            Some(structured) => schema::mismatch(schema, structured),
            None => Some("the result has no `structuredContent`".into()),
        }
    }

    /// Drops the cache after it proved outdated (V2-PARAM-6).
    pub(crate) fn forget(&self) {
        *self.0.lock() = None;
    }
}

/// How the list is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListOptions {
    pub(crate) timeout: Duration,
    /// Whether arguments are mirrored in headers.
    pub(crate) headers: bool,
}

/// All pages of `tools/list`, and when their cache hint expires.
async fn list(
    conversation: &Arc<Conversation>,
    options: ListOptions,
) -> Result<(Vec<ToolInfo>, Option<Instant>), Error> {
    let modern = conversation.server.is_modern();
    let mut tools = Vec::new();
    let mut pages = PageCursor::default();
    let mut fresh_until = None;
    loop {
        let params = params::continuing(pages.cursor());
        // A server may list other tools for clients without tasks.
        let draft = RequestDraft::new(tool::LIST, Some(params.borrow())).with_tasks();
        let page = conversation.request(&draft, options.timeout).await?;
        if modern {
            modern::complete(&page)?;
            let hint = Duration::from_millis(CacheHint::read(page.borrow()).ttl_ms);
            let until = Instant::now().checked_add(hint);
            fresh_until = until.into_iter().chain(fresh_until).min();
        }
        let found = object::find(page.borrow(), &["tools"]).and_then(object::elements);
        let found = found.ok_or_else(|| Error::Malformed("`tools` is not an array".into()))?;
        let found = found
            .into_iter()
            .filter_map(|tool| read(conversation, tool));
        tools.extend(found.filter(|tool| !(modern && options.headers) || is_usable(tool)));
        let next = object::find(page.borrow(), &["nextCursor"]).and_then(RawRef::text);
        if !pages.advance(next.map(std::borrow::Cow::into_owned), tools.len())? {
            return Ok((tools, fresh_until));
        }
    }
}

/// A tool with invalid annotations cannot be called over HTTP (V2-PARAM-3).
fn is_usable(tool: &ToolInfo) -> bool {
    match header_params(tool) {
        Ok(_) => true,
        Err(error) => {
            tracing::warn!(tool = %tool.name, %error, "tool omitted: its header annotations are invalid");
            false
        }
    }
}

/// The parameters of a tool that are mirrored in headers (V2-PARAM-1).
pub(crate) fn header_params(tool: &ToolInfo) -> Result<Vec<HeaderParam>, InvalidAnnotation> {
    match object::find(tool.raw.borrow(), &["inputSchema"]) {
        Some(schema) => headers::annotations(schema),
        None => Ok(Vec::new()),
    }
}

/// Reads a tool. One without a name cannot be called and is omitted.
fn read(conversation: &Conversation, raw: RawRef<'_>) -> Option<ToolInfo> {
    let name = object::find(raw, &["name"]).and_then(RawRef::text)?;
    Some(ToolInfo {
        name: name.into(),
        task_support: match conversation.server.generation {
            Generation::V2 => TaskSupport::Optional,
            Generation::V1(_) | Generation::None => task_support(raw),
        },
        raw: raw.to_raw(),
    })
}

/// The position in a paged list. Cursors are opaque (V1-PAGE-1). Repeated cursors and endless lists
/// are errors.
#[derive(Default)]
pub(crate) struct PageCursor {
    cursor: Option<String>,
    seen: BTreeSet<String>,
}

impl PageCursor {
    pub(crate) fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// Advances to the next page; returns whether there is one. `found` is the number of entries so
    /// far.
    pub(crate) fn advance(&mut self, next: Option<String>, found: usize) -> Result<bool, Error> {
        let Some(next) = next else { return Ok(false) };
        if !self.seen.insert(next.clone()) || self.seen.len() > MAX_PAGES || found > MAX_ENTRIES {
            return Err(Error::Malformed(
                "its list has too many pages or entries".into(),
            ));
        }
        self.cursor = Some(next);
        Ok(true)
    }
}

/// How many pages a list may have.
const MAX_PAGES: usize = 10_000;

/// How many entries a list may have.
const MAX_ENTRIES: usize = 1_000_000;
