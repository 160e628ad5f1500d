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
    let has_name = object::find(params.borrow(), &[ELICITATION_ID]).is_some();
    let other = match (is_modern, has_name) {
        (true, true) => object::remove(params.borrow(), &[ELICITATION_ID]).ok(),
        (false, false) => {
            let name = Raw::encode(&random::token::<16>()).ok();
            name.and_then(|name| {
                object::set(params.borrow(), &[ELICITATION_ID], name.borrow()).ok()
            })
        }
        _ => None,
    };
    other.unwrap_or(params)
}

/// What to do with a call that its server rejected because url elicitations must be completed
/// first. Only the legacy era has that error, so a modern caller gets the elicitations instead
/// (BR-IN-11).
pub(super) enum UrlElicitations {
    /// All URLs were accepted: the call can be repeated.
    Accepted,
    /// A URL was declined, or none is required.
    Outcome(Outcome),
}

/// Sends the url elicitations that the outcome of a call requires.
pub(super) async fn elicit_urls(
    outcome: Outcome,
    client: &ClientHandle,
    call: &CallContext,
) -> UrlElicitations {
    let Some(elicitations) =
        required_urls(&outcome).filter(|_| client.version() == version::MODERN)
    else {
        return UrlElicitations::Outcome(outcome);
    };
    if !client.accepts().contains(InputKind::ElicitUrl) {
        let required = json!({ "elicitation": { "url": {} } });
        let required = Raw::encode(&required).expect("literal objects are JSON");
        let why = "the call requires a url elicitation, and the request does not declare the capability `elicitation.url`";
        let error = codes::missing_capability(why, required.borrow());
        return UrlElicitations::Outcome(error.into());
    }
    let mut requests = JoinSet::new();
    for elicitation in elicitations {
        let call = call.clone();
        let mut input_request =
            InputRequest::new(InputKind::ElicitUrl, Some(for_caller(elicitation, &call)));
        input_request.timing = InputTiming::BeforeWork;
        requests.spawn(async move { call.request_input(input_request).await });
    }
    while let Some(answered) = requests.join_next().await {
        match answered {
            Ok(Ok(InputResponse::Result(answer))) if accepts(answer.borrow()) => {}
            _ => return UrlElicitations::Outcome(outcome),
        }
    }
    UrlElicitations::Accepted
}

/// Whether an outcome requires url elicitations.
pub(super) fn requires_urls(outcome: &Outcome) -> bool {
    required_urls(outcome).is_some()
}

/// The url elicitations that an error requires.
fn required_urls(outcome: &Outcome) -> Option<Vec<Raw>> {
    let Outcome::Error(error, code, _) = outcome else {
        return None;
    };
    if code.0 != codes::URL_ELICITATION_REQUIRED {
        return None;
    }
    let elicitations = object::find(error.borrow(), &["data", "elicitations"])?;
    let elicitations = object::elements(elicitations)?;
    let elicitations = elicitations.into_iter().map(RawRef::to_raw);
    Some(elicitations.collect::<Vec<_>>()).filter(|elicitations| !elicitations.is_empty())
}

fn accepts(answer: RawRef<'_>) -> bool {
    let action = object::find(answer, &["action"]).and_then(RawRef::text);
    action.as_deref() == Some("accept")
}

/// The member with the id of a url elicitation.
const ELICITATION_ID: &str = "elicitationId";
