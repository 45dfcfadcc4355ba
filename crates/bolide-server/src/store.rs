//! The choice of engine, and what the engines do alike for snapshots.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bolide_model::time::Clock;
use bolide_model::{Error, ErrorKind, Lsn, Result, SnapshotName, UnixMillis};
use bolide_storage::Engine;
use bolide_storage::memory::{MemoryEngine, MemoryImage};
use bolide_storage_lsm::{
    Durability, Issued, LsmEngine, LsmOptions, MAX_SNAPSHOTS, Prepared, ReplaceError, Replacement, SnapshotError, Steps,
};
use bolide_storage_postgres::{PostgresEngine, PostgresOptions};
use parking_lot::Mutex;

use crate::options::{DurabilityOption, Settings};
use crate::postgres;
use crate::server::Failure;

/// The place where engines are opened, each in the place of the one before.
pub struct Store {
    clock: Arc<Clock>,
    kind: Kind,
}

enum Kind {
    Memory(Mutex<BTreeMap<SnapshotName, (MemoryImage, String)>>),
    Lsm {
        options: Box<LsmOptions>,
        dir: std::path::PathBuf,
    },
    Postgres(Box<PostgresOptions>),
}

/// The open engine.
#[derive(Clone)]
pub enum OpenEngine {
    Memory(Arc<MemoryEngine>),
    Lsm(Arc<LsmEngine>),
    Postgres(Arc<PostgresEngine>),
}

/// The content that will replace the current one.
pub enum Incoming {
    Memory(MemoryImage),
    Lsm(Prepared),
}

/// How a replacement ended.
pub struct Replaced {
    /// The engine to go on with.
    pub engine: OpenEngine,
    /// Whether it has the new content: if not, it has that of before.
    pub outcome: Result<()>,
}

impl Store {
    /// The store that the options choose. It keeps at most `open_files` files open; `steps` injects crashes.
    pub fn new(settings: &Settings, clock: Arc<Clock>, open_files: usize, steps: Steps) -> Store {
        let options = &settings.options;
        let kind = if let Some(store) = &settings.store {
            Kind::Postgres(Box::new(store.clone()))
        } else if options.memory {
            Kind::Memory(Mutex::default())
        } else {
            let engine_options = LsmOptions {
                durability: match options.durability {
                    DurabilityOption::Sync => Durability::Sync,
                    DurabilityOption::Interval => Durability::INTERVAL,
                    DurabilityOption::Buffered => Durability::Buffered,
                },
                cache_bytes: options.cache_bytes(),
                cached_files: open_files,
                accept_data_loss: options.accept_data_loss,
                verify_tables: options.verify_on_start,
                steps,
                ..LsmOptions::default()
            };
            Kind::Lsm {
                options: Box::new(engine_options),
                dir: options.data_dir().to_owned(),
            }
        };
        Store { clock, kind }
    }

