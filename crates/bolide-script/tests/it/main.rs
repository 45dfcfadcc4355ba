//! What scripts can and cannot do.

mod contract;
mod functions;
mod host;
mod hostile;
mod processes;
