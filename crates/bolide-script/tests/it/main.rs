//! What scripts can do, and what they cannot.

mod contract;
mod functions;
mod hostile;
mod processes;
mod rig;
