use super::by_hand::{rows, script, transactions_per_second};
use super::report::{judged, share};
use super::servers::spread;
use super::*;

const KINDS: &str = "0|13|48\n1|30|1100\n2|17|43\n4|35|8\n";

fn sample(per_second: f64) -> Sample {
    Sample::of(per_second, 10.0, Cpu::default())
}

#[test]
fn connections_are_spread_equally() {
    assert_eq!(spread(32, 3).collect::<Vec<_>>(), [11, 11, 10]);
    assert_eq!(spread(32, 1).collect::<Vec<_>>(), [32]);
}

#[test]
fn a_create_has_the_measured_rows_and_one_commit_record() {
    let rows = rows(KINDS).expect("kinds of rows");
    let described: Vec<_> = rows
        .iter()
        .map(|row| (row.name(), row.key_bytes, row.value_bytes))
        .collect();
    assert_eq!(
        described,
        [
            ("commit record", 13, 48),
            ("item", 30, 1_100),
            ("log", 17, 43),
            ("id", 35, 8)
        ]
    );
    by_hand::rows("2|17|43\n").expect_err("no item");
    by_hand::rows("psql: error\n").expect_err("no rows");
}

#[test]
fn keys_have_the_measured_length() {
    for row in rows(KINDS).expect("kinds of rows") {
        let key = row.key("n", "h");
        let prefix = key.split('\'').nth(1).expect("a literal");
        assert_eq!((prefix.len() - "\\x".len()) / 2 + 8, row.key_bytes, "{key}");
    }
}

#[test]
fn the_scripts_touch_rows_by_their_primary_key() {
    let rows = rows("1|15|3\n2|13|2\n").expect("kinds of rows");
    assert_eq!(
        script(Operation::Read, &rows, 100),
        "\\set n random(0, 99)\n\\set h :n * 2654435761 % 4294967296\n\
         select v from by_hand where part = 1 and k = '\\x00000001010000'::bytea || int8send(:h);\n"
    );
    assert_eq!(
        script(Operation::Create, &rows, 100),
        "\\set i :i + 1\n\\set n :first + :client_id * 1048576 + :i\n\\set h :n * 2654435761 % 4294967296\n\
         insert into by_hand (part, k, v) values (1, '\\x0000000100'::bytea || int8send(:n), :v0::bytea), \
         (1, '\\x00000001010000'::bytea || int8send(:h), :v1::bytea), \
         (1, '\\x0000000102'::bytea || int8send(:n), :v2::bytea);\n"
    );
}

#[test]
fn the_rate_is_what_pgbench_says() {
    let said = "number of failed transactions: 0 (0.000%)\nlatency average = 1.9 ms\n\
                tps = 16812.25 (without initial connection time)\n";
    let rate = transactions_per_second(said).expect("a rate");
    assert!((rate - 16_812.25).abs() < 1e-9, "{rate}");
    transactions_per_second("nothing").expect_err("no rate");
}

#[test]
fn shares_are_of_the_same_round() {
    let share = share(
        &[sample(50.0), sample(90.0), sample(10.0)],
        &[sample(100.0), sample(100.0), sample(10.0)],
    );
    assert!((share - 0.9).abs() < 1e-9, "{share}");
    assert_eq!(judged(0.9, 0.8), ("90 %".to_owned(), "≥ 80 %: reached".to_owned()));
    assert_eq!(judged(0.59, 0.6), ("59 %".to_owned(), "≥ 60 %: missed".to_owned()));
}

#[test]
fn cpu_time_is_of_one_operation() {
    let time = Duration::from_micros;
    let cpu = |client, servers, postgres| Cpu {
        client: time(client),
        servers: time(servers),
        postgres: time(postgres),
    };
    let sample = Sample::of(5.0, 10.0, cpu(300, 400, 500).since(cpu(100, 200, 300)));
    assert!(
        (sample.client - 20.0).abs() < 1e-9
            && (sample.servers - 20.0).abs() < 1e-9
            && (sample.postgres - 20.0).abs() < 1e-9
    );
}
