use bolide_model::account_key::Access;

use super::*;

/// A user, a conversation and its secrets, from mongo.md §4.
struct Vector {
    mechanism: Mechanism,
    client_nonce: &'static str,
    server_nonce: &'static str,
    salt: &'static str,
    iterations: u32,
    proof: &'static str,
    signature: &'static str,
}

const VECTORS: [Vector; 2] = [
    Vector {
        mechanism: Mechanism::Sha256,
        client_nonce: "rOprNGfwEbeRWgbNEkqO",
        server_nonce: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
        salt: "W22ZaJ0SNY7soEsUEjb6gQ==",
        iterations: 4096,
        proof: "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        signature: "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    },
    Vector {
        mechanism: Mechanism::Sha1,
        client_nonce: "fyko+d2lbbFgONRv9qkxdawL",
        server_nonce: "Ho+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE",
        salt: "rQ9ZY3MntBeuP3E1TDVC4w==",
        iterations: 10_000,
        proof: "MC2T8BvbmWRckDw8oWl5IVghwCY=",
        signature: "UMWeI25JD1yNYZRMpZ4VHvhZ9e0=",
    },
];

fn exchange(vector: &Vector) -> Exchange {
    let nonce = format!("{}{}", vector.client_nonce, vector.server_nonce);
    Exchange {
        mechanism: vector.mechanism,
        user: "user".to_owned(),
        database: "admin".to_owned(),
        message: format!(
            "n=user,r={},r={nonce},s={},i={}",
            vector.client_nonce, vector.salt, vector.iterations
        ),
        nonce,
        binding: "biws".to_owned(),
        skip_empty_exchange: true,
        verifier: None,
    }
}

fn keys(vector: &Vector, password: &str, access: Access) -> ScramKeys {
    let salt = BASE64.decode(vector.salt.as_bytes()).expect("base64");
    let iterations = NonZeroU32::new(vector.iterations).expect("not zero");
    let verifier = Verifier::derive(vector.mechanism, "user", password, &salt, iterations);
    ScramKeys {
        identity: Identity::Key(access),
        verifier: verifier.expect("a plain password"),
    }
}

#[test]
fn the_published_conversations_are_accepted_and_signed() {
    for vector in &VECTORS {
        let exchange = exchange(vector);
        let last = format!("c=biws,r={},p={}", exchange.nonce, vector.proof);
        let proof = exchange.proof(last.as_bytes()).expect("well formed");
        let right = keys(vector, "pencil", Access::ReadOnly);
        let wrong = keys(vector, "pen", Access::Full);
        let name = vector.mechanism.name();
        let expected = Some((Identity::Key(Access::ReadOnly), format!("v={}", vector.signature)));
        assert_eq!(exchange.verify(&[wrong, right], &proof), expected, "{name}");
        let wrong = keys(vector, "pen", Access::Full);
        assert_eq!(exchange.verify(&[wrong], &proof), None, "{name}");
    }
}

#[test]
fn a_last_message_must_repeat_the_nonce_and_the_binding() {
    let exchange = exchange(&VECTORS[0]);
    let nonce = exchange.nonce.clone();
    for bad in [
        String::new(),
        "c=biws".to_owned(),
        format!("c=biws,r={nonce}"),
        format!("c=eSws,r={nonce},p=AAAA"),
        format!("c=biws,r={nonce}x,p=AAAA"),
        format!("c=biws,r={nonce},p=!"),
        format!("r={nonce},c=biws,p=AAAA"),
    ] {
        assert!(exchange.proof(bad.as_bytes()).is_none(), "{bad}");
    }
    assert!(exchange.proof(format!("c=biws,r={nonce},p=AAAA").as_bytes()).is_some());
    // Too short to be a proof, and not accepted as the beginning of one.
    let proof = exchange
        .proof(format!("c=biws,r={nonce},p=").as_bytes())
        .expect("well formed");
    assert!(
        exchange
            .verify(&[keys(&VECTORS[0], "pencil", Access::Full)], &proof)
            .is_none()
    );
}

#[test]
fn first_messages() {
    let user = |text: &str| ClientFirst::parse(text.as_bytes()).map(|first| (first.user, first.header));
    let found = |user: &str, header: &str| Some((user.to_owned(), header.to_owned()));
    assert_eq!(user("n,,n=user,r=abc"), found("user", "n,,"));
    assert_eq!(user("y,,n=a=2Cb=3Dc,r=abc"), found("a,b=c", "y,,"));
    assert_eq!(user("n,a=user,n=user,r=abc"), found("user", "n,a=user,"));
    for bad in [
        "",
        "n",
        "p=tls-unique,,n=user,r=abc",
        "n,,n=user",
        "n,,n=user,r=",
        "n,,r=abc,n=user",
        "n,,n=a=2Db,r=abc",
        "n,a=other,n=user,r=abc",
        "n,x,n=user,r=abc",
    ] {
        assert_eq!(user(bad), None, "{bad}");
    }
}
