//! The command line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::BenchResult;
use crate::http::serve::Server;

pub(crate) enum BenchArgs {
    /// A benchmark.
    Bench(Benchmark, Options),
    /// A server to be measured.
    Serve(Server),
}

#[derive(Clone, Copy)]
pub(crate) enum Benchmark {
    /// The HTTP server, with clients of V1 and of V2.
    Http,
    /// The gateway.
    Gateway,
    /// The SQLite store.
    Store,
    /// The rows of the HTTP server and of the store that have a limit.
    Bars,
}

pub(crate) struct Options {
    pub(crate) quick: bool,
    pub(crate) out: Option<PathBuf>,
    /// Where files are created: on the disk to measure.
    pub(crate) folder: PathBuf,
    /// Other programs to measure, by name.
    programs: BTreeMap<String, PathBuf>,
    only: Vec<String>,
}

impl BenchArgs {
    pub(crate) fn read(mut args: impl Iterator<Item = String>) -> BenchResult<Self> {
        let benchmark = match args.next().as_deref() {
            Some("http") => Benchmark::Http,
            Some("gateway") => Benchmark::Gateway,
            Some("store") => Benchmark::Store,
            Some("bars") => Benchmark::Bars,
            Some("serve") => return Server::read(args).map(Self::Serve),
            Some(other) => return Err(format!("unknown benchmark {other}\n\n{USAGE}").into()),
            None => return Err(USAGE.into()),
        };
        Ok(Self::Bench(benchmark, Options::read(args)?))
    }
}

impl Options {
    fn read(mut args: impl Iterator<Item = String>) -> BenchResult<Self> {
        let mut options = Self {
            quick: false,
            out: None,
            folder: std::env::temp_dir(),
            programs: BTreeMap::new(),
            only: Vec::new(),
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value\n\n{USAGE}"));
            match arg.as_str() {
                "--quick" => options.quick = true,
                "--out" => options.out = Some(value()?.into()),
                "--folder" => options.folder = value()?.into(),
                "--only" => options.only.push(value()?),
                "--program" => {
                    let value = value()?;
                    let named = value.split_once('=');
                    let (name, path) = named.ok_or("--program needs NAME=FILE")?;
                    options.programs.insert(name.to_owned(), path.into());
                }
                other => return Err(format!("unknown argument {other}\n\n{USAGE}").into()),
            }
        }
        Ok(options)
    }

    /// The program with this name.
    pub(crate) fn program(&self, name: &str) -> BenchResult<&Path> {
        let found = self.programs.get(name);
        Ok(found.ok_or_else(|| format!("--program {name}=FILE is missing"))?)
    }

    pub(crate) fn includes(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }
}

const USAGE: &str = "\
usage: outlast-bench http|gateway|store|bars [--quick] [--out FILE] [--folder FOLDER] [--program NAME=FILE]... [--only PART]...
  --quick       fewer tasks, fewer and shorter rounds
  --out         writes the table to this file, too
  --folder      makes its files there (default: the temporary folder)
  --program     the path of a program, for gateway: outlast, mcp-proxy (its interpreter), supergateway (its script)
  --only        only this part: v1, v2, retained of http; calls, url, tasks of gateway;
                lifecycles, retained of store; v1, v2, retained, store of bars
";
