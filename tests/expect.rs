//! Expectations: every kind of mistake is found, named with its place, and nothing good is called bad.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::io::Cursor;

use image::{DynamicImage, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};
use serde_json::json;
use tempfile::TempDir;
use tidemill::event::finding::Finding;
use tidemill::event::id::Digest;
use tidemill::expect::{check, check_all};
use tidemill::workflow::expectation::{ColumnType, Csv, Expect, File, Image, Json, Output, Range, Text};
use tidemill::workflow::path::WorkspacePath;
use tidemill::workflow::view::Artifact;

fn artifact(folder: &TempDir, path: &str, content: &[u8]) -> Artifact {
    let file = folder.path().join(path.replace('/', "_"));
    std::fs::write(&file, content).unwrap();
    Artifact {
        path: WorkspacePath::parse(path).unwrap(),
        file,
        size: content.len() as u64,
        digest: Digest::of(content),
    }
}

fn findings(expect: &Expect, content: impl AsRef<[u8]>) -> Vec<Finding> {
    let folder = TempDir::new().unwrap();
    check(expect, &artifact(&folder, "output/x", content.as_ref()))
}

/// The findings as lines without the path.
fn lines(expect: &Expect, content: impl AsRef<[u8]>) -> Vec<String> {
    let found = findings(expect, content);
    for finding in &found {
        assert_eq!(finding.path.as_deref(), Some("output/x"), "{finding}");
    }
    let line = |finding: &Finding| {
        let text = finding.to_string();
        format!("{}: {}", finding.check, text.strip_prefix("output/x").unwrap())
    };
    found.iter().map(line).collect()
}

