//! The first line that a relay says: which server it stands for. Only the gateway's memory has it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args;
use crate::exit::Failure;

/// Which server a relay stands for. Two with the same words share it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Hello {
    /// The command; none for one who only looks at tasks.
    pub(super) command: Vec<String>,
    /// The whole environment of the host.
    pub(super) env: BTreeMap<String, String>,
    pub(super) directory: Option<PathBuf>,
    /// The `outlast` object, as text.
    pub(super) settings: Option<String>,
}

impl Hello {
    pub(super) fn of(args: &args::Stdio) -> Result<Self, Failure> {
        if let Some(settings) = &args.settings {
            // Told here, where somebody reads it.
            let object: Value = serde_json::from_str(settings)
                .map_err(|error| Failure::Usage(format!("--settings is not JSON: {error}")))?;
            crate::serve::read_settings(&object)
                .map_err(|why| Failure::Usage(format!("--settings: {why}")))?;
        }
        let words = args.command.iter();
        let env = std::env::vars_os();
        let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
        Ok(Self {
            command: words.map(|word| text(word)).collect(),
            env: env
                .map(|(name, value)| (text(&name), text(&value)))
                .collect(),
            directory: Some(std::env::current_dir()?),
            settings: args.settings.clone(),
        })
    }

    /// That of one who only looks at tasks.
    pub(super) fn looking() -> Self {
        Self {
            command: Vec::new(),
            env: BTreeMap::new(),
            directory: None,
            settings: None,
        }
    }

    pub(super) fn line(&self) -> String {
        let text = serde_json::to_string(self).expect("strings are JSON");
        format!("{text}\n")
    }
}
