//! A gateway that exits because it is idle, and one that cannot accept a connection.

use std::time::Duration;

use outlast_testkit::{example, until};
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
use tempfile::TempDir;

use crate::harness::{
    call_echo, close_host, gateway_pid, outlast, start_host, start_host_with, status,
};

#[test]
fn no_relay_fails_because_its_gateway_is_exiting() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let behind = example("behind");
    let mut gateways = std::collections::BTreeSet::new();
    for round in 0..30_u32 {
        // The gateway exits at about the time when the next relay starts.
        let mut command = outlast(home);
        command.env("OUTLAST_BACKGROUND_IDLE_MS", "60");
        let mut host = start_host_with(command.arg("stdio").arg("--").arg(&behind));
        call_echo(&mut host, &format!("round {round}"));
        // A gateway that is exiting is no longer reported, and the relay uses the next one.
        gateways.extend(status(home)["gateway"]["pid"].as_i64());
        close_host(host);
        std::thread::sleep(Duration::from_millis(u64::from(40 + round * 3)));
    }
    // Some relays found the gateway of the previous one, some started another.
    assert!(gateways.len() > 1, "{gateways:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_failed_accept_does_not_end_the_gateway() {
    let folder = TempDir::new().expect("a folder");
    let home = folder.path();
    let mut one = start_host(home);
    call_echo(&mut one, "one");
    let pid = gateway_pid(home);
    let limit = |current| {
        let limit = Rlimit {
            current: Some(current),
            maximum: getrlimit(Resource::Nofile).maximum,
        };
        let before = prlimit(Some(pid), Resource::Nofile, limit).expect("the limit is set");
        before.current.expect("a limit before")
    };
    // Below the number of open files: no connection can be accepted.
    let before = limit(4);
    let waiting = std::thread::spawn({
        let home = home.to_owned();
        move || start_host(&home)
    });
    until("an accept has failed", || {
        let log = std::fs::read_to_string(home.join("outlast/tasks.db.log"));
        log.is_ok_and(|log| log.contains("cannot accept a connection"))
    });
    limit(before);
    let mut two = waiting.join().expect("it is served");
    call_echo(&mut two, "two");
    call_echo(&mut one, "one again");
    assert_eq!(gateway_pid(home), pid);
    assert_eq!(status(home)["gateway"]["hosts"], 2);
    close_host(one);
    close_host(two);
}
