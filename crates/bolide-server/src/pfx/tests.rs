use super::*;
use crate::tls;

/// Files made by OpenSSL, with this password.
const SECRET: &str = "cosmos-secret";

fn read_file(name: &str, secret: &str) -> Result<Content, String> {
    let pfx = Pfx {
        path: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pfx").join(name),
        secret: secret.to_owned(),
        source: "CERT_PATH",
    };
    pfx.read().map_err(|failure| failure.to_string())
}

#[test]
fn both_encryptions_are_read_with_the_whole_chain() {
    for name in ["aes.pfx", "triple_des.pfx"] {
        let content = read_file(name, SECRET).expect(name);
        assert_eq!(tls::chain(&content.certificates).expect("PEM").len(), 2, "{name}");
        assert!(content.key.starts_with("-----BEGIN PRIVATE KEY-----\n"), "{name}");
    }
}

#[test]
fn no_secret_means_an_empty_one() {
    assert!(read_file("no_secret.pfx", "").is_ok());
    assert!(read_file("no_secret.pfx", "x").is_err());
}

#[test]
fn a_wrong_secret_is_an_error_that_does_not_show_it() {
    for name in ["aes.pfx", "triple_des.pfx"] {
        for secret in ["wrong-secret", ""] {
            let refused = read_file(name, secret).err().expect(name);
            assert!(refused.contains("CERT_SECRET") && refused.contains(name), "{refused}");
            assert!(!refused.contains("wrong-secret"), "{refused}");
        }
    }
}

#[test]
fn other_files_are_refused_with_the_reason() {
    assert!(read_file("ca.pem", SECRET).err().expect("PEM").contains("no PFX file"));
    assert!(
        read_file("no_key.pfx", SECRET)
            .err()
            .expect("no key")
            .contains("no private key")
    );
    assert!(
        read_file("missing.pfx", SECRET)
            .err()
            .expect("missing")
            .contains("cannot read")
    );
}
