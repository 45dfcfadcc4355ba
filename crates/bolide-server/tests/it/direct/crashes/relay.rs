//! A relay between clients and a server, which can go silent, or cut connections at any byte.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    ToServer,
    ToClient,
}

pub struct Relay {
    port: u16,
    state: Arc<State>,
    accepting: Option<JoinHandle<()>>,
}

struct State {
    server: u16,
    /// Connections so far.
    opened: AtomicUsize,
    /// Of these so many, the first ones, forward nothing any more.
    frozen: AtomicUsize,
    /// The next connections are cut after so many bytes of one way. Each takes one.
    cuts: Mutex<Vec<(Way, usize)>>,
    has_ended: AtomicBool,
    sockets: Mutex<Vec<TcpStream>>,
    end: Condvar,
}

impl Relay {
    pub fn to(server: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(State {
            server,
            opened: AtomicUsize::new(0),
            frozen: AtomicUsize::new(0),
            cuts: Mutex::default(),
            has_ended: AtomicBool::new(false),
            sockets: Mutex::default(),
            end: Condvar::new(),
        });
        let accepting = std::thread::spawn({
            let state = state.clone();
            move || {
                for client in listener.incoming() {
                    if state.has_ended.load(Ordering::SeqCst) {
                        return;
                    }
                    let joined = client.and_then(|client| join(&state, client));
                    // The server may be gone; its client learns that by the end of the connection.
                    drop(joined);
                }
            }
        });
        Relay {
            port,
            state,
            accepting: Some(accepting),
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Forwards nothing any more on the connections that there are, and does not end them either.
    pub fn freeze(&self) {
        let opened = self.state.opened.load(Ordering::SeqCst);
        self.state.frozen.store(opened, Ordering::SeqCst);
    }

    /// Cuts the next connection after so many bytes.
    pub fn cut_next(&self, way: Way, bytes: usize) {
        self.state.cuts.lock().expect("no panic").push((way, bytes));
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.has_ended.store(true, Ordering::SeqCst);
        for socket in self.state.sockets.lock().expect("no panic").iter() {
            let _ = socket.shutdown(Shutdown::Both);
        }
        self.state.end.notify_all();
        // So that it sees that.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn join(state: &Arc<State>, client: TcpStream) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", state.server))?;
    for socket in [&client, &server] {
        socket.set_nodelay(true)?;
        state.sockets.lock().expect("no panic").push(socket.try_clone()?);
    }
    let number = state.opened.fetch_add(1, Ordering::SeqCst);
    let cut = state.cuts.lock().expect("no panic").pop();
    let pairs = [
        (Way::ToServer, client.try_clone()?, server.try_clone()?),
        (Way::ToClient, server, client),
    ];
    for (way, from, to) in pairs {
        let bytes = cut
            .filter(|(cut, _)| *cut == way)
            .map_or(usize::MAX, |(_, bytes)| bytes);
        let state = state.clone();
        std::thread::spawn(move || {
            let _ = forward(&state, number, &from, &to, bytes);
            for socket in [from, to] {
                let _ = socket.shutdown(Shutdown::Both);
            }
        });
    }
    Ok(())
}

/// Forwards until the connection ends, or so many bytes went this way. A frozen connection goes on to be there until the relay ends.
fn forward(state: &State, number: usize, mut from: &TcpStream, mut to: &TcpStream, bytes: usize) -> io::Result<()> {
    let (mut left, mut buffer) = (bytes, [0; 4096]);
    while left > 0 {
        let read = from.read(&mut buffer)?;
        if number < state.frozen.load(Ordering::SeqCst) {
            let sockets = state.sockets.lock().expect("no panic");
            let waited = state
                .end
                .wait_while(sockets, |_| !state.has_ended.load(Ordering::SeqCst));
            drop(waited);
            return Ok(());
        }
        if read == 0 {
            return Ok(());
        }
        let part = read.min(left);
        to.write_all(&buffer[..part])?;
        left -= part;
    }
    Ok(())
}
