//! Times and memory.

use std::time::Duration;

/// Milliseconds.
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The one that so many of a hundred do not exceed.
pub fn percentile(times: &mut [Duration], of_hundred: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() * of_hundred / 100).min(times.len() - 1)]
}

/// So many a second.
pub fn rate(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

/// Forgets the most memory this process ever had.
pub fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").expect("Linux");
}

/// The most memory this process had since, in MiB.
pub fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a number");
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib / 1024.0
}
