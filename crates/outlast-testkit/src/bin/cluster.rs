//! Three nodes on a new PostgreSQL database behind nginx: `cluster SERVERS PROGRAM WORD…`.
//!
//! Each node is a process `PROGRAM serve WORD…` that prints SERVERS URLs. This program prints the
//! same URLs at the load balancer, and runs until its standard input is closed. Then it prints how
//! many requests each node got, and fails if that is not about a third.

#[cfg(unix)]
fn main() {
    use std::fs::File;
    use std::io::Read;
    use std::net::SocketAddr;
    use std::process::Command;

    use outlast_testkit::{LoadBalancer, PostgresServer, ServerProcess, free_port};

    let mut words = std::env::args().skip(1);
    let mut next = || words.next().expect("usage: cluster SERVERS PROGRAM WORD…");
    let servers = next().parse().expect("the number of servers is a number");
    let program = next();
    let words: Vec<_> = words.collect();
    let store = PostgresServer::shared().fresh_url();
    let folder = tempfile::tempdir().expect("a temporary folder can be created");
    let nodes: Vec<_> = (1..=NODES)
        .map(|number| {
            let home = folder.path().join(number.to_string());
            std::fs::create_dir(&home).expect("the folder can be written");
            let log = File::create(home.join("stderr")).expect("the folder can be written");
            let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
            let mut command = Command::new(&program);
            command
                .args(["serve", "--http", &address.to_string(), "--store", &store])
                .args(&words)
                .env("XDG_DATA_HOME", &home)
                .env_remove("OUTLAST_TOKEN")
                .stderr(log);
            ServerProcess::start(&mut command, servers)
        })
        .collect();
    let addresses: Vec<_> = nodes.iter().map(ServerProcess::address).collect();
    let balancer = LoadBalancer::nginx(folder.path(), &addresses);
    let own = balancer.address().to_string();
    for url in nodes[0].urls() {
        println!("{}", url.replace(nodes[0].authority(), &own));
    }
    // Closed by the program that started this one.
    let _ = std::io::stdin().read(&mut [0]);
    println!("requests by node: {:?}", balancer.served());
    balancer.assert_balanced(&addresses);
}

#[cfg(unix)]
const NODES: usize = 3;

#[cfg(not(unix))]
fn main() {
    panic!("it needs PostgreSQL and nginx, which are started on Unix only");
}
