//! The conflicts feed: always empty, because one region has no conflicts (cosmos-rest §12.2).

use bolide_model::Error;
use http::StatusCode;

use crate::addressing;
use crate::request::Call;
use crate::status::Failure;
use crate::wire::{Reply, body, envelope, headers, scope};

pub(super) fn list(call: &Call<'_>) -> Result<Reply, Failure> {
    let container = addressing::parent_container(call.account(), &call.route)?;
    let mut reply = Reply::json(
        StatusCode::OK,
        envelope(&container.rid().to_string(), "Conflicts", b"", 0),
    );
    reply.number(&headers::ITEM_COUNT, 0);
    Ok(reply)
}

pub(super) fn query(call: &Call<'_>) -> Result<Reply, Failure> {
    body::sent_query(call.headers(), call.body)?.without_resume_filter()?;
    let container = addressing::parent_container(call.account(), &call.route)?;
    let crosses = headers::flag(call.headers(), &headers::CROSS_PARTITION);
    if !crosses && scope::partition_key(call.headers(), &container)?.is_none() {
        return Err(Failure::bad_request(format!(
            "Cross partition query is required but disabled. Please set `{}` to true or specify `{}`.",
            headers::CROSS_PARTITION,
            headers::PARTITION_KEY
        )));
    }
    list(call)
}

pub(super) fn point(call: &Call<'_>) -> Result<Reply, Failure> {
    addressing::parent_container(call.account(), &call.route)?;
    Err(Error::not_found(format!("there are no conflicts. id=`{}`", call.route.leaf)).into())
}
