//! Settings over time, and the definition of expiry (TTL-225).

/// All settings of a container so far. Times are whole seconds.
#[derive(Debug, Clone)]
pub struct History(Vec<Stretch>);

/// A period of time under one setting; it ends where the next begins.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    start: i64,
    /// *D*: unset, −1, or a number of seconds.
    default_ttl: Option<i64>,
}

impl History {
    pub fn new(start: i64, default_ttl: Option<i64>) -> History {
        History(vec![Stretch { start, default_ttl }])
    }

    /// Returns the setting in force.
    pub fn default_ttl(&self) -> Option<i64> {
        self.0.last().expect("a history has a beginning").default_ttl
    }

    /// Sets another setting from `now` on. The same setting begins no new period (TTL-231).
    pub fn change(&mut self, now: i64, default_ttl: Option<i64>) {
        if default_ttl != self.default_ttl() {
            self.0.push(Stretch {
                start: now,
                default_ttl,
            });
        }
    }

    /// Returns whether a version written at `written` with its `own` value is expired at `now`.
    pub fn is_expired(&self, written: i64, own: Option<i64>, now: i64) -> bool {
        self.moment_of_expiry(written, own, now).is_some()
    }

    /// Returns the smallest max(*w* + *nᵢ*, start of i) over the periods for which min(*uᵢ*, *T*) ≥ *w* + *nᵢ*.
    pub fn moment_of_expiry(&self, written: i64, own: Option<i64>, now: i64) -> Option<i64> {
        let caught = self.0.iter().enumerate().filter_map(|(i, stretch)| {
            let end = self.0.get(i + 1).map_or(now, |next| next.start);
            let end_of_life = written + effective_ttl(stretch.default_ttl, own)?;
            (end.min(now) >= end_of_life).then_some(end_of_life.max(stretch.start))
        });
        caught.min()
    }

    /// Returns when a version expires under the setting in force; `None`: never.
    pub fn end_in_force(&self, written: i64, own: Option<i64>) -> Option<i64> {
        effective_ttl(self.default_ttl(), own).map(|ttl| written + ttl)
    }
}

/// Returns the ttl in force; `None`: never expires. With *D* unset, never. Otherwise *t* if present, else *D*; −1 means never.
fn effective_ttl(default_ttl: Option<i64>, own: Option<i64>) -> Option<i64> {
    let ttl = own.unwrap_or(default_ttl?);
    (ttl != -1).then_some(ttl)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worked examples W1–W6 of the specification: history, then (written, own, now, is expired).
    #[test]
    fn the_model_agrees_with_the_worked_examples() {
        let history = |changes: &[(i64, Option<i64>)]| {
            let mut history = History::new(changes[0].0, changes[0].1);
            for (at, default_ttl) in &changes[1..] {
                history.change(*at, *default_ttl);
            }
            history
        };
        let w1 = history(&[(0, Some(10)), (115, Some(1000))]);
        assert!(w1.is_expired(100, None, 115));
        assert!(!w1.is_expired(106, None, 1105) && w1.is_expired(106, None, 1106));
        let w2 = history(&[(0, Some(10)), (115, None), (200, Some(10))]);
        assert!(w2.is_expired(100, None, 150) && w2.is_expired(106, None, 200));
        let w2_until_199 = history(&[(0, Some(10)), (115, None)]);
        assert!(!w2_until_199.is_expired(106, None, 199));
        let w3 = history(&[(0, Some(-1)), (119, None), (125, Some(-1))]);
        assert!(w3.is_expired(100, Some(20), 125) && w3.moment_of_expiry(100, Some(20), 130) == Some(125));
        let w4 = history(&[(0, Some(-1)), (120, None)]);
        assert!(w4.is_expired(100, Some(20), 121));
        let w5 = history(&[(0, Some(1000)), (150, Some(10)), (151, Some(1000))]);
        assert!(w5.is_expired(100, None, 151) && !w5.is_expired(145, None, 1144) && w5.is_expired(145, None, 1145));
        let w6 = history(&[(0, None), (200, Some(10)), (200, None)]);
        assert!(w6.is_expired(100, None, 200));
        let w7 = history(&[(0, Some(10)), (200, Some(1)), (300, None)]);
        assert!(!w7.is_expired(100, Some(-1), 400));
    }
}
