//! A connection to the server that can be held up: nothing arrives any more, and nothing is closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Passes on what arrives on its port, unless it is held up.
pub struct Relay {
    /// On 127.0.0.1.
    pub port: u16,
    is_held_up: Arc<AtomicBool>,
}

impl Relay {
    /// A relay to another port of 127.0.0.1.
    pub async fn to(port: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let relay = Relay {
            port: listener.local_addr().unwrap().port(),
            is_held_up: Arc::default(),
        };
        let is_held_up = relay.is_held_up.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else {
                    continue;
                };
                let ((from, to), (back, out)) = (client.into_split(), server.into_split());
                tokio::spawn(pass(from, out, is_held_up.clone()));
                tokio::spawn(pass(back, to, is_held_up.clone()));
            }
        });
        relay
    }

    /// From now on nothing arrives, or everything again.
    pub fn hold_up(&self, is_held_up: bool) {
        self.is_held_up.store(is_held_up, Ordering::SeqCst);
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, is_held_up: Arc<AtomicBool>) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        while is_held_up.load(Ordering::SeqCst) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
