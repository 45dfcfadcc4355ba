//! Containers of both variants: what starts, what refuses to, and how soon it is healthy.
//!
//! buildah's `chroot` isolation gives a container its own files and user, but this machine's network: so ports are free ones of this machine.

use std::fmt;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::builder::Builder;
use crate::Result;
use crate::tools::quiet;

const BINARY: &str = "/usr/local/bin/bolide";
/// Time for a start or a stop on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Starts whose time is measured; the first one also makes the store.
const STARTS: usize = 6;
/// 48 bytes, in base64.
const KEY: &str = "Ym9saWRlIGltYWdlIGNoZWNrLCBub3QgYSBzZWNyZXQgb2YgYW55b25lIGF0IGFsbCEhISEh";
/// Where the official emulator keeps its certificate.
const EMULATOR_CERTIFICATE: &str =
    "tmp/cosmos/appdata/.system/profiles/Client/AppData/Local/CosmosDBEmulator/emulator.pem";

/// The variables of the official emulator's documented `docker run` lines, and of the Testcontainers modules.
const EMULATOR_VARIABLES: [(&str, &str); 4] = [
    ("PROTOCOL", "https"),
    ("AZURE_COSMOS_EMULATOR_PARTITION_COUNT", "10"),
    ("AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE", "true"),
    ("AZURE_COSMOS_EMULATOR_IP_ADDRESS_OVERRIDE", "127.0.0.1"),
];

/// The variant for data that matters: refuses to start without a key of its own, and starts with one.
///
/// # Errors
/// What is not so.
pub fn production(builder: &Builder) -> Result<()> {
    let ports = Ports::free()?;
    let refused = Container::start(builder, "bolide", &ports.variables())?.end()?;
    if refused.is_success || !refused.error.contains("--key") {
        let what = refused.error;
        return Err(format!("without a key the image must refuse to start and name --key; it says: {what}").into());
    }
    let mut variables = ports.variables();
    variables.push(("BOLIDE_KEY", KEY.to_owned()));
    let mut container = Container::start(builder, "bolide", &variables)?;
    container.wait_until_healthy(ports.cosmos)?;
    container.check_user()?;
    let ended = container.stop()?;
    if !ended.is_success {
        return Err(format!("the image did not stop normally: {}", ended.error).into());
    }
    match ended.output.contains("/data") {
        true => Ok(()),
        false => Err(format!("the data is not in /data: {}", ended.output).into()),
    }
}

/// The emulator, with the variables of the official one's documented command.
///
/// # Errors
/// What is not so.
pub fn emulator(builder: &Builder) -> Result<()> {
    let ports = Ports::free()?;
    let mut variables = vec![
        ("PORT", ports.cosmos.to_string()),
        ("EXPLORER_PORT", ports.explorer.to_string()),
        ("BOLIDE_HEALTH_PORT", ports.health.to_string()),
        ("BOLIDE_MONGO_PORT", ports.mongo.to_string()),
    ];
    variables.extend(EMULATOR_VARIABLES.map(|(name, value)| (name, value.to_owned())));
    // Before the container starts: two first runs of one container race for the directories that buildah makes in it.
    let name = builder.container("emulator")?;
    if probe(builder, &name, &[]).is_ok() {
        return Err("the health check succeeds before anything listens".into());
    }
    let mut container = Container::start_made(builder, name, &variables)?;
    container.wait_until_healthy(ports.cosmos)?;
    container.check_user()?;
    probe(builder, &container.name, &[("PORT", ports.cosmos.to_string())])?;
    let port = ports.health;
    if status(port, "/ready") != Some(200) {
        return Err(format!("GET /ready is not 200 on port {port}").into());
    }
    let certificate = builder.mount(&container.name)?.join(EMULATOR_CERTIFICATE);
    if !certificate.is_file() {
        return Err(format!("the certificate is not at /{EMULATOR_CERTIFICATE}").into());
    }
    let output = container.stop()?.output;
    let lines = format!("Now listening on: https://0.0.0.0:{}", ports.cosmos);
    match output.ends_with("Started\r\n") && output.contains(lines.split("0.0.0.0").next().unwrap_or_default()) {
        true => Ok(()),
        false => Err(format!("the emulator's log lines are missing: {output}").into()),
    }
}

/// Starts the emulator's binary in the image's root directory, as a container runtime does it, several times.
///
/// Returns the times; `None` if this user may not change the root directory.
///
/// # Errors
/// If it does not become healthy.
pub fn time_to_healthy(builder: &Builder) -> Result<Option<Times>> {
    if !builder.is_root() {
        return Ok(None);
    }
    let container = builder.container("emulator")?;
    let root = builder.mount(&container)?;
    let ports = Ports::free()?;
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let mut command = Command::new("chroot");
        command.arg("--userspec=65532:65532").arg(&root).arg(BINARY);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin");
        command.env("BOLIDE_EMULATOR", "1");
        command.envs(ports.variables()).envs(ports.emulator_variables());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let begun = Instant::now();
        let mut process = Process(command.spawn()?);
        while status(ports.cosmos, "/_bolide/health") != Some(200) {
            if process.0.try_wait()?.is_some() || begun.elapsed() > PATIENCE {
                return Err("the server in the image's root directory does not become healthy".into());
            }
            sleep(Duration::from_micros(500));
        }
        times.push(begun.elapsed());
        terminate(process.0.id())?;
        process.0.wait()?;
    }
    Ok(Some(Times(times)))
}

/// How long each start took, in order.
pub struct Times(Vec<Duration>);

