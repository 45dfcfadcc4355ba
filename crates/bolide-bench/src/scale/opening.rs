//! Times from the start of the process to its first answers, after an orderly stop and after a kill.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::filling::{fill, item_of};
use super::running::Running;
use super::{Options, progress};
use crate::connection::Connection;
use crate::cosmos::Requests;
use crate::figures::megabytes;
use crate::table::Table;
use crate::{Result, item};

/// After this time without a request, memory and CPU time are read again.
const REST: Duration = Duration::from_secs(5);

/// How the server before ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Stop,
    Kill,
}

/// Starts the server on a loaded store, a few times after each kind of end.
pub fn run(bolide: &Path, dir: &Path, options: &Options) -> Result<String> {
    let mut table = Table::new([
        "start after",
        "journals MB",
        "first answer ms",
        "point read ms",
        "indexed query ms",
        "resident MB",
        "5 s later MB",
        "CPU ms then",
    ]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        for round in 0..options.rounds {
            let server = look(bolide, dir, (End::Stop, round), options, &mut table).await?;
            replace(&server, round, options).await?;
            server.kill()?;
            let server = look(bolide, dir, (End::Kill, round), options, &mut table).await?;
            let stop = server.stop()?.as_secs_f64();
            progress(&[format!("stopped in {stop:.1} s")]);
        }
        Ok::<_, crate::Error>(())
    })?;
    let caches = if options.cold { "empty" } else { "warm" };
    Ok(format!(
        "## Scale: opening\n\n{} items of {} bytes; {} were replaced before each kill. Times count from the start of the process; the system's cache of \
         files was {caches}.\n\n{table}",
        options.items, options.bytes, options.replaced
    ))
}

async fn look(
    bolide: &Path,
    dir: &Path,
    (end, round): (End, usize),
    options: &Options,
    table: &mut Table,
) -> Result<Running> {
    if options.cold {
        rustix::fs::sync();
        std::fs::write("/proc/sys/vm/drop_caches", "3")?;
    }
    let journals = crate::disk::DiskUse::of(dir)?.journal_bytes;
    let server = Running::start(bolide, dir, options).await?;
    let (requests, mut connection) = (Requests::to(server.address), Connection::open(server.address).await?);
    // One that no start before has read, and that no kill has replaced.
    let number = options.items * (2 * round as u64 + 1 + u64::from(end == End::Kill)) / (2 * options.rounds as u64 + 2);
    let id = item::id(number);
    connection.expect(200, &requests.read(&id)).await?;
    let read = server.started.elapsed();
    let query = requests.query(&format!("SELECT VALUE c.id FROM c WHERE c.number = {}", number + 1));
    let answer = connection.expect(200, &query).await?;
    let found = item::id(number + 1);
    if !String::from_utf8_lossy(answer.body).contains(&format!("[\"{found}\"]")) {
        return Err(format!("the query did not find {found}").into());
    }
    let queried = server.started.elapsed();
    let resident = server.resources()?.resident_bytes;
    tokio::time::sleep(REST).await;
    let millis = |time: Duration| format!("{:.0}", time.as_secs_f64() * 1e3);
    let cells = [
        match end {
            End::Stop => "a stop".to_owned(),
            End::Kill => "a kill".to_owned(),
        },
        megabytes(journals),
        millis(server.first_answer),
        millis(read),
        millis(queried),
        megabytes(resident),
        megabytes(server.resources()?.resident_bytes),
        millis(server.cpu()?),
    ];
    progress(&cells);
    table.row(cells);
    Ok(server)
}

/// Replaces items that are anywhere among all, so that the journals are full.
async fn replace(server: &Running, round: usize, options: &Options) -> Result<()> {
    let (items, bytes, round) = (options.items, options.bytes, round as u64);
    // The factor has no divisor in common with usual numbers of items.
    let any = move |number: u64| item_of((round * 7 + number * 7_654_321) % items, bytes);
    fill(server.address, options.replaced, Arc::default(), any).await
}
