//! Results of rows, as JSON text.

use super::distinct::Distinct;
use super::output::{Offer, Output, Written};
use crate::error::Result;
use crate::eval::{Flow, Row, project};
use crate::program::{Projection, Select};
use crate::value::{write_json, write_string};

/// Projects a row directly into the page. `name`: the hash that identifies it, if no position does.
pub(super) fn emit<'a>(
    select: &'a Select,
    distinct: Option<&mut Distinct>,
    output: &mut Output,
    row: &mut Row<'a>,
    name: Option<u64>,
) -> Result<Flow> {
    let offer = output.offer(|out| write_distinct(select, distinct, row, out, name))?;
    Ok(if offer == Offer::Refused {
        Flow::Stop
    } else {
        Flow::Continue
    })
}

/// Writes the result of a row; returns whether there is one that DISTINCT accepts. A distinct value is identified by itself.
pub(super) fn write_distinct<'a>(
    select: &'a Select,
    distinct: Option<&mut Distinct>,
    row: &mut Row<'a>,
    out: &mut Vec<u8>,
    name: Option<u64>,
) -> Result<Written> {
    let Some(distinct) = distinct else {
        let is_written = write_row(&select.projection, row, out)?;
        return Ok(match name {
            _ if !is_written => Written::Nothing,
            Some(name) => Written::Named(name),
            None => Written::Row,
        });
    };
    let value = project(&select.projection, row)?;
    if !value.is_defined() || !distinct.is_new(&value, row.session)? {
        return Ok(Written::Nothing);
    }
    let before = out.len();
    write_json(&value, out);
    row.session.fuel.burn((out.len() - before) as u64)?;
    Ok(Written::Named(distinct.hash_of_last()))
}

/// Writes a select list member by member, without building an object first.
pub(super) fn write_row<'a>(projection: &'a Projection, row: &mut Row<'a>, out: &mut Vec<u8>) -> Result<bool> {
    match projection {
        Projection::Value(scalar) => {
            let value = scalar.eval(row)?;
            let before = out.len();
            write_json(&value, out);
            row.session.fuel.burn((out.len() - before) as u64 / 2)?;
            Ok(value.is_defined())
        }
        Projection::List(columns) => {
            let start = out.len();
            out.push(b'{');
            let mut first = true;
            for (name, scalar) in columns {
                let value = scalar.eval(row)?;
                if !value.is_defined() {
                    continue;
                }
                if !first {
                    out.push(b',');
                }
                first = false;
                write_string(name, out);
                out.push(b':');
                let before = out.len();
                write_json(&value, out);
                row.session.fuel.burn((out.len() - before) as u64 / 2)?;
                row.session.memory.check_bytes(out.len() - start)?;
            }
            out.push(b'}');
            Ok(true)
        }
    }
}
