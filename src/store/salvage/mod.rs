//! Saving what can be read of a damaged database. The database itself is only ever read: everything happens on a copy.

mod copy;
mod pages;
mod rows;

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sqlx::SqliteConnection;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::input::{RawPath, printable};
use copy::{Copy, Mended};
use rows::{Reader, Row};

/// What was saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Salvaged {
    /// A file for each table, `NAME.jsonl`: one row a line.
    pub tables: Vec<Table>,
    /// Pages the database should have.
    pub pages: u64,
    /// Pages of these that are missing or cannot be read.
    pub lost_pages: u64,
    /// What had to be put in for what was lost of the first page.
    pub first_page: FirstPage,
    /// Where claimed files are, and where they were dropped, as far as the ledger could be read.
    pub claimed: Vec<LeftFile>,
}

impl Salvaged {
    /// Whether nothing is known to be lost.
    pub fn is_whole(&self) -> bool {
        self.lost_pages == 0
            && self.first_page == FirstPage::Whole
            && self.tables.iter().all(|table| !table.gaps)
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Rows that were saved.
    pub rows: u64,
    /// Whether rows are missing that could not be read.
    pub gaps: bool,
}

/// What became of the page that says what the others are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstPage {
    /// It is as it was.
    Whole,
    /// Its header was lost; that of a new database is as good.
    Header,
    /// It was lost; rows are taken where they fit what a new database would hold.
    Replaced,
    /// It was lost, and nothing that could stand for it fits.
    Lost,
}

/// A file that was taken out of the inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftFile {
    /// Where it is, relative to the state folder.
    pub claimed: RawPath,
    /// Where it was dropped, relative to the inbox.
    pub dropped: RawPath,
}

/// Saves what can be read of the database `file` into the folder `into`, which must be new or empty.
///
/// Errors: `salvage::none`, `salvage::occupied`, `salvage::unwritable`. What cannot be read is told, and is no error.
pub async fn salvage(file: &Path, into: &Path) -> Result<Salvaged> {
    if !file.is_file() {
        let message = format!("{} is not there", printable(file.as_os_str()));
        return Err(Diagnostic::new("salvage::none", message).help("put back a copy of it, if there is one"));
    }
    prepare(into)?;
    let mut copy = Copy::make(file, into).await?;
    let mut salvaged = Salvaged {
        tables: Vec::new(),
        pages: copy.pages,
        lost_pages: 0,
        first_page: match copy.mended {
            Mended::Nothing => FirstPage::Whole,
            Mended::Header => FirstPage::Header,
            Mended::FirstPage => FirstPage::Replaced,
            Mended::Beyond => FirstPage::Lost,
        },
        claimed: Vec::new(),
    };
    salvaged.lost_pages = copy.lost_pages().await;
    for name in copy.tables().await {
        let table = save(&mut copy.connection, &name, into, &mut salvaged.claimed).await?;
        salvaged.tables.push(table);
    }
    copy.remove().await;
    Ok(salvaged)
}

fn prepare(into: &Path) -> Result<()> {
    std::fs::create_dir_all(into).map_err(|error| unwritable(into, error))?;
    let mut entries = into.read_dir().map_err(|error| unwritable(into, error))?;
    if entries.next().is_some() {
        let message = format!("the folder {} is not empty", printable(into.as_os_str()));
        return Err(Diagnostic::new("salvage::occupied", message).help("name a new one with `--into`"));
    }
    Ok(())
}

/// Writes all rows of a table that can be read.
async fn save(
    connection: &mut SqliteConnection,
    name: &str,
    into: &Path,
    claimed: &mut Vec<LeftFile>,
) -> Result<Table> {
    let path = into.join(format!("{name}.jsonl"));
    let failed = |error| unwritable(&path, error);
    let mut file = BufWriter::new(File::create(&path).map_err(failed)?);
    let mut reader = Reader::new(connection, name).await;
    let mut rows = 0;
    while let Some(row) = reader.next().await {
        serde_json::to_writer(&mut file, &row.values).map_err(|error| failed(error.into()))?;
        file.write_all(b"\n").map_err(failed)?;
        rows += 1;
        if name == "inputs" {
            claimed.extend(claimed_file(&row));
        }
    }
    file.flush().map_err(failed)?;
    Ok(Table { name: name.to_owned(), rows, gaps: reader.has_gaps() })
}

fn claimed_file(row: &Row) -> Option<LeftFile> {
    let path = |name: &str| row.values.get(name)?.as_str().map(RawPath::decode);
    Some(LeftFile { claimed: path("claimed_path")?, dropped: path("path")? })
}

fn unwritable(path: &Path, error: std::io::Error) -> Diagnostic {
    Diagnostic::new("salvage::unwritable", format!("cannot write to {}", printable(path.as_os_str())))
        .cause(error)
        .help("name a folder on a disk with room for a copy of the database with `--into`")
}

/// The journal that belongs to a database.
fn journal(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}
