//! Preferences of a session (log level, resource subscriptions). They are stored with the session
//! and sent to the backend again after a restart.

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
use crate::engine_errors;

/// The preferences of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Preferences {
    /// The lowest level of log messages, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<String>,
    /// The URIs of subscribed resources.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    resources: BTreeSet<String>,
}

/// The preferences of a live session, and how it is stored.
#[derive(Default)]
pub(in crate::server) struct SessionPreferences {
    values: Mutex<Preferences>,
    /// `None` if sessions are not stored.
    saver: OnceLock<SessionSaver>,
    /// Allows one change at a time, so that a failed change can be rolled back.
    change_lock: tokio::sync::Mutex<()>,
}

/// Stores the current state of a session.
pub(crate) type SessionSaver = Box<dyn Fn() -> SaveFuture + Send + Sync>;

/// Resolves when a session is stored.
pub(crate) type SaveFuture = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

/// A change of a preference.
pub(in crate::server) enum PreferenceChange {
    Level(Level),
    Subscribe(String),
    Unsubscribe(String),
}

impl SessionPreferences {
    /// The lowest level of log messages, if the client has set one.
    pub(super) fn level(&self) -> Option<Level> {
        let values = self.values();
        values.level.as_deref().and_then(|word| word.parse().ok())
    }

    /// Whether the client has subscribed to a resource.
    pub(in crate::server) fn has_subscribed(&self, uri: &str) -> bool {
        self.values().resources.contains(uri)
    }

    fn values(&self) -> MutexGuard<'_, Preferences> {
        self.values.lock()
    }
}

impl Preferences {
    /// The requests that restore the preferences in a backend: methods with params.
    fn requests(&self) -> Vec<(&'static str, Raw)> {
        let params = |name: &str, value: &str| {
            Raw::encode(&json!({ name: value })).expect("strings are JSON")
        };
        let level = self.level.as_deref();
        let level = level.map(|level| (outlast_wire::log::SET_LEVEL, params("level", level)));
        let resources = self.resources.iter();
        let resources = resources.map(|uri| (method::RESOURCES_SUBSCRIBE, params("uri", uri)));
        level.into_iter().chain(resources).collect()
    }

    /// Applies a change; rejects a subscription beyond the limits.
    fn apply(&mut self, change: PreferenceChange) -> Result<(), ErrorObject> {
        match change {
            PreferenceChange::Level(level) => self.level = Some(level.as_str().to_owned()),
            PreferenceChange::Unsubscribe(uri) => drop(self.resources.remove(&uri)),
            PreferenceChange::Subscribe(uri) => {
                let bytes: usize = self.resources.iter().map(String::len).sum();
                let has_room = self.resources.len() < MAX_SUBSCRIPTIONS
                    && bytes + uri.len() <= MAX_SUBSCRIPTION_BYTES;
                if !has_room && !self.resources.contains(&uri) {
                    return Err(codes::invalid_params(format!(
                        "a session may subscribe to {MAX_SUBSCRIPTIONS} resources with {MAX_SUBSCRIPTION_BYTES} bytes of URIs; \
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
    /// Applies a change. If sessions are stored, it is durable when this returns.
    pub(in crate::server) async fn change_preference(
        &self,
        change: PreferenceChange,
    ) -> Result<(), ErrorObject> {
        let _guard = self.preferences.change_lock.lock().await;
        let before = {
            let mut values = self.preferences.values();
            let before = values.clone();
            values.apply(change)?;
            if before == *values {
                return Ok(());
            }
            before
        };
        let Some(save) = self.preferences.saver.get() else {
            return Ok(());
        };
        save().await.map_err(|error| {
            *self.preferences.values() = before;
            engine_errors::to_wire(&EngineError::from(error))
        })
    }

    /// A copy of the preferences, for the record of the session.
    pub(crate) fn stored_preferences(&self) -> Preferences {
        self.preferences.values().clone()
    }

    /// Restores the preferences after a restart. The caller sends them to the backend, too.
    pub(crate) fn restore_preferences(&self, preferences: Preferences) {
        *self.preferences.values() = preferences;
    }

    /// Sets how the session is stored when its record changes.
    pub(crate) fn set_saver(&self, saver: SessionSaver) {
        // A second saver would do the same.
        let _ = self.preferences.saver.set(saver);
    }

    /// Stores the session in the background, if sessions are stored.
    pub(super) fn save_in_background(&self) {
        if let Some(save) = self.preferences.saver.get() {
            let saved = save();
            tokio::spawn(async move {
                if let Err(error) = saved.await {
                    tracing::warn!(%error, "could not store a session");
                }
            });
        }
    }

    /// Sends the preferences to the backend after a restart.
    pub(crate) async fn replay_preferences(self: Arc<Self>) {
        let requests = self.stored_preferences().requests();
        if requests.is_empty() || self.description().await.is_err() {
            return;
        }
        for (method, params) in requests {
            self.replay_request(method, params).await;
        }
    }
}

/// How many resources one session may subscribe to.
const MAX_SUBSCRIPTIONS: usize = 1_000;

/// How many bytes their URIs may have together: all of them are written with every change.
const MAX_SUBSCRIPTION_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferences_are_restored_as_requests() {
        let mut values = Preferences::default();
        assert_eq!(serde_json::to_string(&values).unwrap(), "{}");
        values.apply(PreferenceChange::Level(Level::Error)).unwrap();
        values
            .apply(PreferenceChange::Subscribe("a:1".into()))
            .unwrap();
        values
            .apply(PreferenceChange::Subscribe("a:2".into()))
            .unwrap();
        values
            .apply(PreferenceChange::Unsubscribe("a:1".into()))
            .unwrap();
        let text = serde_json::to_string(&values).unwrap();
        let read: Preferences = serde_json::from_str(&text).unwrap();
        assert_eq!(read, values);
        let requests = read.requests();
        let requests = requests
            .iter()
            .map(|(method, params)| format!("{method} {}", params.as_str()));
        assert_eq!(
            requests.collect::<Vec<_>>(),
            [
                r#"logging/setLevel {"level":"error"}"#,
                r#"resources/subscribe {"uri":"a:2"}"#
            ]
        );
    }

    #[test]
    fn subscriptions_are_limited() {
        let mut values = Preferences::default();
        for number in 0..MAX_SUBSCRIPTIONS {
            values
                .apply(PreferenceChange::Subscribe(format!("a:{number}")))
                .unwrap();
        }
        assert!(
            values
                .apply(PreferenceChange::Subscribe("b".into()))
                .is_err()
        );
        values
            .apply(PreferenceChange::Subscribe("a:7".into()))
            .unwrap();
        values
            .apply(PreferenceChange::Unsubscribe("a:7".into()))
            .unwrap();
        assert!(
            values
                .apply(PreferenceChange::Subscribe(
                    "b".repeat(MAX_SUBSCRIPTION_BYTES)
                ))
                .is_err()
        );
        values
            .apply(PreferenceChange::Subscribe("b".into()))
            .unwrap();
    }
}
