//! Resolves the server that a command line names: a URL, a name in a configuration file, or a
//! command.

mod behind_relay;
mod command_output;
mod config;
mod jsonc;
mod url;
mod variables;

use std::ffi::OsString;
use std::sync::Arc;

use outlast::client::{Era, Target};
use outlast::transport::child::{ChildOptions, OnLine};
use outlast::transport::http_client::{HttpClientOptions, HttpSession};
use serde_json::Value;

use crate::args::ServerArgs;
use crate::exit::Failure;
use crate::gateway;
use crate::terminal;

pub(crate) use behind_relay::{BehindRelay, is_relay};
pub(crate) use command_output::CommandOutput;
pub(crate) use config::{Config, ServerAddress};
pub(crate) use jsonc::OPTIONS as JSONC;
pub(crate) use url::required as http_url;

/// How a server is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartedBy {
    /// By this process, with a command that was given instead of a name.
    CommandLine,
    /// By this process, with a command from a configuration file.
    Configuration,
    /// Not by this process.
    Other,
}

/// A server and its name.
#[derive(Clone)]
pub(crate) struct NamedServer {
    pub(crate) name: String,
    pub(crate) starts: StartedBy,
    pub(crate) target: Target,
    /// The era of the protocol to use.
    pub(crate) era: Era,
    /// The URL and its session, in the era that has sessions.
    pub(crate) session: Option<(String, HttpSession)>,
    /// Whether requests go to a URL without a token, so that only the session identifies the
    /// caller.
    pub(crate) anonymous: bool,
    /// Output of its command that is not a message. Empty for a server that this process does not
    /// start.
    pub(crate) printed: CommandOutput,
}

/// Removes the target from the front of `words`, unless a command was given instead.
pub(crate) fn take(
    server_args: &ServerArgs,
    words: &mut Vec<String>,
) -> Result<Option<NamedServer>, Failure> {
    if !server_args.command.is_empty() {
        return resolve(server_args, None).map(Some);
    }
    if words.is_empty() {
        Ok(None)
    } else {
        let word = words.remove(0);
        resolve(server_args, Some(&word)).map(Some)
    }
}

/// Resolves the server that `word` or the command names.
pub(crate) fn resolve(
    server_args: &ServerArgs,
    word: Option<&str>,
) -> Result<NamedServer, Failure> {
    match (&server_args.command[..], word) {
        ([program, args @ ..], None) => {
            let printed = CommandOutput::default();
            let mut child = child_of(program.clone(), args.to_vec(), server_args.verbose);
            child.on_output = child.on_output.map(|next| printed.before(next));
            Ok(NamedServer {
                name: program.to_string_lossy().into_owned(),
                starts: StartedBy::CommandLine,
                target: Target::child(child),
                era: server_args.how.era(),
                session: None,
                anonymous: false,
                printed,
            })
        }
        ([_, ..], Some(word)) => Err(both_given(word)),
        ([], None) => Err(Failure::Usage(
            "no server is given\n  next: give a URL, a server of the configuration file, or a command after `--`".into(),
        )),
        ([], Some(word)) if let Some(url) = url::read(word) => {
            Ok(at_url(server_args, &url, http(server_args, &url)))
        }
        ([], Some(word)) if word.contains("://") => Err(Failure::Usage(url::refusal(word))),
        ([], Some(name)) => {
            let config = Config::find(server_args.config.as_deref())?;
            match config.address(name)? {
                ServerAddress::Http { url, headers } => {
                    let mut options = http(server_args, &url);
                    options.headers = headers;
                    Ok(at_url(server_args, name, options))
                }
                command @ ServerAddress::Command { .. } => {
                    let printed = CommandOutput::default();
                    Ok(NamedServer {
                        name: name.to_owned(),
                        starts: StartedBy::Configuration,
                        target: command.target(server_args.verbose, Some(&printed)),
                        era: server_args.how.era(),
                        session: None,
                        anonymous: false,
                        printed,
                    })
                }
            }
        }
    }
}

