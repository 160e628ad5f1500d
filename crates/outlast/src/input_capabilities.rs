//! The capabilities that a client declares for input requests.

use outlast_engine::{InputKind, InputKinds};
use serde_json::{Value, json};

/// The capabilities of a client that accepts these input requests (V1-ELIC-1, V1-SAMP-1,
/// V1-ROOT-1).
pub(crate) fn input_capabilities(accepts: InputKinds) -> Value {
    let mut all = json!({});
    if accepts.contains(InputKind::ElicitForm) {
        all["elicitation"]["form"] = json!({});
    }
    if accepts.contains(InputKind::ElicitUrl) {
        all["elicitation"]["url"] = json!({});
    }
    if accepts.contains(InputKind::Sample) || accepts.contains(InputKind::SampleWithTools) {
        all["sampling"] = json!({});
    }
    if accepts.contains(InputKind::SampleWithTools) {
        all["sampling"]["tools"] = json!({});
    }
    if accepts.contains(InputKind::Roots) {
        all["roots"] = json!({});
    }
    all
}
