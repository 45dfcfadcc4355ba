//! Spatial indexes: queries have the rows of a scan, without ghosts, wherever on the globe or the plane shapes are, and read little more than these.

use bolide_core::{IndexUse, PurgeMode, QueryItems, ScanScope};
use serde_json::{Value, json};

use super::both::{Both, all_pages, with_use};
use crate::random::RandomChoices;
use crate::test_container::{START, TestContainer, options, scope_of};

fn definition(is_plane: bool) -> Value {
    let mut index = json!({"path": "/p/*", "types": ["Point", "LineString", "Polygon", "MultiPolygon"]});
    if is_plane {
        index["boundingBox"] = json!({"xmin": -180, "ymin": -90, "xmax": 180, "ymax": 90});
    }
    json!({
        "defaultTtl": -1,
        "geospatialConfig": {"type": if is_plane { "Geometry" } else { "Geography" }},
        "indexingPolicy": {
            "includedPaths": [{"path": "/*"}],
            "spatialIndexes": [index],
        },
    })
}

/// Asserts that queries with random filters have the same rows in both, and that the index has what it must have. Returns the number of rows.
async fn assert_same((both, is_plane): (&Both, bool), random: &mut RandomChoices, what: &str) -> usize {
    let mut found = 0;
    for _ in 0..12 {
        let filter = filter(random, is_plane);
        for text in [
            format!("SELECT VALUE c.id FROM c WHERE {filter}"),
            format!("SELECT VALUE c.n FROM c WHERE {filter} AND c.n % 3 != 0 ORDER BY c.n DESC"),
            format!("SELECT VALUE COUNT(1) FROM c WHERE c.n > 5 AND ({filter})"),
        ] {
            for size in [7, 1_000] {
                let (rows, index) = pages(&both.with, &text, size, ScanScope::default()).await;
                let expected = pages(&both.without, &text, size, ScanScope::default()).await.0;
                assert_eq!(rows, expected, "{what}: {text} in pages of {size}");
                found += rows.len();
                assert!(index.is_none_or(|index| index == "/p/? (spatial)"), "{text}");
            }
        }
    }
    both.with.assert_sound().await;
    found
}

/// A filter with a spatial function.
fn filter(random: &mut RandomChoices, is_plane: bool) -> String {
    let shape = shape(random);
    let unit = if is_plane { 1.0 } else { 111_000.0 };
    match random.roll(6) {
        0..3 => format!("ST_DISTANCE(c.p, {shape}) < {}", size(random) * 3.0 * unit),
        3 => format!("ST_INTERSECTS(c.p, {shape})"),
        4 => format!("ST_WITHIN({shape}, c.p) OR ST_DISTANCE({shape}, c.p) <= {unit}"),
        _ => format!("ST_WITHIN(c.p, {shape})"),
    }
}

/// Returns the rows of all pages in order, and the index that the first one read.
async fn pages(test: &TestContainer, text: &str, size: usize, scope: ScanScope) -> (Vec<Value>, Option<String>) {
    let query = QueryItems {
        text: text.to_owned(),
        max_items: Some(size),
        scope,
        ..QueryItems::default()
    };
    let (rows, first) = all_pages(test, query).await;
    (rows, first.index)
}

/// Poles, the antimeridian, and other places.
const PLACES: [(f64, f64); 6] = [
    (0.0, 89.9),
    (100.0, -90.0),
    (179.999, 0.0),
    (-180.0, 50.0),
    (13.4, 52.5),
    (45.0, 35.3),
];

/// In degrees: from centimetres to a good part of the globe.
fn size(random: &mut RandomChoices) -> f64 {
    [1e-7, 1e-4, 1e-2, 0.3, 2.0, 15.0, 60.0][random.roll(7) as usize]
}

fn near(random: &mut RandomChoices, (x, y): (f64, f64), size: f64) -> (f64, f64) {
    let mut off = || (random.roll(2_001) as f64 / 1_000.0 - 1.0) * size;
    let (x, y) = (x + off(), y + off());
    ((x + 540.0).rem_euclid(360.0) - 180.0, y.clamp(-90.0, 90.0))
}

