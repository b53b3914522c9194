//! How many tokens a request will be, before anyone has counted: for the budget.

use super::{Item, Request};

/// Bytes of text per token, times ten. English is nearer 4, code and numbers nearer 3: a budget is better reserved
/// too high than too low.
const TENTHS_OF_BYTES_PER_TOKEN: u64 = 35;
/// What the protocol itself takes around each item and each tool.
const OVERHEAD_PER_ITEM: u64 = 8;

/// The tokens `request` will be read as: about, and rather too many than too few.
pub fn estimate_tokens(request: &Request<'_>) -> u64 {
    let mut bytes = request.instructions.len();
    for item in request.items {
        bytes += match item {
            Item::User { text } | Item::Assistant { text } => text.len(),
            Item::Call(call) => call.id.len() + call.tool.len() + call.arguments.len(),
            Item::Output { call, output } => call.len() + output.len(),
            Item::Verbatim { value, .. } => value.to_string().len(),
        };
    }
    for tool in request.tools {
        bytes += tool.name.len() + tool.description.len() + tool.parameters.to_string().len();
    }
    let pieces = request.items.len() + request.tools.len() + 1;
    tokens(bytes) + OVERHEAD_PER_ITEM * u64::try_from(pieces).unwrap_or(u64::MAX / OVERHEAD_PER_ITEM)
}

/// The tokens `bytes` of text are, rounded up.
fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes)
        .unwrap_or(u64::MAX)
        .saturating_mul(10)
        .div_ceil(TENTHS_OF_BYTES_PER_TOKEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_text_is_more_tokens_and_nothing_is_still_something() {
        let mut request = Request {
            instructions: "",
            items: &[],
            tools: &[],
            max_output_tokens: None,
        };
        let nothing = estimate_tokens(&request);
        assert!(nothing > 0);
        let text = "a".repeat(3_500);
        request.instructions = &text;
        assert_eq!(estimate_tokens(&request), nothing + 1_000);
        let items = [Item::User { text: text.clone() }];
        request.items = &items;
        assert!(estimate_tokens(&request) > nothing + 2_000);
    }
}
