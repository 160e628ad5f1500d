//! The modern era as a client: requests that stand alone, and V2 tasks as their requestor. `legacy` stands beside it.
//!
//! | where | what |
//! |---|---|
//! | here | finding a server, framing a request, the task methods |
//! | `asks` | questions of a server, by whatever way they came |
//! | `rounds` | requests that are answered with questions first |
//! | `inputs` | the questions of a task and what became of them |
//! | `listen` | hearing of changes |

mod input_dispatch;
mod input_rounds;
mod subscriptions;
mod task_inputs;

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{Accepts, AskKind};
use outlast_wire::v2::{self, Discover, ResultType};
use outlast_wire::{Raw, RawRef, codes, headers, object, params, version};

use super::conversation::{Draft, Up};
use super::era::Introduction;
use super::error::Fault;
use super::handler::capabilities;
use super::rpc::{Exchange, GiveUp, Ticket, Wrap};
use super::server_description::{Generation, Server};
use super::task_report::Sight;
use crate::transport::link::LinkError;

pub(crate) use input_dispatch::{Asker, Refused};
pub(crate) use input_rounds::Rounds;
pub(crate) use subscriptions::Listener;
pub(crate) use task_inputs::{Inputs, OnUnfit};

/// Who we are, as every request says it.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    info: Raw,
    version: Raw,
    capabilities: Raw,
    /// The same with the tasks extension.
    with_tasks: Raw,
}

/// What the answer to `server/discover` says of a server.
pub(crate) enum Found {
    Modern(Server),
    /// It is a legacy one, to be opened in this version.
    Legacy(&'static str),
    /// It refused the version that it speaks: it is to be asked once more.
    Again,
    /// It is gone.
    Scared,
    /// It could not be asked, or there is no version that both speak.
    Neither(Fault),
}

impl Manner {
    pub(crate) fn new(we: &Introduction) -> Self {
        let capabilities = declared(we.accepts);
        let with_tasks = v2::declare_tasks(capabilities.borrow());
        Self {
            info: we.info.clone(),
            version: Raw::encode(version::MODERN).expect("a string is JSON"),
            with_tasks: with_tasks.unwrap_or_else(|_| capabilities.clone()),
            capabilities,
        }
    }

    /// A request with what every one of this era says (V2-META-1, V2-META-2, V2-CAP-1), and the headers that repeat it
    /// (V2-HH-1, V2-HH-3).
    pub(crate) fn frame(&self, draft: &Draft<'_>) -> Result<(Raw, Wrap), Fault> {
        let capabilities = if draft.tasks {
            self.with_tasks.borrow()
        } else {
            self.capabilities.borrow()
        };
        let mut rewrite = draft.rewrite.clone().unwrap_or_default();
        let info = Some(self.info.borrow());
        v2::frame(&mut rewrite, self.version.borrow(), capabilities, info);
        let params = rewrite.apply(draft.params.unwrap_or(RawRef::EMPTY_OBJECT));
        let params = params.map_err(|_| odd("params"))?;
        let mut headers = general_headers(draft.method);
        if let Some(name) = headers::mirrored_name(draft.method, Some(params.borrow())) {
            headers.push((headers::NAME.into(), headers::encode(&name).into_owned()));
        }
        headers.extend(draft.headers.iter().cloned());
        let wrap = Wrap {
            on_drop: GiveUp::Withdraw,
            stateless: true,
            headers,
            polled: false,
        };
        Ok((params, wrap))
    }
}

/// What should be an object is none.
pub(crate) fn odd(what: &str) -> Fault {
    Fault::Malformed(format!("{what} must be an object"))
}

/// The headers of any message.
pub(crate) fn general_headers(method: &str) -> Vec<(String, String)> {
    vec![
        (headers::PROTOCOL_VERSION.into(), version::MODERN.into()),
        (headers::METHOD.into(), method.into()),
    ]
}

/// What is declared of ourselves for a host that accepts this: no news of roots is ever sent (V2-ROOT-1).
fn declared(accepts: Accepts) -> Raw {
    let all = capabilities(accepts);
    if accepts.contains(AskKind::Roots) {
        object::set(all.borrow(), &["roots"], RawRef::EMPTY_OBJECT).unwrap_or(all)
    } else {
        all
    }
}

/// Asks what a server is (V2-ERA-1).
pub(crate) async fn discover(exchange: &Arc<Exchange>, we: &Introduction) -> Result<Ticket, Fault> {
    let draft = Draft::new(v2::method::DISCOVER, None);
    let (params, mut wrap) = Manner::new(we).frame(&draft)?;
    wrap.on_drop = GiveUp::Quietly;
    exchange
        .send(draft.method, Some(params.borrow()), wrap)
        .await
}

/// Reads the answer (V2-ERA-2 to V2-ERA-6).
pub(crate) fn read_discovered(answer: &Result<Raw, Fault>) -> Found {
    match answer {
        Ok(result) => match Discover::read(result.borrow()) {
            Some(said) if speaks_modern(&said.versions) => Found::Modern(read_server(&said)),
            Some(said) => match common_legacy(&said.versions) {
                Some(version) => Found::Legacy(version),
                None => Found::Neither(no_common_version(&said.versions)),
            },
            // An answer to something else.
            None => Found::Legacy(version::LEGACY),
        },
        // It is overloaded, which says nothing of its era.
        Err(Fault::Error(error)) if error.refused.is_some() => {
            Found::Neither(Fault::Error(error.clone()))
        }
        Err(Fault::Error(error)) => match error.code {
            codes::UNSUPPORTED_VERSION => {
                // V2-ERA-2, V2-VER-2, A3-2.
                let versions = supported(error.raw.borrow());
                match common_legacy(&versions) {
                    _ if speaks_modern(&versions) => Found::Again,
                    Some(version) => Found::Legacy(version),
                    None => Found::Neither(no_common_version(&versions)),
                }
            }
            codes::HEADER_MISMATCH | codes::MISSING_CAPABILITY => {
                Found::Neither(Fault::Error(error.clone()))
            }
            _ => Found::Legacy(version::LEGACY),
        },
        Err(Fault::Link(LinkError::Refused { status, .. }))
            if !matches!(status, 401 | 403 | 407 | 429 | 503) =>
        {
            Found::Legacy(version::LEGACY)
        }
        Err(Fault::Link(LinkError::Broken(_) | LinkError::Ended { .. })) => Found::Scared,
        Err(fault @ (Fault::Link(_) | Fault::Unrecorded(_))) => Found::Neither(fault.clone()),
        Err(Fault::Malformed(_) | Fault::TimedOut(_) | Fault::Unsupported(_)) => {
            Found::Legacy(version::LEGACY)
        }
    }
}

fn speaks_modern(versions: &[String]) -> bool {
    versions.iter().any(|one| one == version::MODERN)
}

/// Whether a request was refused for its version although the server speaks it: then it may be repeated.
pub(crate) fn is_confused(fault: &Fault) -> bool {
    matches!(fault, Fault::Error(error) if error.code == codes::UNSUPPORTED_VERSION
        && speaks_modern(&supported(error.raw.borrow())))
}

/// The newest legacy version that a server speaks, too.
fn common_legacy(versions: &[String]) -> Option<&'static str> {
    let speaks = |version: &&str| versions.iter().any(|one| one == version);
    version::LEGACY_VERSIONS.into_iter().find(speaks)
}

