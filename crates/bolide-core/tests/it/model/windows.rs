//! The pace of the purge, window by window (TTL-259…263).

/// The throughput that a container, or a range's equal share of it, may consume in a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Budget {
    Unlimited,
    Provisioned(f64),
    /// The maximum, in request units per second.
    Autoscale(f64),
    Serverless,
}

impl Budget {
    pub fn share(self, ranges: usize) -> Budget {
        match self {
            Budget::Provisioned(units) => Budget::Provisioned(units / ranges as f64),
            Budget::Autoscale(most) => Budget::Autoscale(most / ranges as f64),
            Budget::Unlimited | Budget::Serverless => self,
        }
    }

    /// Returns the maximum number of units that users may consume in a window.
    fn ceiling(self) -> Option<f64> {
        match self {
            Budget::Unlimited => None,
            Budget::Provisioned(units) => Some(units),
            Budget::Autoscale(most) => Some(most),
            Budget::Serverless => Some(5000.0),
        }
    }
}

/// The windows of one range: one for each second of *T*.
#[derive(Debug, Clone)]
pub struct Windows {
    budget: Budget,
    /// The current window *s*, its *U(s)*, spent(s) and credit(s).
    window: i64,
    used: f64,
    spent: f64,
    credit: f64,
    /// Highest *U* of a finished window in the clock hour of *s*.
    peak: f64,
}

impl Windows {
    pub fn starting(now: i64, budget: Budget) -> Windows {
        Windows {
            budget,
            window: now,
            used: 0.0,
            spent: 0.0,
            credit: 0.0,
            peak: 0.0,
        }
    }

    pub fn restart(&mut self, now: i64) {
        *self = Windows::starting(now, self.budget);
    }

    pub fn set_budget(&mut self, now: i64, budget: Budget) {
        self.pass(now);
        self.budget = budget;
    }

    pub fn charge(&mut self, now: i64, units: f64) {
        self.pass(now);
        self.used += units;
    }

    pub fn has_room(&mut self, now: i64, units: f64) -> bool {
        self.pass(now);
        self.budget.ceiling().is_none_or(|ceiling| self.used + units <= ceiling)
    }

    pub fn spend(&mut self, now: i64, units: f64) {
        self.pass(now);
        self.spent += units;
    }

    /// Returns what is left of the credit; `None` without a limit.
    pub fn credit(&mut self, now: i64) -> Option<f64> {
        self.pass(now);
        (self.budget != Budget::Unlimited).then_some(self.credit - self.spent)
    }

    /// Applies credit(s+1) = min(0, credit(s) − spent(s)) + max(0, B(s) − U(s)) for every window that has ended.
    fn pass(&mut self, now: i64) {
        while self.window < now {
            self.credit = (self.credit - self.spent).min(0.0) + (self.budget_of_window() - self.used).max(0.0);
            let is_same_hour = (self.window + 1).div_euclid(3600) == self.window.div_euclid(3600);
            self.peak = if is_same_hour { self.peak.max(self.used) } else { 0.0 };
            self.window += 1;
            (self.used, self.spent) = (0.0, 0.0);
        }
    }

    /// Returns *B(s)* of the current window.
    fn budget_of_window(&self) -> f64 {
        match self.budget {
            Budget::Unlimited => 0.0,
            Budget::Provisioned(units) => units,
            Budget::Autoscale(most) => (most / 10.0).max(self.peak).max(self.used),
            Budget::Serverless => 5000.0,
        }
    }
}
