//! What a tool's annotations say of it.

use outlast_engine::RetryClass;
use outlast_wire::{RawRef, object};

/// Whether a tool may run again when nobody knows how far it came: only if it says that it only reads, or that repeating
/// it is harmless.
pub(crate) fn retry(tool: RawRef<'_>) -> RetryClass {
    let hint =
        |name| object::find(tool, &["annotations", name]).and_then(RawRef::boolean) == Some(true);
    if hint("readOnlyHint") || hint("idempotentHint") {
        RetryClass::Rerun
    } else {
        RetryClass::Never
    }
}
