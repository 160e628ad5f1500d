//! The examples of the workspace, as cargo built them.

use std::path::{Path, PathBuf};

/// The program of the example `name`. `cargo test` builds the examples, unless it runs only one
/// test.
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
        "{} does not exist: `cargo build --workspace --examples` builds it",
        program.display()
    );
    program
}
