//! HTTPS: whether it is spoken, which names the certificate covers, how long it is valid, and whether this system trusts it.

use rustls::RootCertStore;
use rustls::pki_types::ServerName;
use rustls::server::ParsedCertificate;

use super::report::Report;
use crate::endpoint::Target;
use crate::tls_client::{self, CertificateFacts, Handshake};

const TOPIC: &str = "certificate";

/// Checks the certificate. For an endpoint with `http://` nothing of it is fatal.
pub fn check(report: &mut Report, target: &Target) {
    let url = target.url("https");
    let stream = target.connect();
    let shown = stream.and_then(|stream| tls_client::handshake(stream, &target.host, system_roots()));
    let shown = match shown {
        Ok(shown) => shown,
        Err(error) => {
            report.problem(
                target.is_tls,
                TOPIC,
                format!("{url} does not speak TLS ({error})"),
                "write http:// in clients",
            );
            return;
        }
    };
    let Some(facts) = CertificateFacts::of(&shown.certificate) else {
        report.problem(
            target.is_tls,
            TOPIC,
            format!("{url} shows no certificate that can be read"),
            "--tls-cert",
        );
        return;
    };
    check_names(report, target, &shown, &facts);
    check_validity(report, target, &facts);
    check_trust(report, target, &shown);
}

fn check_names(report: &mut Report, target: &Target, shown: &Handshake, facts: &CertificateFacts) {
    let covered = facts.names.join(", ");
    let name = ServerName::try_from(target.host.clone());
    let parsed = ParsedCertificate::try_from(&shown.certificate);
    let is_covered = match (name, parsed) {
        (Ok(name), Ok(parsed)) => rustls::client::verify_server_name(&parsed, &name).is_ok(),
        _ => false,
    };
    if is_covered {
        report.ok(TOPIC, format!("covers {covered}"));
        return;
    }
    report.problem(
        target.is_tls,
        TOPIC,
        format!("does not cover `{}`, only {covered}", target.host),
        "use one of these names in clients, or start the server with a certificate that has this one (--tls-cert, --tls-key)",
    );
}

fn check_validity(report: &mut Report, target: &Target, facts: &CertificateFacts) {
    let (from, until) = (facts.valid.0.date(), facts.valid.1.date());
    if facts.is_valid_now() {
        report.ok(TOPIC, format!("valid until {until}"));
        return;
    }
    report.problem(
        target.is_tls,
        TOPIC,
        format!("valid from {from} until {until}, and not now by this machine's clock"),
        "set the clock; or restart the server, which replaces a certificate that it made itself",
    );
}

fn check_trust(report: &mut Report, target: &Target, shown: &Handshake) {
    use rustls::{CertificateError, Error};
    match &shown.refusal {
        // Reported above, in the same words for every certificate.
        Some(Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. }
            | CertificateError::NotValidForName
            | CertificateError::NotValidForNameContext { .. },
        )) => {}
        None => {
            report.ok(TOPIC, "this system's store trusts it");
            report.note(
                TOPIC,
                "Java, Node.js and Python's requests have stores of their own: `bolide trust` prints what each needs",
            );
        }
        Some(error) => {
            let why = match error {
                Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
                    "this system's store does not trust it".to_owned()
                }
                other => format!("this system does not accept it ({other})"),
            };
            let advice = format!(
                "`bolide trust --endpoint {}` adds it, or prints one line for each SDK",
                target.url("https")
            );
            report.problem(target.is_tls, TOPIC, why, advice);
        }
    }
}

/// The certificates that programs trust which use the system's store; `SSL_CERT_FILE` and `SSL_CERT_DIR` replace it, as for them.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}
