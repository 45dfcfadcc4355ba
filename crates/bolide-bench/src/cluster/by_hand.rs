//! pgbench, which stores the rows of items by hand.
//!
//! What Bolide stores for an item is measured in its table after it was filled: which kinds of rows, and how long their keys and values are. The table
//! `by_hand` has the same columns, primary key and settings, and as many rows of the same kinds and lengths. With `-M prepared`:
//!
//! ```text
//!   point read       one select of the value of the item's row, by the primary key
//!   durable create   one insert of all rows of an item, and of a commit record: one statement, which is one transaction. Values are parameters
//! ```
//!
//! Keys of items and of their ids are scattered over the table, as Bolide's are; those of the log and of commit records grow, for each client on its
//! own. By hand there is no counter that all creates update, no commit that has to follow another one, and no look whether an item is there.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bolide_postgres_server::{Database, program};
use tempfile::TempDir;

use super::{Operation, Processes, Sample};
use crate::Result;
use crate::load::WARM_UP;
use crate::process::OwnedChild;

/// Bytes of a key before those that differ: the number of a partition and the kind of the row.
const PREFIX_BYTES: usize = 5;
/// Bytes of a key that differ.
const NUMBER_BYTES: usize = 8;
/// Numbers of items that a client of a run has for itself.
const NUMBERS_PER_CLIENT: u64 = 1 << 20;
/// Scatters the numbers below 2³² over the same range, without a collision.
const SCATTER: &str = "2654435761 % 4294967296";

/// The kinds of rows with so many rows in all partitions of items, and the lengths of their keys and values.
const KINDS: &str = "
    select get_byte(k, 4), round(avg(octet_length(k)))::int, round(avg(octet_length(v)))::int
    from bolide_kv where part <> 0 group by get_byte(k, 4) having count(*) >= {items} order by 1";
const TABLE: &str = "
    create table by_hand (like bolide_kv including all);
    do $$ begin
        execute (select format('alter table by_hand set (%s)', array_to_string(reloptions, ','))
            from pg_class where oid = 'bolide_kv'::regclass);
    end $$;";

/// A row of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// As in the fifth byte of Bolide's keys.
    kind: u8,
    pub key_bytes: usize,
    pub value_bytes: usize,
}

impl Row {
    /// A commit record, as in `rows.rs` of the engine. Old ones are deleted, and group commits share one, so they cannot be counted.
    const COMMIT: Row = Row {
        kind: 0,
        key_bytes: PREFIX_BYTES + NUMBER_BYTES,
        value_bytes: 48,
    };
    const ITEM: u8 = 1;

    pub fn name(self) -> &'static str {
        match self.kind {
            0 => "commit record",
            1 => "item",
            2 => "log",
            3 => "expiry",
            4 => "id",
            _ => "other",
        }
    }

    /// The key, of SQL expressions for the number of the item and the same number scattered.
    pub fn key(self, number: &str, scattered: &str) -> String {
        let padding = "00".repeat(self.key_bytes.saturating_sub(PREFIX_BYTES + NUMBER_BYTES));
        // Those of items and ids begin with a hash; the others are in the order of commits.
        let number = if matches!(self.kind, 1 | 4) { scattered } else { number };
        format!("'\\x00000001{:02x}{padding}'::bytea || int8send({number})", self.kind)
    }

    /// A text that is the input of a value.
    fn value(self) -> String {
        "v".repeat(self.value_bytes)
    }
}

/// The rows of an item, from lines `kind|key bytes|value bytes`.
pub fn rows(kinds: &str) -> Result<Vec<Row>> {
    let mut rows = vec![Row::COMMIT];
    for line in kinds.lines() {
        let fields = line
            .split('|')
            .map(str::parse)
            .collect::<std::result::Result<Vec<usize>, _>>()?;
        let [kind, key_bytes, value_bytes] = fields[..] else {
            return Err(format!("an answer with other columns: {line}").into());
        };
        let row = Row {
            kind: u8::try_from(kind)?,
            key_bytes,
            value_bytes,
        };
        if row.kind != Row::COMMIT.kind {
            rows.push(row);
        }
    }
    match rows.iter().any(|row| row.kind == Row::ITEM) {
        true => Ok(rows),
        false => Err("the table has no rows of items".into()),
    }
}