fn shape(random: &mut RandomChoices) -> Value {
    let place = PLACES[random.roll(6) as usize];
    let size = size(random);
    let place = near(random, place, size / 2.0);
    let position = |(x, y): (f64, f64)| json!([x, y]);
    let corner = |x: f64, y: f64| {
        let x = (place.0 + x * size + 540.0).rem_euclid(360.0) - 180.0;
        json!([x, (place.1 + y * size).clamp(-90.0, 90.0)])
    };
    match random.roll(8) {
        0..5 => json!({"type": "Point", "coordinates": position(place)}),
        5 => {
            let other = near(random, place, size);
            json!({"type": "LineString", "coordinates": [position(place), position(other)]})
        }
        _ => {
            let ring = json!([
                corner(-0.5, -0.5),
                corner(0.5, -0.4),
                corner(0.6, 0.5),
                corner(-0.5, 0.5),
                corner(-0.5, -0.5)
            ]);
            json!({"type": "Polygon", "coordinates": [ring]})
        }
    }
}

fn item(random: &mut RandomChoices, n: usize) -> Value {
    let mut item = json!({"id": n.to_string(), "pk": (n % 40).to_string(), "n": n});
    match random.roll(12) {
        0 => {}
        1 => item["p"] = json!("here"),
        2 => item["p"] = json!({"type": "Point", "coordinates": [1, 2, "x"]}),
        _ => item["p"] = shape(random),
    }
    if random.roll(4) == 0 {
        item["ttl"] = json!(10);
    }
    item
}

#[tokio::test]
async fn with_a_spatial_index_and_without_queries_have_the_same_rows() {
    for is_plane in [false, true] {
        let mut random = RandomChoices::new(11);
        let both = Both::new(definition(is_plane)).await;
        assert_same((&both, is_plane), &mut random, "without items").await;
        for n in 0..200 {
            both.upsert(&item(&mut random, n)).await;
        }
        let mut rows = assert_same((&both, is_plane), &mut random, "after the load").await;
        both.at(START + 9);
        for n in 0..60 {
            both.upsert(&item(&mut random, 3 * n)).await;
        }
        both.at(START + 10);
        rows += assert_same((&both, is_plane), &mut random, "with ghosts").await;
        both.at(START + 19);
        rows += assert_same((&both, is_plane), &mut random, "with more ghosts").await;
        both.split().await;
        rows += assert_same((&both, is_plane), &mut random, "after a split, with ghosts").await;
        for test in both.each() {
            let account = &test.account;
            account.purge(&test.container, PurgeMode::Force, None).await.unwrap();
        }
        rows += assert_same((&both, is_plane), &mut random, "after the purge").await;
        assert!(rows > 1_000, "only {rows} rows");
    }
}

#[tokio::test]
async fn a_query_reads_little_more_than_its_rows() {
    let test = TestContainer::with_options(definition(false), None, options()).await;
    // About 11 km apart.
    for n in 0..1_600 {
        let (x, y) = (170.0 + 0.1 * f64::from(n % 40), -20.0 + 0.1 * f64::from(n / 40));
        let point = json!({"type": "Point", "coordinates": [x, y]});
        let item =
            json!({"id": n.to_string(), "pk": (n % 7).to_string(), "p": point, "ttl": if n == 0 { 5 } else { 100 }});
        test.create(item).await.unwrap();
    }
    let near = "{'type': 'Point', 'coordinates': [170, -20]}";
    let text = format!("SELECT * FROM c WHERE ST_DISTANCE(c.p, {near}) < 5");
    let explained = test.account.explain_query(&test.container, &text, &[]).await.unwrap();
    assert!(
        explained.contains("index: /p/? (spatial) serves a condition\n"),
        "{explained}"
    );
    for (filter, second, rows, most) in [
        (format!("ST_DISTANCE(c.p, {near}) < 12000"), 4, vec!["0", "1", "40"], 8),
        (format!("ST_INTERSECTS({near}, c.p)"), 4, vec!["0"], 1),
        (
            "ST_WITHIN(c.p, {'type': 'Polygon', 'coordinates': [[[171.95,-18.05],[172.05,-18.05],[172.05,-17.95],[171.95,-17.95],[171.95,-18.05]]]})"
                .to_owned(),
            4,
            vec!["820"],
            3,
        ),
        (format!("ST_DISTANCE(c.p, {near}) < 12000"), 5, vec!["1", "40"], 8),
    ] {
        test.at(START + second);
        let query = QueryItems {
            text: format!("SELECT VALUE c.id FROM c WHERE {filter}"),
            cross_partition: true,
            ..QueryItems::default()
        };
        let ctx = test.begin().await;
        let page = test.account.query(&ctx, &test.container, &query).await.unwrap().value;
        let mut found: Vec<String> = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat()).unwrap();
        found.sort();
        assert_eq!(found, rows, "{filter}");
        assert_eq!(page.index.as_deref(), Some("/p/? (spatial)"), "{filter}");
        assert!(page.metrics.retrieved_items <= most, "{filter} read {}", page.metrics.retrieved_items);
    }
}

