//! What the command line asks for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Done;
use crate::child::Job;
use crate::http::serve::Server;
use crate::table::Table;

pub(crate) enum Args {
    /// The engine.
    Engine(Bench),
    /// The HTTP server, as clients of V1 meet it.
    HttpV1(Bench),
    /// The same, as clients of V2 meet it.
    HttpV2(Bench),
    /// The gateway.
    Gateway(Bench),
    /// A server to be measured.
    Serve(Server),
    /// A process that keeps a processor awake.
    Awake,
    /// A measurement that wants a process of its own.
    Child(Job),
}

pub(crate) struct Bench {
    pub(crate) quick: bool,
    pub(crate) out: Option<PathBuf>,
    /// Where files are made: on the disk that is to be measured.
    pub(crate) folder: PathBuf,
    /// Programs that are measured and are not part of this one, by name.
    programs: BTreeMap<String, PathBuf>,
    only: Vec<String>,
}

impl Args {
    pub(crate) fn read(mut args: impl Iterator<Item = String>) -> Done<Self> {
        match args.next().as_deref() {
            Some("engine") => Bench::read(args).map(Self::Engine),
            Some("http-v1") => Bench::read(args).map(Self::HttpV1),
            Some("http-v2") => Bench::read(args).map(Self::HttpV2),
            Some("gateway") => Bench::read(args).map(Self::Gateway),
            Some("serve") => Server::read(args).map(Self::Serve),
            Some("awake") => Ok(Self::Awake),
            Some("child") => Job::read(args).map(Self::Child),
            Some(other) => Err(format!("unknown benchmark {other}\n\n{USAGE}").into()),
            None => Err(USAGE.into()),
        }
    }
}

impl Bench {
    fn read(mut args: impl Iterator<Item = String>) -> Done<Self> {
        let mut bench = Self {
            quick: false,
            out: None,
            folder: std::env::temp_dir(),
            programs: BTreeMap::new(),
            only: Vec::new(),
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} wants a value\n\n{USAGE}"));
            match arg.as_str() {
                "--quick" => bench.quick = true,
                "--out" => bench.out = Some(value()?.into()),
                "--folder" => bench.folder = value()?.into(),
                "--only" => bench.only.push(value()?),
                "--program" => {
                    let value = value()?;
                    let named = value.split_once('=');
                    let (name, path) = named.ok_or("--program wants NAME=FILE")?;
                    bench.programs.insert(name.to_owned(), path.into());
                }
                other => return Err(format!("unknown argument {other}\n\n{USAGE}").into()),
            }
        }
        Ok(bench)
    }

    /// A folder for this run, on the disk that is to be measured.
    pub(crate) fn scratch(&self) -> Done<TempDir> {
        let mut named = tempfile::Builder::new();
        Ok(named.prefix("outlast-bench").tempdir_in(&self.folder)?)
    }

    /// Shows the table to whoever wanted it.
    pub(crate) fn publish(&self, table: &Table) -> Done<()> {
        let text = table.to_string();
        print!("{text}");
        if let Some(out) = &self.out {
            std::fs::write(out, &text)?;
        }
        Ok(())
    }

    /// The program of that name, if the command line tells where it is.
    pub(crate) fn program(&self, name: &str) -> Done<&Path> {
        let found = self.programs.get(name);
        Ok(found.ok_or_else(|| format!("--program {name}=FILE is missing"))?)
    }

    pub(crate) fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }
}

const USAGE: &str = "\
usage: outlast-bench engine|http-v1|http-v2|gateway [--quick] [--out FILE] [--folder FOLDER] [--program NAME=FILE]... [--only PART]...
  --quick       fewer tasks, fewer and shorter rounds
  --out         writes the table there, too
  --folder      makes its files there (default: the temporary folder)
  --program     where a program is: typescript (the V1 server on the TypeScript SDK) for http-v1;
                outlast, mcp-proxy (its interpreter) and supergateway (its script) for gateway
  --only        only this part: memory, disk, lookup, expiry, single, retained, open of the engine;
                lives, typescript, get, working, call, retained, blocked of http-v1, some of them of http-v2;
                call, modern, url, lives, waves of gateway
";
