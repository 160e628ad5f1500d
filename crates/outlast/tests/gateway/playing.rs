//! Plays scenes, a few at a time, and keeps what was wrong in each.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};

/// What panics where something is not as it should be.
pub(crate) type Scene = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Plays each scene, and says under its name what was wrong, if anything was.
pub(crate) async fn play<T: Send + 'static>(
    scenes: Vec<(T, Scene)>,
    at_once: usize,
) -> Vec<(T, Option<String>)> {
    let stages = Arc::new(Semaphore::new(at_once));
    let mut playing = JoinSet::new();
    for (name, scene) in scenes {
        let stages = stages.clone();
        playing.spawn(async move {
            let _stage = stages.acquire().await.unwrap();
            let scene = tokio::spawn(scene);
            let stop = scene.abort_handle();
            let wrong = match tokio::time::timeout(PATIENCE, scene).await {
                Ok(Ok(())) => None,
                Ok(Err(panic)) => Some(words(panic)),
                Err(_) => Some("it does not come to an end".into()),
            };
            stop.abort();
            (name, wrong)
        });
    }
    let mut played = Vec::new();
    while let Some(scene) = playing.join_next().await {
        played.push(scene.unwrap());
    }
    played
}

/// What a scene panicked with.
fn words(panic: JoinError) -> String {
    let Ok(panic) = panic.try_into_panic() else {
        return "it was stopped".into();
    };
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).into()));
    text.unwrap_or_else(|| "it panicked".into())
}

/// How long a scene may take.
const PATIENCE: Duration = Duration::from_secs(120);
