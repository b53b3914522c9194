//! What a run may use, reserved before each call.
//!
//! A call is only made when the most it can use fits into what is left, next to a share kept back for the closing
//! turn. Where the model's usual answer length does not fit, the answer is limited to what does.

use crate::event::usage::{Cost, Price, Usage};
use crate::workflow::units::show_duration;

use std::time::Duration;

/// Money and tokens of one run.
#[derive(Debug, Clone)]
pub struct Budget {
    cost: Option<Cost>,
    tokens: Option<u64>,
    price: Option<Price>,
    used: Usage,
    spent: Cost,
}

/// What was set aside for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserved {
    /// Dollars at most, when the price is known.
    pub cost: Option<Cost>,
    /// Tokens at most.
    pub tokens: u64,
    /// Tokens the answer may have.
    pub max_output_tokens: Option<u64>,
}

/// A limit that was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// `turns`, `cost_usd`, `tokens` or `wall`.
    pub name: &'static str,
    /// A sentence with the numbers.
    pub reason: String,
}

impl Limit {
    /// All turns are used.
    pub fn turns(max: u32) -> Self {
        Self { name: "turns", reason: format!("all {max} turns of `agent.max_turns` are used") }
    }

    /// One that the log speaks of; nothing when this version knows no such limit.
    pub fn recalled(name: &str, reason: &str) -> Option<Self> {
        let known = ["turns", "cost_usd", "tokens", "wall"].into_iter().find(|known| *known == name)?;
        Some(Self { name: known, reason: reason.to_owned() })
    }

    /// The time is over.
    pub fn wall(wall: Duration) -> Self {
        let reason = format!("the wall limit of {} is used up", show_duration(wall));
        Self { name: "wall", reason }
    }
}

/// Which share of the budget a call may take from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Work: what the closing turn needs stays untouched.
    Work,
    /// The closing turn itself.
    Closing,
}

impl Budget {
    /// An answer that cannot be this long is not worth asking for.
    pub const LEAST_ANSWER: u64 = 512;
    /// What the closing turn may write.
    pub const CLOSING_ANSWER: u64 = 1_024;
    /// Assumed longest answer where the project does not say: most models stop far earlier.
    const USUAL_ANSWER: u64 = 16_384;

    /// A budget with nothing used. `price` is needed where `cost` is set; the caller has checked that.
    pub fn new(cost: Option<Cost>, tokens: Option<u64>, price: Option<Price>) -> Self {
        Self { cost, tokens, price, used: Usage::default(), spent: Cost::ZERO }
    }

    /// All tokens used.
    pub fn used(&self) -> Usage {
        self.used
    }

    /// All money spent, when the price is known.
    pub fn spent(&self) -> Option<Cost> {
        self.price.map(|_| self.spent)
    }

    /// Sets aside what a call with about `input` tokens can use, or says which limit forbids it.
    pub fn reserve(&self, input: u64, wanted: Option<u64>, share: Share) -> Result<Reserved, Limit> {
        let usual = wanted.unwrap_or(Self::USUAL_ANSWER);
        let limited = self.cost.is_some() || self.tokens.is_some();
        let answer = match share {
            Share::Closing => Self::CLOSING_ANSWER,
            Share::Work => usual,
        };
        let fits = self.longest_answer(input, share)?.min(answer);
        let most = Usage { input_tokens: input, output_tokens: fits, ..Usage::default() };
        let cap = if limited || share == Share::Closing { Some(fits) } else { wanted };
        Ok(Reserved {
            cost: self.price.map(|price| price.of(most)),
            tokens: most.total(),
            max_output_tokens: cap,
        })
    }

    /// Books what a call really used; gives its cost when the price is known.
    pub fn settle(&mut self, usage: Usage) -> Option<Cost> {
        self.used += usage;
        let cost = self.price.map(|price| price.of(usage));
        self.spent += cost.unwrap_or_default();
        cost
    }

    /// The longest answer that fits, in tokens, or the limit that leaves no room for one.
    fn longest_answer(&self, input: u64, share: Share) -> Result<u64, Limit> {
        let kept_back = match share {
            Share::Work => input + Self::CLOSING_ANSWER,
            Share::Closing => 0,
        };
        let mut longest = u64::MAX;
        if let Some(limit) = self.tokens {
            let left = limit.saturating_sub(self.used.total());
            let room = left.saturating_sub(input).saturating_sub(kept_back);
            // The answer is read again by the closing turn, so it counts twice.
            longest = longest.min(if share == Share::Work { room / 2 } else { room });
            if longest < Self::LEAST_ANSWER {
                let used = self.used.total();
                let reason = format!("{used} of {limit} tokens are used, too few are left for another turn");
                return Err(Limit { name: "tokens", reason });
            }
        }
        if let (Some(limit), Some(price)) = (self.cost, self.price) {
            let reading = Usage { input_tokens: input, ..Usage::default() };
            let closing =
                Usage { input_tokens: input, output_tokens: Self::CLOSING_ANSWER, ..Usage::default() };
            let mut needed = price.of(reading);
            let mut per_token = price.output;
            if share == Share::Work {
                needed += price.of(closing);
                per_token += price.input;
            }
            let left = limit.minus(self.spent).minus(needed);
            longest = longest.min(tokens_for(left, per_token));
            if longest < Self::LEAST_ANSWER {
                let reason =
                    format!("{} of {limit} are spent, too little is left for another turn", self.spent);
                return Err(Limit { name: "cost_usd", reason });
            }
        }
        Ok(longest)
    }
}

/// How many tokens `money` buys at `per_million` dollars per million.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, as wanted")]
fn tokens_for(money: Cost, per_million: f64) -> u64 {
    if per_million <= 0.0 { u64::MAX } else { (money.usd() / per_million * 1e6) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price { input: 2.0, cached: None, output: 10.0 };

    #[test]
    fn without_limits_nothing_is_capped() {
        let budget = Budget::new(None, None, None);
        let reserved = budget.reserve(1_000, None, Share::Work).unwrap();
        assert_eq!(reserved.max_output_tokens, None);
        assert_eq!(reserved.cost, None);
    }

    #[test]
    fn a_call_is_refused_before_it_can_overrun_the_dollar_limit() {
        let mut budget = Budget::new(Some(Cost::from_usd(0.05)), None, Some(PRICE));
        let mut calls = 0;
        while let Ok(reserved) = budget.reserve(2_000, None, Share::Work) {
            let output_tokens = reserved.max_output_tokens.unwrap();
            budget.settle(Usage { input_tokens: 2_000, output_tokens, ..Usage::default() });
            calls += 1;
            assert!(calls < 100, "the budget never ends");
        }
        assert!(calls > 0);
        assert!(budget.reserve(2_000, None, Share::Closing).is_ok(), "no room was kept for the closing turn");
        assert!(budget.spent().unwrap() <= Cost::from_usd(0.05));
    }

    #[test]
    fn the_answer_is_limited_to_what_fits() {
        let budget = Budget::new(None, Some(20_000), None);
        let reserved = budget.reserve(4_000, None, Share::Work).unwrap();
        assert_eq!(reserved.max_output_tokens, Some((20_000 - 4_000 - 4_000 - 1_024) / 2));
        assert_eq!(budget.reserve(15_000, None, Share::Work).unwrap_err().name, "tokens");
    }
}
