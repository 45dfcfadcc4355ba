use bolide_index::spatial::Extent;
use fastrand::Rng;

use crate::execution::PageLimit;
use crate::functions::CellSurface;
use crate::index::{IndexPath, SpatialCondition, SpatialIndex};
use crate::parameters::Parameters;
use crate::query::Query;
use crate::schema::Schema;
use crate::session::Environment;
use crate::value::Item;

fn index(path: &str, is_plane: bool) -> SpatialIndex {
    let extent = || Extent::of([-100.0, -50.0], [100.0, 50.0]).expect("an extent");
    SpatialIndex {
        path: IndexPath::parse(path).expect("a path"),
        surface: match is_plane {
            true => CellSurface::Plane(extent()),
            false => CellSurface::Globe,
        },
    }
}

fn compiled(filter: &str, is_plane: bool) -> Query {
    let schema = Schema {
        geometry: is_plane,
        ..Schema::metadata()
    };
    let text = format!("SELECT VALUE 1 FROM c WHERE {filter}");
    let parameters = Parameters::none().with_text("@here".to_owned(), &point(5.0, 5.0));
    let parameters = parameters.and_then(|list| list.with_text("@least".to_owned(), "1000"));
    Query::compile(&text, &parameters.expect("JSON"), &schema).expect("a query")
}

fn conditions(filter: &str) -> Vec<SpatialCondition> {
    compiled(filter, false).spatial_conditions(&[&index("/p/?", false), &index("/a/b/?", false)])
}

