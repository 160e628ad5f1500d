//! `outlast adopt FILE`: rewrites a host's configuration file so that its servers start through
//! `outlast stdio`.

mod rewrite;

use std::io::Write;
use std::path::{Path, PathBuf};

use outlast_store::private_file;

use crate::args::Adopt;
use crate::exit::Failure;
use crate::terminal::{out_text, say};
use rewrite::{RewriteResult, ServerChange, adopt, undo};

pub(crate) fn run(args: &Adopt) -> Result<(), Failure> {
    let wrong = |why: String| {
        Failure::Usage(format!(
            "{}: {why}\n  next: name a file with `mcpServers` or `servers`",
            args.file.display()
        ))
    };
    // Resolve a symbolic link, so that the link itself is not replaced by a file.
    let path = args
        .file
        .canonicalize()
        .map_err(|error| wrong(error.to_string()))?;
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
    let program = match &args.program {
        Some(program) => program.clone(),
        None => std::env::current_exe()?.to_string_lossy().into_owned(),
    };
    let mut rewritten = if args.undo {
        undo(&text)
    } else {
        adopt(&text, &program)
    }
    .map_err(wrong)?;
    if rewritten.servers.is_empty() {
        return Err(wrong("it has no server".into()));
    }
    let backup = if args.undo && rewritten.is_changed() {
        restorable(&path, &text, &program)
    } else {
        None
    };
    if let Some((_, original)) = &backup {
        rewritten.text.clone_from(original);
    }
    report(&rewritten);
    if args.dry_run {
        out_text(rewritten.text.trim_end());
        return Ok(());
    }
    if !rewritten.is_changed() {
        say!("{} is unchanged", path.display());
        return Ok(());
    }
    if !args.undo {
        let backup = unused(&path);
        std::fs::copy(&path, &backup)?;
        say!("previous file: {}", backup.display());
    }
    replace(&path, &rewritten.text)?;
    if let Some((backup, _)) = backup {
        std::fs::remove_file(backup)?;
    }
    say!(
        "changed {}; restart the host, or reload its servers",
        path.display()
    );
    Ok(())
}

fn report(rewritten: &RewriteResult) {
    for (name, change) in &rewritten.servers {
        match change {
            ServerChange::Changed(command) => say!("{name}: {command}"),
            ServerChange::Unchanged(why) => say!("{name}: not changed: {why}"),
        }
    }
}

/// Returns the newest backup if adopting it gives `text`. The file was not edited since then, so
/// the backup can be restored byte by byte.
fn restorable(path: &Path, text: &str, program: &str) -> Option<(PathBuf, String)> {
    let backups = (1..).map(|number| backup(path, number));
    let newest = backups.take_while(|backup| backup.exists()).last()?;
    let original = std::fs::read_to_string(&newest).ok()?;
    let adopted = adopt(&original, program).ok()?;
    (adopted.text == text).then_some((newest, original))
}

/// Returns a path for a backup at which no file exists.
fn unused(path: &Path) -> PathBuf {
    let mut backups = (1..).map(|number| backup(path, number));
    backups
        .find(|backup| !backup.exists())
        .unwrap_or_else(|| backup(path, 1))
}

fn backup(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".before-outlast");
    if number > 1 {
        name.push(format!(".{number}"));
    }
    name.into()
}

/// Replaces a file atomically and keeps its permissions.
fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = PathBuf::from(name);
    // The file may contain secrets, so it is never readable by other users.
    let mut file = private_file::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(std::fs::metadata(path)?.permissions())?;
    file.sync_all()?;
    std::fs::rename(new, path)?;
    Ok(())
}
