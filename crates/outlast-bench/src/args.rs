//! What the command line asks for.

use std::path::PathBuf;

use crate::Done;
use crate::child::Job;

pub(crate) enum Args {
    Bench(Bench),
    /// A measurement that wants a process of its own.
    Child(Job),
}

pub(crate) struct Bench {
    pub(crate) quick: bool,
    pub(crate) out: Option<PathBuf>,
    /// Where files are made: on the disk that is to be measured.
    pub(crate) folder: PathBuf,
    only: Vec<String>,
}

impl Args {
    pub(crate) fn read(args: impl Iterator<Item = String>) -> Done<Self> {
        let mut args = args;
        let mut bench = Bench {
            quick: false,
            out: None,
            folder: std::env::temp_dir(),
            only: Vec::new(),
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} wants a value\n\n{USAGE}"));
            match arg.as_str() {
                "--quick" => bench.quick = true,
                "--out" => bench.out = Some(value()?.into()),
                "--folder" => bench.folder = value()?.into(),
                "--only" => bench.only.push(value()?),
                "child" => return Job::read(args).map(Self::Child),
                other => return Err(format!("unknown argument {other}\n\n{USAGE}").into()),
            }
        }
        Ok(Self::Bench(bench))
    }
}

impl Bench {
    pub(crate) fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }
}

const USAGE: &str = "\
usage: engine-bench [--quick] [--out FILE] [--folder FOLDER] [--only PART]...
  --quick   100 k tasks instead of 1 M, fewer rounds
  --out     writes the table there, too
  --folder  makes its files there (default: the temporary folder)
  --only    only this part: memory, disk, lookup, expiry, single, retained, open
";
