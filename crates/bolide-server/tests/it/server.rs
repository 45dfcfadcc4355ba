//! A started server.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::client::Client;

/// Longest time that a start or a normal stop may take before a test fails.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    ready: Value,
    _files: TempDir,
}

/// The result of a binary that ended: its exit status and standard error.
pub struct Ended {
    pub status: ExitStatus,
    pub stderr: String,
}

impl Server {
    /// Starts on free ports, with the memory engine.
    pub fn in_memory(arguments: &[&str]) -> Server {
        Server::start(&[&["--memory"], arguments].concat())
    }

    /// Starts on free ports, with a data directory.
    pub fn on(data: &Path, arguments: &[&str]) -> Server {
        let data = data.to_str().expect("temporary paths are UTF-8");
        Server::start(&[&["--data-dir", data], arguments].concat())
    }

    /// Starts with a data directory, in a process with a limit of open files.
    pub fn with_open_files(files: u32, data: &Path, arguments: &[&str]) -> Server {
        let mut limited = Command::new("sh");
        let script = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
        limited.args(["-c", &script, env!("CARGO_BIN_EXE_bolide")]);
        let data = data.to_str().expect("temporary paths are UTF-8");
        Server::start_as(without_options(limited), &[&["--data-dir", data], arguments].concat())
    }

    /// Starts with environment variables.
    pub fn with_environment(variables: &[(&str, &str)], arguments: &[&str]) -> Server {
        let mut command = command();
        command.envs(variables.iter().copied());
        Server::start_as(command, arguments)
    }

    /// Starts with its standard error in a file.
    pub fn logging_to(file: &Path, arguments: &[&str]) -> Server {
        let mut logging = command();
        logging.stderr(std::fs::File::create(file).expect("a log file"));
        Server::start_as(logging, arguments)
    }

    /// Starts with a pipe as its standard input.
    pub fn with_piped_stdin(arguments: &[&str]) -> Server {
        let mut piped = command();
        piped.stdin(Stdio::piped());
        Server::start_as(piped, arguments)
    }

    /// Starts the sample database on free ports.
    pub fn demo(arguments: &[&str]) -> Server {
        Server::launch(command(), "demo", arguments)
    }

    fn start(arguments: &[&str]) -> Server {
        Server::start_as(command(), arguments)
    }

    fn start_as(command: Command, arguments: &[&str]) -> Server {
        Server::launch(command, "serve", arguments)
    }

    fn launch(mut command: Command, subcommand: &str, arguments: &[&str]) -> Server {
        let files = TempDir::new().expect("a temporary directory");
        let ready = files.path().join("ready.json");
        command.arg(subcommand);
        if !arguments.contains(&"--port") {
            command.args(["--port", "0"]);
        }
        let mut child = command
            .args(["--mongo-port", "0", "--ready-file"])
            .arg(&ready)
            .args(arguments)
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let started = Instant::now();
        while !ready.exists() {
            if let Some(status) = child.try_wait().expect("the child can be waited for") {
                panic!("the server ended while it started: {status}");
            }
            assert!(started.elapsed() < TEST_TIMEOUT, "the server is not ready in time");
            std::thread::sleep(Duration::from_millis(5));
        }
        let text = std::fs::read_to_string(&ready).expect("the ready file can be read");
        Server {
            child,
            ready: serde_json::from_str(&text).expect("the ready file is JSON"),
            _files: files,
        }
    }

    /// The content of the ready file.
    pub fn ready(&self) -> &Value {
        &self.ready
    }

    /// Writes to the pipe that is its standard input.
    pub fn write_to_stdin(&mut self, bytes: &[u8]) {
        let stdin = self.child.stdin.as_mut().expect("standard input is a pipe");
        stdin.write_all(bytes).expect("somebody reads the pipe");
    }

    /// Closes the pipe that is its standard input.
    pub fn close_stdin(&mut self) {
        drop(self.child.stdin.take().expect("standard input is a pipe"));
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn port(&self) -> u16 {
        let url = self.ready["cosmos"].as_str().expect("an endpoint");
        url.rsplit(':').next().expect("a port").parse().expect("a port number")
    }

    /// A new connection with the well-known key.
    pub fn client(&self) -> Client {
        Client::connect(self.port())
    }

    /// The port for MongoDB's drivers.
    pub fn mongo_port(&self) -> u16 {
        let url = self.ready["mongo"].as_str().expect("an endpoint");
        url.rsplit(':').next().expect("a port").parse().expect("a port number")
    }

    /// Asks for a normal stop, and waits for it.
    pub fn stop(&mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .expect("kill can be run");
        assert!(sent.success(), "the signal was sent");
        self.wait()
    }

    /// Waits for the process to end.
    pub fn wait(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the child can be waited for") {
                return status;
            }
            assert!(started.elapsed() < TEST_TIMEOUT, "the server does not stop");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the binary until it ends.
pub fn run(arguments: &[&str]) -> Ended {
    let mut child = command()
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            break status;
        }
        if started.elapsed() > TEST_TIMEOUT {
            let _ = child.kill();
            panic!("expected the binary to end. arguments={arguments:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .expect("standard error is piped")
        .read_to_string(&mut stderr)
        .expect("standard error is UTF-8");
    Ended { status, stderr }
}

/// The binary, without options from the caller's environment.
pub fn command() -> Command {
    without_options(Command::new(env!("CARGO_BIN_EXE_bolide")))
}

fn without_options(mut command: Command) -> Command {
    // Options from the caller's environment must not reach the servers under test.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("BOLIDE_")) {
        command.env_remove(name);
    }
    command
}
