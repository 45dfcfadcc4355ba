//! Spatial functions (cosmos-sql §18.7): GeoJSON on the WGS-84 ellipsoid or on a plane.

mod ellipsoid;
mod geojson;
mod plane;
mod relations;

use super::{Call, Function};
use crate::value::{Text, Value};
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

fn read(call: &Call<'_, '_>, at: usize) -> Result<Geometry, Invalid> {
    let geometry = Geometry::read(call.arg(at), call.session.geometry)?;
    let crosses_itself = if call.session.geometry {
        relations::crosses_itself(&Plane, &geometry)
    } else {
        relations::crosses_itself(&Ellipsoid, &geometry)
    };
    if crosses_itself {
        Err(Invalid::SelfCrossing)
    } else {
        Ok(geometry)
    }
}

fn pair(call: &Call<'_, '_>) -> Option<(Geometry, Geometry)> {
    let one = |at| Geometry::read(call.arg(at), call.session.geometry).ok();
    Some((one(0)?, one(1)?))
}

fn st_distance<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let Some((a, b)) = pair(call) else {
        return Value::Undefined;
    };
    Value::float(if call.session.geometry {
        distance(&Plane, &a, &b)
    } else {
        distance(&Ellipsoid, &a, &b)
    })
}

fn st_within<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let Some((a, b)) = pair(call) else {
        return Value::Undefined;
    };
    Value::Bool(if call.session.geometry {
        within(&Plane, &a, &b)
    } else {
        within(&Ellipsoid, &a, &b)
    })
}

fn st_intersects<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let Some((a, b)) = pair(call) else {
        return Value::Undefined;
    };
    Value::Bool(if call.session.geometry {
        intersects(&Plane, &a, &b)
    } else {
        intersects(&Ellipsoid, &a, &b)
    })
}

fn st_area<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let Ok(geometry) = Geometry::read(call.arg(0), call.session.geometry) else {
        return Value::Undefined;
    };
    Value::float(if call.session.geometry {
        area(&Plane, &geometry)
    } else {
        area(&Ellipsoid, &geometry)
    })
}

fn is_valid_detailed<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let outcome = read(call, 0).err();
    let valid = (Text::Borrowed("valid"), Value::Bool(outcome.is_none()));
    let reason = outcome.map(|invalid| (Text::Borrowed("reason"), Value::string(invalid.to_string())));
    Value::object([valid].into_iter().chain(reason))
}
