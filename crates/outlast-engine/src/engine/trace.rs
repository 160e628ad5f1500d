//! The trace of a call, as its caller named it (V2-META-9).

use outlast_wire::{Raw, meta};
use tracing::Span;

/// Returns a span with the trace ids of the call, so that log lines contain them. A call without a
/// trace gets a disabled span, which costs nothing.
pub fn call_span(params: Option<&Raw>) -> Span {
    let span = || {
        let parent = meta::trace(params?.borrow())?;
        let (trace, caller) = parts(&parent)?;
        Some(tracing::info_span!("call", trace, caller))
    };
    if tracing::enabled!(tracing::Level::INFO) {
        span().unwrap_or_else(Span::none)
    } else {
        Span::none()
    }
}

/// Parses the trace id and the caller's span id. Returns `None` if the text is not in the W3C
/// format.
fn parts(parent: &str) -> Option<(&str, &str)> {
    let mut parts = parent.split('-').skip(1);
    let (trace, caller) = (parts.next()?, parts.next()?);
    let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (trace.len() == 32 && caller.len() == 16 && hex(trace) && hex(caller))
        .then_some((trace, caller))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_w3c_trace_parents_are_read() {
        // V2-META-9.
        let read = |text: &str| parts(text).map(|(trace, caller)| format!("{trace} {caller}"));
        let fine = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let found = "0af7651916cd43dd8448eb211c80319c b7ad6b7169203331";
        assert_eq!(read(fine).as_deref(), Some(found));
        for odd in ["", "00", "00-1-2-01", "00-\n-b7ad6b7169203331-01"] {
            assert_eq!(read(odd), None, "{odd:?}");
        }
    }
}
