//! Tests of the order of places.

use std::fs;
use std::path::Path;

use super::*;

#[test]
fn what_is_named_comes_before_the_variable_and_this_before_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let [named, variable, on_path] = ["named", "variable", "path"].map(|name| {
        let folder = folder.path().join(name);
        fs::create_dir(&folder).unwrap();
        let binary = folder.join(format!("bolide{}", env::consts::EXE_SUFFIX));
        fs::write(&binary, "").unwrap();
        binary
    });
    let path = || [folder.path().join("nothing"), folder.path().join("path")].into_iter();
    assert_eq!(find(Some(&named), Some(&variable), path()).unwrap(), named);
    assert_eq!(find(None, Some(&variable), path()).unwrap(), variable);
    assert_eq!(find(None, None, path()).unwrap(), on_path);
}

#[test]
fn a_missing_binary_is_named() {
    let nothing = Path::new("/no/such/file");
    let message = |found: Result<PathBuf, Error>| found.unwrap_err().to_string();
    let none = || std::iter::empty();
    assert_eq!(
        message(find(Some(nothing), None, none())),
        "binary: not a file. value=`/no/such/file`"
    );
    assert_eq!(
        message(find(None, Some(nothing), none())),
        "BOLIDE_BIN: not a file. value=`/no/such/file`"
    );
    assert!(message(find(None, None, none())).starts_with("there is no bolide binary"));
}
