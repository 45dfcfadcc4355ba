//! `bolide reset-time`: brings a store whose clock was far ahead back to the present (TTL-204).
//!
//!   old directory ──live items, definitions──▶ NEW.incomplete ──closed, renamed──▶ NEW
//!
//! Server time never goes back within a store, so everything live is copied into a new store, which starts with the current time. Items that had
//! expired by the old store's time are not copied. The old directory is not changed; after a crash NEW does not exist, and the copy starts again.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bolide_core::{
    Account, AccountOptions, Container, DatabaseInfo, ExportPosition, OfferResource, OfferType, RequestContext,
    ScriptDraft, ScriptKind, Throughput,
};
use bolide_model::rid::DatabaseRid;
use bolide_model::time::Clock;
use bolide_model::{Error, UnixSeconds};
use bolide_storage_lsm::{LsmEngine, LsmOptions};
use bytes::Bytes;
use clap::Args;
use futures_util::stream;

use crate::files;
use crate::mongo::TtlModeOption;
use crate::script_host;
use crate::server::{Failure, TIME_AHEAD_SECONDS};

const KINDS: [ScriptKind; 3] = [
    ScriptKind::StoredProcedure,
    ScriptKind::Trigger,
    ScriptKind::UserDefinedFunction,
];

/// The options of `reset-time`.
#[derive(Debug, Clone, Args)]
pub struct ResetTimeOptions {
    /// The directory of the store whose server time is ahead. No server may be using it. It is not changed.
    #[arg(long, value_name = "DIR")]
    pub data_dir: PathBuf,
    /// The new directory, for a server to start on.
    #[arg(long, value_name = "NEW")]
    pub to: PathBuf,
    /// The mode in which the server ran and will run: which values of MongoDB documents decide when they end.
    #[arg(long, env = "BOLIDE_MONGO_TTL_MODE", value_enum, default_value_t = TtlModeOption::Mongodb, value_name = "MODE")]
    pub mongo_ttl_mode: TtlModeOption,
}

/// The number of copied objects.
#[derive(Debug, Default)]
struct Copied {
    containers: usize,
    items: u64,
    /// Items with a time in the future, which got a new one.
    restamped: u64,
}

