//! In which order parcels that are complete at once are taken.

use std::time::Duration;

use crate::trigger::drop_folder::parcel::Parcel;
use crate::workflow::trigger::Order;

/// Puts parcels in order, each with the time its last file has waited since: the one that waited longest first. The
/// parcels of a drop with an order of its own share their places among themselves.
pub(super) fn arrange(mut parcels: Vec<(Duration, Parcel)>) -> Vec<Parcel> {
    parcels.sort_by(|left, right| (left.0, &left.1.files[0].path).cmp(&(right.0, &right.1.files[0].path)));
    let mut parcels: Vec<Parcel> = parcels.into_iter().map(|(_, parcel)| parcel).collect();
    let mut done: Vec<usize> = Vec::new();
    for index in 0..parcels.len() {
        let (key, order) = drop_of(&parcels[index]);
        if order == Order::Arrival || done.contains(&key) {
            continue;
        }
        let places: Vec<usize> =
            (index..parcels.len()).filter(|place| drop_of(&parcels[*place]).0 == key).collect();
        let mut own: Vec<Parcel> = places.iter().map(|place| parcels[*place].clone()).collect();
        match order {
            Order::Mtime => own.sort_by_key(|parcel| {
                let latest = parcel.files.iter().map(|file| file.fingerprint.mtime_ns).max();
                (latest, parcel.files[0].path.clone())
            }),
            Order::Name | Order::Arrival => {
                own.sort_by(|left, right| left.files[0].path.cmp(&right.files[0].path));
            }
        }
        for (place, parcel) in places.into_iter().zip(own) {
            parcels[place] = parcel;
        }
        done.push(key);
    }
    parcels
}

/// The drop whose order counts: the first one's.
fn drop_of(parcel: &Parcel) -> (usize, Order) {
    let first = parcel.work.first();
    first.map_or((usize::MAX, Order::Arrival), |work| (work.route.number, work.route.drop.order))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::input::{Fingerprint, InputChange, RawPath};
    use crate::event::state::InputState;
    use crate::trigger::drop_folder::parcel::Work;
    use crate::trigger::drop_folder::routes::{Called, Routes};
    use crate::workflow::trigger::Drop;

    fn arranged(order: Order, files: &[(&str, u64, i64)]) -> Vec<String> {
        let drop = Drop { order, ..Drop::new("*.csv") };
        let late = Drop::new("*.txt");
        let routes = Routes::new([("a", &drop), ("b", &late)]).expect("good globs");
        let parcel = |(path, since, mtime_ns): &(&str, u64, i64)| {
            let path = RawPath::new(*path);
            let Called::Input(takers) = routes.called(&path) else { panic!("an input") };
            let work = takers.into_iter().map(|route| Work { route, files: vec![0] }).collect();
            let fingerprint = Fingerprint { size: 1, mtime_ns: *mtime_ns, inode: 1, device: 1 };
            let file = InputChange { path, fingerprint, state: InputState::Ready, reason: None };
            (Duration::from_secs(*since), Parcel { files: vec![file], company: Vec::new(), work })
        };
        let parcels = arrange(files.iter().map(parcel).collect());
        parcels.iter().map(|parcel| parcel.files[0].path.display()).collect()
    }

    #[test]
    fn each_order_is_kept_among_the_files_of_its_drop() {
        let files = [("c.csv", 1, 2), ("x.txt", 2, 0), ("a.csv", 3, 3), ("b.csv", 4, 1)];
        assert_eq!(arranged(Order::Arrival, &files), ["c.csv", "x.txt", "a.csv", "b.csv"]);
        assert_eq!(arranged(Order::Name, &files), ["a.csv", "x.txt", "b.csv", "c.csv"]);
        assert_eq!(arranged(Order::Mtime, &files), ["b.csv", "x.txt", "c.csv", "a.csv"]);
    }
}
