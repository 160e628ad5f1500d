//! Url elicitations, which the two eras identify and require differently.

use outlast_engine::engine::CallContext;
use outlast_engine::{InputKind, InputRequest, InputResponse, InputTiming, Outcome, random};
use outlast_wire::{Raw, RawRef, codes, object, version};
use serde_json::json;
use tokio::task::JoinSet;

use crate::server::{ClientHandle, RequestParts};

/// The params of a url elicitation for the caller's era. Only the legacy era has an elicitation id,
/// for the notification that the elicitation is complete (BR-IN-10).
pub(super) fn for_caller(params: Raw, call: &CallContext) -> Raw {
    let arrival = call.local_data::<RequestParts>();
    let is_modern = arrival.is_some_and(|arrival| arrival.client.version() == version::MODERN);
    let has_name = object::find(params.borrow(), &[NAME]).is_some();
    let other = match (is_modern, has_name) {
        (true, true) => object::remove(params.borrow(), &[NAME]).ok(),
        (false, false) => {
            let name = Raw::encode(&random::token::<16>()).ok();
            name.and_then(|name| object::set(params.borrow(), &[NAME], name.borrow()).ok())
        }
        _ => None,
    };
    other.unwrap_or(params)
}

/// What to do with a call that its server rejected because url elicitations must be completed
/// first. Only the legacy era has that error, so a modern caller gets the elicitations instead
/// (BR-IN-11).
pub(super) enum Demand {
    /// All URLs were accepted: the call can be repeated.
    Met,
    /// A URL was declined, or none is required.
    Outcome(Outcome),
}

/// Sends the url elicitations that the outcome of a call requires.
pub(super) async fn demanded(
    outcome: Outcome,
    client: &ClientHandle,
    call: &CallContext,
) -> Demand {
    let Some(pages) = listed(&outcome).filter(|_| client.version() == version::MODERN) else {
        return Demand::Outcome(outcome);
    };
    if !client.accepts().contains(InputKind::ElicitUrl) {
        let required = json!({ "elicitation": { "url": {} } });
        let required = Raw::encode(&required).expect("literal objects are JSON");
        let why = "the call requires a url elicitation, and the request does not declare the capability `elicitation.url`";
        let error = codes::missing_capability(why, required.borrow());
        return Demand::Outcome(error.into());
    }
    let mut asking = JoinSet::new();
    for page in pages {
        let call = call.clone();
        let mut question = InputRequest::new(InputKind::ElicitUrl, Some(for_caller(page, &call)));
        question.timing = InputTiming::BeforeWork;
        asking.spawn(async move { call.request_input(question).await });
    }
    while let Some(answered) = asking.join_next().await {
        match answered {
            Ok(Ok(InputResponse::Result(answer))) if accepts(answer.borrow()) => {}
            _ => return Demand::Outcome(outcome),
        }
    }
    Demand::Met
}

/// Whether an outcome requires url elicitations.
pub(super) fn is_demand(outcome: &Outcome) -> bool {
    listed(outcome).is_some()
}

/// The url elicitations that an error requires.
fn listed(outcome: &Outcome) -> Option<Vec<Raw>> {
    let Outcome::Error(error, code, _) = outcome else {
        return None;
    };
    if code.0 != codes::URL_ELICITATION_REQUIRED {
        return None;
    }
    let pages = object::find(error.borrow(), &["data", "elicitations"])?;
    let pages = object::elements(pages)?;
    let pages = pages.into_iter().map(RawRef::to_raw);
    Some(pages.collect::<Vec<_>>()).filter(|pages| !pages.is_empty())
}

fn accepts(answer: RawRef<'_>) -> bool {
    let action = object::find(answer, &["action"]).and_then(RawRef::text);
    action.as_deref() == Some("accept")
}

/// The member with the id of a url elicitation.
const NAME: &str = "elicitationId";
