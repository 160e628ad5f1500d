//! Runs scenarios concurrently and collects their failures.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};

/// A scenario. It panics on failure.
pub(crate) type Scenario = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs each scenario and returns its name and its failure, if any.
pub(crate) async fn run_all<T: Send + 'static>(
    scenarios: Vec<(T, Scenario)>,
    concurrency: usize,
) -> Vec<(T, Option<String>)> {
    let permits = Arc::new(Semaphore::new(concurrency));
    let mut running = JoinSet::new();
    for (name, scenario) in scenarios {
        let permits = permits.clone();
        running.spawn(async move {
            let _permit = permits.acquire().await.unwrap();
            let scenario = tokio::spawn(scenario);
            let stop = scenario.abort_handle();
            let failure = match tokio::time::timeout(SCENARIO_TIMEOUT, scenario).await {
                Ok(Ok(())) => None,
                Ok(Err(panic)) => Some(panic_message(panic)),
                Err(_) => Some("it did not end in time".into()),
            };
            stop.abort();
            (name, failure)
        });
    }
    let mut results = Vec::new();
    while let Some(scenario) = running.join_next().await {
        results.push(scenario.unwrap());
    }
    results
}

/// The panic message of a scenario.
fn panic_message(panic: JoinError) -> String {
    let Ok(panic) = panic.try_into_panic() else {
        return "it was stopped".into();
    };
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).into()));
    text.unwrap_or_else(|| "it panicked".into())
}

/// The time limit of a scenario.
const SCENARIO_TIMEOUT: Duration = Duration::from_secs(120);
