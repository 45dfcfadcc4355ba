use http::HeaderValue;

use super::*;

#[test]
fn versions_are_dates_from_the_first_on() {
    let check = |version| {
        check_version(&HeaderMap::from_iter([(
            headers::VERSION.clone(),
            HeaderValue::from_static(version),
        )]))
    };
    for version in ["2015-12-16", "2020-07-15", "2020-11-05", ""] {
        assert!(check(version).is_ok(), "{version}");
    }
    for version in ["2015-12-15", "2020-7-15", "2020-07-15-1", "latest", "20200715"] {
        assert!(check(version).is_err(), "{version}");
    }
}
