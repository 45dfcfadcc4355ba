//! Spatial functions (cosmos-sql §18.7): GeoJSON on the WGS-84 ellipsoid or on a plane.

mod arc;
mod cells;
mod ellipsoid;
mod geojson;
mod globe_region;
mod plane;
mod plane_region;
mod relations;
mod simple_ring;

use super::{Call, Function};
use crate::value::{Text, Value};
pub(crate) use cells::{COVERED_POSITIONS, CoveredShape};
pub use cells::{CellSurface, ShapeCells};
use ellipsoid::Ellipsoid;
use geojson::{Geometry, Invalid};
use plane::Plane;
use relations::{area, distance, intersects, within};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::strict("ST_DISTANCE", 2, 2, st_distance),
    Function::strict("ST_WITHIN", 2, 2, st_within),
    Function::strict("ST_INTERSECTS", 2, 2, st_intersects),
    Function::strict("ST_AREA", 1, 1, st_area),
    Function::lenient("ST_ISVALID", 1, 1, |c| Value::Bool(read(c, 0).is_ok())),
    Function::lenient("ST_ISVALIDDETAILED", 1, 1, is_valid_detailed),
    Function::strict("_ST_DISTANCE", 2, 2, st_distance),
    Function::strict("_ST_WITHIN", 2, 2, st_within),
    Function::strict("_ST_INTERSECTS", 2, 2, st_intersects),
];

/// Fuel required per pair of points of two shapes; visiting the pairs spends more.
const PAIR_UNITS: u64 = 10;

fn read(call: &Call<'_, '_>, at: usize) -> Result<Geometry, Invalid> {
    if !call.fuel().spend(reading_units(call.arg(at))) {
        return Err(Invalid::NotGeoJson);
    }
    let geometry = Geometry::read(call.arg(at), call.session.geometry)?;
    let crosses_itself = if call.session.geometry {
        relations::crosses_itself(&Plane::new(call.fuel()), &geometry)
    } else {
        relations::crosses_itself(&Ellipsoid::new(call.fuel()), &geometry)
    };
    if crosses_itself {
        Err(Invalid::SelfCrossing)
    } else {
        Ok(geometry)
    }
}

/// Cost of reading a shape from a parsed value.
fn reading_units(value: &Value<'_>) -> u64 {
    value.written_out_bytes(usize::MAX) as u64 * 5
}

fn pair(call: &Call<'_, '_>) -> Option<(Geometry, Geometry)> {
    let affordable = |at| call.fuel().spend(reading_units(call.arg(at)));
    if !affordable(0) || !affordable(1) {
        return None;
    }
    let one = |at| Geometry::read(call.arg(at), call.session.geometry).ok();
    let (a, b) = (one(0)?, one(1)?);
    // The surfaces spend fuel as they go, but after a refusal they still visit the other pairs.
    let pairs = a.position_count().saturating_mul(b.position_count());
    if !call.fuel().has(pairs.saturating_mul(PAIR_UNITS)) {
        call.fuel().exhaust();
        return None;
    }
    Some((a, b))
}

fn st_distance<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let Some((a, b)) = pair(call) else {
        return Value::Undefined;
    };
    Value::float(if call.session.geometry {
        distance(&Plane::new(call.fuel()), &a, &b)
    } else {
        distance(&Ellipsoid::new(call.fuel()), &a, &b)
    })
}

fn st_within<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let Some((a, b)) = pair(call) else {
        return Value::Undefined;
    };
    Value::Bool(if call.session.geometry {
        within(&Plane::new(call.fuel()), &a, &b)
    } else {
        within(&Ellipsoid::new(call.fuel()), &a, &b)
    })
}

fn st_intersects<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let Some((a, b)) = pair(call) else {
        return Value::Undefined;
    };
    Value::Bool(if call.session.geometry {
        intersects(&Plane::new(call.fuel()), &a, &b)
    } else {
        intersects(&Ellipsoid::new(call.fuel()), &a, &b)
    })
}

fn st_area<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    if !call.fuel().spend(reading_units(call.arg(0))) {
        return Value::Undefined;
    }
    let Ok(geometry) = Geometry::read(call.arg(0), call.session.geometry) else {
        return Value::Undefined;
    };
    Value::float(if call.session.geometry {
        area(&Plane::new(call.fuel()), &geometry)
    } else {
        area(&Ellipsoid::new(call.fuel()), &geometry)
    })
}

fn is_valid_detailed<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let outcome = read(call, 0).err();
    let valid = (Text::Borrowed("valid"), Value::Bool(outcome.is_none()));
    let reason = outcome.map(|invalid| (Text::Borrowed("reason"), Value::string(invalid.to_string())));
    Value::object([valid].into_iter().chain(reason))
}
