//! What OpenAI's models cost where `tidemill.toml` does not say: public list prices, as of November 2026.
//!
//! Only models with one flat price stand here. Models that cost more above some length of context are left out, since
//! a dollar limit must never be reckoned too low; for them, and for every other server, the price is written down in
//! `tidemill.toml`.

use crate::event::usage::Price;

/// Name, then dollars per million tokens read, read from the cache, and written.
const PRICES: [(&str, f64, f64, f64); 12] = [
    ("gpt-4.1", 2.0, 0.5, 8.0),
    ("gpt-4.1-mini", 0.4, 0.1, 1.6),
    ("gpt-4.1-nano", 0.1, 0.025, 0.4),
    ("gpt-4o", 2.5, 1.25, 10.0),
    ("gpt-4o-mini", 0.15, 0.075, 0.6),
    ("gpt-5", 1.25, 0.125, 10.0),
    ("gpt-5-mini", 0.25, 0.025, 2.0),
    ("gpt-5-nano", 0.05, 0.005, 0.4),
    ("gpt-5.1", 1.25, 0.125, 10.0),
    ("gpt-5.4-mini", 0.75, 0.075, 4.5),
    ("gpt-5.4-nano", 0.2, 0.02, 1.25),
    ("o4-mini", 1.1, 0.275, 4.4),
];

/// The list price of `model`; a snapshot (`gpt-5-2025-08-07`) costs what its model costs.
pub(super) fn listed(model: &str) -> Option<Price> {
    let model = without_date(model);
    let (_, input, cached, output) = PRICES.into_iter().find(|(name, ..)| *name == model)?;
    Some(Price {
        input,
        cached: Some(cached),
        output,
    })
}

/// `gpt-5-2025-08-07` without its `-2025-08-07`.
fn without_date(model: &str) -> &str {
    const DATE: usize = "-2025-08-07".len();
    let Some((name, date)) = model
        .len()
        .checked_sub(DATE)
        .and_then(|at| model.split_at_checked(at))
    else {
        return model;
    };
    let is_date = date.bytes().enumerate().all(|(index, byte)| match index {
        0 | 5 | 8 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    if is_date { name } else { model }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_costs_what_its_model_costs() {
        assert_eq!(listed("gpt-5-2025-08-07"), listed("gpt-5"));
        assert_eq!(listed("gpt-5").map(|price| price.output), Some(10.0));
    }

    #[test]
    fn what_is_not_known_has_no_price() {
        for name in ["", "llama3", "gpt-5-turbo", "gpt-5-2025-08", "é-2025-08-07"] {
            assert_eq!(listed(name), None, "{name}");
        }
    }
}
