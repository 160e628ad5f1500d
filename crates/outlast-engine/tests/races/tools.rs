//! Tools that do what their names say, and count the starts of each attempt of a task.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, Runner};
use outlast_engine::task::ResumeState;
use outlast_engine::{
    Attempt, ErrorCode, InputKind, InputRequest, InputResponse, Origin, Outcome, TaskId,
};
use outlast_wire::Raw;
use shuttle::future::yield_now;
use shuttle::rand::Rng;

#[derive(Default)]
pub(crate) struct RaceTools {
    started: Mutex<HashMap<(TaskId, Attempt), usize>>,
    /// How many input requests were withdrawn.
    pub(crate) withdrawn: Mutex<usize>,
}

impl RaceTools {
    /// How many attempts were started. Fails if one was started twice (P5).
    pub(crate) fn started_attempts(&self) -> usize {
        let started = self.started.lock().unwrap();
        assert!(started.values().all(|times| *times == 1), "P5: {started:?}");
        started.len()
    }

    fn start(&self, cx: &CallContext) {
        let mut started = self.started.lock().unwrap();
        *started.entry((cx.id(), cx.attempt())).or_default() += 1;
    }
}

#[async_trait]
impl Runner for RaceTools {
    async fn run(&self, call: Arc<Origin>, cx: CallContext) -> Outcome {
        self.start(&cx);
        match call.tool.as_deref().unwrap() {
            "step" => {
                yield_now().await;
                done()
            }
            "talk" => {
                cx.status("one");
                yield_now().await;
                cx.status("two");
                done()
            }
            "count" => {
                for step in ["1", "2", "3", "4"] {
                    cx.status(step);
                    random_pause().await;
                }
                done()
            }
            "listen" => {
                tokio::select! {
                    biased;
                    () = cx.cancelled() => Outcome::Cancelled,
                    () = random_pause() => done(),
                }
            }
            "linger" => std::future::pending().await,
            "ask" => match cx.request_input(form()).await {
                Ok(InputResponse::Result(answer)) => Outcome::Result(answer),
                Ok(InputResponse::Error(_)) => panic!("no test answers with an error"),
                Err(error) => Outcome::error(ErrorCode(-1), error.to_string()),
            },
            "ask-briefly" => {
                tokio::select! {
                    biased;
                    answer = cx.request_input(form()) => drop(answer),
                    () = random_pause() => {}
                }
                *self.withdrawn.lock().unwrap() += 1;
                cx.cancelled().await;
                Outcome::Cancelled
            }
            "attach-and-ask" => {
                cx.save_resume_state(ResumeState(b"theirs".as_slice().into()))
                    .await
                    .unwrap();
                match cx.request_input(form()).await {
                    Ok(_) => done(),
                    Err(error) => Outcome::error(ErrorCode(-1), error.to_string()),
                }
            }
            other => panic!("no tool {other}"),
        }
    }

    async fn reattach(&self, _: Arc<Origin>, _: ResumeState, cx: CallContext) -> Option<Outcome> {
        self.start(&cx);
        for key in cx.pending_input() {
            // The only input request may be answered or ended, never lost.
            let answered = cx.response_to(key).await.ok()?;
            let _ = answered.confirm().await;
        }
        Some(done())
    }

    fn can_reattach(&self) -> bool {
        true
    }
}

pub(crate) fn done() -> Outcome {
    Outcome::Result(raw("1"))
}

pub(crate) fn raw(text: &str) -> Raw {
    Raw::parse(text.into()).unwrap()
}

fn form() -> InputRequest {
    InputRequest::new(InputKind::ElicitForm, None)
}

/// A pause of any length.
pub(crate) async fn random_pause() {
    let steps = shuttle::rand::thread_rng().gen_range(0..30);
    for _ in 0..steps {
        yield_now().await;
    }
}
