//! A server under measurement: a child process, clients that speak to it, and the processor time it takes.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::client::Connection;
use super::dialect::{Generation, Speaker};
use super::serve::Server;
use crate::Done;
use crate::machine::processor_of;

/// A server and its clients. The server ends with this.
pub(crate) struct Target {
    child: Child,
    address: SocketAddr,
    generation: Generation,
    speakers: Vec<Speaker>,
}

/// What clients do, over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// A task from creation to outcome.
    Live,
    /// A look at one task that has ended.
    Get,
    /// A look at one task that works.
    Look,
    /// A call that is no task.
    Call,
}

/// What clients see of deeds, and what deeds cost the server.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) per_second: f64,
    /// Processor time of one, in microseconds.
    pub(crate) processor: f64,
}

impl Target {
    /// Starts one of the servers of this program.
    pub(crate) fn start(server: &Server, generation: Generation) -> Done<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("serve").args(server.args());
        Self::spawn(command, generation)
    }

    /// Starts a script under Node.
    pub(crate) fn node(script: &Path) -> Done<Self> {
        let mut command = Command::new("node");
        command.arg(script);
        Self::spawn(command, Generation::V1)
    }

    fn spawn(mut command: Command, generation: Generation) -> Done<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        let stdout = child.stdout.take().ok_or("a child has no stdout")?;
        let mut address = String::new();
        BufReader::new(stdout).read_line(&mut address)?;
        let address = address
            .trim_end()
            .parse()
            .map_err(|_| format!("{command:?} did not say where it listens"))?;
        Ok(Self {
            child,
            address,
            generation,
            speakers: Vec::new(),
        })
    }

    /// Opens so many connections, each with a client of its own.
    pub(crate) async fn connect(&mut self, connections: usize, deed: Deed) -> Done<()> {
        self.speakers.clear();
        for _ in 0..connections {
            let mut speaker = self.speaker().await?;
            match deed {
                Deed::Get => speaker.live().await?,
                Deed::Look => speaker.create("endless").await?,
                Deed::Live | Deed::Call => {}
            }
            self.speakers.push(speaker);
        }
        Ok(())
    }

    /// A client on a connection of its own.
    pub(crate) async fn speaker(&self) -> Done<Speaker> {
        let connection = Connection::open(self.address).await?;
        Speaker::meet(connection, self.generation).await
    }

    /// Lets every client do the deed for about `turn`.
    pub(crate) fn turn(&mut self, runtime: &Runtime, deed: Deed, turn: Duration) -> Done<Cost> {
        let before = processor_of(self.child.id())?;
        let began = Instant::now();
        let deeds = runtime.block_on(async {
            let mut busy = JoinSet::new();
            for mut speaker in self.speakers.drain(..) {
                busy.spawn(async move {
                    let mut deeds = 0_u64;
                    while began.elapsed() < turn {
                        match deed {
                            Deed::Live => speaker.live().await?,
                            Deed::Get | Deed::Look => drop(speaker.get().await?),
                            Deed::Call => speaker.call().await?,
                        }
                        deeds += 1;
                    }
                    Done::Ok((speaker, deeds))
                });
            }
            let mut all = 0;
            while let Some(done) = busy.join_next().await {
                let (speaker, deeds) = done??;
                self.speakers.push(speaker);
                all += deeds;
            }
            Done::Ok(all as f64)
        })?;
        Ok(Cost {
            per_second: deeds / began.elapsed().as_secs_f64(),
            processor: (processor_of(self.child.id())? - before) * 1e6 / deeds,
        })
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Gone already is as good as ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
