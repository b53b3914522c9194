//! How often the kernel killed for memory.

use std::fs;

/// Where the count stands: control groups version 2, and version 1.
const PLACES: [&str; 2] = ["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];

/// Processes the kernel has killed in this container because its memory was used up; 0 where it does not say.
pub fn kills() -> u32 {
    let text = PLACES.iter().find_map(|place| fs::read_to_string(place).ok()).unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
