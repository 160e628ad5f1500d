//! The `outlast` command: data to stdout, talk to stderr, a next step after each error.

mod args;
mod call;
mod connect;
mod demo;
mod doctor;
mod exit;
mod interrupts;
mod left;
mod logs;
mod person;
mod place;
mod relay;
mod remote;
mod serve;
mod sessions;
mod store;
mod target;
mod tasks;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("outlast: the runtime did not start: {error}");
            return exit::FAILED.into();
        }
    };
    let done = runtime.block_on(async {
        match args.command {
            Command::Demo(demo) => demo::run(demo).await,
            Command::Call(call) => call::run(call).await,
            Command::Tasks(tasks) => tasks::run(tasks).await,
            Command::Stdio(stdio) => relay::run(stdio).await,
            Command::Background(background) => relay::background(background).await,
            Command::Serve(serve) => serve::run(serve).await,
            Command::Store(store) => store::run(&store),
            Command::Doctor(doctor) => doctor::run(doctor).await,
            Command::ExitCodes => {
                println!("{}", args::EXIT_CODES);
                Ok(())
            }
        }
    });
    // What still runs belongs to tasks that the next start settles.
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("outlast: {failure}");
            failure.code().into()
        }
    }
}
