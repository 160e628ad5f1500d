//! News from other engines on the same store: whatever they change has its effects here too.

use std::sync::Arc;

use super::run::Pause;
use super::recovery::Patience;
use super::{Inner, Phase};
use crate::id::{Scope, TaskId};
use crate::outcome::Ending;
use crate::store::{Feed, News, StoreError};
use crate::transition::Effect;

impl Inner {
    /// Follows the feed until the engine closes.
    pub(crate) async fn hear_news(self: Arc<Self>, mut feed: Feed) {
        loop {
            let news = tokio::select! {
                biased;
                () = self.reached(Phase::Closed) => return,
                news = feed.recv() => news,
            };
            match news {
                None => match self.join_again().await {
                    Some(next) => feed = next,
                    None => return,
                },
                Some(News::Orphans) => {
                    if let Err(error) = self.recover(Patience::Long).await {
                        tracing::error!(%error, "tasks of a departed node could not be recovered");
                    }
                }
                Some(News::Changed(id)) => {
                    if let Err(error) = self.react(id).await {
                        tracing::warn!(task = %id, %error, "news could not be followed up yet");
                        self.doubt(id);
                    }
                }
            }
        }
    }

    /// Joins the store that has given this node up for dead, and looks after whatever changed since.
    /// `None` when the engine closes.
    async fn join_again(&self) -> Option<Feed> {
        let mut pause = Pause::default();
        loop {
            tokio::select! {
                biased;
                () = self.reached(Phase::Closed) => return None,
                () = pause.rest() => {}
            }
            match self.store.join(self.node).await {
                Ok(feed) => {
                    let ids = self.calls.ids().into_iter().chain(self.topics.ids());
                    ids.for_each(|id| self.doubt(id));
                    return Some(feed);
                }
                Err(error) if error.is_passing() => {}
                Err(error) => {
                    tracing::error!(%error, "the store does not let this node join again");
                    return None;
                }
            }
        }
    }

    /// Does here what the state of a task calls for, if anybody here cares for it.
    pub(crate) async fn react(&self, id: TaskId) -> Result<(), StoreError> {
        if self.calls.find(id).is_none() && !self.topics.contains(id) {
            return Ok(());
        }
        let Some(task) = self.store.load(&Scope::Anyone, id).await? else {
            // A call that is no task yet is not missed.
            if self.calls.find(id).is_none_or(|cell| cell.was_stored()) {
                self.gone(id);
            }
            return Ok(());
        };
        if let Some(cell) = self.calls.find(id)
            && cell.attempt < task.attempt
            && let Some(earlier) = self.calls.take(id, cell.attempt)
        {
            // P2: somebody else runs it now.
            earlier.call_off();
        }
        let has_body = task.state.ending().is_some_and(Ending::has_body);
        let body = if has_body {
            self.store.body(&Scope::Anyone, id).await?
        } else {
            None
        };
        if has_body && body.is_none() {
            // Removed since it was loaded.
            self.gone(id);
        } else {
            self.perform(&task, body, &Effect::implied_by(&task));
        }
        Ok(())
    }
}
