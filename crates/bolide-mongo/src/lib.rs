//! The MongoDB wire protocol over the database: messages, authentication, sessions, cursors, commands.
//!
//! [`service::MongoService`] serves connections; the server handles sockets, TLS and the number of connections. [`connection`] describes the life of
//! a connection, [`commands::dispatch`] that of a command, and [`commands::table`] lists the commands.
//!
//! Source: the protocol as official drivers speak it.

pub mod authentication;
pub mod client;
pub mod cluster_time;
pub mod codes;
pub mod commands;
pub mod connection;
pub mod cursors;
pub mod fail_points;
pub mod limits;
pub mod message;
pub mod metrics;
pub mod namespace;
pub mod operations;
pub mod service;
pub mod sessions;
pub mod snapshots;
pub mod state;
pub mod transactions;
pub mod users;