/// The name and the address of the server that `word` or the command names. The token for a URL is
/// among its headers.
pub(crate) fn address(
    server_args: &ServerArgs,
    word: Option<&str>,
) -> Result<(String, ServerAddress), Failure> {
    // Refuses what `resolve` refuses, with the same messages.
    let named = resolve(server_args, word)?;
    if let [program, args @ ..] = &server_args.command[..] {
        let text = |part: &OsString| part.to_string_lossy().into_owned();
        let address = ServerAddress::Command {
            program: text(program),
            args: args.iter().map(text).collect(),
            env: std::collections::BTreeMap::new(),
            directory: None,
        };
        return Ok((named.name, address));
    }
    let word = word.unwrap_or_default();
    if let Some(url) = url::read(word) {
        let options = http(server_args, &url);
        let token = options.bearer.map(|token| format!("Bearer {token}"));
        let token = token.map(|token| ("Authorization".to_owned(), token));
        let mut headers = options.headers;
        headers.extend(token);
        return Ok((named.name, ServerAddress::Http { url, headers }));
    }
    let config = Config::find(server_args.config.as_deref())?;
    Ok((named.name, config.address(word)?))
}

/// Whether the word is a URL. The scheme may be missing.
pub(crate) fn is_url(word: &str) -> bool {
    url::read(word).is_some()
}

/// The message about text after `option` that is not JSON.
pub(crate) fn not_an_object(option: &str, error: &serde_json::Error) -> String {
    format!(
        "{option} is not JSON: {error}\n  next: write an object in quotes, such as '{{\"NAME\": 5}}'"
    )
}

/// The failure of a command line that names a server twice.
pub(crate) fn both_given(word: &str) -> Failure {
    Failure::Usage(format!(
        "both a target ({word}) and a command after `--` are given\n  next: leave one of them out"
    ))
}

impl ServerAddress {
    /// Replaces a relay by the server behind it, so that a gateway does not serve itself. Returns
    /// also the settings of the relay.
    pub(crate) fn behind_relay(self) -> Result<(Self, Option<Value>), String> {
        let Self::Command {
            program,
            args,
            env,
            directory,
        } = self
        else {
            return Ok((self, None));
        };
        let command: Vec<_> = std::iter::once(program).chain(args).collect();
        let (command, settings) = match BehindRelay::of(&command)? {
            Some(inner) => {
                let words = inner.command.iter();
                let words = words.map(|word| word.to_string_lossy().into_owned());
                (words.collect(), inner.settings)
            }
            None => (command, None),
        };
        let mut words = command.into_iter();
        let place = Self::Command {
            program: words.next().unwrap_or_default(),
            args: words.collect(),
            env,
            directory,
        };
        Ok((place, settings))
    }

    /// Creates the target, without a stored session. Output of a command goes to `printed`.
    pub(crate) fn target(self, verbose: bool, printed: Option<&CommandOutput>) -> Target {
        match self {
            Self::Http { url, headers } => {
                let mut options = http_of(&url);
                options.headers = headers;
                Target::http(options)
            }
            Self::Command {
                program,
                args,
                env,
                directory,
            } => {
                let args = args.into_iter().map(Into::into).collect();
                let mut options = child_of(program.into(), args, verbose);
                let env = env.into_iter();
                options.env = env
                    .map(|(name, value)| (name.into(), value.into()))
                    .collect();
                options.directory = directory;
                if let Some(printed) = printed {
                    options.on_output = options.on_output.map(|next| printed.before(next));
                }
                Target::child(options)
            }
        }
    }
}

fn at_url(server_args: &ServerArgs, name: &str, options: HttpClientOptions) -> NamedServer {
    NamedServer {
        name: name.to_owned(),
        starts: StartedBy::Other,
        era: server_args.how.era(),
        anonymous: options.bearer.is_none() && options.headers.is_empty(),
        session: options
            .session
            .clone()
            .map(|session| (options.url.clone(), session)),
        target: Target::http(options),
        printed: CommandOutput::default(),
    }
}

/// Options for a server that a command starts.
pub(crate) fn child_of(program: OsString, args: Vec<OsString>, verbose: bool) -> ChildOptions {
    let mut options = ChildOptions::new(program).args(args);
    let called = options.program.to_string_lossy().into_owned();
    let on_output: OnLine = if verbose {
        Arc::new(|line| terminal::say!("server: {line}"))
    } else {
        // Not at a higher level, because a server may log the arguments of its calls.
        Arc::new(move |line| tracing::debug!(program = called, line, "output of the server"))
    };
    options.on_output = Some(on_output);
    options
}

/// Options for a server at a URL.
pub(crate) fn http_of(url: &str) -> HttpClientOptions {
    HttpClientOptions::new(url)
}

fn http(server_args: &ServerArgs, url: &str) -> HttpClientOptions {
    let mut options = http_of(url);
    options.session = (server_args.how.era() != Era::Modern).then(HttpSession::new);
    options.bearer = server_args
        .token
        .clone()
        .or_else(|| std::env::var("OUTLAST_TOKEN").ok())
        .or_else(|| gateway::token_of_url(url));
    options
}
