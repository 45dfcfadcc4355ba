//! What is generated from the options: completions and man pages.

use std::process::Output;

use tempfile::TempDir;

use crate::server::{command, run};

fn output(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = command().args(arguments).output().expect("the binary runs");
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).expect("UTF-8")
}

#[test]
fn completions_know_every_command_and_no_hidden_one() {
    for shell in ["bash", "zsh", "fish"] {
        let script = output(&["completions", shell]);
        for word in ["serve", "query", "demo", "doctor", "trust", "mongo-port"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert!(!script.contains("script-host"), "{shell}");
    }
    assert!(!run(&["completions", "tcsh"]).status.success());
}

#[test]
fn man_pages_name_every_option_and_no_value_of_the_environment() {
    let secret = "MDEyMzQ1Njc4OWFiY2RlZg==";
    let page = command()
        .env("BOLIDE_KEY", secret)
        .arg("man")
        .output()
        .expect("the binary runs")
        .stdout;
    let page = String::from_utf8(page).expect("UTF-8");
    assert!(page.starts_with(".ie") && page.contains(".TH bolide 1"), "{page}");
    assert!(page.contains("data\\-dir") && !page.contains(secret), "{page}");
    let pages = TempDir::new().expect("a temporary directory");
    output(&["man", "--dir", pages.path().to_str().expect("UTF-8")]);
    let mut names: Vec<String> = std::fs::read_dir(pages.path())
        .expect("readable")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    for name in ["bolide.1", "bolide-doctor.1", "bolide-query.1", "bolide-trust.1"] {
        assert!(names.iter().any(|known| known == name), "{names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("script-host")), "{names:?}");
}
