//! What the engine says, turned into what a person can do.

use bollard::errors::Error;

use crate::diagnostic::Diagnostic;

/// The engine's own words, without bollard's around them.
pub(super) fn words(error: &Error) -> String {
    match error {
        Error::DockerResponseServerError { message, .. } => message.clone(),
        Error::DockerStreamError { error } => error.clone(),
        other => other.to_string(),
    }
}

/// The HTTP status, when the engine answered.
pub(super) fn status(error: &Error) -> Option<u16> {
    match error {
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// Whether the thing asked for does not exist.
pub(super) fn is_missing(error: &Error) -> bool {
    status(error) == Some(404)
}

/// An engine error while doing `what` ("start the container").
pub(super) fn explain(what: &str, error: Error) -> Diagnostic {
    let words = words(&error);
    let lower = words.to_lowercase();
    let (code, help) = if lower.contains("no space left") || lower.contains("disk quota") {
        (
            "sandbox::disk_full",
            "the engine's disk is full: `docker system df` shows what takes room, `docker system prune` frees it",
        )
    } else if lower.contains("permission denied") {
        (
            "sandbox::no_permission",
            "this user may not use the engine's socket: join the group `docker` or run as root",
        )
    } else if status(&error).is_none() {
        (
            "sandbox::engine_gone",
            "the engine no longer answers: is the daemon still running? `tidemill doctor` checks it",
        )
    } else {
        ("sandbox::engine", "`tidemill doctor` checks the engine")
    };
    Diagnostic::new(code, format!("cannot {what}: {}", words.trim())).help(help).cause(error)
}

/// An engine error while making a container of `image` for `what`.
pub(super) fn not_created(what: &str, image: &str, error: Error) -> Diagnostic {
    if !is_missing(&error) || !words(&error).to_lowercase().contains("no such image") {
        return explain(what, error);
    }
    // It was there a moment ago: somebody has tidied up.
    let message = format!("the image {image} was removed from the engine after it was made ready");
    Diagnostic::new("sandbox::image_gone", message)
        .help("run it again: the image is then pulled or built again")
        .cause(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status_code: u16, message: &str) -> Error {
        Error::DockerResponseServerError { status_code, message: message.to_owned() }
    }

    #[test]
    fn what_the_engine_says_has_a_name_of_ours() {
        for (error, code) in [
            (said(500, "write /var/lib/docker/tmp/x: no space left on device"), "sandbox::disk_full"),
            (said(500, "Disk quota exceeded"), "sandbox::disk_full"),
            (said(404, "No such image: sha256:0000"), "sandbox::image_gone"),
            (said(404, "no such container"), "sandbox::engine"),
            (said(409, "something else"), "sandbox::engine"),
            (
                Error::from(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)),
                "sandbox::engine_gone",
            ),
        ] {
            let shown = error.to_string();
            assert_eq!(not_created("create the container", "x", error).code(), code, "{shown}");
        }
    }
}
