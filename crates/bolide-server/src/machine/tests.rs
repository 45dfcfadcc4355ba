use tempfile::TempDir;

use super::*;

const GIB: u64 = 1024 * MIB;

/// Files of a machine with 16 GiB.
fn machine(membership: &str, limits: &[(&str, &str)]) -> (TempDir, Files) {
    let dir = TempDir::new().expect("a temporary directory");
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("inside")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    };
    write("meminfo", "MemTotal:       16777216 kB\nMemFree: 5 kB\n");
    write("membership", membership);
    for (path, text) in limits {
        write(&format!("groups/{path}"), text);
    }
    let files = Files {
        memory: dir.path().join("meminfo"),
        membership: dir.path().join("membership"),
        groups: dir.path().join("groups"),
    };
    (dir, files)
}

#[test]
fn a_quarter_of_the_machine_within_bounds() {
    let (_dir, files) = machine("0::/\n", &[]);
    assert_eq!(share(&files, REQUESTS), 2 * GIB);
    fs::write(&files.memory, "MemTotal: 4194304 kB\n").expect("it can be written");
    assert_eq!(share(&files, REQUESTS), GIB);
    assert_eq!(share(&files, CACHE), 512 * MIB);
    fs::write(&files.memory, "MemTotal: 1024 kB\n").expect("it can be written");
    assert_eq!(share(&files, REQUESTS), MIN_BYTES);
}

#[test]
fn a_container_has_less_than_its_machine() {
    for (membership, path, limit) in [
        ("0::/\n", "memory.max", "1073741824\n"),
        ("0::/a/b\n", "a/memory.max", "1073741824\n"),
        (
            "5:cpu:/a\n4:memory:/a\n",
            "memory/a/memory.limit_in_bytes",
            "1073741824\n",
        ),
    ] {
        let (_dir, files) = machine(membership, &[(path, limit)]);
        assert_eq!(share(&files, REQUESTS), 256 * MIB, "{path}");
    }
    let (_dir, files) = machine("0::/a\n", &[("a/memory.max", "max\n")]);
    assert_eq!(share(&files, REQUESTS), 2 * GIB, "no limit");
}

#[test]
fn nothing_known_is_the_least() {
    let nowhere = || PathBuf::from("/no/such/file");
    let files = Files {
        memory: nowhere(),
        membership: nowhere(),
        groups: nowhere(),
    };
    assert_eq!(share(&files, REQUESTS), MIN_BYTES);
}

#[test]
#[cfg(target_os = "linux")]
fn the_kernel_gives_small_pages() {
    avoid_huge_pages();
    let status = fs::read_to_string("/proc/self/status").expect("the process has one");
    let enabled = status.lines().find_map(|line| line.strip_prefix("THP_enabled:"));
    // A kernel without huge pages does not say.
    assert!(enabled.is_none_or(|enabled| enabled.trim() == "0"), "{enabled:?}");
}
