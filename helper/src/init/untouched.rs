//! Whether anybody has been here: a container that stood ready is handed out only when nobody has.

use std::fs;

use crate::message::{Failed, Obstacle};

/// All that can be written, where the root cannot.
const PLACES: [&str; 3] = ["/workspace", "/tmp", "/dev/shm"];

/// Looks for processes besides this one, and for anything in a place that can be written.
pub fn look() -> Result<(), Failed> {
    let this = std::process::id();
    let numbers = names("/proc")?.into_iter().filter_map(|name| name.parse::<u32>().ok());
    match numbers.filter(|number| *number != this).count() {
        0 => {}
        1 => return Err(refused("a process runs in it besides the helper".to_owned())),
        count => return Err(refused(format!("{count} processes run in it besides the helper"))),
    }
    for place in PLACES {
        // What stands there is somebody's choice of words, so only its number is told.
        match names(place)?.len() {
            0 => {}
            count => return Err(refused(format!("{place} is not empty: {count} in it"))),
        }
    }
    Ok(())
}

fn names(folder: &str) -> Result<Vec<String>, Failed> {
    let cannot = |error: std::io::Error| refused(format!("{folder} cannot be looked at: {error}"));
    let entries = fs::read_dir(folder).map_err(cannot)?;
    entries
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()).map_err(cannot))
        .collect()
}

fn refused(reason: String) -> Failed {
    Failed { obstacle: Obstacle::Refused, reason }
}
