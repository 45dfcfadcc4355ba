//! Sorts, which indexes deliver or not: every answer is in the order of the sort, has the documents of the collection without indexes, and is the same in pages,
//! by cursors and by skips.

use bolide_mql::sort::Sort;
use bolide_mql::value::text::render_document;
use bson::{Document, RawArrayBuf, RawDocumentBuf, doc, rawdoc};

use super::{PATHS, Program, ids, raw};

/// The bytes by which documents are compared.
fn keys(sort: &Sort, documents: &[RawDocumentBuf]) -> Vec<Vec<u8>> {
    let key = |document: &RawDocumentBuf| sort.key(document, None).expect("a key");
    documents.iter().map(key).collect()
}

fn id(document: &RawDocumentBuf) -> i32 {
    document.get_i32("_id").expect("an id")
}

fn sorted_ids(documents: &[RawDocumentBuf]) -> Vec<i32> {
    let mut ids: Vec<i32> = documents.iter().map(id).collect();
    ids.sort_unstable();
    ids
}

impl Program {
    /// Often one that an index has.
    fn order(&mut self) -> Document {
        let mut order = Document::new();
        if self.choices.percent(75) && !self.patterns.is_empty() {
            let at = usize::try_from(self.choices.roll(self.patterns.len() as u64)).expect("below a length");
            let is_backward = self.choices.percent(50);
            let first = usize::from(self.choices.percent(25));
            for (path, direction) in self.patterns[at].clone().into_iter().skip(first) {
                let direction = direction.as_i32().unwrap_or(1);
                order.insert(
                    path.replace("$**", "a"),
                    if is_backward { -direction } else { direction },
                );
                if self.choices.percent(20) {
                    break;
                }
            }
        }
        match self.choices.roll(8) {
            0 => order = doc! { "_id": self.choices.pick(&[1, -1]) },
            1 => {
                order.insert(self.choices.pick(&PATHS), self.choices.pick(&[1, -1]));
            }
            _ => {}
        }
        if order.is_empty() {
            order.insert("a", 1);
        }
        order
    }

    fn filter_of_order(&mut self) -> RawDocumentBuf {
        let mut filter = match self.choices.roll(3) {
            0 => Document::new(),
            _ => self.filter(1),
        };
        if self.is_sharded && self.choices.percent(25) {
            filter.insert("k", i32::try_from(self.choices.roll(20)).expect("small"));
        }
        raw(&filter)
    }

    /// A sorted query. Some sorts are refused, whatever indexes there are: by two arrays.
    pub async fn sorted_query(&mut self) {
        let (filter, order) = (self.filter_of_order(), raw(&self.order()));
        let find = |collection: &str| rawdoc! { "find": collection, "filter": filter.clone(), "sort": order.clone(), "batchSize": 10_000 };
        let claim = format!("{} {}", render_document(&filter), render_document(&order));
        let expected = self.shell.run(find("t")).await;
        if expected.get("cursor").expect("valid").is_none() {
            return;
        }
        let expected = self.shell.first_batch(find("t")).await;
        let plan = rawdoc! { "explain": find("c"), "verbosity": "executionStats" };
        let plan = render_document(&self.shell.ok(plan).await);
        let claim = format!("{claim}\n{plan}");
        self.ordered += u64::from(plan.contains("IXSCAN") && !plan.contains("SORT"));
        let sort = Sort::parse(&order).expect("a sort");
        let found = self.shell.first_batch(find("c")).await;
        assert_eq!(keys(&sort, &found), keys(&sort, &expected), "{claim}");
        assert_eq!(sorted_ids(&found), sorted_ids(&expected), "{claim}");
        self.pages(&find("c"), &found, &claim).await;
        self.pipeline((&filter, &order), &sort, &expected).await;
    }

    /// The same by a cursor, and by skips.
    async fn pages(&mut self, find: &RawDocumentBuf, found: &[RawDocumentBuf], claim: &str) {
        let size = 1 + i32::try_from(self.choices.roll(4)).expect("small");
        let mut by_cursor = Vec::new();
        let mut command = Document::try_from(find).expect("BSON");
        command.insert("batchSize", size);
        let reply = self.shell.ok(raw(&command)).await;
        let cursor = reply.get_document("cursor").expect("a cursor");
        by_cursor.extend(ids(cursor.get_array("firstBatch").expect("a batch")));
        let mut open = cursor.get_i64("id").expect("an id");
        while open != 0 {
            let more = rawdoc! { "getMore": open, "collection": "c", "batchSize": size };
            let reply = self.shell.ok(more).await;
            let cursor = reply.get_document("cursor").expect("a cursor");
            by_cursor.extend(ids(cursor.get_array("nextBatch").expect("a batch")));
            open = cursor.get_i64("id").expect("an id");
        }
        let in_order: Vec<i32> = found.iter().map(id).collect();
        assert_eq!(by_cursor, in_order, "batches of {size}: {claim}");
        let skip = usize::try_from(self.choices.roll(6)).expect("small");
        let mut command = Document::try_from(find).expect("BSON");
        command.insert("skip", i32::try_from(skip).expect("small"));
        command.insert("limit", size);
        let page = self.shell.first_batch(raw(&command)).await;
        let page: Vec<i32> = page.iter().map(id).collect();
        let expected = in_order
            .iter()
            .skip(skip)
            .take(usize::try_from(size).expect("positive"));
        assert_eq!(page, expected.copied().collect::<Vec<_>>(), "from {skip}: {claim}");
    }

