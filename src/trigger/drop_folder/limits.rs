//! How many folders the system lets be watched.

use std::fs;

/// What the system allows each user; `None` where it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Folders watched at once, by all programs of the user.
    pub watches: Option<u64>,
    /// Programs that watch at once.
    pub instances: Option<u64>,
}

impl Limits {
    /// What some systems come with, and enough for most.
    const USUAL_WATCHES: u64 = 524_288;

    /// The least that is worth a change.
    const USUAL_INSTANCES: u64 = 1024;

    /// What the system says now.
    pub fn read() -> Self {
        let number = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/fs/inotify/{name}")).ok()?;
            text.trim().parse().ok()
        };
        Self { watches: number("max_user_watches"), instances: number("max_user_instances") }
    }

    /// Whether so many folders leave half of the watches to other programs.
    pub fn has_room_for(&self, folders: u64) -> bool {
        self.watches.is_none_or(|allowed| folders <= allowed / 2)
    }

    /// The command that allows enough watches for so many folders, and for other programs as many again.
    pub fn more_watches(&self, folders: u64) -> String {
        let wanted = folders.saturating_mul(2).max(self.watches.unwrap_or_default().saturating_mul(2));
        command("max_user_watches", wanted.max(Self::USUAL_WATCHES))
    }

    /// The command that lets more programs watch.
    pub fn more_instances(&self) -> String {
        let wanted = self.instances.unwrap_or_default().saturating_mul(2);
        command("max_user_instances", wanted.max(Self::USUAL_INSTANCES))
    }
}

fn command(name: &str, value: u64) -> String {
    format!("sudo sysctl fs.inotify.{name}={value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_allows_enough_for_the_folders_there_are() {
        let limits = Limits { watches: Some(8192), instances: Some(128) };
        assert!(limits.has_room_for(4096) && !limits.has_room_for(4097));
        assert_eq!(limits.more_watches(5000), "sudo sysctl fs.inotify.max_user_watches=524288");
        assert_eq!(limits.more_watches(1_000_000), "sudo sysctl fs.inotify.max_user_watches=2000000");
        assert_eq!(limits.more_instances(), "sudo sysctl fs.inotify.max_user_instances=1024");
        let unknown = Limits { watches: None, instances: None };
        assert!(unknown.has_room_for(u64::MAX));
    }
}
