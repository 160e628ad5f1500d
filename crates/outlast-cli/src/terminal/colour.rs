//! Whether output has colours: `--color`, then `NO_COLOR`, `CLICOLOR_FORCE` and `CLICOLOR`, then
//! whether the stream is a terminal.

use std::ffi::OsString;

use clap::ValueEnum;

/// When output has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    #[default]
    Auto,
    Always,
    Never,
}

impl ColorChoice {
    /// Whether a stream has colours. `variable` reads the environment.
    pub(super) fn applies(
        self,
        is_terminal: bool,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> bool {
        let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
        let is = |name, wanted| variable(name).is_some_and(|value| value == wanted);
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if is_set("NO_COLOR") => false,
            Self::Auto if is_set("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0") => true,
            Self::Auto => is_terminal && !is("CLICOLOR", "0") && !is("TERM", "dumb"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_then_environment_then_terminal_decides() {
        use ColorChoice::{Always, Auto, Never};
        for (choice, terminal, variables, expected) in [
            (Auto, true, &[][..], true),
            (Auto, false, &[], false),
            (Auto, true, &[("NO_COLOR", "1")], false),
            (Auto, true, &[("NO_COLOR", "")], true),
            (Auto, false, &[("CLICOLOR_FORCE", "1")], true),
            (Auto, false, &[("CLICOLOR_FORCE", "0")], false),
            (
                Auto,
                false,
                &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")],
                false,
            ),
            (Auto, true, &[("CLICOLOR", "0")], false),
            (Auto, true, &[("TERM", "dumb")], false),
            (Always, false, &[("NO_COLOR", "1")], true),
            (Never, true, &[("CLICOLOR_FORCE", "1")], false),
        ] {
            let read = |name: &str| {
                let found = variables.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| OsString::from(value))
            };
            assert_eq!(
                choice.applies(terminal, read),
                expected,
                "{choice:?} {terminal} {variables:?}"
            );
        }
    }
}
