//! News from other engines on the same store: whatever they change has its effects here too.

use std::sync::Arc;

use super::recovery::Patience;
use super::{Inner, Phase};
use crate::id::{Scope, TaskId};
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
                None => return,
                Some(News::Orphans) => {
                    if let Err(error) = self.recover(Patience::Long).await {
                        tracing::error!(%error, "tasks of a departed node could not be recovered");
                    }
                }
                Some(News::Changed(id)) => {
                    if let Err(error) = self.react(id).await {
                        tracing::warn!(task = %id, %error, "news could not be followed up");
                    }
                }
            }
        }
    }

    /// Does here what the state of a task calls for, if anybody here cares for it.
    async fn react(&self, id: TaskId) -> Result<(), StoreError> {
        if self.calls.find(id).is_none() && !self.topics.contains(id) {
            return Ok(());
        }
        match self.store.load(&Scope::Anyone, id).await? {
            Some(task) => {
                let cell = self.calls.find(id);
                if cell.is_some_and(|cell| cell.attempt != task.attempt) {
                    // P2: somebody else runs it now.
                    self.stop(id);
                }
                let body = match task.state.ending() {
                    Some(_) => self.store.body(&Scope::Anyone, id).await?,
                    None => None,
                };
                self.perform(&task, body, &Effect::implied_by(&task));
            }
            None => {
                self.topics.settle(id, None);
                self.stop(id);
            }
        }
        Ok(())
    }
}
