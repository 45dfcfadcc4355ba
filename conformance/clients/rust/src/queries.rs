//! Queries: each one on a container of one range and on one of five, in pages of one, of three and of any size.

use std::num::NonZeroU32;

use azure_data_cosmos::Query;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::options::{MaxItemCountHint, QueryOptions};
use futures::TryStreamExt;
use serde_json::{Value, json};

use crate::checks::{Outcome, Tour, equal};
use crate::world::{DATA, World, add, query, sorted};

pub const PAGE_SIZES: [Option<u32>; 3] = [Some(1), Some(3), None];

pub async fn run(tour: &mut Tour, world: &World) {
    for (place, wide) in [("one range", false), ("five ranges", true)] {
        match store(world, wide).await {
            Ok(container) => run_on(tour, &container, place).await,
            Err(error) => {
                tour.check(&format!("items are stored on {place}"), async { Err(error) })
                    .await
            }
        }
    }
}

async fn run_on(tour: &mut Tour, container: &ContainerClient, place: &str) {
    for case in DATA["queries"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|case| case["aggregate"] == json!(false))
    {
        let name = format!("query {} on {place}", case["name"].as_str().unwrap_or_default());
        tour.check(&name, rows_are_as_expected(container, case)).await;
    }
    tour.check(
        &format!("aggregates within a partition on {place}"),
        aggregates_within_a_partition(container),
    )
    .await;
    tour.check(
        &format!("continuation resumes with the rest on {place}"),
        continuation_resumes(container),
    )
    .await;
    tour.check(
        &format!("malformed query is refused with 400 on {place}"),
        malformed_query_is_refused(container),
    )
    .await;
}

async fn store(world: &World, wide: bool) -> Outcome<ContainerClient> {
    let container = if wide {
        world.wide_container("five ranges").await?
    } else {
        world.container("one range").await?
    };
    for item in DATA["items"].as_array().into_iter().flatten() {
        add(&container, item.clone()).await?;
    }
    Ok(container)
}

async fn rows_are_as_expected(container: &ContainerClient, case: &Value) -> Outcome {
    let expected = case["rows"].as_array().cloned().ok_or("the case has no rows")?;
    let expected = if case["ordered"] == json!(true) {
        expected
    } else {
        sorted(expected)
    };
    for size in PAGE_SIZES {
        let mut text = Query::from(case["text"].as_str().unwrap_or_default());
        for (name, value) in case["parameters"].as_object().into_iter().flatten() {
            text = text.with_parameter(name, value)?;
        }
        let found = container
            .query_items::<Value>(text, FeedScope::full_container(), Some(paged(size)))
            .await?;
        let found: Vec<Value> = found.try_collect().await?;
        let found = if case["ordered"] == json!(true) {
            found
        } else {
            sorted(found)
        };
        equal(&found, &expected, &format!("rows in pages of {size:?}"))?;
    }
    Ok(())
}

async fn aggregates_within_a_partition(container: &ContainerClient) -> Outcome {
    for (aggregate, expected) in [
        ("COUNT(1)", json!(3)),
        ("SUM(c.n)", json!(39)),
        ("MIN(c.n)", json!(5)),
        ("MAX(c.n)", json!(21)),
        ("AVG(c.n)", json!(13)),
    ] {
        let text = format!("SELECT VALUE {aggregate} FROM c");
        equal(
            query(container, text, FeedScope::partition("p3")).await?,
            vec![expected],
            aggregate,
        )?;
    }
    Ok(())
}

async fn continuation_resumes(container: &ContainerClient) -> Outcome {
    let text = "SELECT VALUE c.n FROM c WHERE c.n < 10";
    let mut pages = container
        .query_items::<Value>(text, FeedScope::full_container(), Some(paged(Some(2))))
        .await?
        .into_pages();
    let first = pages.try_next().await?.ok_or("no first page")?.into_items();
    let options = QueryOptions::default().with_continuation_token(pages.to_continuation_token()?);
    let rest = container
        .query_items::<Value>(text, FeedScope::full_container(), Some(options))
        .await?;
    let rest: Vec<Value> = rest.try_collect().await?;
    equal(rest.len() < 10, true, "the rest leaves out the first page")?;
    equal(
        sorted([first, rest].concat()),
        (0..10).map(Value::from).collect::<Vec<_>>(),
        "both together",
    )
}

async fn malformed_query_is_refused(container: &ContainerClient) -> Outcome {
    match query(container, "SELEKT *", FeedScope::partition("p3")).await {
        Ok(rows) => Err(format!("expected status 400, got rows {rows:?}").into()),
        Err(error) => equal(error.to_string().contains("400"), true, &format!("400 in `{error}`")),
    }
}

pub fn paged(size: Option<u32>) -> QueryOptions {
    match size.and_then(NonZeroU32::new) {
        Some(size) => QueryOptions::default().with_max_item_count(MaxItemCountHint::Limit(size)),
        None => QueryOptions::default(),
    }
}
