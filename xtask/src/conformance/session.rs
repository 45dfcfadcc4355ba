//! One running scenario: its server, its client, its clock and its labels.

use std::path::Path;

use ureq::http::Method;

use super::expect::{self, Labels, SavedValues, StepResult};
use super::mongo;
use super::scenario::{Action, Clock, Restart, RestartMode, Scenario, Step};
use super::server::{Engine, Server};
use super::steps;
use super::wire::{Client, Level, Request, Response};
use crate::Result;

/// The state that the steps of a scenario use.
pub struct Session {
    /// The client of the running server.
    pub client: Client,
    /// The clients of the other servers over the same store.
    replicas: Vec<Client>,
    /// The connection to the MongoDB API, once a step has used it.
    mongo_client: Option<mongo::Client>,
    /// The scenario's own database.
    pub database: String,
    server: Server,
    labels: Labels,
    /// The wall clock, in epoch milliseconds; the server's own time may be ahead of it.
    clock_ms: i64,
}

impl Session {
    /// Runs the steps of a scenario until one fails.
    ///
    /// # Errors
    /// The failing step by number and kind, and the expectation that failed.
    pub fn play(binary: &Path, engine: Engine, scenario: &Scenario) -> Result<()> {
        let steps = scenario.steps()?;
        let mut session = Self::open(binary, engine, scenario, &steps)?;
        for (index, step) in steps.iter().enumerate() {
            session
                .step(step)
                .map_err(|error| format!("step {} {}: {error}", index + 1, step.kind))?;
        }
        Ok(())
    }

    /// Starts the server with its clock at the first step's time and creates the database.
    fn open(binary: &Path, engine: Engine, scenario: &Scenario, steps: &[Step]) -> Result<Self> {
        let clock_ms = match steps.first().map(|step| &step.action) {
            Some(Action::Clock(clock)) => clock.applied_to(0),
            _ => return Err("the first step does not set the clock".into()),
        };
        let uses_mongo = scenario.requires.iter().any(|tag| tag == "mongo");
        let options = if uses_mongo {
            mongo::options_for(&scenario.requires)
        } else {
            Vec::new()
        };
        let mut server = Server::start(binary, engine, clock_ms, &options)?;
        let mut replicas = Vec::new();
        if scenario.needs_replica() {
            replicas.push(Client::new(server.add_replica(clock_ms)?));
        }
        let client = Client::new(server.endpoint());
        let session = Self {
            client,
            replicas,
            mongo_client: None,
            database: scenario.name.clone(),
            server,
            labels: Labels::new(),
            clock_ms,
        };
        // Databases of the MongoDB API exist with their first collection.
        if !uses_mongo {
            session
                .client
                .send(steps::create_database(&session.database))?
                .require("the database is not created")?;
        }
        Ok(session)
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        let answer = steps::run(self, &step.action)?;
        if let Some(label) = &step.save {
            self.labels.insert(label.clone(), answer.kept.clone());
        }
        Ok(expect::check(step.expect.as_ref(), &answer, &self.labels)?)
    }

    /// The client of a server: 0 is the first.
    ///
    /// # Errors
    /// If there are not so many.
    pub fn client_of(&self, replica: usize) -> Result<&Client> {
        let client = match replica.checked_sub(1) {
            None => Some(&self.client),
            Some(other) => self.replicas.get(other),
        };
        client.ok_or_else(|| format!("there is no server {replica}").into())
    }

    /// The levels of a container's name.
    pub fn container<'a>(&'a self, id: &'a str) -> [Level<'a>; 2] {
        [("dbs", &self.database), ("colls", id)]
    }

    /// The continuation of the query or feed saved under a label.
    pub fn continuation_of(&self, label: &str) -> Result<String> {
        let kept = self.kept(label)?.continuation.clone();
        kept.ok_or_else(|| format!("no continuation is kept under `{label}`").into())
    }

    /// The values saved under a label.
    fn kept(&self, label: &str) -> Result<&SavedValues> {
        Ok(expect::kept(label, &self.labels)?)
    }

    /// The etag saved under a step's label, if it names one.
    pub fn etag_of(&self, label: Option<&String>) -> Result<Option<String>> {
        let Some(label) = label else { return Ok(None) };
        let kept = self.kept(label)?.etag.clone();
        kept.map(Some)
            .ok_or_else(|| format!("no etag is kept under `{label}`").into())
    }

    /// The cursor saved under a label.
    pub fn cursor_of(&self, label: &str) -> Result<i64> {
        let cursor = self.kept(label)?.cursor;
        cursor.ok_or_else(|| format!("no cursor is kept under `{label}`").into())
    }

    /// The connection to the MongoDB API.
    ///
    /// # Errors
    /// If the server has no such address, or nothing listens there.
    pub fn mongo_client(&mut self) -> Result<&mut mongo::Client> {
        if self.mongo_client.is_none() {
            self.mongo_client = Some(mongo::Client::connect(self.server.mongo_address()?)?);
        }
        self.mongo_client
            .as_mut()
            .ok_or_else(|| "there is no connection".into())
    }

    /// Moves the wall clock.
    pub fn set_clock(&mut self, clock: &Clock) -> Result<StepResult> {
        self.clock_ms = clock.applied_to(self.clock_ms);
        let body = serde_json::json!({ "setMs": self.clock_ms });
        // Each server has a clock of its own.
        for client in &self.replicas {
            let set = client.send(Request::admin(Method::PUT, "clock").json(&body))?;
            set.require("the clock of another server is not set")?;
        }
        let response = self.client.send(Request::admin(Method::PUT, "clock").json(&body))?;
        Ok(refused_or(&response))
    }

    /// Ends the server and starts it again.
    pub fn restart(&mut self, restart: &Restart) -> Result<StepResult> {
        self.clock_ms = restart.clock.map_or(self.clock_ms, |seconds| seconds * 1000);
        match restart.mode {
            RestartMode::Graceful => self.server.restart_in_order(self.clock_ms)?,
            RestartMode::Crash => self.server.restart_after_crash(self.clock_ms)?,
        }
        self.client = Client::new(self.server.endpoint());
        self.mongo_client = None;
        Ok(StepResult::default())
    }

    /// Whether the process has exited, after a connection to it broke; waits if it is about to exit.
    pub fn has_died(&mut self) -> bool {
        self.server.wait().is_ok()
    }
}

impl Clock {
    /// The wall clock in epoch milliseconds after this step.
    fn applied_to(&self, clock_ms: i64) -> i64 {
        match self.set {
            Some(seconds) => seconds * 1000 + self.ms,
            None => clock_ms + self.advance.unwrap_or(0) * 1000 + self.ms,
        }
    }
}

/// A result with only a status, and the server's message if it refused.
fn refused_or(response: &Response) -> StepResult {
    StepResult {
        message: response.message(),
        ..StepResult::of_status(response.status())
    }
}

#[cfg(test)]
mod tests;
