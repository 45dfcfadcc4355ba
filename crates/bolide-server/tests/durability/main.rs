//! Durability when processes are killed, files are damaged and disks fill up: tests of the built binary on the system clock.
//!
//! ```text
//!   kill        SIGKILL at random moments under concurrent writers: nothing acknowledged is lost
//!   retries     SIGKILL between writes of the MongoDB API and their replies: a retry gets the stored reply, and nothing is written twice
//!   cluster     several servers over one PostgreSQL: SIGKILL of servers and of PostgreSQL, and cut and slow links between them
//!   damage      truncated, flipped and deleted files: a refusal in one line or a reported loss, never a panic or a silent loss
//!   files       their permissions, limits on them, and files that disappear under a running server
//!   full_disk   writes are refused, reads continue, and writes work again once there is space
//! ```
//!
//! `BOLIDE_ROUNDS` and `BOLIDE_SEED` set how often and with which random numbers the server is killed; `BOLIDE_SECONDS` for how long several are.
#![expect(
    clippy::disallowed_methods,
    reason = "tests of a process wait for it by the machine's clock"
)]
#![expect(
    clippy::print_stdout,
    reason = "a failed test tells what the server said and which round it was"
)]

#[path = "../it/client.rs"]
#[expect(
    dead_code,
    reason = "shared with the other tests of the binary, which use more of it"
)]
mod client;
#[cfg(target_os = "linux")]
mod cluster;
mod damage;
#[cfg(target_os = "linux")]
mod files;
mod full_disk;
mod kill;
mod model;
#[path = "../it/mongo_client.rs"]
#[expect(
    dead_code,
    reason = "shared with the other tests of the binary, which use more of it"
)]
mod mongo_client;
mod random;
mod retries;
mod server;
mod wire;
mod writer;
