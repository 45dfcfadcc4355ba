//! The queries, in the language of every side, and the comparison of results.

use serde_json::Value;

use crate::Result;

/// The values of each row, in the order of its columns.
pub type Rows = Vec<Vec<Value>>;

/// One query.
pub struct Question {
    pub name: &'static str,
    pub bolide: &'static str,
    pub duckdb: &'static str,
    pub sqlite: &'static str,
    /// Whether the rows have an order.
    pub is_ordered: bool,
}

/// `items` is the table of the peers, and `doc` its column.
pub const QUESTIONS: [Question; 5] = [
    Question {
        name: "filter on a nested field",
        bolide: "SELECT c.id, c.total FROM c WHERE c.customer.address.city = 'Oslo 3'",
        duckdb: "SELECT doc->>'$.id', (doc->>'$.total')::BIGINT FROM items WHERE doc->>'$.customer.address.city' = 'Oslo 3'",
        sqlite: "SELECT json_extract(doc, '$.id'), json_extract(doc, '$.total') FROM items \
                 WHERE json_extract(doc, '$.customer.address.city') = 'Oslo 3'",
        is_ordered: false,
    },
    Question {
        name: "COUNT with a filter",
        bolide: "SELECT COUNT(1) AS n FROM c WHERE c.customer.tier = 'gold' AND c.total >= 500000000",
        duckdb: "SELECT count(*) FROM items WHERE doc->>'$.customer.tier' = 'gold' AND (doc->>'$.total')::BIGINT >= 500000000",
        sqlite: "SELECT count(*) FROM items WHERE json_extract(doc, '$.customer.tier') = 'gold' \
                 AND json_extract(doc, '$.total') >= 500000000",
        is_ordered: false,
    },
    Question {
        name: "GROUP BY with SUM",
        bolide: "SELECT c.status, SUM(c.total) AS total FROM c GROUP BY c.status",
        duckdb: "SELECT doc->>'$.status' AS status, sum((doc->>'$.total')::DOUBLE) FROM items GROUP BY status",
        sqlite: "SELECT json_extract(doc, '$.status') AS status, sum(json_extract(doc, '$.total')) FROM items GROUP BY status",
        is_ordered: false,
    },
    Question {
        name: "ORDER BY, TOP 10",
        bolide: "SELECT TOP 10 c.id, c.total FROM c ORDER BY c.total DESC",
        duckdb: "SELECT doc->>'$.id', (doc->>'$.total')::BIGINT AS total FROM items ORDER BY total DESC LIMIT 10",
        sqlite: "SELECT json_extract(doc, '$.id'), json_extract(doc, '$.total') AS total FROM items ORDER BY total DESC LIMIT 10",
        is_ordered: true,
    },
    Question {
        name: "JOIN over an array",
        bolide: "SELECT COUNT(1) AS n, SUM(l.quantity) AS quantity FROM c JOIN l IN c.lines WHERE l.sku = 'sku-0042'",
        duckdb: "SELECT count(*), sum((l->>'$.quantity')::BIGINT)::DOUBLE \
                 FROM (SELECT unnest(doc->'$.lines[*]') AS l FROM items) WHERE l->>'$.sku' = 'sku-0042'",
        sqlite: "SELECT count(*), sum(json_extract(l.value, '$.quantity')) FROM items, json_each(doc, '$.lines') AS l \
                 WHERE json_extract(l.value, '$.sku') = 'sku-0042'",
        is_ordered: false,
    },
];

/// Fails if another side's result is different.
pub fn check_same(question: &Question, side: &str, own: &Rows, other: &Rows) -> Result<()> {
    let (mut own, mut other) = (own.clone(), other.clone());
    if !question.is_ordered {
        let text = |row: &Vec<Value>| Value::Array(row.clone()).to_string();
        own.sort_by_cached_key(text);
        other.sort_by_cached_key(text);
    }
    let is_same = own.len() == other.len()
        && own
            .iter()
            .flatten()
            .zip(other.iter().flatten())
            .all(|(a, b)| same_value(a, b));
    if is_same {
        return Ok(());
    }
    let first = |rows: &Rows| rows.iter().take(3).map(|row| format!("{row:?}")).collect::<Vec<_>>();
    Err(format!(
        "{side} answers `{}` differently: {} rows, {:?} …, and Bolide has {}, {:?} …",
        question.name,
        other.len(),
        first(&other),
        own.len(),
        first(&own)
    )
    .into())
}

/// Sums of doubles depend on their order.
fn same_value(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
        _ => a == b,
    }
}

#[cfg(test)]
mod tests;