/// Copies the store, and prints a report.
///
/// # Errors
/// The directory is not a store or its time is not ahead, the new directory exists already, or an error during the copy: then there is no new store.
pub fn run(options: &ResetTimeOptions) -> Result<(), Failure> {
    let draft = draft_of(&options.to);
    for path in [&options.to, &draft] {
        // A dangling link counts as existing.
        if path.symlink_metadata().is_ok() {
            let path = path.display();
            return Err(Failure::new(format!(
                "--to: {path} is there already; name another directory, or remove it"
            )));
        }
    }
    let is_store = options.data_dir.join("FORMAT").is_file();
    if !is_store {
        let path = options.data_dir.display();
        return Err(Failure::new(format!("--data-dir: {path}: there is no store")));
    }
    if is_inside(&options.to, &options.data_dir) {
        return Err(Failure::new(
            "--to: it would lie inside the old store, which is left as it is; name a directory beside it",
        ));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
    let copied = runtime.block_on(copy(options, &draft))?;
    let finished = fs::rename(&draft, &options.to).and_then(|()| sync_parent(&options.to));
    finished.map_err(|error| Failure::new(format!("--to: cannot make {}: {error}", options.to.display())))?;
    let Copied {
        containers,
        items,
        restamped,
    } = copied;
    let report = format!(
        "{containers} containers with {items} live items are in {new}, whose server time is the wall clock's.\n\
         Nothing that had expired came back. {restamped} items were written while the clock was ahead: their _ts is now, and their ttl counts \
         from now.\nClients see new resource ids; changes of the past are not in the change feeds. {old} is as it was.\n",
        new = options.to.display(),
        old = options.data_dir.display(),
    );
    // The copy is complete, whether or not the report can be written.
    let _ = io::stdout().lock().write_all(report.as_bytes());
    Ok(())
}

/// Whether a path that does not exist yet is inside a directory.
fn is_inside(path: &Path, directory: &Path) -> bool {
    let Ok(directory) = directory.canonicalize() else {
        return false;
    };
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // The nearest existing parent: the missing ones cannot be links.
    let there = absolute.ancestors().find_map(|above| above.canonicalize().ok());
    there.is_some_and(|there| there.starts_with(directory))
}

fn draft_of(to: &Path) -> PathBuf {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".incomplete");
    to.with_file_name(name)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

async fn copy(options: &ResetTimeOptions, to: &Path) -> Result<Copied, Failure> {
    files::survive_size_limit()?;
    let old = open("--data-dir", &options.data_dir, options).await?;
    let ahead = old.server_time().0 - Clock::System.now().0;
    if ahead / 1000 < TIME_AHEAD_SECONDS {
        close(&old).await?;
        return Err(Failure::new(
            "--data-dir: server time is not ahead of the wall clock; a server can start on this directory",
        ));
    }
    let new = open("--to", to, options).await?;
    let copied = copy_all(&old, &new)
        .await
        .map_err(|error| Failure::new(error.to_string()))?;
    close(&new).await?;
    close(&old).await?;
    Ok(copied)
}

async fn close(account: &Account) -> Result<(), Failure> {
    let closed = account.close().await;
    closed.map_err(|error| Failure::new(format!("cannot close the store: {error}")))
}

/// Opens a store without purging.
async fn open(option: &str, directory: &Path, given: &ResetTimeOptions) -> Result<Arc<Account>, Failure> {
    let failure = |error: &dyn std::fmt::Display| Failure::new(format!("{option}: {error}"));
    let clock = Arc::new(Clock::System);
    let engine = LsmEngine::open(directory, clock, LsmOptions::default()).map_err(|error| failure(&error))?;
    let options = AccountOptions {
        background_purge: false,
        mongo_ttl_mode: given.mongo_ttl_mode.into(),
        script_hosting: script_host::hosting()?,
        ..AccountOptions::default()
    };
    let account = Account::open(Arc::new(engine), options).await;
    account.map_err(|error| failure(&error))
}

async fn copy_all(old: &Arc<Account>, new: &Arc<Account>) -> Result<Copied, Error> {
    let mut copied = Copied::default();
    new.set_mongo_document_ttl(old.mongo_document_ttl()).await?;
    new.leave_out_resource_ids_of(old).await?;
    let mut places = Vec::new();
    let mut links = HashMap::new();
    for database in old.list_databases() {
        let ctx = new.begin().await?;
        let shared = throughput(old, OfferResource::Database(database.rid));
        let made = new
            .create_database(&ctx, &database.id, shared.map(|(throughput, _)| throughput))
            .await?;
        for key in old.list_encryption_keys(database.rid)? {
            new.create_encryption_key(&ctx, made.rid, (*key.properties).clone())
                .await?;
        }
        for container in old.list_all_containers(database.rid)? {
            let target = copy_container(old, new, &container, &made, shared.is_some()).await?;
            copy_items(old, new, (&container, &target), &mut copied).await?;
            copy_scripts(old, new, (&container, &target), &ctx).await?;
            links.insert(container.rid().self_link(), target.rid().self_link());
            copied.containers += 1;
        }
        places.push((database.rid, made.rid));
    }
    // A permission may be for a container of any database.
    for (from, to) in places {
        copy_users(old, new, (from, to), &links).await?;
    }
    Ok(copied)
}

async fn copy_users(
    old: &Account,
    new: &Account,
    (from, to): (DatabaseRid, DatabaseRid),
    links: &HashMap<String, String>,
) -> Result<(), Error> {
    let ctx = new.begin().await?;
    for user in old.list_users(from)? {
        let made = new.create_user(&ctx, to, &user.id).await?;
        for permission in old.list_permissions(user.rid)? {
            let mut properties = (*permission.properties).clone();
            let link = format!("{}/", properties.resource.trim_matches('/'));
            if let Some(link) = links.get(&link) {
                properties.resource = link.trim_end_matches('/').to_owned();
            }
            new.create_permission(&ctx, made.rid, properties).await?;
        }
    }
    Ok(())
}

/// The throughput and level of an offer.
fn throughput(account: &Account, resource: OfferResource) -> Option<(Throughput, OfferType)> {
    let offer = account
        .list_offers()
        .into_iter()
        .find(|offer| offer.resource == resource)?;
    Some((offer.throughput, offer.kind))
}

async fn copy_container(
    old: &Account,
    new: &Account,
    container: &Container,
    database: &DatabaseInfo,
    is_shared: bool,
) -> Result<Arc<Container>, Error> {
    let (throughput, kind) = throughput(old, OfferResource::Container(container.rid())).unzip();
    // The default value shown for a container that was created without throughput is not a limit. A container with its own offer next to a shared one
    // certainly has a limit.
    let throughput = throughput.filter(|throughput| is_shared || *throughput != Throughput::DEFAULT);
    let properties = (*container.info().properties).clone();
    if let Some(collection) = container.collection() {
        let definition = (collection.copied(), properties.policy);
        return new
            .create_collection_with_throughput(&database.id, &properties.id, definition, throughput)
            .await;
    }
    new.create_container_of_type(database.rid, properties, (throughput, kind.unwrap_or_default()))
        .await
}

async fn copy_items(
    old: &Account,
    new: &Account,
    (from, to): (&Arc<Container>, &Arc<Container>),
    copied: &mut Copied,
) -> Result<(), Error> {
    let now: UnixSeconds = new.begin().await?.now.seconds();
    let restamped = AtomicU64::new(0);
    let pages = stream::try_unfold(
        Some(ExportPosition::start(from)),
        async |position: Option<ExportPosition>| {
            let Some(position) = position else { return Ok(None) };
            let ctx = old.begin().await?;
            let page = old.export(&ctx, from, position).await?;
            let later = page.last_modified.iter().filter(|time| **time > now).count();
            restamped.fetch_add(later as u64, Ordering::Relaxed);
            Ok::<_, Error>(Some((Bytes::from(page.lines), page.next)))
        },
    );
    copied.items += new.import(to, Box::pin(pages)).await?;
    copied.restamped += restamped.into_inner();
    Ok(())
}

async fn copy_scripts(
    old: &Account,
    new: &Account,
    (from, to): (&Arc<Container>, &Arc<Container>),
    ctx: &RequestContext,
) -> Result<(), Error> {
    for kind in KINDS {
        for script in old.list_scripts(from, kind) {
            let draft = ScriptDraft {
                id: script.id.clone(),
                body: script.body.clone(),
                fires: script.fires.clone(),
            };
            new.create_script(ctx, to, kind, draft, false).await?;
        }
    }
    Ok(())
}
