//! The arguments of `outlast completions`.

use clap::{Parser, ValueEnum};

#[derive(Debug, Parser)]
pub(crate) struct Completions {
    /// The shell that the script is for.
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: Shell,
}

/// A shell that can complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

impl Shell {
    /// The name that `clap_complete` uses.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Elvish => "elvish",
            Self::Fish => "fish",
            Self::Powershell => "powershell",
            Self::Zsh => "zsh",
        }
    }
}
