//! What stands there, and what of it is complete together.

use super::*;
use crate::trigger::drop_folder::routes::{Called, Routes};
use crate::workflow::trigger::{Batch, By, Drop};

const QUIET: Duration = Duration::from_secs(2);

/// A file with the second of its last change and the one it was last seen at.
type File = (&'static str, u64, u64);

/// Gathers at the second `now`. Gives the files of each parcel, with `+` for what goes with them, and what others wait for.
fn gathered(drops: &[(&str, Drop)], files: &[File], now: u64) -> (Vec<String>, Vec<String>) {
    let routes = Routes::new(drops.iter().map(|(name, drop)| (*name, drop))).expect("good globs");
    let fingerprint = Fingerprint { size: 1, mtime_ns: 0, inode: 1, device: 1 };
    let paths: Vec<RawPath> = files.iter().map(|(path, ..)| RawPath::new(*path)).collect();
    let (mut candidates, mut beside) = (Vec::new(), HashMap::new());
    for (path, (_, since, seen)) in paths.iter().zip(files) {
        let (since, seen) = (Duration::from_secs(*since), Duration::from_secs(*seen));
        match routes.called(path) {
            Called::Input(takers) => {
                candidates.push(Candidate { path, fingerprint, since, seen, quiet: QUIET, takers });
            }
            Called::Company(..) => drop(beside.insert(path, Beside { fingerprint, since, seen })),
            Called::Nothing => panic!("{path:?} is nobody's"),
        }
    }
    let gathered = gather(&candidates, &beside, QUIET, Duration::from_secs(now));
    let shown = |(_, parcel): &(Duration, Parcel)| {
        let files = parcel.files.iter().map(|file| file.path.display());
        let company = parcel.company.iter().map(|companion| format!("+{}", companion.change.path.display()));
        let runs = parcel.work.iter().map(|work| format!("{}:{:?}", work.route.workflow, work.files));
        files.chain(company).chain(runs).collect::<Vec<_>>().join(" ")
    };
    let waits = gathered.waits.iter().map(|(path, wait)| match wait {
        Wait::Time(due) => format!("{} until {:?}", path.display(), due.map(|due| due.as_secs())),
        Wait::Missing(reason, _) => format!("{}: {reason}", path.display()),
        Wait::GivenUp(reason) => format!("{} given up: {reason}", path.display()),
    });
    (gathered.parcels.iter().map(shown).collect(), waits.collect())
}

fn batch(by: By) -> Batch {
    Batch { by, require: Vec::new(), quiet: None, max: None, timeout: None }
}

fn by_folder(require: &[&str]) -> Drop {
    let require = require.iter().map(|glob| (*glob).to_owned()).collect();
    Drop { batch: Some(Batch { require, ..batch(By::Folder) }), ..Drop::new("{case}/*") }
}

#[test]
fn a_file_waits_for_its_sentinel_and_its_sidecar() {
    let drop = Drop {
        ready_when: Some("{name}.done".to_owned()),
        params_from: Some("{stem}.json".to_owned()),
        ..Drop::new("*.csv")
    };
    let drops = [("a", drop)];
    let (csv, done, json) = (("x.csv", 0, 9), ("x.csv.done", 8, 9), ("x.json", 0, 9));
    let lacks =
        |name: &str, option: &str| (vec![], vec![format!("x.csv: `{name}` is missing (`{option}` of a)")]);
    assert_eq!(gathered(&drops, &[csv], 9), lacks("x.csv.done", "ready_when"));
    assert_eq!(gathered(&drops, &[csv, done], 9), lacks("x.json", "params_from"));
    let all = vec!["x.csv +x.csv.done +x.json a:[0]".to_owned()];
    assert_eq!(gathered(&drops, &[csv, done, json], 9), (all, vec![]));
    // A sidecar has content, which must be quiet as well.
    let fresh = ("x.json", 8, 9);
    assert_eq!(gathered(&drops, &[csv, done, fresh], 9), (vec![], vec!["x.csv until Some(10)".to_owned()]));
}

#[test]
fn a_batch_is_complete_when_all_is_there_and_quiet() {
    let drops = [("a", by_folder(&["*.txt", "meta.json"]))];
    let (one, meta, late) = (("1/a.txt", 0, 9), ("1/meta.json", 5, 9), ("1/b.txt", 8, 9));
    let lacks = "1/a.txt: `meta.json` is missing (`batch.require` of a)".to_owned();
    assert_eq!(gathered(&drops, &[one], 9), (vec![], vec![lacks]));
    let all = vec!["1/a.txt 1/meta.json a:[0, 1]".to_owned()];
    assert_eq!(gathered(&drops, &[one, meta], 9), (all, vec![]));
    let waits = ["1/a.txt until Some(10)", "1/meta.json until Some(10)", "1/b.txt until Some(10)"];
    assert_eq!(gathered(&drops, &[one, meta, late], 9), (vec![], waits.map(str::to_owned).to_vec()));
    // Another folder is another batch.
    let other = ("2/meta.json", 0, 9);
    let (parcels, waits) = gathered(&drops, &[one, meta, other], 9);
    assert_eq!((parcels.len(), waits.len()), (1, 1));
}

#[test]
fn batches_are_by_stem_and_by_what_a_pattern_captures() {
    let stem = [("a", Drop { batch: Some(batch(By::Stem)), ..Drop::new("*") })];
    let files = [("x.pdf", 0, 9), ("x.json", 0, 9), ("y.pdf", 0, 9)];
    assert_eq!(gathered(&stem, &files, 9).0, ["x.json x.pdf a:[0, 1]", "y.pdf a:[0]"]);
    let by = By::Pattern("{customer}-*.csv".to_owned());
    let pattern = [("a", Drop { batch: Some(batch(by)), ..Drop::new("*") })];
    let files = [("tide-1.csv", 0, 9), ("mill-1.csv", 0, 9), ("tide-2.csv", 0, 9), ("other", 0, 9)];
    let parcels = ["tide-1.csv tide-2.csv a:[0, 1]", "mill-1.csv a:[0]", "other a:[0]"];
    assert_eq!(gathered(&pattern, &files, 9).0, parcels);
}

#[test]
fn so_many_files_go_at_once_and_the_rest_begins_anew() {
    let most = Batch { max: Some(2), quiet: Some(Duration::from_mins(1)), ..batch(By::Folder) };
    let drops = [("a", Drop { batch: Some(most), ..Drop::new("*") })];
    let files = [("1", 0, 9), ("2", 0, 9), ("3", 0, 9)];
    let rest = vec!["3 until None".to_owned()];
    assert_eq!(gathered(&drops, &files, 9), (vec!["1 2 a:[0, 1]".to_owned()], rest));
    assert_eq!(gathered(&drops, &files[2..], 9), (vec![], vec!["3 until Some(60)".to_owned()]));
}

#[test]
fn a_batch_that_stays_incomplete_is_given_up() {
    let mut drop = by_folder(&["meta.json"]);
    if let Some(batch) = &mut drop.batch {
        batch.timeout = Some(Duration::from_mins(1));
    }
    let drops = [("a", drop)];
    let files = [("1/a.txt", 0, 99)];
    assert!(gathered(&drops, &files, 59).1[0].starts_with("1/a.txt: `meta.json` is missing"));
    let given_up = "1/a.txt given up: `meta.json` is missing (`batch.require` of a); given up after 1 m 00 s \
                    (`batch.timeout`), a change of one of its files begins anew";
    assert_eq!(gathered(&drops, &files, 60).1, [given_up]);
}

#[test]
fn a_file_of_several_drops_is_taken_when_all_say_so_and_once() {
    let drops = [("each", Drop::new("**/*.txt")), ("all", by_folder(&["meta.json"]))];
    let (one, two, meta) = (("1/a.txt", 0, 9), ("1/b.txt", 0, 9), ("1/meta.json", 0, 9));
    assert_eq!(gathered(&drops, &[one, two], 9).0, Vec::<String>::new());
    let together = ["1/a.txt 1/b.txt 1/meta.json each:[0] each:[1] all:[0, 1, 2]"];
    assert_eq!(gathered(&drops, &[one, two, meta], 9).0, together);
}
