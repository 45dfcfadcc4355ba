//! Files of `packaging/` and `.github/`, read by the tools of their kind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Part;
use crate::Result;
use crate::project::Project;
use crate::tools::{GoProgram, Tools, on_path, quiet};

const ACTIONLINT: GoProgram = GoProgram {
    name: "actionlint",
    package: "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12",
};
const HELM: GoProgram = GoProgram {
    name: "helm",
    package: "helm.sh/helm/v3/cmd/helm@v3.22.0",
};

/// Scripts of `sh` and `bash`, relative to the project.
const SCRIPTS: [&str; 3] = ["packaging/install.sh", "packaging/homebrew/fill.sh", ".ci/run"];

/// The version that manifests are made for; helm's own default is older than the oldest that the chart accepts.
const KUBERNETES: &str = "1.30.0";

/// Values with which the chart must give valid manifests: each set is a list of `--set` options.
const VALUES: [&[&str]; 5] = [
    &[],
    &["emulator=true", "persistence.enabled=false"],
    &[
        "key.existingSecret=mine",
        "tls.existingSecret=mine-tls",
        "publicEndpoint=https://db.example",
    ],
    &[
        "key.value=Ym9saWRl",
        "image.tag=latest",
        "serviceAccount.create=false",
        "env.BOLIDE_LOG=info",
    ],
    &["store.existingSecret=pg", "replicas=3", "tls.existingSecret=mine-tls"],
];
/// Values that the chart must refuse.
const REFUSED: [&[&str]; 5] = [
    &["emulator=true", "key.existingSecret=mine"],
    &["key.value=Ym9saWRl", "key.existingSecret=mine"],
    &["key.value=not base64!"],
    &["replicas=2"],
    &["replicas=0"],
];

/// The version of the chart and its image is the workspace's.
pub fn versions(project: &Project) -> Result<Part> {
    let version = project.version()?;
    let path = project.root().join("packaging/helm/bolide/Chart.yaml");
    let chart = fs::read_to_string(&path)?;
    for line in [format!("version: {version}"), format!("appVersion: \"{version}\"")] {
        if !chart.lines().any(|found| found == line) {
            return Err(format!("{}: expected the line `{line}`", path.display()).into());
        }
    }
    Ok(Ok(()))
}

/// Scripts, with shellcheck.
pub fn shell(project: &Project, tools: &Tools) -> Result<Part> {
    let shellcheck = match tools.debian("shellcheck", "shellcheck") {
        Ok(path) => path,
        Err(missing) => return Ok(Err(missing)),
    };
    quiet(Command::new(shellcheck).current_dir(project.root()).args(SCRIPTS))?;
    Ok(Ok(()))
}

/// Workflows, with actionlint; it passes their scripts to shellcheck where that is installed.
pub fn workflows(project: &Project, tools: &Tools) -> Result<Part> {
    let actionlint = match tools.go(&ACTIONLINT) {
        Ok(path) => path,
        Err(missing) => return Ok(Err(missing)),
    };
    let directory = project.root().join(".github/workflows");
    let files: Vec<PathBuf> = fs::read_dir(directory)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    quiet(Command::new(actionlint).arg("-no-color").args(files))?;
    Ok(Ok(()))
}

/// The unit, with systemd's own check. The programs that it names need not be installed here.
pub fn unit(project: &Project) -> Result<Part> {
    let Some(analyze) = on_path("systemd-analyze") else {
        return Ok(Err("systemd-analyze is not installed".to_owned()));
    };
    let unit = fs::read_to_string(project.root().join("packaging/systemd/bolide.service"))?;
    let there = std::env::current_exe()?;
    let unit = unit.replace("/usr/local/bin/bolide", &there.display().to_string());
    let without_manual: String = unit
        .lines()
        .filter(|line| !line.starts_with("Documentation="))
        .map(|line| format!("{line}\n"))
        .collect();
    let directory = tempfile::tempdir()?;
    let copy = directory.path().join("bolide.service");
    fs::write(&copy, without_manual)?;
    let mut command = Command::new(analyze);
    let output = command.args(["verify", "--man=no"]).arg(&copy).output()?;
    // Unknown settings are only warnings.
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let problems: Vec<&str> = text.lines().filter(|line| line.contains("bolide.service")).collect();
    match output.status.success() && problems.is_empty() {
        true => Ok(Ok(())),
        false => Err(format!("systemd-analyze verify: {text}").into()),
    }
}

/// The formula as the release workflow fills it in, read by Ruby.
pub fn formula(project: &Project) -> Result<Part> {
    let directory = tempfile::tempdir()?;
    for target in [
        "aarch64-apple-darwin",
        "x86_64-apple-darwin",
        "aarch64-unknown-linux-musl",
        "x86_64-unknown-linux-musl",
    ] {
        let name = format!("bolide-9.9.9-{target}.tar.gz");
        let sum = "0123456789abcdef".repeat(4);
        fs::write(
            directory.path().join(format!("{name}.sha256")),
            format!("{sum}  {name}\n"),
        )?;
    }
    let script = project.root().join("packaging/homebrew/fill.sh");
    let filled = quiet(Command::new("sh").arg(script).arg("9.9.9").arg(directory.path()))?;
    if filled.contains('@') || !filled.starts_with("class Bolide < Formula") {
        return Err(format!("the formula is not filled in:\n{filled}").into());
    }
    let Some(ruby) = on_path("ruby") else {
        return Ok(Err("ruby is not installed".to_owned()));
    };
    let path = directory.path().join("bolide.rb");
    fs::write(&path, filled)?;
    quiet(Command::new(ruby).arg("-c").arg(path))?;
    Ok(Ok(()))
}

/// The chart, with helm: on the path, or built if asked.
pub fn chart(project: &Project, tools: &Tools, whole: bool) -> Result<Part> {
    let found = match whole {
        true => tools.go(&HELM),
        false => on_path(HELM.name).ok_or_else(|| "helm is not installed; `--whole --install` builds it".to_owned()),
    };
    let helm = match found {
        Ok(path) => path,
        Err(missing) => return Ok(Err(missing)),
    };
    let chart = project.root().join("packaging/helm/bolide");
    quiet(&mut helm_with(&helm, &["lint", "--strict"], &chart, &[]))?;
    for values in VALUES {
        let manifests = quiet(&mut helm_with(&helm, &["template", "check"], &chart, values))?;
        let is_emulator = values.contains(&"emulator=true");
        if manifests.contains("-emulator\"") != is_emulator || manifests.contains("BOLIDE_KEY") == is_emulator {
            return Err(format!("emulator mode is not as asked. values={values:?}\n{manifests}").into());
        }
    }
    for values in REFUSED {
        if helm_with(&helm, &["template", "check"], &chart, values)
            .output()?
            .status
            .success()
        {
            return Err(format!("the chart accepts values that contradict each other. values={values:?}").into());
        }
    }
    Ok(Ok(()))
}

fn helm_with(helm: &Path, arguments: &[&str], chart: &Path, values: &[&str]) -> Command {
    let mut command = Command::new(helm);
    command.args(arguments).arg(chart).args(["--kube-version", KUBERNETES]);
    for value in values {
        command.args(["--set", value]);
    }
    command
}
