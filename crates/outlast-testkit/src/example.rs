//! The examples of the workspace, as cargo built them.

use std::path::{Path, PathBuf};

/// The program of the example `name`. `cargo test` builds the examples, too, unless it is asked for one test only.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    // PROFILE/deps/TEST
    let profile = test.parent().and_then(Path::parent);
    let program = profile
        .expect("tests lie two folders deep")
        .join("examples")
        .join(name);
    assert!(
        program.exists(),
        "{} is not there: `cargo build --workspace --examples` builds it",
        program.display()
    );
    program
}