    /// The name of its engines.
    pub fn engine_name(&self) -> &'static str {
        match &self.kind {
            Kind::Memory(_) => "memory",
            Kind::Lsm { .. } => "lsm",
            Kind::Postgres(_) => "postgres",
        }
    }

    /// Whether its content can be kept under a name, and replaced. A store that several servers use cannot.
    pub fn has_snapshots(&self) -> bool {
        !matches!(self.kind, Kind::Postgres(_))
    }

    /// Opens the first engine; recovery runs on a separate thread.
    ///
    /// # Errors
    /// Why the store cannot be opened: the state of the directory, another process, missing writes.
    pub async fn open(&self) -> Result<OpenEngine, Failure> {
        let clock = self.clock.clone();
        let (options, dir) = match &self.kind {
            Kind::Memory(_) => return Ok(OpenEngine::Memory(Arc::new(MemoryEngine::new(clock)))),
            Kind::Postgres(options) => {
                let engine = postgres::open(options, clock).await?;
                return Ok(OpenEngine::Postgres(Arc::new(engine)));
            }
            Kind::Lsm { options, dir } => (options, dir),
        };
        let (options, opened_dir) = (options.as_ref().clone(), dir.clone());
        let opened = tokio::task::spawn_blocking(move || LsmEngine::open(&opened_dir, clock, options)).await;
        match opened {
            Ok(Ok(engine)) => Ok(OpenEngine::Lsm(Arc::new(engine))),
            Ok(Err(error)) => Err(Failure::new(format!("--data-dir: {error}"))),
            Err(_) => Err(Failure::new(format!(
                "--data-dir: the store cannot be recovered. path={}",
                dir.display()
            ))),
        }
    }

    /// The snapshots by name, each with what is kept with it.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn list(&self, engine: &OpenEngine) -> Result<Vec<(SnapshotName, String)>> {
        match (&self.kind, engine) {
            (_, OpenEngine::Lsm(engine)) => {
                let kept = engine.snapshots().await.map_err(refusal)?;
                Ok(kept.into_iter().map(|kept| (kept.name, kept.about)).collect())
            }
            (Kind::Memory(images), _) => {
                let images = images.lock();
                Ok(images
                    .iter()
                    .map(|(name, (_, about))| (name.clone(), about.clone()))
                    .collect())
            }
            _ => Err(no_snapshots()),
        }
    }

    /// Takes a snapshot, in the place of any other of its name.
    ///
    /// # Errors
    /// As the admin API has them.
    pub async fn take(&self, engine: &OpenEngine, name: &SnapshotName, about: String) -> Result<()> {
        match (&self.kind, engine) {
            (_, OpenEngine::Lsm(engine)) => engine.take_snapshot(name, about).await.map_err(refusal),
            (Kind::Memory(images), OpenEngine::Memory(engine)) => {
                let image = engine.image();
                let mut images = images.lock();
                if images.len() >= MAX_SNAPSHOTS && !images.contains_key(name) {
                    return Err(refusal(SnapshotError::TooMany));
                }
                images.insert(name.clone(), (image, about));
                Ok(())
            }
            _ => Err(no_snapshots()),
        }
    }

    /// Removes a snapshot.
    ///
    /// # Errors
    /// As the admin API has them.
    pub async fn remove(&self, engine: &OpenEngine, name: &SnapshotName) -> Result<()> {
        match (&self.kind, engine) {
            (_, OpenEngine::Lsm(engine)) => engine.remove_snapshot(name).await.map_err(refusal),
            (Kind::Memory(images), _) => match images.lock().remove(name) {
                Some(_) => Ok(()),
                None => Err(refusal(SnapshotError::NotFound(name.clone()))),
            },
            _ => Err(no_snapshots()),
        }
    }

    /// Prepares the content that replaces the current one, while that is in use: that of a snapshot, or none.
    ///
    /// # Errors
    /// As the admin API has them.
    pub async fn prepare(&self, engine: &OpenEngine, name: Option<&SnapshotName>) -> Result<Incoming> {
        match (&self.kind, engine) {
            (Kind::Lsm { options, .. }, OpenEngine::Lsm(engine)) => {
                let replacement = name.map_or(Replacement::Empty, |name| Replacement::Snapshot(name.clone()));
                let prepared = engine.prepare(replacement, after_start(options)).await;
                prepared.map(Incoming::Lsm).map_err(refusal)
            }
            (Kind::Memory(images), _) => {
                let Some(name) = name else {
                    return Ok(Incoming::Memory(MemoryImage::default()));
                };
                let images = images.lock();
                let found = images.get(name).map(|(image, _)| Incoming::Memory(image.clone()));
                found.ok_or_else(|| refusal(SnapshotError::NotFound(name.clone())))
            }
            _ => Err(no_snapshots()),
        }
    }

    /// Puts what was prepared in the place of the current content, which nobody uses. Server time will not be below `least`, and no number of `issued` is
    /// issued again.
    ///
    /// # Errors
    /// No engine can be opened now; the next start of the server finds the old or the new content.
    pub async fn replace(
        &self,
        engine: OpenEngine,
        incoming: Incoming,
        least: UnixMillis,
        issued: Issued,
    ) -> Result<Replaced, Failure> {
        let clock = self.clock.clone();
        match (&self.kind, engine, incoming) {
            (Kind::Lsm { options, .. }, OpenEngine::Lsm(engine), Incoming::Lsm(prepared)) => {
                let options = after_start(options);
                match engine.replace(prepared, (clock, least), issued, options).await {
                    Ok(successor) => Ok(Replaced {
                        engine: OpenEngine::Lsm(Arc::new(successor.engine)),
                        outcome: successor.outcome.map_err(refusal),
                    }),
                    Err(ReplaceError::Unchanged(error)) => Ok(Replaced {
                        engine: OpenEngine::Lsm(engine),
                        outcome: Err(refusal(error)),
                    }),
                    Err(ReplaceError::Lost(error)) => Err(Failure::new(error.to_string())),
                }
            }
            (Kind::Memory(_), _, Incoming::Memory(image)) => {
                let floor = image.time().max(least);
                let engine = MemoryEngine::from_image(clock, floor, &image, issued.lsn);
                Ok(Replaced {
                    engine: OpenEngine::Memory(Arc::new(engine)),
                    outcome: Ok(()),
                })
            }
            (_, engine, _) => Ok(Replaced {
                engine,
                outcome: Err(no_snapshots()),
            }),
        }
    }
}

