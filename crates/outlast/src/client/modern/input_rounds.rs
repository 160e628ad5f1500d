//! Requests that are answered with questions first: the rounds until there is a result (V2-MRTR).

use std::time::Duration;

use outlast_wire::v2::{self, Ask, InputRequired, Retry};
use outlast_wire::{Raw, RawRef};
use tokio::task::JoinSet;

use super::input_dispatch::{Asker, Refused};
use super::task_inputs::{AT_ONCE, Unaskable};
use crate::client::error::Fault;

/// The rounds of one request.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    played: u32,
    /// The state of the last round if that asked nothing, and how often it was the same.
    still: Option<(Option<String>, u32)>,
}

impl Rounds {
    /// Takes note of another round; fails if there is no end to them (V2-MRTR-12).
    pub(crate) fn another(&mut self, asked: &InputRequired) -> Result<(), Fault> {
        self.played += 1;
        self.still = match (asked.asks.is_empty(), self.still.take()) {
            (false, _) => None,
            (true, Some((state, times))) if state == asked.state => Some((state, times + 1)),
            (true, _) => Some((asked.state.clone(), 1)),
        };
        let stuck = self.still.as_ref().is_some_and(|(_, times)| *times > STILL);
        let many = asked.asks.len();
        if many > AT_ONCE {
            return Err(Fault::Malformed(Unaskable::TooMany(many).to_string()));
        }
        if self.played > ROUNDS || stuck {
            Err(Fault::Malformed(
                "it asks again and again instead of answering".into(),
            ))
        } else {
            Ok(())
        }
    }

    /// The params of the next attempt: those of the first, with an answer for every question and the state as it came
    /// (V2-MRTR-7, V2-MRTR-8, V2-MRTR-9). Dropping this dismisses the questions.
    pub(crate) async fn retry(
        &self,
        asker: &Asker,
        first: RawRef<'_>,
        asked: InputRequired,
    ) -> Result<Raw, Refused> {
        if asked.asks.is_empty() {
            tokio::time::sleep(PAUSE * self.played).await;
        }
        let retry = Retry {
            answers: answered(asker, asked.asks).await?,
            state: asked.state,
        };
        let params = v2::retry_params(first, &retry);
        params.map_err(|_| {
            let odd = outlast_wire::codes::internal("the params are not an object");
            Refused::Unfit(odd.into())
        })
    }
}

/// Every answer, or why one of them is refused: then the others are not wanted, either.
async fn answered(asker: &Asker, asks: Vec<Ask>) -> Result<Vec<v2::Answer>, Refused> {
    // Nobody is bothered if one of them cannot be put at all.
    for ask in &asks {
        asker.judge(ask)?;
    }
    let mut asking = JoinSet::new();
    for ask in asks {
        let asker = asker.clone();
        asking.spawn(async move {
            let key = ask.key.clone();
            let result = asker.put(ask, None).await?;
            Ok(v2::Answer { key, result })
        });
    }
    let mut answers = Vec::new();
    while let Some(answer) = asking.join_next().await {
        let lost = || Refused::Denied(outlast_wire::codes::internal("the host failed").into());
        answers.push(answer.map_err(|_| lost())??);
    }
    answers.sort_by(|one, two| one.key.cmp(&two.key));
    Ok(answers)
}

/// The most rounds of one request.
const ROUNDS: u32 = 64;

/// How often a server may send us back with nothing new.
const STILL: u32 = 3;

/// How long we wait before we come back with nothing new, longer each time.
const PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn round(key: Option<&str>, state: Option<&str>) -> InputRequired {
        let ask = |key: &str| Ask {
            key: key.into(),
            method: "roots/list".into(),
            params: None,
        };
        InputRequired {
            asks: key.into_iter().map(ask).collect(),
            state: state.map(Into::into),
        }
    }

    #[test]
    fn rounds_come_to_an_end() {
        // V2-MRTR-12.
        let mut rounds = Rounds::default();
        let all = (0..1_000).map(|_| rounds.another(&round(Some("k"), None)));
        assert_eq!(all.take_while(Result::is_ok).count(), ROUNDS as usize);
        let mut rounds = Rounds::default();
        let all = (0..1_000).map(|_| rounds.another(&round(None, Some("s"))));
        assert_eq!(all.take_while(Result::is_ok).count(), STILL as usize);
        let mut rounds = Rounds::default();
        for n in 0..10 {
            let state = n.to_string();
            assert!(rounds.another(&round(None, Some(&state))).is_ok());
        }
    }
}
