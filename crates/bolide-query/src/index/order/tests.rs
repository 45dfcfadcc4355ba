use crate::schema::{IndexedPath, PartitionKeyKind, Schema};
use crate::{Parameters, Query};

fn order_of(text: &str, schema: &Schema) -> String {
    let query = Query::compile(text, &Parameters::none(), schema).unwrap_or_else(|error| panic!("{text}: {error}"));
    let order = query.index_order();
    order.map_or(String::new(), |order| {
        let undefined = if order.has_undefined { ", undefined too" } else { "" };
        let more = if order.has_more_paths { ", then others" } else { "" };
        format!(
            "{} {}{undefined}{more}",
            order.path,
            if order.descending { "DESC" } else { "ASC" }
        )
    })
}

#[test]
fn rows_sorted_by_one_path_come_in_the_order_of_an_index() {
    let mut schema = Schema::container(vec![vec!["pk".to_owned()]], PartitionKeyKind::Hash);
    let indexing = schema.indexing.as_mut().expect("it has one");
    indexing.included.push(IndexedPath::parse("/named/?"));
    let composite = ["a", "b"].map(|name| crate::schema::CompositePath {
        path: vec![crate::PathStep::name(name)],
        descending: false,
    });
    indexing.composite.push(composite.to_vec());
    let cases = [
        ("SELECT * FROM c ORDER BY c.x", "/x/? ASC"),
        (
            "SELECT VALUE c.y FROM c WHERE c.z = 1 ORDER BY c.x.y DESC",
            "/x/y/? DESC",
        ),
        ("SELECT TOP 5 * FROM c ORDER BY c.x", "/x/? ASC"),
        ("SELECT * FROM c ORDER BY c._ts DESC", "/_ts/? DESC"),
        ("SELECT * FROM c ORDER BY c.id", "/id/? ASC"),
        // Items without the value have a row.
        ("SELECT * FROM c ORDER BY c.named", "/named/? ASC, undefined too"),
        (
            "SELECT * FROM c ORDER BY c.a, c.b",
            "/a/? ASC, undefined too, then others",
        ),
        (
            "SELECT * FROM c ORDER BY c.a DESC, c.b DESC",
            "/a/? DESC, undefined too, then others",
        ),
        ("SELECT DISTINCT c.x FROM c ORDER BY c.x", ""),
        ("SELECT c.x FROM c GROUP BY c.x ORDER BY c.x", ""),
        ("SELECT COUNT(1) AS n FROM c ORDER BY c.x", ""),
        ("SELECT * FROM c.x AS x ORDER BY x.y", ""),
        ("SELECT VALUE t FROM c JOIN t IN c.l ORDER BY c.x", ""),
        ("SELECT VALUE t FROM t IN c.l ORDER BY t", ""),
        ("SELECT * FROM c ORDER BY c.l[0]", ""),
        ("SELECT * FROM c", ""),
    ];
    for (text, expected) in cases {
        assert_eq!(order_of(text, &schema), expected, "{text}");
    }
    // Feeds without index rules keep items without the value.
    let of_feed = order_of("SELECT * FROM c ORDER BY c.x", &Schema::metadata());
    assert_eq!(of_feed, "/x/? ASC, undefined too");
}
