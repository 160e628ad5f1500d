//! How long known clients wait for a tool, by the name in their `clientInfo`.
//!
//! The name is not verified. It decides only how long a response is delayed.

use std::time::Duration;

use outlast_wire::{RawRef, object};

use crate::server::{ClientHandle, WaitBudget};

/// How a client behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientBehaviour {
    /// It supports tasks. If it calls a tool without a task, it waits without a limit.
    Tasks,
    /// It waits for a limited time.
    Waits(WaitBudget),
}

/// The behaviour of a client. `budget` replaces the time limits of the table.
pub(super) fn behaviour_of(client: &ClientHandle, budget: Option<Duration>) -> ClientBehaviour {
    let name = client.info().and_then(|info| object::find(info, &["name"]));
    let name = name.and_then(RawRef::text).unwrap_or_default();
    behaviour(&name.to_lowercase(), budget)
}

fn behaviour(name: &str, budget: Option<Duration>) -> ClientBehaviour {
    let known = KNOWN_CLIENTS
        .iter()
        .find(|(known, _)| name.starts_with(known));
    let within = |seconds| budget.unwrap_or(Duration::from_secs(seconds));
    ClientBehaviour::Waits(match known.map(|(_, rule)| *rule) {
        Some(WaitRule::Tasks) => return ClientBehaviour::Tasks,
        Some(WaitRule::LimitSecs(seconds)) => WaitBudget::AtMost(within(seconds)),
        Some(WaitRule::ResetsOnProgress) => WaitBudget::WithProgress {
            interval: PROGRESS_INTERVAL,
            without_token: within(DEFAULT_LIMIT_SECS),
        },
        None => WaitBudget::AtMost(within(DEFAULT_LIMIT_SECS)),
    })
}

#[derive(Clone, Copy)]
enum WaitRule {
    /// It supports tasks and waits without a limit.
    Tasks,
    /// Its timeout in seconds, less a margin for the transport.
    LimitSecs(u64),
    /// Progress notifications reset its timeout.
    ResetsOnProgress,
}

/// Prefixes of client names, in lower case.
const KNOWN_CLIENTS: [(&str, WaitRule); 11] = [
    ("visual studio code", WaitRule::Tasks),
    ("strands", WaitRule::Tasks),
    ("claude-code", WaitRule::ResetsOnProgress),
    ("librechat", WaitRule::ResetsOnProgress),
    ("opencode", WaitRule::ResetsOnProgress),
    ("claude-ai", WaitRule::LimitSecs(220)),
    ("codex", WaitRule::LimitSecs(280)),
    ("goose", WaitRule::LimitSecs(280)),
    ("gemini-cli", WaitRule::LimitSecs(570)),
    ("cline", WaitRule::LimitSecs(45)),
    ("zed", WaitRule::LimitSecs(45)),
];

/// The limit for other clients: most of them give up after a minute.
const DEFAULT_LIMIT_SECS: u64 = 45;

/// How often progress is sent to a client whose timeout it resets.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_clients_have_their_limit_and_others_45_seconds() {
        let waits =
            |seconds| ClientBehaviour::Waits(WaitBudget::AtMost(Duration::from_secs(seconds)));
        assert_eq!(behaviour("claude-ai", None), waits(220));
        assert_eq!(behaviour("cursor-vscode", None), waits(45));
        assert_eq!(behaviour("", None), waits(45));
        assert_eq!(
            behaviour("visual studio code - insiders", None),
            ClientBehaviour::Tasks
        );
        assert!(matches!(
            behaviour("opencode", None),
            ClientBehaviour::Waits(WaitBudget::WithProgress { .. })
        ));
        assert_eq!(
            behaviour("codex-mcp-client", Some(Duration::from_secs(9))),
            waits(9)
        );
    }
}
