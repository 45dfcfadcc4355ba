//! One page of a query: a walk of live items pushed into an execution.

use std::hash::{BuildHasher, RandomState};

use bolide_model::{Result, UnixMillis};
use bolide_query::{Environment, Execution, PageLimit, Progress, Query};
use bytes::{Buf, Bytes};

use super::{QueryItems, QueryMetrics, query_error};
use crate::answer::RangePosition;
use crate::container::{Container, Visit};
use crate::continuation;
use crate::feeds::{ItemWalk, Slice};
use crate::items::StoredItem;

const KIND: &[u8] = b"query";

/// Everything one page needs.
pub(super) struct PageRun<'a> {
    pub container: &'a Container,
    pub visit: &'a Visit<'a>,
    pub query: &'a Query,
    pub slices: Vec<Slice>,
    pub environment: Environment,
    pub limit: PageLimit,
}

/// A finished page.
pub(super) struct PageDone {
    pub count: usize,
    pub rows: Bytes,
    pub continuation: Option<String>,
    pub metrics: QueryMetrics,
    pub touched: Vec<RangePosition>,
}

/// Where a page begins or ends: behind an item of the walk, and what the execution says it has returned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Place {
    /// Items up to this key have been dealt with.
    after: Option<Bytes>,
    resume: Option<String>,
}

/// What a continuation of a query belongs to: the container and what was asked.
pub(super) fn owner(container: &Container, query: &QueryItems) -> Vec<Vec<u8>> {
    let parameters = serde_json::to_vec(&query.parameters).unwrap_or_default();
    let scope = format!("{:?}", query.scope);
    vec![
        KIND.to_vec(),
        container.rid().bytes().to_vec(),
        query.text.clone().into_bytes(),
        parameters,
        scope.into_bytes(),
    ]
}

/// A seed that differs from page to page.
pub(super) fn random_seed() -> u64 {
    RandomState::new().hash_one(KIND)
}

impl PageRun<'_> {
    /// Runs the page that `from` names, or the first.
    pub async fn run(&self, now: UnixMillis, owner: &[Vec<u8>], from: Option<&str>) -> Result<PageDone> {
        let owner: Vec<&[u8]> = owner.iter().map(Vec::as_slice).collect();
        let place = match from {
            Some(text) => Place::decode(&continuation::decode(&owner, text)?)?,
            None => Place::default(),
        };
        let mut execution = self.execution(self.limit, place.resume.as_deref())?;
        let mut walk = ItemWalk::new(
            self.container,
            self.visit,
            self.slices.clone(),
            now,
            place.after.as_deref(),
        );
        let scanned = self.scan(&mut execution, &mut walk, place.after.clone()).await?;
        let finished = execution.finish(scanned.is_end).map_err(query_error)?;

        let after = if self.query.rescans() { None } else { scanned.after };
        let next = finished.resume.map(|resume| Place {
            after,
            resume: Some(resume),
        });
        let continuation = match next {
            Some(next) if scanned.is_at_boundary && !self.has_more(now, &next).await? => None,
            next => next.map(|next| continuation::encode(&owner, &next.encode())),
        };
        Ok(PageDone {
            count: finished.rows.len(),
            continuation,
            metrics: QueryMetrics {
                retrieved_items: finished.metrics.items,
                retrieved_bytes: finished.metrics.item_bytes,
                output_rows: finished.metrics.rows,
                output_bytes: finished.metrics.row_bytes,
                ..QueryMetrics::default()
            },
            rows: Bytes::from(finished.rows.into_joined()),
            touched: walk.touched().to_vec(),
        })
    }

    fn execution(&self, limit: PageLimit, resume: Option<&str>) -> Result<Execution> {
        self.query
            .execution(self.environment.clone(), limit, resume)
            .map_err(query_error)
    }

    /// Pushes items until the page is full, the query is done, or the walk ends; without a merge also at the end of a range that gave
    /// rows, as the service's pages end there.
    async fn scan(&self, execution: &mut Execution, walk: &mut ItemWalk<'_>, after: Option<Bytes>) -> Result<Scanned> {
        let mut scanned = Scanned {
            after,
            is_end: false,
            is_at_boundary: false,
        };
        if execution.is_done() || !self.query.reads_items() {
            scanned.is_end = true;
            return Ok(scanned);
        }
        let mut ranges_left = walk.ranges_left();
        while let Some(items) = walk.next_page().await? {
            for walked in items {
                match push(execution, &walked.item)? {
                    Progress::Continue => scanned.after = Some(walked.key),
                    Progress::PageFull => return Ok(scanned),
                    Progress::Done => {
                        scanned.is_end = true;
                        return Ok(scanned);
                    }
                }
            }
            let has_left_range = walk.ranges_left() < ranges_left;
            ranges_left = walk.ranges_left();
            if has_left_range && ranges_left > 0 && !self.query.rescans() && execution.has_rows() {
                scanned.is_at_boundary = true;
                return Ok(scanned);
            }
            // A page of items is a good moment to let others run: a long scan never waits by itself.
            tokio::task::yield_now().await;
        }
        scanned.is_end = true;
        Ok(scanned)
    }

    /// Whether anything comes after a place, so that no page is empty but the only one.
    async fn has_more(&self, now: UnixMillis, place: &Place) -> Result<bool> {
        let one_row = PageLimit { rows: 1, ..self.limit };
        let mut execution = self.execution(one_row, place.resume.as_deref())?;
        let mut walk = ItemWalk::new(
            self.container,
            self.visit,
            self.slices.clone(),
            now,
            place.after.as_deref(),
        );
        while let Some(items) = walk.next_page().await? {
            for walked in items {
                let progress = push(&mut execution, &walked.item)?;
                if execution.has_rows() {
                    return Ok(true);
                }
                if progress == Progress::Done {
                    return Ok(false);
                }
            }
            tokio::task::yield_now().await;
        }
        Ok(false)
    }
}

/// How far a scan came.
struct Scanned {
    after: Option<Bytes>,
    /// Every item has been pushed, or no more is needed.
    is_end: bool,
    /// It stopped between two ranges.
    is_at_boundary: bool,
}

fn push(execution: &mut Execution, item: &StoredItem) -> Result<Progress> {
    execution.push(&item.to_json(), item.rid().number).map_err(query_error)
}

impl Place {
    /// `flag(1) ‖ length(2) ‖ key ‖ resume`, without key if the flag is 0.
    fn encode(&self) -> Vec<u8> {
        let key = self.after.as_deref().unwrap_or_default();
        let mut bytes = vec![u8::from(self.after.is_some())];
        bytes.extend((key.len() as u16).to_be_bytes());
        bytes.extend(key);
        bytes.extend(self.resume.as_deref().unwrap_or_default().as_bytes());
        bytes
    }

    fn decode(mut bytes: &[u8]) -> Result<Place> {
        let malformed = || bolide_model::Error::bad_request("The continuation token is malformed.");
        if bytes.len() < 3 {
            return Err(malformed());
        }
        let has_key = bytes.get_u8() == 1;
        let length = usize::from(bytes.get_u16());
        let (key, resume) = bytes.split_at_checked(length).ok_or_else(malformed)?;
        let resume = std::str::from_utf8(resume).map_err(|_| malformed())?;
        Ok(Place {
            after: has_key.then(|| Bytes::copy_from_slice(key)),
            resume: Some(resume.to_owned()),
        })
    }
}
