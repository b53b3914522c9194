//! What follows from what a path is, how it is called and how large it is, before anything is waited for.

use std::io;
use std::sync::Arc;

use crate::event::input::Role;
use crate::event::state::InputState;
use crate::trigger::drop_folder::routes::{Called, Route, Routes};
use crate::trigger::drop_folder::scan::{Found, Sight};
use crate::workflow::trigger::{Drop, Symlinks};
use crate::workflow::units::show_size;

/// What becomes of something in the inbox.
#[derive(Debug)]
pub enum Judged {
    /// It is not taken as it is.
    Left(InputState, String),
    /// It goes with another file.
    Company(Role, Arc<Route>),
    /// It may become a run of these.
    Input(Vec<Arc<Route>>),
}

/// Judges what a scan has found.
pub fn judge(found: &Found, routes: &Routes) -> Judged {
    let ignored = |reason: String| Judged::Left(InputState::Ignored, reason);
    match found.sight {
        Sight::Ignored(rule) => ignored(format!("{} (rule `{}`)", rule.what, rule.name)),
        Sight::Other(kind) => ignored(format!("{kind}, not a regular file (rule `regular-files`)")),
        Sight::Unreadable(errno) => Judged::Left(InputState::Blocked, blocked(errno)),
        Sight::Link(why) => match routes.called(&found.path) {
            Called::Input(takers) if takers.iter().any(|route| route.drop.symlinks == Symlinks::Inside) => {
                ignored(format!("a symbolic link that {why} (rule `symlinks`)"))
            }
            _ => ignored("a symbolic link, not a regular file (rule `regular-files`)".to_owned()),
        },
        Sight::File | Sight::Linked => match routes.called(&found.path) {
            Called::Nothing => ignored("no workflow matches it (rule `no-workflow`)".to_owned()),
            Called::Company(role, route) => Judged::Company(role, route),
            Called::Input(takers) => by_size(found, takers),
        },
    }
}

/// Every drop says for itself what is too large, and all of them must say that it is large enough.
fn by_size(found: &Found, takers: Vec<Arc<Route>>) -> Judged {
    let size = found.fingerprint.size;
    let is_link = found.sight == Sight::Linked;
    let too_large = |drop: &Drop| drop.max_size.is_some_and(|most| size > most);
    let (large, takers): (Vec<_>, Vec<_>) = takers.into_iter().partition(|route| too_large(&route.drop));
    if takers.is_empty() {
        let most: Vec<String> = large
            .iter()
            .map(|route| {
                format!("{} of {}", show_size(route.drop.max_size.unwrap_or_default()), route.workflow)
            })
            .collect();
        let (size, most) = (show_size(size), most.join(", "));
        let reason = format!("it has {size}, which is above `max_size`: {most} (rule `max_size`)");
        return Judged::Left(InputState::Ignored, reason);
    }
    let takers: Vec<_> =
        takers.into_iter().filter(|route| !is_link || route.drop.symlinks == Symlinks::Inside).collect();
    match takers.iter().find(|route| size < route.drop.min_size) {
        Some(route) => {
            let least = show_size(route.drop.min_size);
            let has =
                if size == 0 { "it is empty".to_owned() } else { format!("it has {}", show_size(size)) };
            let reason = format!("{has}; it waits until it has {least} (`min_size` of {})", route.workflow);
            Judged::Left(InputState::Settling, reason)
        }
        None => Judged::Input(takers),
    }
}

/// The reason of a blocked input.
pub fn blocked(errno: i32) -> String {
    io::Error::from_raw_os_error(errno).to_string()
}
