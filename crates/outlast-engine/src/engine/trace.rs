//! The trace that a call belongs to, as its caller named it (V2-META-9).

use outlast_wire::{Raw, meta};
use tracing::Span;

/// The span of a call with these params, so that whatever is logged of it names its trace. None for
/// a call that names none: such calls pay nothing.
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

/// The ids of the trace and of the caller's span in it; none if that is not how W3C writes them.
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
    fn only_what_w3c_writes_is_read() {
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
