//! Compares what clients see with the model.

use std::collections::{BTreeMap, BTreeSet};

use bson::{Bson, Document, doc, rawdoc};

use super::program::{CORE_INDEX, IDS};
use super::runner::{Runner, parsed};

impl Runner {
    /// Compares everything that a client can ask for (P1), and checks the entries (P5).
    pub(super) async fn audit(&mut self) {
        let live: Vec<Document> = self
            .model
            .live()
            .into_iter()
            .map(|version| version.doc.clone())
            .collect();
        let count = i32::try_from(live.len()).expect("small");
        let collection = self.collection;
        let found = self.all(rawdoc! { "find": collection }).await;
        assert_eq!(found, live, "{}", self.place);
        let counted = self.run(rawdoc! { "count": collection }).await;
        assert_eq!(counted.get_i32("n").expect("a number"), count, "{}", self.place);
        let counted = self
            .run(rawdoc! { "count": collection, "query": { "_id": { "$gt": 0 } } })
            .await;
        assert_eq!(counted.get_i32("n").expect("a number"), count, "{}", self.place);
        let group = rawdoc! { "$group": { "_id": null, "n": { "$sum": "$n" }, "ids": { "$push": "$_id" } } };
        let grouped = self
            .all(rawdoc! { "aggregate": collection, "pipeline": [group], "cursor": {} })
            .await;
        let sum = live
            .iter()
            .map(|document| document.get_i32("n").expect("a number"))
            .sum::<i32>();
        let ids: Vec<i32> = live
            .iter()
            .map(|document| document.get_i32("_id").expect("an id"))
            .collect();
        let expected = doc! {"_id": Bson::Null, "n": sum, "ids": ids.clone()};
        assert_eq!(
            grouped,
            live.first().map(|_| expected).into_iter().collect::<Vec<_>>(),
            "{}",
            self.place
        );
        self.audit_by_id(&ids).await;
        self.audit_join(&ids).await;
        self.audit_indexes().await;
        self.audit_entries(live.len() as u64).await;
        let distinct = self.run(rawdoc! { "distinct": collection, "key": "_id" }).await;
        let values: BTreeSet<i32> = parsed(&distinct)
            .get_array("values")
            .expect("values")
            .iter()
            .filter_map(Bson::as_i32)
            .collect();
        assert_eq!(values, ids.iter().copied().collect(), "{}", self.place);
    }

    /// Reads by `_id`, and the statistics of the collection.
    async fn audit_by_id(&mut self, ids: &[i32]) {
        let (collection, count) = (self.collection, i32::try_from(ids.len()).expect("small"));
        for id in 1..=IDS {
            let found = self.all(rawdoc! { "find": collection, "filter": { "_id": id } }).await;
            assert_eq!(found.len(), usize::from(ids.contains(&id)), "{} {id}", self.place);
        }
        let stats = self.run(rawdoc! { "collStats": collection }).await;
        let counted = parsed(&stats).get("count").cloned();
        assert!(
            [Some(Bson::Int32(count)), Some(Bson::Int64(count.into()))].contains(&counted),
            "{} {stats:?}",
            self.place
        );
    }

    /// The entries of indexes and queues (P5).
    async fn audit_entries(&mut self, live: u64) {
        let collection = self.collection;
        let account = &self.shell.state.account;
        let container = account.find_collection("db", collection).expect("it exists");
        let report = account.verify(&container).await.expect("a report");
        assert_eq!(report.problems, Vec::<String>::new(), "{}", self.place);
        assert_eq!(report.live, live, "{}", self.place);
    }

    /// The documents that `$lookup` and `$unionWith` find are live too.
    async fn audit_join(&mut self, ids: &[i32]) {
        let collection = self.collection;
        let start = rawdoc! { "$documents": [{ "k": 1 }] };
        let join =
            rawdoc! { "$lookup": { "from": collection, "pipeline": [{ "$project": { "_id": 1 } }], "as": "all" } };
        let pipeline = rawdoc! { "aggregate": 1, "pipeline": [start, join], "cursor": {} };
        let joined = self.all(pipeline).await;
        let all = joined[0].get_array("all").expect("documents").iter();
        let found: Vec<i32> = all
            .map(|found| found.as_document().expect("one").get_i32("_id").expect("an id"))
            .collect();
        assert_eq!(found, ids, "{}", self.place);
        let union = rawdoc! { "$unionWith": collection };
        let pipeline = rawdoc! { "aggregate": collection, "pipeline": [union, { "$count": "n" }], "cursor": {} };
        let n = self
            .all(pipeline)
            .await
            .first()
            .map_or(0, |first| first.get_i32("n").expect("a number"));
        assert_eq!(n, 2 * i32::try_from(ids.len()).expect("small"), "{}", self.place);
    }

    async fn audit_indexes(&mut self) {
        let listed = self.all(rawdoc! { "listIndexes": self.collection }).await;
        let shown: BTreeMap<String, i64> = listed
            .iter()
            .filter_map(|index| {
                let name = index.get_str("name").expect("a name").to_owned();
                Some((
                    name,
                    i64::from(index.get("expireAfterSeconds")?.as_i32().expect("an int")),
                ))
            })
            .collect();
        let dates = self.model.dates.iter().map(|rule| (rule.name.to_owned(), rule.seconds));
        let core = self.model.core.map(|seconds| (CORE_INDEX.to_owned(), seconds));
        assert_eq!(shown, dates.chain(core).collect(), "{}", self.place);
    }
}
