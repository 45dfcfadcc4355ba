use super::*;

#[test]
fn rows_are_in_the_order_of_their_ids_and_each_header_is_there_once() {
    for rows in [REQUEST, RESPONSE] {
        assert!(rows.windows(2).all(|pair| pair[0].id < pair[1].id));
        for row in rows {
            assert_eq!(row.header, row.header.to_ascii_lowercase());
            let same = rows
                .iter()
                .filter(|other| !row.header.is_empty() && other.header == row.header);
            assert!(same.count() <= 1, "{}", row.header);
        }
    }
}

#[test]
fn forms_fit_the_types() {
    for row in REQUEST.iter().chain(RESPONSE) {
        let fits = match row.form {
            Form::Text => row.kind.is_text(),
            Form::Number | Form::NumberOrMinusOne => !row.kind.is_text(),
            Form::Flag | Form::Choice(_) => row.kind == Kind::Byte,
            Form::Guid => row.kind == Kind::Guid,
            Form::Own => true,
        };
        assert!(fits, "{}", row.name);
        assert!(row.form == Form::Own || !row.header.is_empty(), "{}", row.name);
    }
}
