//! Requests that are made again because another server has changed the settings of the container meanwhile (TTL-233).

use bolide_model::{Error, Result};
use futures_util::future::{BoxFuture, Either};

use super::Account;
use crate::container::Container;
use crate::response::Refusal;

/// Maximum number of times that a request is made. Each time it has met another change of settings.
const TIMES: usize = 20;

/// The error of a request.
pub(super) trait RequestError {
    /// Tells whether the request has met settings that this process does not know yet. It has changed nothing then.
    fn has_met_other_settings(&self) -> bool;
}

impl RequestError for Error {
    fn has_met_other_settings(&self) -> bool {
        self.is_of_changed_settings()
    }
}

impl RequestError for Refusal {
    fn has_met_other_settings(&self) -> bool {
        self.error.has_met_other_settings()
    }
}

impl Account {
    /// Makes a request, which must be in the container once: at one state of its settings. If another server has changed them meanwhile, makes it again.
    ///
    /// Not an `async fn`: on an engine of one process the result is no larger than the request's own future, which callers move around.
    ///
    /// # Errors
    /// Those of the request.
    pub(super) fn by_current_settings<'r, A, T, E, F, R>(
        &'r self,
        container: &'r Container,
        request: A,
        make: F,
    ) -> Either<R, BoxFuture<'r, Result<T, E>>>
    where
        A: Clone + Send + 'r,
        T: Send + 'r,
        E: RequestError + From<Error> + Send + 'r,
        F: Fn(A) -> R + Send + Sync + 'r,
        R: Future<Output = Result<T, E>> + Send + 'r,
    {
        if !self.has_shared_store() {
            return Either::Left(make(request));
        }
        Either::Right(Box::pin(async move {
            for _ in 1..TIMES {
                match Box::pin(make(request.clone())).await {
                    Err(error) if error.has_met_other_settings() => self.catalog().settle(container).await?,
                    made => return made,
                }
            }
            make(request).await
        }))
    }
}
