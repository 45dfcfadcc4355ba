//! What scripts can do, and what they cannot.

mod contract;
mod functions;
mod host;
mod hostile;
mod processes;
