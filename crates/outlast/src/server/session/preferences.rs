//! Preferences of a session (log level, resource subscriptions): stored with the session, and sent to the service again
//! after a restart.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use outlast_engine::StoreError;
use outlast_engine::engine::EngineError;
use outlast_wire::envelope::ErrorObject;
use outlast_wire::log::Level;
use outlast_wire::{Raw, codes, method};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Session;
use crate::server::errors;

/// What a client wants to hold for its session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wishes {
    /// From which level on log messages are wanted, in the word for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<String>,
    /// Resources that the client wants to hear of.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    resources: BTreeSet<String>,
}

/// What holds for a session, and who stores it.
#[derive(Default)]
pub(in crate::server) struct SessionPreferences {
    wishes: Mutex<Wishes>,
    /// Absent where sessions are not stored.
    recorder: OnceLock<Recorder>,
    /// One change at a time: what is not stored yet is nothing to say, and nothing to go back to.
    turn: tokio::sync::Mutex<()>,
}

/// Stores a session as it is now.
pub(crate) type Recorder = Box<dyn Fn() -> Recording + Send + Sync>;

/// Resolves when a session is stored.
pub(crate) type Recording = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

/// One more thing that a client wants, or one less.
pub(in crate::server) enum PreferenceChange {
    Level(Level),
    Subscribe(String),
    Unsubscribe(String),
}

impl SessionPreferences {
    /// From which level on log messages are wanted, once the client has said so.
    pub(super) fn level(&self) -> Option<Level> {
        let wishes = self.wishes();
        wishes.level.as_deref().and_then(|word| word.parse().ok())
    }

    /// Whether the client wants to hear of a resource.
    pub(in crate::server) fn has_subscribed(&self, uri: &str) -> bool {
        self.wishes().resources.contains(uri)
    }

    fn wishes(&self) -> MutexGuard<'_, Wishes> {
        self.wishes.lock()
    }
}

impl Wishes {
    /// What is to be said to a service that does not know it, as methods with their params.
    fn requests(&self) -> Vec<(&'static str, Raw)> {
        let params =
            |name: &str, value: &str| Raw::encode(&json!({ name: value })).expect("a text is JSON");
        let level = self.level.as_deref();
        let level = level.map(|level| (outlast_wire::log::SET_LEVEL, params("level", level)));
        let resources = self.resources.iter();
        let resources = resources.map(|uri| (method::RESOURCES_SUBSCRIBE, params("uri", uri)));
        level.into_iter().chain(resources).collect()
    }

    /// Takes note of a change; refuses what would be too much to remember.
    fn take(&mut self, change: PreferenceChange) -> Result<(), ErrorObject> {
        match change {
            PreferenceChange::Level(level) => self.level = Some(level.as_str().to_owned()),
            PreferenceChange::Unsubscribe(uri) => drop(self.resources.remove(&uri)),
            PreferenceChange::Subscribe(uri) => {
                let bytes: usize = self.resources.iter().map(String::len).sum();
                let room = self.resources.len() < MOST && bytes + uri.len() <= ROOM;
                if !room && !self.resources.contains(&uri) {
                    return Err(codes::invalid_params(format!(
                        "a session subscribes to at most {MOST} resources, whose addresses have {ROOM} bytes together; \
                         unsubscribe first"
                    )));
                }
                self.resources.insert(uri);
            }
        }
        Ok(())
    }
}

impl Session {
    /// Takes note of a change. Where sessions are stored, it is stored when this resolves.
    pub(in crate::server) async fn change(
        &self,
        change: PreferenceChange,
    ) -> Result<(), ErrorObject> {
        let _turn = self.preferences.turn.lock().await;
        let before = {
            let mut wishes = self.preferences.wishes();
            let before = wishes.clone();
            wishes.take(change)?;
            if before == *wishes {
                return Ok(());
            }
            before
        };
        let Some(record) = self.preferences.recorder.get() else {
            return Ok(());
        };
        record().await.map_err(|error| {
            *self.preferences.wishes() = before;
            errors::to_wire(&EngineError::from(error))
        })
    }

    /// What the client wants to hold for the session.
    pub(crate) fn wishes(&self) -> Wishes {
        self.preferences.wishes().clone()
    }

    /// Takes up what the client said in an earlier life of this process. Whoever calls this has the service told, too.
    pub(crate) fn remember(&self, wishes: Wishes) {
        *self.preferences.wishes() = wishes;
    }

    /// Has the session stored by `recorder` whenever that changes which is kept with it.
    pub(crate) fn record_by(&self, recorder: Recorder) {
        // The first is as good as any other.
        let _ = self.preferences.recorder.set(recorder);
    }

    /// Has the session stored in the background, where sessions are stored.
    pub(super) fn store_soon(&self) {
        if let Some(record) = self.preferences.recorder.get() {
            let stored = record();
            tokio::spawn(async move {
                if let Err(error) = stored.await {
                    tracing::warn!(%error, "a session was not stored");
                }
            });
        }
    }

    /// Says to the service what it has heard in an earlier life of this process.
    pub(crate) async fn say_again(self: Arc<Self>) {
        let requests = self.wishes().requests();
        if requests.is_empty() || self.introduction().await.is_err() {
            return;
        }
        for (method, params) in requests {
            self.say_for_client(method, params).await;
        }
    }
}

/// The most resources that one session may subscribe to.
const MOST: usize = 1_000;

/// How many bytes their addresses may have together: all of them are written with every change.
const ROOM: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_reads_back_and_is_said_again() {
        let mut wishes = Wishes::default();
        assert_eq!(serde_json::to_string(&wishes).unwrap(), "{}");
        wishes.take(PreferenceChange::Level(Level::Error)).unwrap();
        wishes
            .take(PreferenceChange::Subscribe("a:1".into()))
            .unwrap();
        wishes
            .take(PreferenceChange::Subscribe("a:2".into()))
            .unwrap();
        wishes
            .take(PreferenceChange::Unsubscribe("a:1".into()))
            .unwrap();
        let text = serde_json::to_string(&wishes).unwrap();
        let read: Wishes = serde_json::from_str(&text).unwrap();
        assert_eq!(read, wishes);
        let said = read.requests();
        let said = said
            .iter()
            .map(|(method, params)| format!("{method} {}", params.as_str()));
        assert_eq!(
            said.collect::<Vec<_>>(),
            [
                r#"logging/setLevel {"level":"error"}"#,
                r#"resources/subscribe {"uri":"a:2"}"#
            ]
        );
    }

    #[test]
    fn nobody_has_more_remembered_than_there_is_room_for() {
        let mut wishes = Wishes::default();
        for number in 0..MOST {
            wishes
                .take(PreferenceChange::Subscribe(format!("a:{number}")))
                .unwrap();
        }
        assert!(
            wishes
                .take(PreferenceChange::Subscribe("b".into()))
                .is_err()
        );
        wishes
            .take(PreferenceChange::Subscribe("a:7".into()))
            .unwrap();
        wishes
            .take(PreferenceChange::Unsubscribe("a:7".into()))
            .unwrap();
        assert!(
            wishes
                .take(PreferenceChange::Subscribe("b".repeat(ROOM)))
                .is_err()
        );
        wishes
            .take(PreferenceChange::Subscribe("b".into()))
            .unwrap();
    }
}
