//! What an image says of itself: user, ports, volume, variables, command, health check.

use serde_json::{Value, json};

use crate::Result;

/// Compares the settings with what docs/container.md promises.
///
/// # Errors
/// All differences.
pub fn check(settings: &Value, variant: &str) -> Result<()> {
    let problems = problems(settings, variant);
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!("the image `{variant}` is not as it must be: {}", problems.join("; ")).into())
}

/// A key that the image must not have, or a value other than the promised one, each as a sentence.
fn problems(settings: &Value, variant: &str) -> Vec<String> {
    let config = &settings["config"];
    let variables = match variant {
        "emulator" => json!(["PATH=/usr/local/bin", "BOLIDE_EMULATOR=1"]),
        _ => json!(["PATH=/usr/local/bin", "BOLIDE_HOST=0.0.0.0", "BOLIDE_DATA_DIR=/data"]),
    };
    let ports = json!({"8081/tcp": {}, "10255/tcp": {}, "8080/tcp": {}, "1234/tcp": {}});
    let expected = [
        ("User", json!("65532:65532")),
        ("Volumes", json!({"/data": {}})),
        ("Entrypoint", json!(["/usr/local/bin/bolide"])),
        ("Env", variables),
        ("ExposedPorts", ports),
    ];
    let mut problems: Vec<String> = expected
        .iter()
        .filter(|(name, value)| config[*name] != *value)
        .map(|(name, value)| format!("{name} is {}, expected {value}", config[*name]))
        .collect();
    let probe = &config["Healthcheck"]["Test"];
    if *probe != json!(["CMD", "/usr/local/bin/bolide", "health"]) {
        problems.push(format!("the health check is {probe}"));
    }
    let layers = settings["rootfs"]["diff_ids"].as_array().map_or(0, Vec::len);
    if layers != 1 {
        problems.push(format!("it has {layers} layers, expected one"));
    }
    problems
}

#[cfg(test)]
mod tests;
