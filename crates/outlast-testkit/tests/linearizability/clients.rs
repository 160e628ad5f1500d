//! Clients that work on the same few tasks at once, and record each request and reply.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_engine::engine::{CallContext, EndedTask, EngineError, NewCall, Runner};
use outlast_engine::store::Snapshot;
use outlast_engine::{
    Ending, Engine, ErrorCode, InputKey, InputKind, InputKinds, InputRequest, InputResponse,
    Origin, Owner, RetryClass, Scope, Store, TaskId,
};
use outlast_testkit::death::SeededRandom;
use outlast_wire::Raw;

use crate::history::{Actor, History, WORK_AT_ITS_END, WORK_WITH_INPUT_REQUEST};
use crate::spec::{EndState, Observation, Op, OpResult};

/// Runs `clients` on `tasks` tasks and returns their history. Each store has its own engine, and
/// the clients are spread over the engines.
pub(crate) async fn round(
    stores: Vec<Arc<dyn Store>>,
    seed: u64,
    clients: u32,
    tasks: usize,
) -> Arc<History> {
    let history = Arc::new(History::default());
    let mut engines = Vec::new();
    for store in stores {
        engines.push(open(store, &history).await);
    }
    let mut ids = Vec::new();
    for n in 0..tasks {
        ids.push(create(&engines[n % engines.len()], &history).await);
    }
    let clients = (0..clients).map(|number| {
        let client = EngineClient {
            engine: engines[number as usize % engines.len()].clone(),
            history: history.clone(),
            number,
        };
        let mut random = SeededRandom::new(seed ^ u64::from(number) << 40);
        let ids = ids.clone();
        tokio::spawn(async move {
            for step in 0..STEPS_PER_CLIENT {
                let id = ids[random.below(ids.len() as u64) as usize];
                match random.below(20) {
                    0 => client.cancel(id).await,
                    1..5 => client.answer(id, u64::from(number) * 100 + step).await,
                    5..8 => tokio::time::sleep(Duration::from_micros(random.below(300))).await,
                    _ => {
                        client.get(id).await;
                    }
                }
            }
            for id in ids {
                // A response that comes before the input request is ignored.
                while client.get(id).await == Observation::Working {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                client.answer(id, u64::from(number) * 100 + 99).await;
                client.wait(id).await;
                client.get(id).await;
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    for client in clients {
        client.await.expect("no client fails");
    }
    for engine in engines {
        let closed = engine.shutdown(Duration::from_secs(10)).await;
        assert_eq!(closed.expect("it closes").interrupted, 0);
    }
    history
}

/// A client that runs one operation at a time.
pub(crate) struct EngineClient {
    pub(crate) engine: Engine,
    pub(crate) history: Arc<History>,
    pub(crate) number: Actor,
}

impl EngineClient {
    pub(crate) async fn get(&self, id: TaskId) -> Observation {
        self.history.requested(id, self.number, Op::Get);
        let seen = match self.engine.get(&ada(), id).await {
            Err(EngineError::NotFound) => Observation::Nothing,
            Err(error) => panic!("{error}"),
            Ok(Snapshot::Open(task)) => match task.outstanding() {
                Some(_) => Observation::Asking,
                None => Observation::Working,
            },
            Ok(Snapshot::Ended(_)) => {
                let settled = self.engine.outcome(&ada(), id).await;
                Observation::Ended(outcome(
                    &settled.expect("it is there").expect("it has ended"),
                ))
            }
        };
        self.history
            .reply(id, self.number, OpResult::Observed(seen.clone()));
        seen
    }

    pub(crate) async fn wait(&self, id: TaskId) {
        self.history.requested(id, self.number, Op::Wait);
        let settled = self.engine.wait(&ada(), id).await.expect("it is there");
        let seen = Observation::Ended(outcome(&settled));
        self.history
            .reply(id, self.number, OpResult::Observed(seen));
    }

    pub(crate) async fn cancel(&self, id: TaskId) {
        self.history.requested(id, self.number, Op::CancelNow);
        let reply = match self.engine.cancel_now(&ada(), id).await {
            Ok(_) => OpResult::Done,
            Err(EngineError::Refused(_)) => OpResult::Refused,
            Err(error) => panic!("{error}"),
        };
        self.history.reply(id, self.number, reply);
    }

    pub(crate) async fn answer(&self, id: TaskId, value: u64) {
        self.history.requested(id, self.number, Op::Answer(value));
        let answer = InputResponse::Result(Raw::encode(&value).expect("a number is JSON"));
        let answers = BTreeMap::from([(InputKey::new(KEY), answer)]);
        let answered = self.engine.provide_input(&ada(), id, answers).await;
        answered.expect("it is there");
        self.history.reply(id, self.number, OpResult::Done);
    }
}

pub(crate) async fn open(store: Arc<dyn Store>, history: &Arc<History>) -> Engine {
    let asker = Arc::new(ElicitingTool(history.clone()));
    let opened = Engine::builder(store).runner("asker", asker).open().await;
    opened.expect("the store is open").0
}

pub(crate) async fn create(engine: &Engine, history: &History) -> TaskId {
    let origin = Origin {
        method: "tools/call".into(),
        tool: None,
        params: None,
        runner: "asker".into(),
        progress_token: None,
        retry: RetryClass::Never,
        accepts: InputKinds::all(),
    };
    let created = engine
        .create(NewCall::new(Owner::principal("ada"), origin))
        .await;
    let id = created.expect("there is room").task().id;
    // No other client knows the id: the creation ends before anything else begins.
    history.requested(id, CREATOR, Op::Create);
    history.reply(id, CREATOR, OpResult::Done);
    id
}

/// Sends an input request and ends with the response.
struct ElicitingTool(Arc<History>);

#[async_trait]
impl Runner for ElicitingTool {
    async fn run(&self, _: Arc<Origin>, cx: CallContext) -> outlast_engine::Outcome {
        self.0.requested(cx.id(), WORK_WITH_INPUT_REQUEST, Op::Ask);
        let request = InputRequest::new(InputKind::ElicitForm, None);
        let response = cx.request_input_as(InputKey::new(KEY), request).await;
        let Ok(InputResponse::Result(answer)) = response.map(|answered| answered.response) else {
            return outlast_engine::Outcome::error(ErrorCode(-1), "it was not answered");
        };
        self.0
            .requested(cx.id(), WORK_AT_ITS_END, Op::Finish(number(&answer)));
        outlast_engine::Outcome::Result(answer)
    }
}

fn outcome(settled: &EndedTask) -> EndState {
    match (settled.summary.ending, &settled.body) {
        (Ending::Cancelled, None) => EndState::Cancelled,
        (Ending::Result, Some(body)) => EndState::Result(number(body)),
        other => panic!("no client ends it like that: {other:?}"),
    }
}

fn number(raw: &Raw) -> u64 {
    raw.as_str().parse().expect("answers are numbers")
}

fn ada() -> Scope {
    Scope::OwnedBy(Owner::principal("ada"))
}

const KEY: &str = "which";

/// The number of operations of each client.
const STEPS_PER_CLIENT: u64 = 8;

const CREATOR: Actor = 2_000;
