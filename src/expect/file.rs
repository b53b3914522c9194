//! `expect.file`: any file, by its size and its first bytes.

use crate::event::finding::Finding;
use crate::expect::read::{head, kind};
use crate::expect::report::Report;
use crate::workflow::expectation::File;
use crate::workflow::view::Artifact;

/// Everything wrong with a file.
pub(super) fn check(expect: &File, artifact: &Artifact) -> Vec<Finding> {
    let mut report = Report::new(artifact);
    size(expect, artifact, &mut report);
    if let Some(wanted) = &expect.magic {
        magic(wanted, artifact, &mut report);
    }
    report.finish()
}

fn size(expect: &File, artifact: &Artifact, report: &mut Report<'_>) {
    let least = expect.min_size.unwrap_or(1);
    let found = format!("{} bytes", artifact.size);
    if artifact.size < least {
        report.add("file.size", "the file is too small", |finding| {
            finding.expected(format!("at least {least} bytes")).found(&found)
        });
    }
    if let Some(most) = expect.max_size.filter(|most| artifact.size > *most) {
        report.add("file.size", "the file is too large", |finding| {
            finding.expected(format!("at most {most} bytes")).found(&found)
        });
    }
}

/// The name of a kind says nothing; its first bytes do.
fn magic(wanted: &str, artifact: &Artifact, report: &mut Report<'_>) {
    let Some(head) = head(artifact, report) else {
        return;
    };
    let wanted = wanted.trim_start_matches('.').to_ascii_lowercase();
    let (known, matches) = if wanted.contains('/') {
        (infer::is_mime_supported(&wanted), infer::is_mime(&head, &wanted))
    } else {
        let extension = alias(&wanted);
        (infer::is_supported(extension), infer::is(&head, extension))
    };
    if !known {
        report.add(
            "file.magic",
            format!(
                "no file can be recognised as `{wanted}` by its first bytes; the workflow's check is wrong"
            ),
            |finding| finding.expected("a kind such as `pdf` or `application/pdf`"),
        );
    } else if !matches {
        report.add("file.magic", "the content is of another kind", |finding| {
            finding.expected(wanted.as_str()).found(kind(&head))
        });
    }
}

/// Extensions that people write in more than one way.
fn alias(extension: &str) -> &str {
    match extension {
        "jpeg" => "jpg",
        "tiff" => "tif",
        "htm" => "html",
        "mpeg" => "mpg",
        other => other,
    }
}