fn no_common_version(versions: &[String]) -> Fault {
    let theirs = versions.join(", ");
    Fault::Unsupported(format!(
        "a protocol version that we speak: it speaks {theirs}"
    ))
}

fn read_server(said: &Discover<'_>) -> Server {
    let name = said.info.and_then(|info| object::find(info, &["name"]));
    Server {
        name: name
            .and_then(RawRef::text)
            .map_or_else(|| "unnamed".into(), |name| name.into()),
        version: version::MODERN.into(),
        capabilities: said.capabilities.to_raw(),
        info: said.info.map(RawRef::to_raw),
        instructions: said.instructions.clone(),
        generation: if v2::declares_tasks(said.capabilities) {
            Generation::V2
        } else {
            Generation::None
        },
    }
}

/// The versions that an error of an unsupported one lists (V2-VER-1).
fn supported(error: RawRef<'_>) -> Vec<String> {
    let list = object::find(error, &["data", "supported"]).and_then(object::elements);
    let text = |version: RawRef<'_>| Some(version.text()?.into_owned());
    list.unwrap_or_default()
        .into_iter()
        .filter_map(text)
        .collect()
}

/// A fault with what it means for us (V2-VER-2).
pub(crate) fn explained(fault: Fault) -> Fault {
    match fault {
        Fault::Error(error) if error.code == codes::UNSUPPORTED_VERSION => {
            no_common_version(&supported(error.raw.borrow()))
        }
        other => other,
    }
}

/// A result that is the answer itself, without the word that says so (BR-RES-2); anything else is invalid here.
pub(crate) fn complete(result: &Raw) -> Result<Raw, Fault> {
    check_complete(result).map(|()| unlabelled(result))
}

/// Whether a result is the answer itself; anything else is invalid here (V2-RT-5, V2-RT-6, V2-CAP-8).
pub(crate) fn check_complete(result: &Raw) -> Result<(), Fault> {
    match ResultType::of(result.borrow()) {
        ResultType::Complete => Ok(()),
        ResultType::Task => Err(invalid("task")),
        ResultType::InputRequired => Err(invalid("input_required")),
        ResultType::Unknown(word) => Err(invalid(&word)),
    }
}

/// A result without the word that says what it is.
pub(crate) fn unlabelled(result: &Raw) -> Raw {
    let bare = object::remove(result.borrow(), &["resultType"]);
    bare.unwrap_or_else(|_| result.clone())
}

fn invalid(word: &str) -> Fault {
    Fault::Malformed(format!("it answered with a result of the type `{word}`"))
}

impl Up {
    /// `tasks/get` (V2-GET).
    pub(super) async fn look_modern(&self, task: &str, patience: Duration) -> Result<Sight, Fault> {
        let params = params::naming(task);
        let draft = Draft::new(v2::method::GET, Some(params.borrow())).with_tasks();
        // A2-2: whatever the status.
        let answer = complete(&self.request(&draft, patience).await?)?;
        let read = v2::read_detailed(answer.borrow());
        let read = read.map_err(|error| Fault::Malformed(error.to_string()))?;
        if read.task.id == task {
            Ok(read.into())
        } else {
            Err(Fault::Malformed("it answered with another task".into()))
        }
    }

    /// `tasks/cancel`: only that it was heard is answered (V2-CANCEL-5).
    pub(super) async fn cancel_modern(&self, task: &str, patience: Duration) -> Result<(), Fault> {
        let params = params::naming(task);
        let draft = Draft::new(v2::method::CANCEL, Some(params.borrow())).with_tasks();
        self.request(&draft, patience).await.map(drop)
    }

    /// `tasks/update`: answers to questions that are outstanding (V2-UPD-7, V2-UPD-8).
    pub(crate) async fn update(
        &self,
        task: &str,
        answers: &[v2::Answer],
        patience: Duration,
    ) -> Result<(), Fault> {
        let params = v2::update_params(task, answers);
        let draft = Draft::new(v2::method::UPDATE, Some(params.borrow())).with_tasks();
        self.request(&draft, patience).await.map(drop)
    }
}
