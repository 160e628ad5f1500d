//! The `outlast` command: data to stdout, messages to stderr, a next step after each error.

mod adopt;
mod args;
mod begin;
mod call;
mod completions;
mod connect;
mod connect_error;
mod demo;
mod dirs;
mod doctor;
mod exit;
mod gateway;
mod inspect;
mod interrupts;
mod logs;
mod nearest;
mod nodes;
mod relay;
mod schema;
mod serve;
mod sessions;
mod store;
mod target;
mod task_location;
mod tasks;
mod terminal;
mod terminal_host;
mod token;
mod tools;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    completions::answer_shell();
    let args = Args::try_parse().unwrap_or_else(|error| args::refuse(error));
    terminal::start(args.color);
    let Some(command) = args.command else {
        begin::print();
        return exit::USAGE.into();
    };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            terminal::say!("outlast: the runtime did not start: {error}");
            return exit::FAILED.into();
        }
    };
    let done = runtime.block_on(async {
        match command {
            Command::Demo(demo) => demo::run(demo).await,
            Command::Call(call) => call::run(call).await,
            Command::Tasks(tasks) => tasks::run(tasks).await,
            Command::Stdio(stdio) => relay::run(stdio).await,
            Command::Background(background) => gateway::background(background).await,
            Command::Adopt(args) => adopt::run(&args),
            Command::Gateway(args) => gateway::run(args.command).await,
            Command::Serve(serve) => serve::run(serve).await,
            Command::Store(store) => store::run(&store).await,
            Command::Nodes(nodes) => nodes::run(&nodes).await,
            Command::Token(token) => token::run(&token),
            Command::Tools(tools) => tools::run(tools).await,
            Command::Doctor(doctor) => doctor::run(doctor).await,
            Command::Inspect(inspect) => inspect::run(inspect).await,
            Command::Completions(args) => completions::run(&args),
            Command::Schema => {
                schema::print();
                Ok(())
            }
            Command::ExitCodes => {
                args::EXIT_CODES.lines().for_each(terminal::out);
                Ok(())
            }
        }
    });
    // Remaining work belongs to tasks that the next start recovers.
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            failure.code().into()
        }
    }
}
