//! What breaks: servers, PostgreSQL, and the links between them. Afterwards everything works again.

use std::time::{Duration, Instant};

use bolide_postgres_server::{End, OwnServer};

use super::clients::{Run, serves};
use super::network::Network;
use crate::random::Random;

/// A server serves again so soon after its store is back.
const RETURN_LIMIT: Duration = Duration::from_secs(8);

/// Breaks things until a time.
pub struct Faults<'r> {
    pub run: &'r Run,
    pub random: Random,
    pub until: Instant,
    /// Seconds that servers wait for the store.
    pub timeout: u64,
    /// The longest that a server took to serve again.
    pub slowest_return: Duration,
}

impl Faults<'_> {
    fn sleep(&mut self, from_ms: u64, to_ms: u64) {
        std::thread::sleep(Duration::from_millis(self.random.within(from_ms..to_ms)));
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until || self.run.is_over()
    }

    fn any_server(&mut self) -> usize {
        usize::try_from(self.random.within(0..self.run.nodes.len() as u64)).expect("small")
    }

    /// Kills servers and PostgreSQL.
    pub fn kill(&mut self, database: &mut OwnServer) {
        while !self.is_over() {
            self.sleep(300, 1_500);
            match self.random.within(0..20) {
                0..8 => {
                    let server = self.any_server();
                    self.kill_server(server);
                    self.start_server(server);
                }
                8..11 => self.kill_several(),
                11..17 => self.kill_database(database, None),
                _ => {
                    let server = self.any_server();
                    self.kill_database(database, Some(server));
                }
            }
            self.check_nodes();
        }
    }

    fn kill_server(&mut self, server: usize) {
        self.run.count("kills of servers");
        self.run.nodes[server].kill();
        self.sleep(0, 600);
    }

    fn start_server(&mut self, server: usize) {
        if self.random.one_in(5) {
            let after = Duration::from_millis(self.random.within(0..200));
            self.run.count("kills of servers");
            self.run.nodes[server].start_and_kill(after);
        }
        self.run.nodes[server].start();
    }

    fn kill_several(&mut self) {
        let spared = self.any_server();
        for server in (0..self.run.nodes.len()).filter(|server| *server != spared) {
            self.kill_server(server);
        }
        for server in (0..self.run.nodes.len()).filter(|server| *server != spared) {
            self.start_server(server);
        }
    }

    /// Kills PostgreSQL, and a server while it is away.
    fn kill_database(&mut self, database: &mut OwnServer, server: Option<usize>) {
        let how = self.random.choice(&[End::Killed, End::Killed, End::Immediate]);
        self.run.count(format!("PostgreSQL: {how:?}"));
        database.end(how).expect("it is ours");
        if let Some(server) = server {
            self.sleep(0, 300);
            self.kill_server(server);
        }
        match self.random.one_in(8) {
            // Longer than anybody waits.
            true => std::thread::sleep(Duration::from_secs(self.timeout + 2)),
            false => self.sleep(0, 1_500),
        }
        database.restart().expect("PostgreSQL recovers");
        if let Some(server) = server {
            self.start_server(server);
        }
        self.wait_for_return();
    }

    /// Cuts links, slows them down, and kills servers that are cut off.
    pub fn cut(&mut self, network: &Network) {
        while !self.is_over() {
            self.sleep(300, 1_200);
            let server = self.any_server();
            match self.random.within(0..20) {
                0..9 => {
                    self.cut_servers(network, &[server], None);
                }
                9..12 => self.cut_servers(network, &[server], Some(server)),
                12..14 => self.cut_servers(network, &[0, 1, 2], None),
                14..16 => self.cut_servers(network, &[server, (server + 1) % 3], None),
                _ => {
                    self.run.count("slow links");
                    network.delay(server, Duration::from_millis(self.random.within(10..150)));
                    self.sleep(500, 3_000);
                    network.delay(server, Duration::ZERO);
                }
            }
            self.wait_for_return();
            self.check_nodes();
        }
    }

    fn cut_servers(&mut self, network: &Network, servers: &[usize], killed: Option<usize>) {
        for server in servers {
            self.run.count("cut links");
            network.cut(*server);
        }
        match self.random.one_in(3) {
            // Longer than anybody waits.
            true => self.sleep(self.timeout * 1_000, self.timeout * 2_500),
            false => self.sleep(50, 2_000),
        }
        if let Some(server) = killed {
            self.kill_server(server);
        }
        for server in servers {
            network.restore(*server);
        }
        if let Some(server) = killed {
            self.start_server(server);
        }
    }

    /// Waits until all servers serve.
    fn wait_for_return(&mut self) {
        let began = Instant::now();
        for (server, node) in self.run.nodes.iter().enumerate() {
            while !serves(node).is_ok_and(|serves| serves) {
                if began.elapsed() > RETURN_LIMIT {
                    let why = format!("server {server} does not serve {RETURN_LIMIT:?} after the return of its store");
                    self.run.fail(why);
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        self.slowest_return = self.slowest_return.max(began.elapsed());
    }

    /// No server ends by itself.
    fn check_nodes(&self) {
        for (server, node) in self.run.nodes.iter().enumerate() {
            if let Some(said) = node.has_ended() {
                self.run.fail(format!("server {server} ended by itself: {said}"));
                panic!("nothing works without it");
            }
        }
    }
}
