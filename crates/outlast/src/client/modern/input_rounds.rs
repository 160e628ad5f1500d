//! Rounds of input requests that precede the result of a request (V2-MRTR).

use std::time::Duration;

use outlast_wire::v2::{self, InputRequestEntry, InputRequired, Retry};
use outlast_wire::{Raw, RawRef};
use tokio::task::JoinSet;

use super::input_dispatch::{InputDispatcher, InputRefusal};
use super::task_inputs::{InputProtocolError, MAX_OPEN_INPUTS};
use crate::client::error::Error;

/// The rounds of one request.
#[derive(Debug, Default)]
pub(crate) struct InputRounds {
    count: u32,
    /// The state of the last round if it had no input requests, and how often it was unchanged.
    unchanged: Option<(Option<String>, u32)>,
}

impl InputRounds {
    /// Counts a round; fails if there are too many (V2-MRTR-12).
    pub(crate) fn record_round(&mut self, round: &InputRequired) -> Result<(), Error> {
        self.count += 1;
        self.unchanged = match (round.input_requests.is_empty(), self.unchanged.take()) {
            (false, _) => None,
            (true, Some((state, times))) if state == round.state => Some((state, times + 1)),
            (true, _) => Some((round.state.clone(), 1)),
        };
        let stuck = self
            .unchanged
            .as_ref()
            .is_some_and(|(_, times)| *times > MAX_UNCHANGED_ROUNDS);
        let many = round.input_requests.len();
        if many > MAX_OPEN_INPUTS {
            return Err(Error::Malformed(
                InputProtocolError::TooMany(many).to_string(),
            ));
        }
        if self.count > MAX_ROUNDS || stuck {
            Err(Error::Malformed(
                "it keeps sending input requests instead of a result".into(),
            ))
        } else {
            Ok(())
        }
    }

    /// The params of the next attempt: those of the first, with a response to every input request
    /// and the state as received (V2-MRTR-7, V2-MRTR-8, V2-MRTR-9). Dropping the future withdraws
    /// the input requests from the handler.
    pub(crate) async fn retry(
        &self,
        dispatcher: &InputDispatcher,
        first: RawRef<'_>,
        round: InputRequired,
    ) -> Result<Raw, InputRefusal> {
        if round.input_requests.is_empty() {
            tokio::time::sleep(UNCHANGED_DELAY * self.count).await;
        }
        let retry = Retry {
            input_responses: responses(dispatcher, round.input_requests).await?,
            state: round.state,
        };
        let params = v2::retry_params(first, &retry);
        params.map_err(|_| {
            let not_an_object = outlast_wire::codes::internal("the params are not an object");
            InputRefusal::Invalid(not_an_object.into())
        })
    }
}

/// All responses, or the first refusal. After a refusal the other input requests are withdrawn.
async fn responses(
    dispatcher: &InputDispatcher,
    asks: Vec<InputRequestEntry>,
) -> Result<Vec<v2::InputResponseEntry>, InputRefusal> {
    // If one of them is invalid, none is dispatched.
    for input_request in &asks {
        dispatcher.validate(input_request)?;
    }
    let mut asking = JoinSet::new();
    for input_request in asks {
        let dispatcher = dispatcher.clone();
        asking.spawn(async move {
            let key = input_request.key.clone();
            let result = dispatcher.dispatch(input_request, None).await?;
            Ok(v2::InputResponseEntry { key, result })
        });
    }
    let mut answers = Vec::new();
    while let Some(response) = asking.join_next().await {
        let lost = || {
            InputRefusal::Denied(outlast_wire::codes::internal("the input handler failed").into())
        };
        answers.push(response.map_err(|_| lost())??);
    }
    answers.sort_by(|one, two| one.key.cmp(&two.key));
    Ok(answers)
}

/// How many rounds a request may have.
const MAX_ROUNDS: u32 = 64;

/// How often a server may return a round with nothing new.
const MAX_UNCHANGED_ROUNDS: u32 = 3;

/// The delay after a round with nothing new. It grows with each round.
const UNCHANGED_DELAY: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn round(key: Option<&str>, state: Option<&str>) -> InputRequired {
        let input_request = |key: &str| InputRequestEntry {
            key: key.into(),
            method: "roots/list".into(),
            params: None,
        };
        InputRequired {
            input_requests: key.into_iter().map(input_request).collect(),
            state: state.map(Into::into),
        }
    }

    #[test]
    fn the_number_of_rounds_is_limited() {
        // V2-MRTR-12.
        let mut rounds = InputRounds::default();
        let all = (0..1_000).map(|_| rounds.record_round(&round(Some("k"), None)));
        assert_eq!(all.take_while(Result::is_ok).count(), MAX_ROUNDS as usize);
        let mut rounds = InputRounds::default();
        let all = (0..1_000).map(|_| rounds.record_round(&round(None, Some("s"))));
        assert_eq!(
            all.take_while(Result::is_ok).count(),
            MAX_UNCHANGED_ROUNDS as usize
        );
        let mut rounds = InputRounds::default();
        for n in 0..10 {
            let state = n.to_string();
            assert!(rounds.record_round(&round(None, Some(&state))).is_ok());
        }
    }
}