impl Times {
    /// The shortest: other programs of the machine delay the others.
    pub fn best(&self) -> Duration {
        self.0.iter().min().copied().unwrap_or_default()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times: Vec<String> = self.0.iter().map(|time| time.as_millis().to_string()).collect();
        write!(formatter, "{} ms (the first start makes the store)", times.join(", "))
    }
}

/// Ports that nobody used a moment ago.
struct Ports {
    cosmos: u16,
    mongo: u16,
    health: u16,
    explorer: u16,
}

impl Ports {
    fn free() -> Result<Ports> {
        // Held together, so that they differ.
        let held: Vec<TcpListener> = (0..4)
            .map(|_| TcpListener::bind("127.0.0.1:0"))
            .collect::<std::io::Result<_>>()?;
        let port = |index: usize| held[index].local_addr().map(|address| address.port());
        Ok(Ports {
            cosmos: port(0)?,
            mongo: port(1)?,
            health: port(2)?,
            explorer: port(3)?,
        })
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("BOLIDE_PORT", self.cosmos.to_string()),
            ("BOLIDE_MONGO_PORT", self.mongo.to_string()),
        ]
    }

    /// The ports that only the emulator has.
    fn emulator_variables(&self) -> [(&'static str, String); 2] {
        [
            ("BOLIDE_HEALTH_PORT", self.health.to_string()),
            ("BOLIDE_EXPLORER_PORT", self.explorer.to_string()),
        ]
    }
}

/// A process that does not outlive its check.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running container.
struct Container<'a> {
    builder: &'a Builder,
    name: String,
    process: Process,
    logs: tempfile::TempDir,
}

/// What a container left.
struct Ended {
    is_success: bool,
    output: String,
    error: String,
}

impl<'a> Container<'a> {
    fn start(builder: &'a Builder, variant: &str, variables: &[(&str, String)]) -> Result<Container<'a>> {
        Container::start_made(builder, builder.container(variant)?, variables)
    }

    /// Starts a container that `Builder::container` has made.
    fn start_made(builder: &'a Builder, name: String, variables: &[(&str, String)]) -> Result<Container<'a>> {
        let logs = tempfile::tempdir()?;
        let mut command = run(builder, &name, variables);
        command.arg(BINARY).stdin(Stdio::null());
        command.stdout(File::create(logs.path().join("out"))?);
        command.stderr(File::create(logs.path().join("err"))?);
        Ok(Container {
            builder,
            process: Process(command.spawn()?),
            name,
            logs,
        })
    }

    fn wait_until_healthy(&mut self, port: u16) -> Result<()> {
        let begun = Instant::now();
        while status(port, "/_bolide/health") != Some(200) {
            if self.process.0.try_wait()?.is_some() || begun.elapsed() > PATIENCE {
                let log = fs::read_to_string(self.logs.path().join("err"))?;
                return Err(format!("the container does not become healthy: {log}").into());
            }
            sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Whether the server runs as the image's user.
    fn check_user(&self) -> Result<()> {
        if !self.builder.is_root() {
            return Ok(());
        }
        let status = fs::read_to_string(format!("/proc/{}/status", self.server()?))?;
        let owner = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        match owner.and_then(|ids| ids.split_whitespace().next()) {
            Some("65532") => Ok(()),
            other => Err(format!("the server runs as user {other:?}").into()),
        }
    }

    /// The process id of the server: the last in the chain of only children of buildah's process.
    fn server(&self) -> Result<u32> {
        let mut id = self.process.0.id();
        for _ in 0..16 {
            if fs::read_link(format!("/proc/{id}/exe")).is_ok_and(|path| path.ends_with(&BINARY[1..])) {
                return Ok(id);
            }
            id = only_child(id).ok_or("the server's process is not there")?;
        }
        Err("the server's process is not there".into())
    }

    /// Sends SIGTERM to the server, as a container runtime does.
    fn stop(self) -> Result<Ended> {
        terminate(self.server()?)?;
        self.end()
    }

    fn end(mut self) -> Result<Ended> {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.process.0.try_wait()? {
                break status;
            }
            if begun.elapsed() > PATIENCE {
                return Err("the container does not end".into());
            }
            sleep(Duration::from_millis(5));
        };
        let text = |name: &str| fs::read_to_string(self.logs.path().join(name));
        Ok(Ended {
            is_success: status.success(),
            output: text("out")?,
            error: text("err")?,
        })
    }
}

/// Runs the image's health check in a container.
fn probe(builder: &Builder, container: &str, variables: &[(&str, String)]) -> Result<()> {
    quiet(run(builder, container, variables).args([BINARY, "health"])).map(drop)
}

/// `buildah run` with the image's variables and these.
fn run(builder: &Builder, container: &str, variables: &[(&str, String)]) -> Command {
    let mut command = builder.command(&["run", "--isolation", "chroot"]);
    for (name, value) in variables {
        command.arg(format!("--env={name}={value}"));
    }
    command.args([container, "--"]);
    command
}

fn only_child(id: u32) -> Option<u32> {
    let tasks = fs::read_dir(Path::new("/proc").join(id.to_string()).join("task")).ok()?;
    let children = tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    children
        .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .find_map(|child| child.parse().ok())
}

fn terminate(id: u32) -> Result<()> {
    quiet(Command::new("kill").args(["-TERM", &id.to_string()])).map(drop)
}

/// The status of a GET request over plain HTTP; `None` if there is no answer.
fn status(port: u16, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    // "HTTP/1.1 200"
    let mut line = [0; 12];
    stream.read_exact(&mut line).ok()?;
    std::str::from_utf8(&line[9..]).ok()?.parse().ok()
}
