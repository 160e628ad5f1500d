//! How long known clients wait for a tool, by the name in their `clientInfo`.
//!
//! The name is not verified. It decides only how long a response is delayed.

use std::time::Duration;

use outlast_wire::{RawRef, object};

use crate::server::{ClientHandle, WaitBudget};

/// How a client behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// It uses tasks, and waits for calls without a task.
    Tasks,
    /// It waits for a limited time.
    Waits(WaitBudget),
}

/// The behaviour of a client. `budget` replaces the time limits of the table.
pub(super) fn of(client: &ClientHandle, budget: Option<Duration>) -> Manner {
    let name = client.info().and_then(|info| object::find(info, &["name"]));
    let name = name.and_then(RawRef::text).unwrap_or_default();
    manner(&name.to_lowercase(), budget)
}

fn manner(name: &str, budget: Option<Duration>) -> Manner {
    let known = KNOWN.iter().find(|(known, _)| name.starts_with(known));
    let within = |seconds| budget.unwrap_or(Duration::from_secs(seconds));
    Manner::Waits(match known.map(|(_, how)| *how) {
        Some(How::Tasks) => return Manner::Tasks,
        Some(How::Limit(seconds)) => WaitBudget::AtMost(within(seconds)),
        Some(How::Hears) => WaitBudget::WithProgress {
            interval: BEAT,
            without_token: within(DEFAULT),
        },
        None => WaitBudget::AtMost(within(DEFAULT)),
    })
}

#[derive(Clone, Copy)]
enum How {
    Tasks,
    /// Its timeout in seconds, less a margin for the transport.
    Limit(u64),
    /// Progress notifications reset its timeout.
    Hears,
}

/// Prefixes of client names, in lower case.
const KNOWN: [(&str, How); 11] = [
    ("visual studio code", How::Tasks),
    ("strands", How::Tasks),
    ("claude-code", How::Hears),
    ("librechat", How::Hears),
    ("opencode", How::Hears),
    ("claude-ai", How::Limit(220)),
    ("codex", How::Limit(280)),
    ("goose", How::Limit(280)),
    ("gemini-cli", How::Limit(570)),
    ("cline", How::Limit(45)),
    ("zed", How::Limit(45)),
];

/// The limit for other clients: most of them give up after a minute.
const DEFAULT: u64 = 45;

/// How often progress is sent to a client whose timeout it resets.
const BEAT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_clients_wait_as_they_do_and_strangers_less_than_a_minute() {
        let waits = |seconds| Manner::Waits(WaitBudget::AtMost(Duration::from_secs(seconds)));
        assert_eq!(manner("claude-ai", None), waits(220));
        assert_eq!(manner("cursor-vscode", None), waits(45));
        assert_eq!(manner("", None), waits(45));
        assert_eq!(manner("visual studio code - insiders", None), Manner::Tasks);
        assert!(matches!(
            manner("opencode", None),
            Manner::Waits(WaitBudget::WithProgress { .. })
        ));
        assert_eq!(
            manner("codex-mcp-client", Some(Duration::from_secs(9))),
            waits(9)
        );
    }
}
