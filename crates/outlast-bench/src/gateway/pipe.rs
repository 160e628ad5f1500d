//! The upstream called directly: requests go to its stdin, responses come from its stdout in the
//! same order.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::sides::upstream;
use crate::BenchResult;
use crate::http::mcp_client::ARGUMENTS;
use crate::http::target::Cost;
use crate::machine::processor_of;

/// The upstream and its only client. The upstream ends when this is dropped.
pub(super) struct Pipe {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// The number of concurrent calls.
    in_flight: usize,
    line: String,
}

impl Pipe {
    pub(super) fn start(in_flight: usize) -> BenchResult<Self> {
        let (program, args) = upstream()?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Self {
            requests: child.stdin.take().ok_or("a child has no stdin")?,
            answers: BufReader::new(child.stdout.take().ok_or("a child has no stdout")?),
            child,
            in_flight,
            line: String::new(),
        })
    }

    /// Calls the tool for about `turn`.
    pub(super) fn measure(&mut self, turn: Duration) -> BenchResult<Cost> {
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"plain","arguments":{ARGUMENTS}}}}}"#
        ) + "\n";
        let before = processor_of(self.child.id())?;
        let began = Instant::now();
        let (mut sent_at, mut times) = (VecDeque::new(), Vec::new());
        for _ in 0..self.in_flight {
            sent_at.push_back(Instant::now());
            self.requests.write_all(request.as_bytes())?;
        }
        while let Some(at) = sent_at.pop_front() {
            self.line.clear();
            self.answers.read_line(&mut self.line)?;
            if !self.line.contains("\"text\"") {
                return Err(format!("the upstream printed {:?}", self.line).into());
            }
            times.push(at.elapsed().as_secs_f64() * 1e6);
            if began.elapsed() < turn {
                sent_at.push_back(Instant::now());
                self.requests.write_all(request.as_bytes())?;
            }
        }
        let processor = processor_of(self.child.id())? - before;
        Ok(Cost::from_times(&times, began.elapsed(), processor))
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
