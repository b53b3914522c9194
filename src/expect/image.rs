//! `expect.image`: a picture that really decodes, and that shows something.

use std::io::Cursor;

use image::{ImageFormat, ImageReader, Limits, RgbaImage};

use crate::event::finding::Finding;
use crate::expect::read::{kind, whole};
use crate::expect::report::Report;
use crate::workflow::expectation::Image;
use crate::workflow::view::Artifact;

/// Charts and scans are far below this.
const LARGEST: u64 = 128 << 20;
/// Pixels on a side. A tiny file can claim to be a huge picture.
const LONGEST_SIDE: u32 = 20_000;
/// Bytes that decoding may take.
const DECODED: u64 = 512 << 20;
/// Differences of a channel up to this are invisible: noise of a lossy format.
const INVISIBLE: u8 = 3;

/// Everything wrong with a picture.
pub(super) fn check(expect: &Image, artifact: &Artifact) -> Vec<Finding> {
    let mut report = Report::new(artifact);
    if let Some(bytes) = whole(artifact, LARGEST, &mut report) {
        content(expect, &bytes, &mut report);
    }
    report.finish()
}

fn content(expect: &Image, bytes: &[u8], report: &mut Report<'_>) {
    let Some(format) = format(expect, bytes, report) else {
        return;
    };
    match ImageReader::with_format(Cursor::new(bytes), format).into_dimensions() {
        Ok((width, height)) => {
            side("width", width, expect.min_width, expect.max_width, report);
            side("height", height, expect.min_height, expect.max_height, report);
        }
        Err(error) => return broken(&error.to_string(), report),
    }
    let mut limits = Limits::default();
    limits.max_image_width = Some(LONGEST_SIDE);
    limits.max_image_height = Some(LONGEST_SIDE);
    limits.max_alloc = Some(DECODED);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits);
    match reader.decode() {
        Ok(picture) => {
            if let Some(colour) = only_colour(&picture.into_rgba8()) {
                report.add("image.blank", "the picture is blank", |finding| {
                    finding.expected("something to see").found(format!("one colour all over, {colour}"))
                });
            }
        }
        Err(image::ImageError::Limits(_)) => {
            report.add("image.size", "the picture is too large to be checked", |finding| {
                finding.expected(format!(
                    "at most {LONGEST_SIDE} pixels on a side, {} MB decoded",
                    DECODED >> 20
                ))
            });
        }
        Err(error) => broken(&error.to_string(), report),
    }
}

/// The format that the first bytes show; adds when it is none or another one than wanted.
fn format(expect: &Image, bytes: &[u8], report: &mut Report<'_>) -> Option<ImageFormat> {
    let known = image::guess_format(bytes).ok().filter(ImageFormat::reading_enabled);
    let found = known.map(name);
    let wanted = expect.format.as_deref().map(|format| match format {
        "jpg" => "jpeg",
        other => other,
    });
    if known.is_none() || wanted.is_some_and(|wanted| found.as_deref() != Some(wanted)) {
        report.add("image.format", "the file is not a picture of the wanted format", |finding| {
            finding
                .expected(wanted.unwrap_or("png, jpeg, gif, webp or bmp"))
                .found(found.unwrap_or_else(|| kind(bytes)))
        });
    }
    known
}

fn name(format: ImageFormat) -> String {
    format!("{format:?}").to_ascii_lowercase()
}

fn broken(error: &str, report: &mut Report<'_>) {
    report.add("image.decode", format!("the picture cannot be decoded: {error}"), |finding| finding);
}

fn side(name: &str, pixels: u32, least: Option<u32>, most: Option<u32>, report: &mut Report<'_>) {
    if let Some(least) = least.filter(|least| pixels < *least) {
        report.add("image.size", format!("the {name} is too small"), |finding| {
            finding.expected(format!("at least {least} pixels")).found(format!("{pixels} pixels"))
        });
    }
    if let Some(most) = most.filter(|most| pixels > *most) {
        report.add("image.size", format!("the {name} is too large"), |finding| {
            finding.expected(format!("at most {most} pixels")).found(format!("{pixels} pixels"))
        });
    }
}

/// The one colour of a picture where nothing can be seen, as `#rrggbb`.
fn only_colour(picture: &RgbaImage) -> Option<String> {
    let mut least = [u8::MAX; 4];
    let mut most = [u8::MIN; 4];
    let (pixels, _) = picture.as_raw().as_chunks::<4>();
    for pixel in pixels {
        // What is transparent has no colour that counts.
        let pixel = if pixel[3] == 0 { [0; 4] } else { *pixel };
        for channel in 0..4 {
            least[channel] = least[channel].min(pixel[channel]);
            most[channel] = most[channel].max(pixel[channel]);
        }
    }
    let alike = (0..4).all(|channel| most[channel].saturating_sub(least[channel]) <= INVISIBLE);
    alike.then(
        || {
            if most[3] == 0 { "transparent".to_owned() } else { format!("#{}", hex::encode(&least[..3])) }
        },
    )
}