    /// The same as the start of a pipeline.
    async fn pipeline(
        &mut self,
        (filter, order): (&RawDocumentBuf, &RawDocumentBuf),
        sort: &Sort,
        expected: &[RawDocumentBuf],
    ) {
        let skip = 1 + usize::try_from(self.choices.roll(3)).expect("small");
        let mut stages = vec![rawdoc! { "$match": filter.clone() }, rawdoc! { "$sort": order.clone() }];
        if self.choices.percent(25) {
            stages.swap(0, 1);
        } else if self.choices.percent(25) {
            stages.insert(1, rawdoc! { "$match": { "a": { "$ne": 1 } } });
        }
        let is_narrowed = stages.len() == 3;
        let mut unlimited = RawArrayBuf::new();
        stages.iter().for_each(|stage| unlimited.push(stage.clone()));
        stages.push(rawdoc! { "$skip": i32::try_from(skip).expect("small") });
        stages.push(rawdoc! { "$limit": 3 });
        let mut pipeline = RawArrayBuf::new();
        stages.into_iter().for_each(|stage| pipeline.push(stage));
        let aggregate = |collection: &str, pipeline: RawArrayBuf| rawdoc! { "aggregate": collection, "pipeline": pipeline, "cursor": { "batchSize": 10_000 } };
        let expected = match is_narrowed {
            true => self.shell.first_batch(aggregate("t", unlimited)).await,
            false => expected.to_vec(),
        };
        let expected: Vec<RawDocumentBuf> = expected.into_iter().skip(skip).take(3).collect();
        let found = self.shell.first_batch(aggregate("c", pipeline)).await;
        assert_eq!(
            keys(sort, &found),
            keys(sort, &expected),
            "{} {}",
            render_document(filter),
            render_document(order)
        );
    }

    /// `findAndModify` changes the first in an order.
    pub async fn change_first(&mut self) {
        let (filter, order) = (self.filter_of_order(), raw(&self.order()));
        let claim = format!("{} {}", render_document(&filter), render_document(&order));
        let find = rawdoc! { "find": "t", "filter": filter.clone(), "sort": order.clone(), "limit": 1 };
        let expected = self.shell.run(find.clone()).await;
        if expected.get("cursor").expect("valid").is_none() {
            return;
        }
        let expected = self.shell.first_batch(find).await;
        let update = raw(&doc! { "$set": { "x": self.next } });
        let modify = rawdoc! { "findAndModify": "c", "query": filter, "sort": order.clone(), "update": update.clone() };
        let reply = self.shell.ok(modify).await;
        let Ok(found) = reply.get_document("value") else {
            assert!(expected.is_empty(), "{claim}");
            return;
        };
        let sort = Sort::parse(&order).expect("a sort");
        assert_eq!(keys(&sort, &[found.to_owned()]), keys(&sort, &expected), "{claim}");
        let statement = rawdoc! { "q": { "_id": id(&found.to_owned()) }, "u": update };
        self.shell.ok(rawdoc! { "update": "t", "updates": [statement] }).await;
    }

    /// A cursor in an order that rests while others change: what is there all the time, and does not change, is found once and in order, and nothing that has ended.
    pub async fn resting_order(&mut self) {
        let (filter, order) = (self.filter_of_order(), raw(&self.order()));
        let claim = format!("{} {}", render_document(&filter), render_document(&order));
        let find = |collection: &str| rawdoc! { "find": collection, "filter": filter.clone(), "sort": order.clone(), "batchSize": 10_000 };
        let before = self.shell.run(find("t")).await;
        if before.get("cursor").expect("valid").is_none() {
            return;
        }
        let before = self.shell.first_batch(find("t")).await;
        let opened = rawdoc! { "find": "c", "filter": filter.clone(), "sort": order.clone(), "batchSize": 2 };
        let opened = self.shell.ok(opened).await;
        let cursor = opened.get_document("cursor").expect("a cursor");
        let open = cursor.get_i64("id").expect("an id");
        let mut found = ids(cursor.get_array("firstBatch").expect("a batch"));
        let first = found.len();
        self.update().await;
        if self.is_sharded && self.choices.percent(50) {
            self.split().await;
        }
        if self.choices.percent(20) {
            self.drop_index().await;
        }
        self.shell.advance(1_000);
        let after = self
            .shell
            .first_batch(rawdoc! { "find": "t", "batchSize": 10_000 })
            .await;
        if open != 0 {
            let more = rawdoc! { "getMore": open, "collection": "c", "batchSize": 10_000 };
            let reply = self.shell.run(more).await;
            // What was changed to two arrays cannot be sorted any more.
            let Ok(cursor) = reply.get_document("cursor") else {
                return;
            };
            found.extend(ids(cursor.get_array("nextBatch").expect("a batch")));
        }
        let unchanged: Vec<&RawDocumentBuf> = before.iter().filter(|document| after.contains(document)).collect();
        let sort = Sort::parse(&order).expect("a sort");
        let mut in_order = Vec::new();
        for id in &found {
            let known = unchanged.iter().find(|document| self::id(document) == *id);
            in_order.extend(known.map(|document| (*document).clone()));
        }
        let unchanged: Vec<RawDocumentBuf> = unchanged.into_iter().cloned().collect();
        assert_eq!(sorted_ids(&in_order), sorted_ids(&unchanged), "{claim}");
        assert!(keys(&sort, &in_order).is_sorted(), "{claim}");
        let is_there = |id: &&i32| after.iter().any(|document| self::id(document) == **id);
        let ended: Vec<&i32> = found[first..].iter().filter(|id| !is_there(id)).collect();
        assert_eq!(ended, [&0; 0], "{claim}");
    }
}
