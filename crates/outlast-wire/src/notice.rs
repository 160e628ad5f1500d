//! Notifications that are the same in both generations: progress and cancellation.

use crate::envelope::Id;
use crate::json::write::ObjectWriter;
use crate::object::pick;
use crate::raw::{Raw, RawRef};

/// The method that reports progress.
pub const PROGRESS: &str = "notifications/progress";
/// The method that cancels a request.
pub const CANCELLED: &str = "notifications/cancelled";
/// The notification with which a server on a pipe announces that it closes the connection. A peer
/// that supports it sends nothing more and closes its end.
pub const CLOSING: &str = "notifications/outlast/closing";

/// One progress report.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The token of the request.
    pub token: Id,
    /// The progress so far. It grows with every report (V1-PRG-3).
    pub progress: f64,
    /// The total, if known.
    pub total: Option<f64>,
    /// A description for people.
    pub message: Option<String>,
}

impl Progress {
    /// Reads the params of a progress notification, or `None` if they are invalid.
    pub fn read(params: RawRef<'_>) -> Option<Self> {
        let [token, progress, total, message] =
            pick(params, ["progressToken", "progress", "total", "message"]).ok()?;
        Some(Self {
            token: Id::read(token?).ok()?,
            progress: progress?.number()?,
            total: total.and_then(RawRef::number),
            message: message.and_then(RawRef::text).map(Into::into),
        })
    }

    /// The params. Numbers that JSON cannot express are omitted, or zero.
    pub fn to_raw(&self) -> Raw {
        let finite = |number: f64| number.is_finite().then_some(number);
        Raw::written(|out| {
            let mut fields = ObjectWriter::begin(out);
            fields.plain("progressToken", &self.token);
            fields.plain("progress", finite(self.progress).unwrap_or_default());
            if let Some(total) = self.total.and_then(finite) {
                fields.plain("total", total);
            }
            if let Some(message) = &self.message {
                fields.text("message", message);
            }
            fields.end();
        })
    }
}

/// Returns the request that a cancellation names. `None` cancels nothing (V1-CANC-4, V1-CANC-8).
pub fn cancelled_request(params: RawRef<'_>) -> Option<Id> {
    let [id] = pick(params, ["requestId"]).ok()?;
    Id::read(id?).ok()
}

/// The params that cancel the request `id`.
pub fn cancelling(id: &Id, reason: Option<&str>) -> Raw {
    Raw::written(|out| {
        let mut fields = ObjectWriter::begin(out);
        fields.plain("requestId", id);
        if let Some(reason) = reason {
            fields.text("reason", reason);
        }
        fields.end();
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_reads_back() {
        for progress in [
            Progress {
                token: Id::from(0),
                progress: 0.5,
                total: Some(3.0),
                message: Some("a\nb".into()),
            },
            Progress {
                token: Id::text("t"),
                progress: 1e30,
                total: None,
                message: None,
            },
        ] {
            assert_eq!(Progress::read(progress.to_raw().borrow()), Some(progress));
        }
    }

    /// V1-CANC-4.
    #[test]
    fn a_malformed_cancellation_names_nothing() {
        for params in ["{}", r#"{"requestId":null}"#, r#"{"requestId":1.5}"#] {
            assert_eq!(cancelled_request(RawRef::parse(params).unwrap()), None);
        }
        let id = Id::text("x");
        assert_eq!(
            cancelled_request(cancelling(&id, Some("why")).borrow()),
            Some(id)
        );
    }
}
