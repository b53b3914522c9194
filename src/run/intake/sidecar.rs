//! Sidecars: JSON files whose values become the params of a run.

use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use crate::event::trigger::Params;
use crate::run::intake::carry::why;
use crate::trigger::drop_folder::links::open;
use crate::workflow::units::show_size;

/// More is no list of params.
const LARGEST: u64 = 1_000_000;

/// Reads one; the error says what is wrong with it.
pub(super) fn read(path: &Path) -> Result<Params, String> {
    let mut text = Vec::new();
    let mut file = open(path).map_err(|error| why(&error))?.take(LARGEST + 1);
    file.read_to_end(&mut text).map_err(|error| why(&error))?;
    if text.len() as u64 > LARGEST {
        return Err(format!("it has more than {}", show_size(LARGEST)));
    }
    match serde_json::from_slice(&text) {
        Ok(Value::Object(params)) => Ok(params),
        Ok(_) => Err("it is JSON and no object".to_owned()),
        Err(error) => Err(format!("it is not JSON: {error}")),
    }
}
