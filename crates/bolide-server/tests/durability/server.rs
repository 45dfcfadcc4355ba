//! The built binary as a process of our own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::Client;

const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(30);
const POLL_EVERY: Duration = Duration::from_millis(2);

/// Where a server works: its data directory, and beside it what it says.
#[derive(Debug, Clone)]
pub struct Place {
    root: PathBuf,
    data_dir: PathBuf,
    log: PathBuf,
    /// What a shell runs before it becomes the server.
    shell: String,
}

/// A running server, killed with the value.
#[derive(Debug)]
pub struct Server {
    process: Child,
    port: u16,
    place: Place,
}

/// How a start ended.
#[derive(Debug)]
pub enum Start {
    /// It serves.
    Ready(Server),
    /// The process ended by itself.
    Ended {
        /// With this status.
        status: ExitStatus,
        /// And these last words.
        stderr: String,
    },
}

impl Place {
    /// A place below a directory that is there.
    pub fn new(root: &Path) -> Place {
        Place {
            root: root.to_owned(),
            data_dir: root.join("data"),
            log: root.join("stderr"),
            shell: String::new(),
        }
    }

    /// The same with the data directory somewhere else.
    pub fn with_data_dir(self, data_dir: PathBuf) -> Place {
        Place { data_dir, ..self }
    }

    /// The same with the server's standard error somewhere else.
    pub fn with_log(self, log: PathBuf) -> Place {
        Place { log, ..self }
    }

    /// The same with a server that starts under a limit, as `ulimit -f 1000`.
    pub fn with_limit(self, limit: &str) -> Place {
        Place {
            shell: format!("{limit};"),
            ..self
        }
    }

    /// The data directory.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// What the last process wrote to its standard error.
    pub fn stderr(&self) -> String {
        // A device is not to be read to its end.
        match self.log.is_file() {
            true => fs::read_to_string(&self.log).unwrap_or_default(),
            false => String::new(),
        }
    }

    /// Starts a server that must get ready.
    pub fn start(&self) -> Server {
        match self.try_start(&[]) {
            Start::Ready(server) => server,
            Start::Ended { status, stderr } => panic!("the server ended while starting: {status} {stderr}"),
        }
    }

    /// Starts a server with more options and waits until it is ready or has ended.
    pub fn try_start(&self, options: &[&str]) -> Start {
        let mut process = self.spawn(options);
        let deadline = Instant::now() + START_LIMIT;
        loop {
            if let Some(port) = self.ready_port() {
                return Start::Ready(Server {
                    process,
                    port,
                    place: self.clone(),
                });
            }
            if let Some(status) = process.try_wait().expect("our own child") {
                return Start::Ended {
                    status,
                    stderr: self.stderr(),
                };
            }
            if Instant::now() > deadline {
                end(&mut process);
                panic!("the server neither gets ready nor ends: {}", self.stderr());
            }
            std::thread::sleep(POLL_EVERY);
        }
    }

    /// Starts a server and kills it a moment later, ready or not.
    pub fn start_and_kill(&self, after: Duration) {
        let mut process = self.spawn(&[]);
        std::thread::sleep(after);
        end(&mut process);
    }

    fn spawn(&self, options: &[&str]) -> Child {
        // Left from the run before, it would name a port that nobody listens on.
        let _ = fs::remove_file(self.ready_file());
        let binary = env!("CARGO_BIN_EXE_bolide");
        let mut command = match self.shell.as_str() {
            "" => Command::new(binary),
            before => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("{before} exec \"$0\" \"$@\""), binary]);
                shell
            }
        };
        // Options come from here alone, whatever the caller's shell has set for a server of its own.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BOLIDE_")) {
            command.env_remove(name);
        }
        command
            .args(["--port=0", "--mongo-port=0", "--data-dir"])
            .arg(self.data_dir());
        command
            .arg("--ready-file")
            .arg(self.ready_file())
            .args(options)
            .current_dir(&self.root);
        let stderr = File::create(&self.log).expect("the log can be written");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        command.spawn().expect("the binary can be started")
    }

    fn ready_file(&self) -> PathBuf {
        self.root.join("ready.json")
    }

    fn ready_port(&self) -> Option<u16> {
        let ready: Value = serde_json::from_str(&fs::read_to_string(self.ready_file()).ok()?).ok()?;
        ready["cosmos"].as_str()?.rsplit_once(':')?.1.parse().ok()
    }
}

impl Server {
    /// The process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A new connection to it.
    pub fn client(&self) -> Client {
        Client::connect(self.port)
    }

    /// Ends it as a crash does. Fails if it had ended before by itself.
    pub fn kill(mut self) {
        let ended = self.process.try_wait().expect("our own child");
        assert!(
            ended.is_none(),
            "the server ended by itself: {ended:?} {}",
            self.place.stderr()
        );
        end(&mut self.process);
        self.assert_no_panic();
    }

    /// Asks it to stop and waits until it has.
    pub fn stop(mut self) {
        let pid = self.process.id().to_string();
        let asked = Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .expect("every Unix has kill");
        assert!(asked.success(), "kill -TERM: {asked}");
        let deadline = Instant::now() + STOP_LIMIT;
        let status = loop {
            if let Some(status) = self.process.try_wait().expect("our own child") {
                break status;
            }
            assert!(
                Instant::now() < deadline,
                "the server does not stop: {}",
                self.place.stderr()
            );
            std::thread::sleep(POLL_EVERY);
        };
        assert!(
            status.success(),
            "the server stopped with {status}: {}",
            self.place.stderr()
        );
        self.assert_no_panic();
    }

    /// Asserts that nothing in the process has panicked.
    pub fn assert_no_panic(&self) {
        let stderr = self.place.stderr();
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.process);
        if std::thread::panicking() {
            println!("the server's last words: {}", self.place.stderr());
        }
    }
}

/// Kills a process and collects it; one that has ended already is fine.
fn end(process: &mut Child) {
    let _ = process.kill();
    let _ = process.wait();
}
