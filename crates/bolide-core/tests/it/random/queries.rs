//! Queries of the programs (TTL-244…247).

use std::sync::Arc;

use bolide_core::QueryItems;
use serde_json::Value;

use super::checks::differ;
use super::faults::is_fault;
use super::feeds::scope;
use super::program::Where;
use super::runner::{Runner, Stepped, Stop};
use crate::model::{Part, Version};

impl Runner {
    /// Returns the ids of items whose `n` is at least `least`, over all pages of `size`.
    pub(super) async fn select(&mut self, part: Where, least: i64, size: usize) -> Stepped {
        let part = self.part(part);
        if !self.model.has(part) {
            return Ok("range gone".into());
        }
        let text = "SELECT VALUE c.id FROM c WHERE c.n >= @least";
        let parameters = vec![("@least".to_owned(), least.into())];
        let (rows, charge) = self.query(text, parameters, part, size).await?;
        let listed = self.model.listed(part, &Vec::new());
        let want: Vec<Value> = listed
            .iter()
            .filter(|version| version.body["n"].as_i64() >= Some(least))
            .map(|version| version.id.into())
            .collect();
        // Without ORDER BY no order is guaranteed; `smoke::queries` tests the order of creation.
        differ("selected", &in_any_order(&rows), &in_any_order(&want))?;
        self.count_in(part, least, want.len()).await?;
        self.near_in(part, least, size).await?;
        self.sort_in(part, size).await?;
        Ok(format!("{rows:?} {charge:?}"))
    }

    /// Selects the items whose place on the equator is at most a degree, which is 111 km, from a longitude.
    async fn near_in(&mut self, part: Part, longitude: i64, size: usize) -> Result<(), Stop> {
        let text =
            "SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.p, {'type': 'Point', 'coordinates': [@x, 0]}) < 150000";
        let parameters = vec![("@x".to_owned(), longitude.into())];
        let (rows, _) = self.query(text, parameters, part, size).await?;
        let listed = self.model.listed(part, &Vec::new());
        let is_near = |version: &&&Version| {
            let own = version.body.get("p").and_then(|place| place["coordinates"][0].as_i64());
            own.is_some_and(|own| (own - longitude).abs() <= 1)
        };
        let want: Vec<Value> = listed.iter().filter(is_near).map(|version| version.id.into()).collect();
        Ok(differ(text, &in_any_order(&rows), &in_any_order(&want))?)
    }

    /// Counts by the entries of the index and by the counters, which have ghosts, too.
    async fn count_in(&mut self, part: Part, least: i64, selected: usize) -> Result<(), Stop> {
        let all = self.model.listed(part, &Vec::new()).len();
        let parameters = vec![("@least".to_owned(), least.into())];
        for (text, want) in [
            ("SELECT VALUE COUNT(1) FROM c WHERE c.n >= @least", selected),
            ("SELECT VALUE COUNT(1) FROM c", all),
        ] {
            let (rows, _) = self.query(text, parameters.clone(), part, 10).await?;
            differ(text, &rows, &vec![Value::from(want)])?;
        }
        Ok(())
    }

    /// Sorts by both paths of a composite index, in both directions.
    async fn sort_in(&mut self, part: Part, size: usize) -> Result<(), Stop> {
        let listed = self.model.listed(part, &Vec::new());
        let pair = |version: &&Version| (version.body.get("n").cloned(), version.body.get("u").cloned());
        let mut pairs: Vec<(Option<Value>, Option<Value>)> = listed.iter().map(pair).collect();
        // Both are numbers, or missing.
        let number = |value: &Option<Value>| value.as_ref().and_then(Value::as_i64);
        pairs.sort_by_key(|(n, u)| (number(n), std::cmp::Reverse(number(u))));
        let row = |(n, u): &(Option<Value>, Option<Value>)| {
            let members = [("n", n), ("u", u)].into_iter();
            let members = members.filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
            Value::Object(members.collect())
        };
        let mut want: Vec<Value> = pairs.iter().map(row).collect();
        for by in ["c.n, c.u DESC", "c.n DESC, c.u"] {
            let text = format!("SELECT c.n, c.u FROM c ORDER BY {by}");
            let (rows, _) = self.query(&text, vec![], part, size).await?;
            differ(&text, &rows, &want)?;
            want.reverse();
        }
        Ok(())
    }

    pub(super) async fn count(&mut self, pk: &'static str) -> Stepped {
        let (rows, charge) = self
            .query("SELECT VALUE COUNT(1) FROM c", vec![], Part::Key(pk), 10)
            .await?;
        let want = self.model.listed(Part::Key(pk), &Vec::new()).len();
        differ("count", &rows, &vec![Value::from(want)])?;
        Ok(format!("{want} {charge:?}"))
    }

    /// Returns the highest `n`: a limit is filled with live items (TTL-246).
    pub(super) async fn top(&mut self, pk: &'static str, most: usize) -> Stepped {
        let text = format!("SELECT TOP {most} VALUE c.n FROM c ORDER BY c.n DESC");
        let (rows, charge) = self.query(&text, vec![], Part::Key(pk), 10).await?;
        let listed = self.model.listed(Part::Key(pk), &Vec::new());
        let mut want: Vec<i64> = listed.iter().filter_map(|version| version.body["n"].as_i64()).collect();
        want.sort_unstable_by(|one, other| other.cmp(one));
        want.truncate(most);
        let want: Vec<Value> = want.into_iter().map(Value::from).collect();
        differ("top", &rows, &want)?;
        Ok(format!("{rows:?} {charge:?}"))
    }

    /// Returns the rows of all pages, and their charges together.
    async fn query(
        &mut self,
        text: &str,
        parameters: Vec<(String, Value)>,
        part: Part,
        size: usize,
    ) -> Result<(Vec<Value>, f64), Stop> {
        let mut query = QueryItems {
            text: text.to_owned(),
            parameters: Arc::new(parameters),
            scope: scope(part),
            cross_partition: true,
            max_items: Some(size),
            // Sums over several ranges are made by clients otherwise.
            merges_ranges: text.contains("COUNT") || text.contains("ORDER BY"),
            ..QueryItems::default()
        };
        let (mut rows, mut charge) = (Vec::new(), 0.0);
        loop {
            let ctx = self.begin().await?;
            let page = match self.account().query(&ctx, self.container(), &query).await {
                Err(refusal) if is_fault(&refusal.error) => return Err(Stop::Fault),
                Err(refusal) => return Err(Stop::Wrong(format!("{text}: {refusal:?}"))),
                Ok(page) => page,
            };
            self.charged(&page.cost);
            charge += page.cost.charge.0;
            let array = [b"[", &page.value.rows[..], b"]"].concat();
            let page_rows: Vec<Value> =
                serde_json::from_slice(&array).map_err(|error| format!("{text}: rows are no JSON: {error}"))?;
            rows.extend(page_rows);
            match page.value.continuation {
                Some(continuation) => query.continuation = Some(continuation),
                None => return Ok((rows, charge)),
            }
        }
    }
}

fn in_any_order(rows: &[Value]) -> Vec<String> {
    let mut texts: Vec<String> = rows.iter().map(Value::to_string).collect();
    texts.sort();
    texts
}