fn no_snapshots() -> Error {
    Error::new(ErrorKind::WrongMode, "this store keeps no snapshots")
}

/// The options for engines that are opened later: tables are verified only once, at the start.
fn after_start(options: &LsmOptions) -> LsmOptions {
    LsmOptions {
        verify_tables: false,
        ..options.clone()
    }
}

impl OpenEngine {
    /// The engine as the core uses it.
    pub fn shared(&self) -> Arc<dyn Engine> {
        match self {
            OpenEngine::Memory(engine) => engine.clone(),
            OpenEngine::Lsm(engine) => engine.clone(),
            OpenEngine::Postgres(engine) => engine.clone(),
        }
    }

    /// The highest log sequence number of any partition.
    pub fn highest_lsn(&self) -> Lsn {
        match self {
            OpenEngine::Memory(engine) => engine.highest_lsn(),
            OpenEngine::Lsm(engine) => engine.highest_lsn(),
            // Its content is never replaced.
            OpenEngine::Postgres(_) => Lsn::default(),
        }
    }

    /// What was issued before the content was replaced, if that was not noted in the content yet.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn issued(&self) -> Result<Option<Issued>, SnapshotError> {
        match self {
            OpenEngine::Memory(_) | OpenEngine::Postgres(_) => Ok(None),
            OpenEngine::Lsm(engine) => engine.issued().await,
        }
    }

    /// It is noted in the content now.
    ///
    /// # Errors
    /// The note cannot be removed.
    pub async fn forget_issued(&self) -> Result<(), SnapshotError> {
        match self {
            OpenEngine::Memory(_) | OpenEngine::Postgres(_) => Ok(()),
            OpenEngine::Lsm(engine) => engine.forget_issued().await,
        }
    }
}

/// An error of the storage as the admin API has it.
fn refusal(error: SnapshotError) -> Error {
    let kind = match &error {
        SnapshotError::NotFound(_) => ErrorKind::NotFound,
        SnapshotError::TooMany => ErrorKind::QuotaExceeded,
        SnapshotError::NoSpace(_) => ErrorKind::StorageFull,
        SnapshotError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => ErrorKind::StorageFull,
        SnapshotError::Io { .. } | SnapshotError::Unavailable(_) => ErrorKind::Unavailable,
    };
    Error::new(kind, error.to_string())
}
