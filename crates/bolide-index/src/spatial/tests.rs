use super::vector::Vector;
use super::*;

/// A sequence of numbers that looks random, from 0 to below 1.
fn numbers() -> impl FnMut() -> f64 {
    let mut state = 88_172_645_463_325_252_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn directions(count: usize) -> Vec<Vector> {
    let mut next = numbers();
    let mut random: Vec<Vector> = (0..count)
        .map(|_| [0, 1, 2].map(|_| 2.0 * next() - 1.0))
        .map(|v| {
            let length = v.iter().map(|x| x * x).sum::<f64>().sqrt();
            v.map(|x| x / length)
        })
        .collect();
    let (edge, corner) = (0.5_f64.sqrt(), (1.0_f64 / 3.0).sqrt());
    random.extend([
        [1.0, 0.0, 0.0],
        [0.0, 0.0, -1.0],
        [edge, edge, 0.0],
        [-edge, 0.0, edge],
        [corner, -corner, corner],
        [-corner, -corner, -corner],
    ]);
    random
}

fn ancestors(cell: Cell) -> Vec<Cell> {
    std::iter::successors(Some(cell), |cell| cell.parent()).collect()
}

fn distance(a: Vector, b: Vector) -> f64 {
    [0, 1, 2]
        .map(|axis| (a[axis] - b[axis]).powi(2))
        .iter()
        .sum::<f64>()
        .sqrt()
}

#[test]
fn ids_have_the_shape_that_is_documented() {
    assert_eq!(Cell::root(5).id(), 5 << 61 | 1 << 60);
    assert_eq!(Cell::leaf(0, 0, 0).id(), 1);
    // The first bit of each coordinate, x below y.
    assert_eq!(Cell::leaf(1, 1 << 29, 0).id(), 1 << 61 | 1 << 59 | 1);
    assert_eq!(Cell::leaf(1, 0, 1 << 29).id(), 1 << 61 | 1 << 60 | 1);
    assert_eq!(Cell::leaf(7, u32::MAX, u32::MAX).id(), u64::MAX);
}

#[test]
fn a_cell_lies_in_its_parents_and_knows_its_quarters() {
    for direction in directions(200) {
        let leaf = cell_on_globe(direction);
        assert_eq!((leaf.level(), leaf.children()), (MAX_LEVEL, None));
        let all = ancestors(leaf);
        assert_eq!(all.len() as u32, MAX_LEVEL + 1);
        for pair in all.windows(2) {
            let (cell, parent) = (pair[0], pair[1]);
            let quarters = parent.children().expect("a parent has quarters");
            assert!(quarters.contains(&cell));
            let (first, last) = parent.ids();
            assert!(
                quarters
                    .iter()
                    .all(|cell| first <= cell.ids().0 && cell.ids().1 <= last)
            );
            assert!(quarters.is_sorted());
            let (own, around) = (cell.square(), parent.square());
            assert_eq!((own.root, own.side * 2), (around.root, around.side));
            let inside = |own: u32, around: u32| own == around || own == around + around_half(parent);
            assert!(inside(own.x, around.x) && inside(own.y, around.y));
        }
        let square = leaf.square();
        assert_eq!(Cell::leaf(square.root, square.x, square.y), leaf);
    }
}

fn around_half(cell: Cell) -> u32 {
    cell.square().side / 2
}

#[test]
fn every_cell_around_a_direction_has_it_within_its_bounds() {
    for direction in directions(2_000) {
        for cell in ancestors(cell_on_globe(direction)) {
            let GlobeBounds { middle, farthest, .. } = bounds_on_globe(cell);
            assert!(
                distance(middle, direction) <= farthest + 1e-14,
                "{direction:?} {cell:?}"
            );
        }
    }
}

#[test]
fn cells_of_one_level_have_similar_sizes_on_the_globe() {
    let sizes: Vec<f64> = directions(2_000)
        .into_iter()
        .map(|direction| bounds_on_globe(ancestors(cell_on_globe(direction))[20]).farthest)
        .collect();
    let (least, most) = (
        sizes.iter().copied().fold(f64::INFINITY, f64::min),
        sizes.iter().copied().fold(0.0, f64::max),
    );
    assert!(most / least < 2.2, "{least} {most}");
}

#[test]
fn a_plane_has_a_cell_for_every_place() {
    let extent = Extent::of([-10.0, 100.0], [30.0, 110.0]).unwrap();
    let mut next = numbers();
    let mut places: Vec<[f64; 2]> = (0..500).map(|_| [next() * 60.0 - 20.0, next() * 20.0 + 95.0]).collect();
    places.extend([[-10.0, 100.0], [30.0, 110.0], [1e300, -1e300], [10.0, 105.0]]);
    for place in places {
        for cell in ancestors(extent.cell(place)) {
            let Rectangle { from, to } = extent.rectangle(cell);
            let holds = |axis: usize| from[axis] - 1e-12 <= place[axis] && place[axis] <= to[axis] + 1e-12;
            assert!(holds(0) && holds(1), "{place:?} {from:?} {to:?}");
        }
    }
    let [_, right, upper, _] = Cell::root(0).children().unwrap();
    let infinite = f64::INFINITY;
    assert_eq!(
        (extent.rectangle(right), extent.rectangle(upper)),
        (
            Rectangle {
                from: [10.0, -infinite],
                to: [infinite, 105.0]
            },
            Rectangle {
                from: [-infinite, 105.0],
                to: [10.0, infinite]
            },
        )
    );
}

#[test]
fn an_extent_can_be_divided() {
    assert_eq!(Extent::of([0.0, 0.0], [0.0, 1.0]), None);
    assert_eq!(
        Extent::of([1e15, 0.0], [1e15 + 1.0, 1.0]),
        None,
        "its cells would be empty"
    );
    assert_eq!(Extent::of([-1e308, 0.0], [1e308, 1.0]), None);
    assert_eq!(Extent::of([f64::NAN, 0.0], [1.0, 1.0]), None);
    assert!(Extent::of([-1e9, 0.0], [1e9, 1e-3]).is_some());
}

/// A disc in a plane, without help from the cell around.
struct Disc(Extent, [f64; 2], f64);

impl Region for Disc {
    type Part = ();

    fn all(&self) {}

    fn meet(&self, cell: Cell, (): &()) -> Meeting<()> {
        let Rectangle { from, to } = self.0.rectangle(cell);
        let nearest = [0, 1].map(|axis| self.1[axis].clamp(from[axis], to[axis]) - self.1[axis]);
        let farthest = [0, 1].map(|axis| (self.1[axis] - from[axis]).max(to[axis] - self.1[axis]));
        let length = |[x, y]: [f64; 2]| (x * x + y * y).sqrt();
        match () {
            () if length(nearest) > self.2 => Meeting::Nothing,
            () if length(farthest) <= self.2 => Meeting::Whole,
            () => Meeting::Part(()),
        }
    }
}

#[test]
fn a_cover_holds_its_region_with_few_cells() {
    let extent = Extent::of([0.0, 0.0], [100.0, 100.0]).unwrap();
    let mut next = numbers();
    for _ in 0..200 {
        let disc = Disc(
            extent,
            [next() * 120.0 - 10.0, next() * 120.0 - 10.0],
            30.0 * next().powi(4),
        );
        let most = 1 + (next() * 20.0) as usize;
        let cells = cover(&disc, &[Cell::root(0)], most);
        assert!(!cells.is_empty() && cells.len() <= most && cells.is_sorted());
        for _ in 0..50 {
            let (angle, part) = (next() * std::f64::consts::TAU, next());
            let place = [
                disc.1[0] + part * disc.2 * angle.cos(),
                disc.1[1] + part * disc.2 * angle.sin(),
            ];
            let around = ancestors(extent.cell(place));
            assert!(
                around.iter().any(|cell| cells.contains(cell)),
                "{place:?} in {:?} {}",
                disc.1,
                disc.2
            );
        }
    }
    // A place at which four cells meet needs one of each.
    assert_eq!(cover(&Disc(extent, [50.0, 50.0], 1e-9), &[Cell::root(0)], 8).len(), 4);
    assert_eq!(
        cover(&Disc(extent, [50.0, 50.0], 1e-9), &[Cell::root(0)], 3),
        [Cell::root(0)]
    );
}

#[test]
fn cells_that_meet_are_those_around_and_inside() {
    let all = directions(40)
        .into_iter()
        .map(|direction| ancestors(cell_on_globe(direction)));
    let all: Vec<Cell> = all.flatten().collect();
    let chosen: Vec<Cell> = all
        .iter()
        .copied()
        .filter(|cell| cell.id() % 11 < 3 && cell.level() > 2)
        .collect();
    let ids = meeting(&chosen);
    assert!(
        ids.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0),
        "sorted, and apart"
    );
    for cell in &all {
        let meets = chosen
            .iter()
            .any(|other| ancestors(*other).contains(cell) || ancestors(*cell).contains(other));
        let is_found = ids.iter().any(|(first, last)| (*first..=*last).contains(&cell.id()));
        assert_eq!(is_found, meets, "{cell:?}");
    }
    assert_eq!(meeting(&[]), []);
}
