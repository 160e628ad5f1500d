//! How the tests start the program under test.

use std::path::Path;
use std::process::Command;

/// `outlast` with `home` as its data folder and its working directory, and without a token.
pub(crate) fn outlast(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outlast"));
    command
        .env("XDG_DATA_HOME", home)
        .env_remove("OUTLAST_TOKEN")
        .current_dir(home);
    command
}