fn point(x: f64, y: f64) -> String {
    format!(r#"{{"type":"Point","coordinates":[{x},{y}]}}"#)
}

/// Whether an item passes the filter.
fn passes(query: &Query, item: &str) -> bool {
    let mut page = query
        .execution(Environment::default(), PageLimit::NONE, None)
        .expect("a page");
    page.push(item.as_bytes(), 1).expect("no error");
    page.finish(true).expect("it ends").rows.len() == 1
}

fn keys(index: &SpatialIndex, item: &str) -> Vec<[u8; 8]> {
    index.keys(&Item::complete(item.as_bytes()).expect("UTF-8"))
}

fn admits(condition: &SpatialCondition, keys: &[[u8; 8]]) -> bool {
    condition.admits(keys.iter().map(|key| &key[..]))
}

#[test]
fn a_bound_of_a_distance_is_a_condition() {
    let here = point(5.0, 5.0);
    for filter in [
        format!("ST_DISTANCE(c.p, {here}) < 1000"),
        format!("ST_DISTANCE({here}, c.p) <= 1000"),
        "1000 > ST_DISTANCE(c.p, @here)".to_owned(),
        "@least >= ST_DISTANCE(@here, c['p'])".to_owned(),
        "ST_DISTANCE(c.p, {'type': 'Point', 'coordinates': [4 + 1, 5]}) = 1e3".to_owned(),
        "ST_DISTANCE(c.p, @here) BETWEEN 1 AND @least".to_owned(),
        "c.n > 3 AND (ST_DISTANCE(c.p, @here) < 1000 AND c.m = c.n)".to_owned(),
        "_ST_DISTANCE(c.p, @here) < 1000".to_owned(),
    ] {
        let found = conditions(&filter);
        assert_eq!(found.len(), 1, "{filter}");
        assert_eq!(found[0].path.to_string(), "/p/?");
        let admitted = |x, y| {
            admits(
                &found[0],
                &keys(&index("/p/?", false), &format!("{{\"p\":{}}}", point(x, y))),
            )
        };
        assert!(admitted(5.0, 5.0) && admitted(5.009, 5.0), "{filter}");
        assert!(!admitted(5.1, 5.0) && !admitted(-5.0, 5.0), "{filter}");
    }
}

#[test]
fn predicates_are_conditions() {
    let square = r#"{"type":"Polygon","coordinates":[[[4,4],[6,4],[6,6],[4,6],[4,4]]]}"#;
    let nested = conditions(&format!(
        "ST_WITHIN(c.a.b, {square}) = true AND ST_INTERSECTS({square}, c.p)"
    ));
    let paths: Vec<String> = nested.iter().map(|condition| condition.path.to_string()).collect();
    assert_eq!(paths, ["/a/b/?", "/p/?"]);
    for filter in [
        format!("ST_WITHIN(c.p, {square})"),
        format!("ST_INTERSECTS(c.p, {square}) AND c.n = 1"),
        format!("ST_WITHIN(@here, c.p) OR (ST_WITHIN(c.p, {square}) AND c.n = 1)"),
    ] {
        let found = conditions(&filter);
        assert_eq!(found.len(), 1, "{filter}");
        let admitted = |x, y| {
            admits(
                &found[0],
                &keys(&index("/p/?", false), &format!("{{\"p\":{}}}", point(x, y))),
            )
        };
        assert!(admitted(5.0, 5.0) && !admitted(9.0, 9.0), "{filter}");
    }
}

#[test]
fn other_filters_are_no_condition() {
    let crossed = r#"{"type":"Polygon","coordinates":[[[0,0],[1,1],[1,0],[0,1],[0,0]]]}"#;
    for filter in [
        "ST_DISTANCE(c.p, @here) > 1000",
        "1000 <= ST_DISTANCE(c.p, @here)",
        "ST_DISTANCE(c.p, @here) != 1000",
        "ST_DISTANCE(c.p, @here) < c.n",
        "ST_DISTANCE(c.p, @here) < 'far'",
        "ST_DISTANCE(c.p, @here) < -1",
        "ST_DISTANCE(c.p, c.q) < 1000",
        "ST_DISTANCE(c.p[0], @here) < 1000",
        "ST_DISTANCE(c.other, @here) < 1000",
        "ST_DISTANCE(c.p, 'here') < 1000",
        "ST_DISTANCE(c.p, @here) + 1 < 1000",
        "NOT ST_WITHIN(c.p, @here)",
        "ST_WITHIN(c.p, @here) = false",
        "ST_WITHIN(c.p, @here) OR c.n = 1",
        "ST_WITHIN(c.p, @here) OR ST_WITHIN(c.a.b, @here)",
        "EXISTS (SELECT 1 FROM e IN c.p WHERE ST_WITHIN(e, @here))",
        &format!("ST_WITHIN(c.p, {crossed})"),
    ] {
        assert_eq!(conditions(filter), [], "{filter}");
    }
    let query = compiled("ST_DISTANCE(c.p, @here) < 1000", true);
    assert_eq!(query.spatial_conditions(&[]), []);
    assert_eq!(
        query.spatial_conditions(&[&index("/p/?", false)]),
        [],
        "it measures otherwise"
    );
    assert_eq!(query.spatial_conditions(&[&index("/p/?", true)]).len(), 1);
}

#[test]
fn a_value_that_is_no_shape_has_no_key() {
    for value in [
        "1",
        "null",
        "[5,5]",
        "{}",
        r#"{"type":"Point","coordinates":[5]}"#,
        r#"{"type":"Point","coordinates":[5,91]}"#,
        r#"{"type":"point","coordinates":[5,5]}"#,
        r#"{"type":"MultiPoint","coordinates":[[5,5]]}"#,
        r#"{"type":"Polygon","coordinates":[[[4,4],[6,4],[6,6],[4,6]]]}"#,
    ] {
        assert_eq!(
            keys(&index("/p/?", false), &format!("{{\"p\":{value}}}")),
            [[0; 8]; 0],
            "{value}"
        );
    }
    assert_eq!(keys(&index("/p/?", true), "{}"), [[0; 8]; 0]);
    let far = format!("{{\"p\":{}}}", point(5.0, 91.0));
    assert_eq!(keys(&index("/p/?", true), &far).len(), 1, "a plane has no degrees");
}

#[test]
fn the_number_of_keys_and_intervals_is_bounded() {
    let ring = |count: usize| {
        let place = |n: usize| {
            let angle = (n % count) as f64 / count as f64 * std::f64::consts::TAU;
            format!("[{},{}]", 20.0 + 3.0 * angle.cos(), 40.0 + 2.0 * angle.sin())
        };
        (0..=count).map(place).collect::<Vec<_>>().join(",")
    };
    let polygon = |count| format!(r#"{{"type":"Polygon","coordinates":[[{}]]}}"#, ring(count));
    for is_plane in [false, true] {
        let index = index("/p/?", is_plane);
        let of = |shape: &str| keys(&index, &format!("{{\"p\":{shape}}}"));
        assert_eq!(of(&point(5.0, 5.0)).len(), 1);
        assert!((2..=8).contains(&of(&polygon(4_000)).len()));
        let lines = format!(r#"{{"type":"LineString","coordinates":[{}]}}"#, ring(17_000));
        assert_eq!(of(&lines), [[0; 8]], "it may be anywhere");
        let found = compiled(&format!("ST_WITHIN(c.p, {})", polygon(500)), is_plane).spatial_conditions(&[&index]);
        assert!(found[0].intervals.len() < 80, "{}", found[0].intervals.len());
    }
    let many = |count| vec!["ST_DISTANCE(c.p, @here) < 1000"; count].join(" AND ");
    assert_eq!(conditions(&many(20)).len(), 16);
}

/// Random shapes around a few places, so that many have places in common.
struct Shapes {
    random: Rng,
    is_plane: bool,
}

/// Poles, the antimeridian, edges and corners of the faces whose cells an index has, and others.
const GLOBE: [(f64, f64); 10] = [
    (0.0, 90.0),
    (77.0, -90.0),
    (180.0, 0.0),
    (-180.0, 51.0),
    (179.9999, -33.0),
    (45.0, 0.0),
    (45.0, 35.2),
    (-135.0, -35.4),
    (13.4, 52.5),
    (0.0, 0.0),
];
/// Inside of the extent of the index, at its edges, and outside.
const PLANE: [(f64, f64); 6] = [
    (0.0, 0.0),
    (33.0, -12.0),
    (100.0, 50.0),
    (-100.0, 3.0),
    (500.0, 7.0),
    (-1e4, 1e4),
];

impl Shapes {
    fn center(&mut self) -> (f64, f64) {
        let places = if self.is_plane { &PLANE[..] } else { &GLOBE };
        match self.random.u8(..5) {
            0 => (self.random.f64() * 360.0 - 180.0, self.random.f64() * 180.0 - 90.0),
            _ => places[self.random.usize(..places.len())],
        }
    }

    /// A size in degrees: mostly small, sometimes about that of the globe.
    fn size(&mut self) -> f64 {
        10_f64.powf(self.random.f64() * 9.0 - 7.3)
    }

    /// A place about as far from another one as a size.
    fn near(&mut self, (x, y): (f64, f64), size: f64) -> (f64, f64) {
        let mut off = || (self.random.f64() * 2.0 - 1.0) * size;
        let place = (x + off(), y + off());
        self.normal(place)
    }

    fn normal(&self, (x, y): (f64, f64)) -> (f64, f64) {
        match self.is_plane {
            true => (x, y),
            false => ((x + 540.0).rem_euclid(360.0) - 180.0, y.clamp(-90.0, 90.0)),
        }
    }

    /// A ring around a place: closed, and usually without crossings; `turns`: clockwise.
    fn ring(&mut self, (x, y): (f64, f64), size: f64, turns: bool) -> Vec<(f64, f64)> {
        let count = self.random.usize(3..9);
        let mut angles: Vec<f64> = (0..count).map(|_| self.random.f64() * std::f64::consts::TAU).collect();
        angles.sort_by(f64::total_cmp);
        if turns {
            angles.reverse();
        }
        let mut ring: Vec<(f64, f64)> = angles
            .into_iter()
            .map(|angle| {
                let radius = size * (0.3 + 0.7 * self.random.f64());
                self.normal((x + radius * angle.cos(), y + radius * angle.sin()))
            })
            .collect();
        if self.random.u8(..10) == 0 {
            self.random.shuffle(&mut ring);
        }
        ring.push(ring[0]);
        ring
    }

    fn polygon(&mut self, center: (f64, f64), size: f64) -> String {
        let turns = self.random.u8(..12) == 0;
        let mut rings = vec![list(&self.ring(center, size, turns))];
        if self.random.u8(..4) == 0 {
            let inside = self.near(center, size / 5.0);
            rings.push(list(&self.ring(inside, size / 6.0, !turns)));
        }
        format!("[{}]", rings.join(","))
    }

    fn shape(&mut self) -> String {
        let (center, size) = (self.center(), self.size());
        let (kind, coordinates) = match self.random.u8(..10) {
            0..5 => {
                let place = self.near(center, size);
                ("Point", pair(&place))
            }
            5..7 => {
                let count = self.random.usize(2..6);
                let line: Vec<(f64, f64)> = (0..count).map(|_| self.near(center, size)).collect();
                ("LineString", list(&line))
            }
            7..9 => ("Polygon", self.polygon(center, size)),
            _ => {
                let other = self.near(center, 3.0 * size);
                let polygons = [self.polygon(center, size), self.polygon(other, size)];
                ("MultiPolygon", format!("[{}]", polygons.join(",")))
            }
        };
        format!(r#"{{"type":"{kind}","coordinates":{coordinates}}}"#)
    }

    fn filter(&mut self) -> String {
        let shape = self.shape();
        // A degree has 111 km.
        let unit = if self.is_plane { 1.0 } else { 111_000.0 };
        match self.random.u8(..10) {
            0..6 => format!("ST_DISTANCE(c.p, {shape}) <= {}", self.size() * unit),
            6 | 7 => format!("ST_INTERSECTS(c.p, {shape})"),
            8 => format!("ST_WITHIN(c.p, {shape})"),
            _ => format!("ST_WITHIN({shape}, c.p)"),
        }
    }
}

fn pair((x, y): &(f64, f64)) -> String {
    format!("[{x},{y}]")
}

fn list(places: &[(f64, f64)]) -> String {
    format!("[{}]", places.iter().map(pair).collect::<Vec<_>>().join(","))
}

#[test]
fn an_item_with_a_row_is_admitted_by_each_condition() {
    for is_plane in [false, true] {
        let mut shapes = Shapes {
            random: Rng::with_seed(7),
            is_plane,
        };
        let index = index("/p/?", is_plane);
        let items: Vec<String> = (0..150)
            .map(|_| format!("{{\"n\":1,\"p\":{}}}", shapes.shape()))
            .collect();
        let keys: Vec<Vec<[u8; 8]>> = items.iter().map(|item| keys(&index, item)).collect();
        let (mut rows, mut admitted, mut compared) = (0, 0, 0);
        for _ in 0..60 {
            let filter = shapes.filter();
            let query = compiled(&filter, is_plane);
            let found = query.spatial_conditions(&[&index]);
            for (item, keys) in items.iter().zip(&keys) {
                let has_row = passes(&query, item);
                for condition in &found {
                    let is_admitted = admits(condition, keys);
                    assert!(!has_row || is_admitted, "{filter} leaves out {item}");
                    rows += usize::from(has_row);
                    admitted += usize::from(is_admitted);
                    compared += 1;
                }
            }
        }
        // There are rows, and most of the others are left out.
        assert!(rows > 300 && compared > 5_000, "{rows} {compared}");
        assert!(admitted - rows < compared / 4, "{rows} {admitted} {compared}");
    }
}

#[test]
fn few_points_beside_those_with_a_row_are_admitted() {
    let mut random = Rng::with_seed(3);
    let index = index("/p/?", false);
    let items: Vec<String> = (0..4_000)
        .map(|_| {
            format!(
                "{{\"p\":{}}}",
                point(random.f64() * 4.0 + 8.0, random.f64() * 4.0 + 48.0)
            )
        })
        .collect();
    let keys: Vec<Vec<[u8; 8]>> = items.iter().map(|item| keys(&index, item)).collect();
    for (filter, most) in [
        (
            "ST_DISTANCE(c.p, {'type': 'Point', 'coordinates': [10.1, 50.2]}) < 50000",
            1.7,
        ),
        (
            "ST_WITHIN(c.p, {'type': 'Polygon', 'coordinates': [[[9,49],[11,49.2],[11.3,51],[9.1,50.7],[9,49]]]})",
            2.1,
        ),
    ] {
        let query = compiled(filter, false);
        let found = query.spatial_conditions(&[&index]);
        let rows = items.iter().filter(|item| passes(&query, item)).count();
        let admitted = keys.iter().filter(|keys| admits(&found[0], keys)).count();
        assert!(
            rows > 100 && (admitted as f64) < most * rows as f64,
            "{filter}: {rows} of {admitted}"
        );
    }
}