fn one(expect: &Expect, content: impl AsRef<[u8]>) -> String {
    let mut lines = lines(expect, content);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    lines.remove(0)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn columns(wanted: &[&str]) -> Expect {
    Expect::Csv(Csv {
        columns: names(wanted),
        ..Csv::default()
    })
}

fn map<T: Clone>(name: &str, value: T) -> BTreeMap<String, T> {
    BTreeMap::from([(name.to_owned(), value)])
}

#[test]
fn a_good_table_passes() {
    let expect = Expect::Csv(Csv {
        columns: names(&["time", "kwh"]),
        types: BTreeMap::from([
            ("time".to_owned(), ColumnType::Datetime),
            ("kwh".to_owned(), ColumnType::Number),
        ]),
        min_rows: Some(2),
        max_rows: Some(2),
        unique: names(&["time"]),
        not_null: names(&["time"]),
        ranges: map(
            "kwh",
            Range {
                min: Some(0.0),
                max: Some(10.0),
            },
        ),
        enums: map("kind", names(&["high", "low"])),
        patterns: map("kind", "[a-z]+".to_owned()),
    });
    let plain = "time,kwh,kind\n2026-01-01 00:00,10,high\n2026-01-01 01:00,,low\n";
    let dressed = "\u{feff}\"time\",kwh,kind\r\n2026-01-01 00:00,\"10\",high\r\n\r\n2026-01-01 01:00,0,low";
    assert_eq!(lines(&expect, plain), [""; 0]);
    assert_eq!(lines(&expect, dressed), [""; 0]);
}

#[test]
fn no_table_at_all_is_said_as_such() {
    assert_eq!(
        one(&columns(&["a"]), ""),
        "csv.empty: : the table is empty (expected a header row, found 0 bytes without a row)"
    );
    assert!(one(&columns(&["a"]), "\n\n").starts_with("csv.empty"));
    assert!(one(&columns(&["a"]), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").contains("found image/png"));
    assert!(one(&columns(&["a"]), b"\xff\xfea\0,\0b\0").contains("found text in UTF-16"));
}

#[test]
fn missing_columns_are_named_with_a_guess() {
    assert_eq!(
        one(&columns(&["timestamp", "energy_kwh"]), "timestmp,energy_kwh\n"),
        "csv.columns: , header: the column `timestamp` is missing; did you mean `timestmp`? \
         (expected a column `timestamp`, found `timestmp` and `energy_kwh`)"
    );
    assert!(one(&columns(&["b"]), "a;b\n1;2\n").contains("separated by semicolons"));
    let unique = Expect::Csv(Csv {
        unique: names(&["id"]),
        not_null: names(&["id"]),
        types: map("id", ColumnType::Integer),
        ..Csv::default()
    });
    assert!(
        one(&unique, "a\n1\n").contains("`id` is missing"),
        "said once for all checks"
    );
}

#[test]
fn a_doubled_column_and_ragged_rows_are_found() {
    assert!(one(&columns(&["a"]), "a,b,a\n1,2,3\n").contains("the column `a` is there twice"));
    assert_eq!(
        lines(&columns(&["a"]), "a,b\n1,2\n1\n\n1,2,3\n"),
        [
            "csv.ragged: , row 2 (line 3): the row has another number of cells than the header \
             (expected 2 cells, found 1 cells)",
            "csv.ragged: , row 3 (line 5): the row has another number of cells than the header \
             (expected 2 cells, found 3 cells)",
        ]
    );
}

#[test]
fn rows_are_counted_as_people_do() {
    let at_least = |min_rows| {
        Expect::Csv(Csv {
            min_rows: Some(min_rows),
            max_rows: Some(2),
            ..Csv::default()
        })
    };
    assert_eq!(lines(&at_least(1), "a\n1\n"), [""; 0]);
    assert!(one(&at_least(1), "a\n").contains("at least 1, the header not counted, found 0 rows"));
    assert!(one(&at_least(1), "a\n1\n2\n3\n").contains("at most 2, the header not counted, found 3 rows"));
    let typed = Expect::Csv(Csv {
        types: map("n", ColumnType::Integer),
        ..Csv::default()
    });
    // A cell of two lines and a blank line: row and line go apart.
    let found = one(&typed, "n,text\n1,\"a\nb\"\n\nx,c\n");
    assert!(found.contains("row 2 (line 5), column n"), "{found}");
    for (table, place) in [
        ("n\r\n1\r\n2\r\nx\r\n", "row 3 (line 4)"),
        ("\u{feff}n\n1\n2\nx", "row 3 (line 4)"),
        ("\n\nn\n\n\nx", "row 1 (line 6)"),
        ("n\r\n\r\n1\r\n\r\nx", "row 2 (line 5)"),
    ] {
        let found = one(&typed, table);
        assert!(found.contains(place), "{table:?}: {found}");
    }
}

/// Programs that write a table with its row numbers leave the name of their column empty.
#[test]
fn a_column_without_a_name_is_a_column() {
    assert_eq!(lines(&columns(&["a"]), ",a,b\n0,1,2\n1,3,4\n"), [""; 0]);
}

#[test]
fn every_check_on_cells_names_row_column_expected_and_found() {
    let expect = Expect::Csv(Csv {
        types: map("n", ColumnType::Number),
        not_null: names(&["n"]),
        ranges: map(
            "n",
            Range {
                min: Some(0.0),
                max: Some(5.0),
            },
        ),
        enums: map("word", names(&["high", "low"])),
        patterns: map("code", "[A-Z]{2}".to_owned()),
        ..Csv::default()
    });
    let table = "n,word,code\n1,high,AB\nx,high,AB\n,low,AB\n7,low,AB\n1,HIGH,AB\n1,low,ABC\n1,,\n";
    assert_eq!(
        lines(&expect, table),
        [
            "csv.type: , row 2 (line 3), column n: a cell is no number \
             (expected a number such as `42.5`, found `x`)",
            "csv.not_null: , row 3 (line 4), column n: a cell is empty (expected a value)",
            "csv.range: , row 4 (line 5), column n: a number is out of range (expected 0 to 5, found `7`)",
            "csv.enum: , row 5 (line 6), column word: a cell holds another word than those allowed \
             (expected `high` and `low`, found `HIGH`)",
            "csv.pattern: , row 6 (line 7), column code: a cell does not match its pattern \
             (expected `[A-Z]{2}`, the whole cell, found `ABC`)",
        ]
    );
    let range = Expect::Csv(Csv {
        ranges: map(
            "n",
            Range {
                min: Some(1.0),
                max: None,
            },
        ),
        ..Csv::default()
    });
    assert!(one(&range, "n\nNaN\n").contains("a cell is no number (expected at least 1, found `NaN`)"));
}

#[test]
fn a_pattern_with_alternatives_is_anchored_as_a_whole() {
    let expect = Expect::Csv(Csv {
        patterns: map("a", "x|xy".to_owned()),
        ..Csv::default()
    });
    assert_eq!(lines(&expect, "a\nx\nxy\n"), [""; 0]);
    assert_eq!(lines(&expect, "a\nxz\nzxy\n").len(), 2);
    let broken = Expect::Csv(Csv {
        patterns: map("a", "(".to_owned()),
        ..Csv::default()
    });
    assert!(one(&broken, "a\nx\n").contains("no regular expression"));
}

#[test]
fn unique_is_about_the_combination() {
    let expect = Expect::Csv(Csv {
        unique: names(&["a", "b"]),
        ..Csv::default()
    });
    assert_eq!(
        lines(&expect, "a,b,c\n1,2,x\n1,3,x\n2,2,x\n12,,x\n1,2 ,x\n"),
        [""; 0]
    );
    assert_eq!(
        one(&expect, "a,b,c\n1,2,x\n1,3,x\n1,2,y\n"),
        "csv.unique: , row 3 (line 4), column a, b: the values of row 1 occur again \
         (expected every combination once, found `1, 2`)"
    );
}

#[test]
fn a_cell_that_is_not_utf8_is_named_with_its_row() {
    let found = one(&columns(&["a"]), b"a,b\n1,2\n3,\xe9t\xe9\n");
    assert!(
        found.starts_with("csv.encoding: , row 2 (line 3), column b"),
        "{found}"
    );
    assert!(lines(&columns(&["a"]), b"a,\xe9\n1,2\n")[0].contains("a column's name is not UTF-8"));
}

#[test]
fn a_quote_that_is_never_closed_is_found() {
    let found = one(&columns(&["a"]), "a,b\n1,2\n3,\"4\n5,6\n7,8\n");
    assert!(found.starts_with("csv.quotes: , row 2, the last one"), "{found}");
    assert!(
        lines(&columns(&["a"]), "\"a,b\n1,2\n")
            .iter()
            .any(|line| line.starts_with("csv.quotes"))
    );
    for closed in [
        "a,b\n1,\"x\"\"\"\n",
        "a,b\n1,\"x\ny\"",
        "a,b\n1,6\" pipe\n",
        "a,b\n1,\"\"\n",
    ] {
        assert_eq!(lines(&columns(&["a"]), closed), [""; 0], "{closed:?}");
    }
}

#[test]
fn findings_of_a_kind_are_capped_and_counted() {
    let expect = Expect::Csv(Csv {
        types: map("a", ColumnType::Integer),
        not_null: names(&["b"]),
        ..Csv::default()
    });
    let table = "a,b\n".to_owned() + &"x,\n".repeat(832);
    let found = lines(&expect, table);
    assert_eq!(found.len(), 2 * 21);
    let more: Vec<_> = found
        .iter()
        .filter(|line| line.contains("and 812 more like this"))
        .collect();
    assert_eq!(more.len(), 2);
}

#[test]
fn a_long_cell_is_cut() {
    let expect = Expect::Csv(Csv {
        types: map("a", ColumnType::Integer),
        ..Csv::default()
    });
    assert!(one(&expect, format!("a\n{}\n", "x".repeat(100_000))).len() < 400);
}

fn schema(schema: serde_json::Value) -> Expect {
    Expect::Json(Json { schema: Some(schema) })
}

#[test]
fn a_document_is_really_parsed() {
    let any = Expect::Json(Json::default());
    assert_eq!(lines(&any, "{\"a\": [1, 2.5, null]}\n"), [""; 0]);
    assert_eq!(lines(&any, "\u{feff}[]"), [""; 0]);
    let found = one(&any, "{\n  \"a\": 1,\n  \"b\": }\n");
    assert!(
        found.contains("line 3, column 8: the file is not JSON: expected value"),
        "{found}"
    );
    assert!(found.contains("found `\"b\": }`"), "{found}");
    assert!(one(&any, "[1, NaN]").contains("`NaN` is not JSON"));
    assert!(one(&any, "{\"a\": 1").contains("EOF while parsing"));
    assert!(one(&any, "").contains("found an empty file"));
    assert!(one(&any, "{} {}").contains("trailing characters"));
    assert!(one(&any, "[".repeat(100_000)).contains("recursion limit exceeded"));
    assert!(one(&any, b"\"\xff\"").starts_with("json.syntax"));
}

#[test]
fn all_errors_of_a_schema_are_found_with_their_place() {
    let expect = schema(json!({
        "type": "object",
        "required": ["items", "total"],
        "properties": {
            "items": { "type": "array", "items": {
                "type": "object",
                "properties": { "price": { "type": "number", "minimum": 0 } }
            }}
        }
    }));
    assert_eq!(
        lines(&expect, r#"{"items": [{"price": 1}], "total": 1}"#),
        [""; 0]
    );
    let found = lines(
        &expect,
        r#"{"items": [{"price": 1}, {"price": "x"}, {"price": -1}]}"#,
    )
    .join("\n");
    assert!(
        found.contains(", /items/1/price: the value is not of type \"number\""),
        "{found}"
    );
    assert!(
        found.contains(", /items/2/price: the value is less than the minimum of 0"),
        "{found}"
    );
    assert!(found.contains(", /: \"total\" is a required property"), "{found}");
    assert!(found.contains("found -1"), "{found}");
}

#[test]
fn a_reference_to_another_document_is_not_followed() {
    let remote = schema(json!({ "$ref": "http://127.0.0.1:9/schema.json" }));
    assert!(one(&remote, "{}").contains("the workflow's schema cannot be used"));
    let file = schema(json!({ "$ref": "file:///etc/passwd" }));
    assert!(one(&file, "{}").contains("the workflow's schema cannot be used"));
    let local = schema(json!({ "$defs": { "n": { "type": "number" } }, "$ref": "#/$defs/n" }));
    assert_eq!(lines(&local, "1"), [""; 0]);
}

fn encode(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn striped(width: u32, height: u32) -> DynamicImage {
    RgbImage::from_fn(width, height, |x, _| Rgb([if x % 2 == 0 { 255 } else { 0 }; 3])).into()
}

fn picture(format: Option<&str>) -> Image {
    Image {
        format: format.map(str::to_owned),
        ..Image::default()
    }
}

#[test]
fn a_picture_is_known_by_its_content_and_really_decoded() {
    let formats = [
        (ImageFormat::Png, "png"),
        (ImageFormat::Jpeg, "jpeg"),
        (ImageFormat::Gif, "gif"),
        (ImageFormat::WebP, "webp"),
        (ImageFormat::Bmp, "bmp"),
    ];
    for (format, name) in formats {
        let bytes = encode(&striped(8, 8), format);
        assert_eq!(
            lines(&Expect::Image(picture(Some(name))), &bytes),
            [""; 0],
            "{name}"
        );
        assert_eq!(lines(&Expect::Image(picture(None)), &bytes), [""; 0], "{name}");
    }
    let png = encode(&striped(64, 64), ImageFormat::Png);
    let found = one(&Expect::Image(picture(Some("jpeg"))), &png);
    assert!(found.contains("expected jpeg, found png"), "{found}");
    assert!(one(&Expect::Image(picture(None)), "no picture").contains("found text"));
    assert!(one(&Expect::Image(picture(None)), "").contains("found an empty file"));
    assert!(one(&Expect::Image(picture(None)), &png[..png.len() / 2]).starts_with("image.decode"));
    assert!(one(&Expect::Image(picture(None)), &png[..20]).starts_with("image.decode"));
}

#[test]
fn a_picture_has_the_size_that_is_wanted() {
    let expect = Expect::Image(Image {
        min_width: Some(10),
        max_width: Some(20),
        min_height: Some(10),
        max_height: Some(20),
        format: None,
    });
    let found = lines(&expect, encode(&striped(8, 30), ImageFormat::Png));
    assert_eq!(
        found,
        [
            "image.size: : the width is too small (expected at least 10 pixels, found 8 pixels)",
            "image.size: : the height is too large (expected at most 20 pixels, found 30 pixels)",
        ]
    );
    assert_eq!(
        lines(&expect, encode(&striped(10, 20), ImageFormat::Png)),
        [""; 0]
    );
}

#[test]
fn a_blank_picture_shows_nothing() {
    let any = Expect::Image(picture(None));
    let white: DynamicImage = RgbImage::from_pixel(600, 400, Rgb([255; 3])).into();
    let found = one(&any, encode(&white, ImageFormat::Png));
    assert!(found.contains("one colour all over, #ffffff"), "{found}");
    assert!(one(&any, encode(&white, ImageFormat::Jpeg)).starts_with("image.blank"));
    let hidden: DynamicImage =
        RgbaImage::from_fn(8, 8, |x, _| Rgba([if x < 4 { 0 } else { 200 }, 0, 0, 0])).into();
    assert!(one(&any, encode(&hidden, ImageFormat::Png)).contains("transparent"));
    let mut dot = RgbImage::from_pixel(600, 400, Rgb([255; 3]));
    dot.put_pixel(300, 200, Rgb([0; 3]));
    assert_eq!(lines(&any, encode(&dot.into(), ImageFormat::Png)), [""; 0]);
}

/// A few bytes that claim to be a picture of 60,000 by 60,000 pixels.
#[test]
fn a_picture_that_would_fill_the_memory_is_refused() {
    let mut png = encode(&striped(1, 1), ImageFormat::Bmp);
    // Width and height of a BMP are plain little-endian numbers at 18 and 22.
    png[18..22].copy_from_slice(&60_000_u32.to_le_bytes());
    png[22..26].copy_from_slice(&60_000_u32.to_le_bytes());
    let found = one(&Expect::Image(picture(None)), &png);
    assert!(found.contains("too large to be checked"), "{found}");
}

fn text(text: Text) -> Expect {
    Expect::Text(text)
}

#[test]
fn a_text_has_an_encoding() {
    let any = text(Text::default());
    assert_eq!(lines(&any, "gr\u{fc}n\n"), [""; 0]);
    assert!(one(&any, "").starts_with("text.empty"));
    let found = one(&any, b"good\nbad \xff here");
    assert!(
        found.contains("line 2: the file is not text in UTF-8") && found.contains("byte 0xff"),
        "{found}"
    );
    assert!(one(&any, "a\0b").contains("binary data"));
}

#[test]
fn a_character_beyond_ascii_is_named_with_its_place() {
    let ascii = text(Text {
        ascii: true,
        ..Text::default()
    });
    assert_eq!(lines(&ascii, "plain\ttext\n"), [""; 0]);
    assert_eq!(
        lines(&ascii, "a\nb \u{2014} c\u{e9}\n"),
        [
            "text.ascii: , line 2, column 3: a character is not ASCII (expected `-`, found `\u{2014}` (U+2014 em dash))",
            "text.ascii: , line 2, column 6: a character is not ASCII (expected plain ASCII, found `\u{e9}` (U+00E9))",
        ]
    );
    assert_eq!(lines(&ascii, "\u{e9}".repeat(100)).len(), 21);
}

#[test]
fn a_text_has_words_texts_and_patterns() {
    let expect = text(Text {
        min_words: Some(3),
        max_words: Some(4),
        contains: names(&["Method", "Result"]),
        pattern: Some("(?m)^# .+$".to_owned()),
        ascii: false,
    });
    assert_eq!(lines(&expect, "# Method\nResult x"), [""; 0]);
    assert_eq!(
        lines(&expect, "Method a b c d"),
        [
            "text.words: : the text is too long (expected at most 4 words, found 5 words)",
            "text.contains: : a text is missing (expected `Result` somewhere in the file)",
            "text.pattern: : the text does not match the pattern (expected `(?m)^# .+$` somewhere in the file)",
        ]
    );
    assert!(lines(&expect, "# Method Result")[..].is_empty());
    assert!(lines(&expect, "Result")[0].contains("at least 3 words, found 1 words"));
}

#[test]
fn a_file_has_a_size_and_a_kind() {
    let any = Expect::File(File::default());
    assert_eq!(lines(&any, "x"), [""; 0]);
    assert!(one(&any, "").contains("at least 1 bytes, found 0 bytes"));
    let sized = Expect::File(File {
        min_size: Some(2),
        max_size: Some(3),
        magic: None,
    });
    assert!(one(&sized, "x").contains("too small"));
    assert!(one(&sized, "xxxx").contains("too large"));
    let of_kind = |magic: &str| {
        Expect::File(File {
            magic: Some(magic.to_owned()),
            ..File::default()
        })
    };
    let pdf = b"%PDF-1.7\n...";
    for kind in ["pdf", ".pdf", "PDF", "application/pdf"] {
        assert_eq!(lines(&of_kind(kind), pdf), [""; 0], "{kind}");
    }
    let jpeg = encode(&striped(4, 4), ImageFormat::Jpeg);
    assert_eq!(lines(&of_kind("jpeg"), &jpeg), [""; 0]);
    assert!(one(&of_kind("pdf"), &jpeg).contains("expected pdf, found image/jpeg"));
    assert!(one(&of_kind("pdf"), "just text").contains("found text"));
    assert!(one(&of_kind("nonsense"), "x").contains("the workflow's check is wrong"));
}

#[test]
fn missing_and_refused_files_are_found_with_all_the_others_by_path() {
    let folder = TempDir::new().unwrap();
    let output = |path: &str, expect: Expect| Output {
        path: WorkspacePath::parse(path).unwrap(),
        expect,
    };
    let any = || Expect::File(File::default());
    let outputs = [
        output("output/a", any()),
        output("output/b", any()),
        output("output/c", any()),
        output("output/d", columns(&["x"])),
    ];
    let collected = [
        artifact(&folder, "output/a", b"good"),
        artifact(&folder, "output/d", b"y\n"),
    ];
    let refused = [(
        WorkspacePath::parse("output/c").unwrap(),
        "it is a link to /etc/passwd".to_owned(),
    )];
    let found = check_all(&outputs, &collected, &refused);
    let lines: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert_eq!(
        lines[0],
        "output/b: the file does not exist (expected a regular file at this path)"
    );
    assert!(
        lines[1]
            .starts_with("output/c: the file was not taken out of the sandbox: it is a link to /etc/passwd")
    );
    assert!(lines[2].starts_with("output/d, header: the column `x` is missing"));
}

#[test]
fn a_file_that_vanished_is_a_finding_and_no_panic() {
    let folder = TempDir::new().unwrap();
    let mut gone = artifact(&folder, "output/x", b"x");
    gone.file = folder.path().join("gone");
    for expect in [
        columns(&["a"]),
        Expect::Json(Json::default()),
        Expect::Image(picture(None)),
        text(Text::default()),
    ] {
        let found = check(&expect, &gone);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].check, "output.unreadable");
    }
}
