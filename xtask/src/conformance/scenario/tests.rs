use serde_json::json;

use super::*;

fn parse(step: &Value) -> Result<Step> {
    Step::parse(step.as_object().expect("steps are objects"))
}

#[test]
fn a_default_ttl_of_null_is_not_a_missing_one() {
    let definition = |step: Value| match parse(&step).expect("valid").action {
        Action::ContainerCreate(definition) => definition.default_ttl,
        other => panic!("not a create: {other:?}"),
    };
    assert_eq!(
        definition(json!({"do": "container.create", "id": "c", "defaultTtl": null})),
        Some(Value::Null)
    );
    assert_eq!(definition(json!({"do": "container.create", "id": "c"})), None);
}

#[test]
fn an_unknown_argument_is_refused() {
    let error = parse(&json!({"do": "purge", "container": "c", "gently": true})).expect_err("unknown argument");
    assert!(error.to_string().contains("gently"), "{error}");
}

#[test]
fn an_unknown_kind_of_step_is_refused() {
    assert!(parse(&json!({"do": "item.touch", "container": "c"})).is_err());
}

#[test]
fn every_scenario_in_the_tree_states_what_it_covers_and_parses_if_it_can_run() {
    let conformance = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance");
    for directory in super::super::ttl::DIRECTORIES {
        for path in files(&conformance.join(directory)).expect("the directory is there") {
            let scenario = Scenario::read(&path).expect("a well-formed file");
            assert!(
                !scenario.title.is_empty() && !scenario.covers.is_empty(),
                "{}",
                scenario.name
            );
            scenario
                .steps()
                .unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
        }
    }
}
