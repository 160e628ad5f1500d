//! Tool annotations.

use outlast_engine::RetryClass;
use outlast_wire::{RawRef, object};

/// Whether an interrupted call of a tool can run again: only if the tool declares itself read-only
/// or idempotent.
pub(crate) fn retry_class(tool: RawRef<'_>) -> RetryClass {
    let hint =
        |name| object::find(tool, &["annotations", name]).and_then(RawRef::boolean) == Some(true);
    if hint("readOnlyHint") || hint("idempotentHint") {
        RetryClass::Rerun
    } else {
        RetryClass::Never
    }
}
