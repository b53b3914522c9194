//! What `tidemill explain` reads: what one path is, seen from the folders above it.

use std::os::unix::fs::symlink;

use tidemill::event::input::RawPath;
use tidemill::trigger::drop_folder::scan::{Sight, look_at};

use crate::support::project::Project;

#[test]
fn a_path_is_judged_by_the_folders_above_it_too() {
    let project = Project::new()
        .file("inbox/energy/a.csv", "")
        .file("inbox/.git/config", "")
        .file("inbox/@eaDir/x/a.csv", "");
    symlink("energy", project.path("inbox/link")).unwrap();
    let inbox = project.path("inbox");
    let look =
        |path: &str| look_at(&inbox, &RawPath::new(path)).map(|found| (found.path.display(), found.sight));

    assert_eq!(look("energy/a.csv"), Some(("energy/a.csv".to_owned(), Sight::File)));
    assert_eq!(look("energy"), Some(("energy".to_owned(), Sight::Other("a folder"))));
    assert_eq!(look("link/a.csv"), Some(("link".to_owned(), Sight::Link("was not followed"))));
    assert_eq!(look("energy/b.csv"), None);
    assert_eq!(look("nowhere/b.csv"), None);
    for path in [".git/config", "@eaDir/x/a.csv"] {
        let (folder, sight) = look(path).unwrap();
        assert_eq!(folder, path.split('/').next().unwrap());
        assert!(matches!(sight, Sight::Ignored(_)), "{path}: {sight:?}");
    }
}
