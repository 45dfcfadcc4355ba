use http::HeaderValue;

use super::*;

fn map(headers: &[(&http::HeaderName, &'static str)]) -> HeaderMap {
    headers
        .iter()
        .map(|(name, value)| ((*name).clone(), HeaderValue::from_static(value)))
        .collect()
}

#[test]
fn autoscale_settings_are_echoed_as_sent() {
    let settings = r#"{"maxThroughput":7000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":3}}}"#;
    let requested = requested(&map(&[(&headers::AUTOPILOT_SETTINGS, settings)])).expect("well formed");
    let throughput = requested.expect("it was asked for");
    assert_eq!(
        throughput,
        Throughput::Autoscale {
            max_ru: 7000,
            increment_percent: Some(3)
        }
    );
    let content = content(throughput);
    assert_eq!(content["offerThroughput"], 700);
    assert_eq!(
        content["offerAutopilotSettings"]["autoUpgradePolicy"]["throughputPolicy"]["incrementPercent"],
        3
    );
}

#[test]
fn a_negative_maximum_names_the_minimum() {
    let error = requested(&map(&[(&headers::AUTOPILOT_SETTINGS, r#"{"maxThroughput":-200}"#)])).expect_err("negative");
    assert_eq!(error, Reason::AutoscaleThroughput { max_ru: -200 }.into());
}

#[test]
fn both_kinds_at_once_are_refused() {
    let both = map(&[
        (&headers::AUTOPILOT_SETTINGS, r#"{"maxThroughput":4000}"#),
        (&headers::OFFER_THROUGHPUT, "400"),
    ]);
    assert!(requested(&both).is_err());
}

#[test]
fn a_replacement_follows_its_content_or_the_migration_asked_for() {
    let manual = Throughput::Manual { ru: 1500 };
    let replace = |headers: &HeaderMap, content: Value, current| {
        let sent = json!({ "content": content });
        replacement(headers, sent.as_object().expect("an object"), current).expect("well formed")
    };
    let none = HeaderMap::new();
    assert_eq!(
        replace(&none, json!({"offerThroughput": 600}), manual),
        Throughput::Manual { ru: 600 }
    );
    let autoscale = Throughput::Autoscale {
        max_ru: 5000,
        increment_percent: Some(2),
    };
    assert_eq!(replace(&none, content(autoscale), manual), autoscale);
    let migrate = map(&[(&headers::MIGRATE_TO_AUTOPILOT, "true")]);
    let migrated = Throughput::Autoscale {
        max_ru: 2000,
        increment_percent: Some(0),
    };
    assert_eq!(replace(&migrate, json!({"offerThroughput": 1500}), manual), migrated);
    let back = map(&[(&headers::MIGRATE_TO_MANUAL, "True")]);
    assert_eq!(
        replace(&back, content(autoscale), autoscale),
        Throughput::Manual { ru: 5000 }
    );
}