#[tokio::test]
async fn a_query_inside_a_partition_key_has_its_items_only() {
    let both = Both::new(definition(false)).await;
    let mut random = RandomChoices::new(5);
    for n in 0..200 {
        both.upsert(&item(&mut random, n)).await;
    }
    let mut rows = 0;
    for _ in 0..20 {
        let text = format!("SELECT VALUE c.id FROM c WHERE {}", filter(&mut random, false));
        for pk in ["3", "17", "nobody"] {
            let found = pages(&both.with, &text, 2, scope_of(pk)).await.0;
            assert_eq!(
                found,
                pages(&both.without, &text, 2, scope_of(pk)).await.0,
                "{text} of {pk}"
            );
            rows += found.len();
        }
    }
    assert!(rows > 10, "only {rows} rows");
}

#[tokio::test]
async fn under_a_wildcard_queries_that_read_many_items_in_vain_get_an_index() {
    let allowing = |paths: &[&str]| {
        let spatial: Vec<Value> = paths
            .iter()
            .map(|path| json!({"path": path, "types": ["Point"]}))
            .collect();
        json!({"indexingPolicy": {"spatialIndexes": spatial}})
    };
    let test = TestContainer::with_options(allowing(&["/*"]), None, with_use(IndexUse::Always)).await;
    for n in 0..2_500 {
        let place = json!({"type": "Point", "coordinates": [f64::from(n % 50), f64::from(n / 50)]});
        let item = json!({"id": n.to_string(), "pk": n.to_string(), "at": {"place": place}});
        test.create(item).await.unwrap();
    }
    let near = QueryItems {
        text:
            "SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.at.place, {'type': 'Point', 'coordinates': [7, 20]}) < 50000"
                .to_owned(),
        ..QueryItems::default()
    };
    // 2,499 items are read in vain each time.
    for asked in 1..=8 {
        let (rows, page) = all_pages(&test, near.clone()).await;
        assert_eq!((rows, page.index), (vec![json!("1007")], None), "{asked}");
    }
    let mut indexes = all_pages(&test, near.clone()).await.1.index;
    while indexes.is_none() {
        tokio::task::yield_now().await;
        indexes = all_pages(&test, near.clone()).await.1.index;
    }
    assert_eq!(indexes.as_deref(), Some("/at/place/? (spatial)"));
    let (rows, page) = all_pages(&test, near.clone()).await;
    assert_eq!(rows, [json!("1007")]);
    assert!(page.metrics.retrieved_items < 10, "{:?}", page.metrics);
    test.assert_sound().await;

    // The policy names it: another one, which is not given up. Then it neither names nor allows it.
    test.define(allowing(&["/at/place/?"])).await.unwrap();
    let (rows, _) = all_pages(&test, near.clone()).await;
    assert_eq!(rows, [json!("1007")]);
    test.define(allowing(&["/other/*"])).await.unwrap();
    let (rows, page) = all_pages(&test, near).await;
    assert_eq!((rows, page.index), (vec![json!("1007")], None));
    test.assert_sound().await;
}
