//! The built binary, running as a process.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::Client;

const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(30);
const POLL_EVERY: Duration = Duration::from_millis(2);

/// The files of a server: its data directory, and its output.
#[derive(Debug, Clone)]
pub struct ServerFiles {
    root: PathBuf,
    data_dir: PathBuf,
    log: PathBuf,
    /// A shell command that runs before the server.
    shell: String,
    /// The network namespace that it runs in.
    namespace: Option<String>,
}

/// A running server; killed when dropped.
#[derive(Debug)]
pub struct Server {
    process: Child,
    port: u16,
    mongo_port: u16,
    files: ServerFiles,
}

/// The result of a start.
#[derive(Debug)]
pub enum Start {
    /// It serves.
    Ready(Server),
    /// The process ended by itself.
    Ended {
        /// Its exit status.
        status: ExitStatus,
        /// Its standard error.
        stderr: String,
    },
}

impl ServerFiles {
    /// Files in an existing directory.
    pub fn new(root: &Path) -> ServerFiles {
        ServerFiles {
            root: root.to_owned(),
            data_dir: root.join("data"),
            log: root.join("stderr"),
            shell: String::new(),
            namespace: None,
        }
    }

    /// The same with another data directory.
    pub fn with_data_dir(self, data_dir: PathBuf) -> ServerFiles {
        ServerFiles { data_dir, ..self }
    }

    /// The same with another file for the server's standard error.
    pub fn with_log(self, log: PathBuf) -> ServerFiles {
        ServerFiles { log, ..self }
    }

    /// The same with a limit for the server, such as `ulimit -f 1000`.
    pub fn with_limit(self, limit: &str) -> ServerFiles {
        ServerFiles {
            shell: format!("{limit};"),
            ..self
        }
    }

    /// The same with the server in a network namespace.
    pub fn in_namespace(self, name: &str) -> ServerFiles {
        ServerFiles {
            namespace: Some(name.to_owned()),
            ..self
        }
    }

    /// The data directory.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The standard error of the last process.
    pub fn stderr(&self) -> String {
        // A device may have no end.
        match self.log.is_file() {
            true => fs::read_to_string(&self.log).unwrap_or_default(),
            false => String::new(),
        }
    }

    /// Starts a server that must become ready.
    pub fn start(&self) -> Server {
        self.start_with(&[])
    }

    /// As [`ServerFiles::start`], with more options.
    pub fn start_with(&self, options: &[&str]) -> Server {
        match self.try_start(options) {
            Start::Ready(server) => server,
            Start::Ended { status, stderr } => panic!("the server ended while starting: {status} {stderr}"),
        }
    }

    /// Starts a server with more options, and waits until it is ready or has ended.
    pub fn try_start(&self, options: &[&str]) -> Start {
        let mut process = self.spawn(options);
        let deadline = Instant::now() + START_LIMIT;
        loop {
            if let Some((port, mongo_port)) = self.ready_ports() {
                return Start::Ready(Server {
                    process,
                    port,
                    mongo_port,
                    files: self.clone(),
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

    /// Starts a server and kills it after a time, ready or not.
    pub fn start_and_kill(&self, after: Duration, options: &[&str]) {
        let mut process = self.spawn(options);
        std::thread::sleep(after);
        end(&mut process);
    }

    fn spawn(&self, options: &[&str]) -> Child {
        // A file from an earlier run would name the wrong port.
        let _ = fs::remove_file(self.ready_file());
        let binary = env!("CARGO_BIN_EXE_bolide");
        let mut command = match (self.shell.as_str(), &self.namespace) {
            ("", None) => Command::new(binary),
            // It becomes the server, so the process is the same.
            ("", Some(namespace)) => {
                let mut inside = Command::new("ip");
                inside.args(["netns", "exec", namespace, binary]);
                inside
            }
            (before, _) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("{before} exec \"$0\" \"$@\""), binary]);
                shell
            }
        };
        // Options come only from here, whatever is set in the caller's environment.
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

    /// The ports of the NoSQL and of the MongoDB API.
    fn ready_ports(&self) -> Option<(u16, u16)> {
        let ready: Value = serde_json::from_str(&fs::read_to_string(self.ready_file()).ok()?).ok()?;
        let port = |api: &str| ready[api].as_str()?.rsplit_once(':')?.1.parse().ok();
        Some((port("cosmos")?, port("mongo")?))
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

    /// The port of the MongoDB API.
    pub fn mongo_port(&self) -> u16 {
        self.mongo_port
    }

    /// A new connection to it.
    pub fn client(&self) -> Client {
        Client::connect(self.port)
    }

    /// Kills it. Fails if it has already ended by itself.
    pub fn kill(mut self) {
        let ended = self.process.try_wait().expect("our own child");
        assert!(
            ended.is_none(),
            "the server ended by itself: {ended:?} {}",
            self.files.stderr()
        );
        end(&mut self.process);
        self.assert_no_panic();
    }

    /// Asks it to stop and waits for the end.
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
                self.files.stderr()
            );
            std::thread::sleep(POLL_EVERY);
        };
        assert!(
            status.success(),
            "the server stopped with {status}: {}",
            self.files.stderr()
        );
        self.assert_no_panic();
    }

    /// Whether the process has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    /// Asserts that the process has not panicked.
    pub fn assert_no_panic(&self) {
        let stderr = self.files.stderr();
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.process);
        if std::thread::panicking() {
            println!("the server's last words: {}", self.files.stderr());
        }
    }
}

/// Kills a process and waits for it; it may have ended already.
fn end(process: &mut Child) {
    let _ = process.kill();
    let _ = process.wait();
}