/// The script for an operation. Its variables are `first`, the number of the first item of a run, `i`, which counts, and `v` with a kind: a value.
pub fn script(operation: Operation, rows: &[Row], items: u64) -> String {
    let number = match operation {
        Operation::Read => format!("\\set n random(0, {})\n", items - 1),
        Operation::Create => format!("\\set i :i + 1\n\\set n :first + :client_id * {NUMBERS_PER_CLIENT} + :i\n"),
    };
    let item = rows.iter().filter(|row| row.kind == Row::ITEM);
    let statement = match operation {
        Operation::Read => item
            .map(|row| format!("select v from by_hand where part = 1 and k = {};", row.key(":n", ":h")))
            .collect(),
        Operation::Create => {
            let row = |row: &Row| format!("(1, {}, :v{}::bytea)", row.key(":n", ":h"), row.kind);
            let rows = rows.iter().map(row).collect::<Vec<_>>();
            format!("insert into by_hand (part, k, v) values {};", rows.join(", "))
        }
    };
    format!("{number}\\set h :n * {SCATTER}\n{statement}\n")
}

/// The transactions per second in what pgbench says.
pub fn transactions_per_second(said: &str) -> Result<f64> {
    let line = said.lines().find_map(|line| line.strip_prefix("tps = "));
    let number = line.and_then(|rest| rest.split(' ').next());
    Ok(number
        .ok_or_else(|| format!("pgbench measured nothing: {said}"))?
        .parse()?)
}

/// The table, and pgbench's scripts.
pub struct ByHand<'a> {
    database: &'a Database,
    rows: Vec<Row>,
    items: u64,
    connections: usize,
    scripts: TempDir,
    runs: AtomicU64,
}

impl ByHand<'_> {
    /// Makes the table after that of Bolide, which has so many items.
    pub fn set_up(database: &Database, items: u64, connections: usize) -> Result<ByHand<'_>> {
        let rows = rows(&database.run(&KINDS.replace("{items}", &items.to_string()))?)?;
        database.run(TABLE)?;
        for row in &rows {
            let key = row.key("n", &format!("n * {SCATTER}"));
            let numbers = format!("generate_series(0, {}::bigint) n", items - 1);
            database.run(&format!(
                "insert into by_hand select 1, {key}, '{}' from {numbers}",
                row.value()
            ))?;
        }
        for statement in ["vacuum analyze", "checkpoint"] {
            database.run(statement)?;
        }
        let scripts = tempfile::tempdir()?;
        for operation in Operation::ALL {
            std::fs::write(scripts.path().join(operation.name()), script(operation, &rows, items))?;
        }
        Ok(ByHand {
            database,
            rows,
            items,
            connections,
            scripts,
            runs: AtomicU64::new(0),
        })
    }

    /// The rows of an item.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Lets pgbench repeat an operation.
    pub fn measure(&self, operation: Operation, time: Duration) -> Result<Sample> {
        let mut pgbench = OwnedChild(self.command(operation, time)?.spawn()?);
        let processes = Processes {
            client: pgbench.0.id(),
            servers: Vec::new(),
            postgres: self.database.pid(),
        };
        // Shares are of a time in which all connections work. It counts whole seconds itself.
        std::thread::sleep(WARM_UP);
        let before = processes.cpu()?;
        std::thread::sleep(time);
        let cpu = processes.cpu()?.since(before);
        let mut said = String::new();
        if let Some(mut output) = pgbench.0.stdout.take() {
            output.read_to_string(&mut said)?;
        }
        if !pgbench.0.wait()?.success() {
            return Err(format!("pgbench failed: {said}").into());
        }
        let per_second = transactions_per_second(&said)?;
        Ok(Sample::of(per_second, per_second * time.as_secs_f64(), cpu))
    }

    fn command(&self, operation: Operation, time: Duration) -> Result<Command> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        let first = self.items + run * self.connections as u64 * NUMBERS_PER_CLIENT;
        let seconds = (WARM_UP + time).as_secs_f64().ceil();
        let threads = std::thread::available_parallelism()?.get().min(self.connections);
        let mut command = Command::new(program("pgbench")?);
        command.args(["--no-vacuum", "--protocol=prepared"]);
        command.args(["-c", &self.connections.to_string(), "-j", &threads.to_string()]);
        command.args(["-T", &seconds.to_string(), "-D", "i=0", "-D", &format!("first={first}")]);
        for row in &self.rows {
            command.args(["-D", &format!("v{}={}", row.kind, row.value())]);
        }
        command.arg("-f").arg(self.scripts.path().join(operation.name()));
        command.args(self.database.arguments());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        Ok(command)
    }
}
