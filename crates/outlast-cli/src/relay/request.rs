//! The server that a relay names to its gateway: a command, or a server of a configuration file.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use serde_json::Value;

use crate::args;
use crate::exit::Failure;
use crate::gateway::ServerRequest;
use crate::serve;
use crate::target::{BehindRelay, Config, ServerAddress, not_an_object};

impl ServerRequest {
    pub(super) fn of(args: &args::Stdio) -> Result<Self, Failure> {
        if let Some(path) = &args.config {
            return Self::from_file(path, args.name.as_deref());
        }
        if let Some(settings) = &args.settings {
            // Checked here, because the errors of this process are visible to the user.
            let object: Value = serde_json::from_str(settings)
                .map_err(|error| Failure::Usage(not_an_object("--settings", &error)))?;
            serve::read_settings(&object)
                .map_err(|why| Failure::Usage(format!("--settings: {why}")))?;
        }
        let inner = BehindRelay::of(&args.command);
        let inner = inner.map_err(|why| Failure::Usage(format!("the server: {why}")))?;
        let (command, of_relay) = match &inner {
            Some(inner) => (
                &inner.command,
                inner.settings.as_ref().map(Value::to_string),
            ),
            None => (&args.command, None),
        };
        let words = command.iter();
        Ok(Self {
            command: words.map(|word| text(word)).collect(),
            env: environment(),
            directory: std::env::current_dir()?,
            settings: args.settings.clone().or(of_relay),
        })
    }

    /// Reads the server from a configuration file.
    fn from_file(path: &Path, name: Option<&str>) -> Result<Self, Failure> {
        let config = Config::find(Some(path))?;
        let name = match (name, &config.names().collect::<Vec<_>>()[..]) {
            (Some(name), _) => name.to_owned(),
            (None, [only]) => (*only).to_owned(),
            (None, names) => {
                return Err(Failure::Usage(format!(
                    "{} has several servers\n  next: name one of: {}",
                    path.display(),
                    names.join(", ")
                )));
            }
        };
        let wrong = |why: String| config.wrong(&name, &why);
        let (place, of_relay) = config.address(&name)?.behind_relay().map_err(wrong)?;
        let settings = config.settings(&name)?.or(of_relay);
        if let Some(object) = &settings {
            serve::read_settings(object).map_err(wrong)?;
        }
        let ServerAddress::Command {
            program,
            args,
            env,
            directory,
        } = place
        else {
            return Err(config.wrong(
                &name,
                "it is at a URL, and a host can reach that itself\n  next: give it tasks with `outlast serve --config`, and write the URL that it prints into the host's file",
            ));
        };
        let here = std::env::current_dir()?;
        Ok(Self {
            command: std::iter::once(program).chain(args).collect(),
            env: environment().into_iter().chain(env).collect(),
            directory: directory.map_or(here.clone(), |folder| here.join(folder)),
            settings: settings.as_ref().map(Value::to_string),
        })
    }
}

/// The whole environment of this process.
fn environment() -> BTreeMap<String, String> {
    let all = std::env::vars_os();
    all.map(|(name, value)| (text(&name), text(&value)))
        .collect()
}

fn text(text: &OsStr) -> String {
    text.to_string_lossy().into_owned()
}
