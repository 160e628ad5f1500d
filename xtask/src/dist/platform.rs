//! The platforms that can be packed. A platform counts as supported only where its packages are
//! published. Windows is missing: the program uses Unix sockets.

use std::path::Path;
use std::process::Command;

/// A platform and its names.
#[derive(Clone, Copy)]
pub(super) struct Platform {
    /// The target of Rust.
    pub(super) target: &'static str,
    /// The names of the operating system and the processor in npm.
    pub(super) npm: (&'static str, &'static str),
    /// The platform of a wheel. On Linux the version of glibc is added.
    wheel: &'static str,
}

const PLATFORMS: [Platform; 4] = [
    Platform {
        target: "x86_64-unknown-linux-gnu",
        npm: ("linux", "x64"),
        wheel: "x86_64",
    },
    Platform {
        target: "aarch64-unknown-linux-gnu",
        npm: ("linux", "arm64"),
        wheel: "aarch64",
    },
    Platform {
        target: "x86_64-apple-darwin",
        npm: ("darwin", "x64"),
        wheel: "macosx_10_12_x86_64",
    },
    Platform {
        target: "aarch64-apple-darwin",
        npm: ("darwin", "arm64"),
        wheel: "macosx_11_0_arm64",
    },
];

impl Platform {
    /// The platform of a Rust target.
    pub(super) fn of(target: &str) -> Result<&'static Self, String> {
        PLATFORMS
            .iter()
            .find(|platform| platform.target == target)
            .ok_or_else(|| {
                let known: Vec<_> = PLATFORMS.iter().map(|platform| platform.target).collect();
                format!(
                    "there are no packages for {target}; there are for: {}",
                    known.join(", ")
                )
            })
    }

    pub(super) fn of_this_machine() -> Result<Self, String> {
        let output = Command::new("rustc").arg("-vV").output();
        let output = output.map_err(|error| format!("rustc did not start: {error}"))?;
        let output = String::from_utf8_lossy(&output.stdout);
        let host = output.lines().find_map(|line| line.strip_prefix("host: "));
        Self::of(host.ok_or("rustc does not print its target")?).copied()
    }

    /// The npm package of this platform.
    pub(super) fn npm_name(&self) -> String {
        format!("outlast-{}-{}", self.npm.0, self.npm.1)
    }

    /// The platform tag of a wheel with `program`.
    pub(super) fn wheel_tag(&self, program: &Path) -> Result<String, String> {
        if self.npm.0 != "linux" {
            return Ok(self.wheel.to_owned());
        }
        let bytes = std::fs::read(program).map_err(|error| super::file_error(program, &error))?;
        let minor =
            glibc_minor(&bytes).ok_or_else(|| format!("{} needs no glibc", program.display()))?;
        Ok(format!("manylinux_2_{minor}_{}", self.wheel))
    }
}

/// The newest `GLIBC_2.N` that the program requires.
fn glibc_minor(program: &[u8]) -> Option<u32> {
    const NAME: &[u8] = b"GLIBC_2.";
    let found = program.windows(NAME.len() + 2).filter_map(|window| {
        let digits = window.strip_prefix(NAME)?;
        let length = digits
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        std::str::from_utf8(&digits[..length]).ok()?.parse().ok()
    });
    found.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_glibc_is_found() {
        assert_eq!(
            glibc_minor(b"..GLIBC_2.4\0..GLIBC_2.34\0.GLIBC_2.17\0"),
            Some(34)
        );
        assert_eq!(glibc_minor(b"GLIBC_PRIVATE\0 nothing else here"), None);
    }

    #[test]
    fn platforms_have_different_names() {
        let names: std::collections::BTreeSet<_> =
            PLATFORMS.iter().map(Platform::npm_name).collect();
        assert_eq!(names.len(), PLATFORMS.len());
        assert!(Platform::of("x86_64-pc-windows-msvc").is_err());
    }
}
