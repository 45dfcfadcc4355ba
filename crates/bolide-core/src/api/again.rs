//! Requests that are made again because another server has changed the settings of the container meanwhile (TTL-233).

use bolide_model::{Error, Result};

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
    /// # Errors
    /// Those of the request.
    pub(super) async fn by_current_settings<A, T, E, F, R>(
        &self,
        container: &Container,
        request: A,
        make: F,
    ) -> Result<T, E>
    where
        A: Clone,
        E: RequestError + From<Error>,
        F: Fn(A) -> R,
        R: Future<Output = Result<T, E>>,
    {
        if !self.has_shared_store() {
            return make(request).await;
        }
        for _ in 1..TIMES {
            match make(request.clone()).await {
                Err(error) if error.has_met_other_settings() => self.catalog().settle(container).await?,
                made => return made,
            }
        }
        make(request).await
    }
}
