//! Files from the network.

use tidemill::event::id::Digest;

use super::{Yard, contents};
use crate::support::web::Web;

fn entry(url: &str, content: &str) -> String {
    format!(r#"["x.csv"] = mill.url("{url}", {{ sha256 = "{}" }})"#, Digest::of(content))
}

fn cached(yard: &Yard) -> usize {
    yard.project.files(".tidemill/cache").len()
}

#[tokio::test]
async fn a_file_is_fetched_once_and_then_comes_from_the_cache() {
    let (yard, web) = (Yard::new().await, Web::start().await);
    let url = web.page("/x.csv?key=abc", b"a,b\n");
    for _ in 0..2 {
        let filling = yard.fill(&entry(&url, "a,b\n")).await.unwrap();
        assert_eq!(contents(&filling)["x.csv"], "a,b\n");
        let origin = &filling.origins[0];
        assert_eq!(origin.sha256, Digest::of("a,b\n"));
        // A query may be a key.
        assert_eq!(origin.from.as_deref(), Some(url.replace("key=abc", "...").as_str()));
    }
    assert_eq!(web.asked(), ["/x.csv?key=abc"]);
    // A damaged cache is fetched again.
    let kept = yard.project.files(".tidemill/cache").remove(0);
    yard.project.put(std::path::Path::new(".tidemill/cache").join(kept), "damaged");
    let filling = yard.fill(&entry(&url, "a,b\n")).await.unwrap();
    assert_eq!(contents(&filling)["x.csv"], "a,b\n");
    assert_eq!(web.asked().len(), 2);
}

#[tokio::test]
async fn another_content_is_refused_and_not_kept() {
    let (yard, web) = (Yard::new().await, Web::start().await);
    let url = web.page("/x.csv", b"changed");
    let refused = yard.fill(&entry(&url, "a,b\n")).await.unwrap_err();
    assert_eq!(refused.code(), "manifest::wrong_hash");
    assert!(refused.message().contains(Digest::of("changed").as_str()), "{}", refused.message());
    assert!(refused.advice().unwrap().contains(Digest::of("a,b\n").as_str()));
    assert_eq!(cached(&yard), 0);
}

#[tokio::test]
async fn redirects_are_followed_a_few_times_and_never_elsewhere() {
    let (yard, web) = (Yard::new().await, Web::start().await);
    web.page("/x.csv", b"a,b\n");
    web.redirect("/two", "/x.csv");
    let one = web.redirect("/one", "/two");
    yard.fill(&entry(&one, "a,b\n")).await.unwrap();
    assert_eq!(web.asked(), ["/one", "/two", "/x.csv"]);
    let around = web.redirect("/loop", "/loop");
    let away = web.redirect("/away", "file:///etc/passwd");
    for (url, why) in [(around, "more redirects than 5"), (away, "cannot fetch")] {
        let refused = yard.fill(&entry(&url, "other")).await.unwrap_err();
        assert_eq!(refused.code(), "manifest::unreachable");
        assert!(refused.message().contains(why), "{}", refused.message());
    }
}

#[tokio::test]
async fn what_is_too_large_or_breaks_off_is_refused() {
    let (yard, web) = (Yard::new().await, Web::start().await);
    let announced = web.page("/announced", &[b'x'; 2000]);
    let open = web
        .raw("/open", &[b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".as_slice(), &[b'x'; 2000]].concat());
    for url in [announced, open] {
        let entry = format!(
            r#"["x"] = mill.url("{url}", {{ sha256 = "{}", max = "1KB" }})"#,
            Digest::of([b'x'; 2000])
        );
        assert_eq!(yard.fill(&entry).await.unwrap_err().code(), "manifest::too_large");
    }
    let short = web.raw("/short", b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
    let missing = web.page("/there", b"").replace("there", "not-there");
    for (url, why) in [(short, "broke off after 4 B"), (missing, "404 Not Found")] {
        let refused = yard.fill(&entry(&url, "half")).await.unwrap_err();
        assert!(refused.message().contains(why), "{}", refused.message());
    }
    assert_eq!(cached(&yard), 0);
    // What may pass is tried again, what will not is not.
    let times = |path: &str| web.asked().iter().filter(|asked| *asked == path).count();
    assert_eq!((times("/short"), times("/not-there"), times("/open")), (3, 1, 1));
    let busy = web.raw("/busy", b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    assert!(yard.fill(&entry(&busy, "x")).await.unwrap_err().message().contains("503"));
    assert_eq!(times("/busy"), 3);
}

#[tokio::test]
async fn what_a_dead_process_was_fetching_is_forgotten_after_a_day() {
    let (yard, web) = (Yard::new().await, Web::start().await);
    let day = std::time::Duration::from_secs(25 * 60 * 60);
    for (name, age) in [(".new-old", day), (".new-young", std::time::Duration::ZERO)] {
        let path = format!(".tidemill/cache/files/{name}");
        yard.project.put(&path, "half");
        let file = std::fs::File::options().write(true).open(yard.project.path(path)).unwrap();
        file.set_modified(std::time::SystemTime::now() - age).unwrap();
    }
    let url = web.page("/x.csv", b"a,b\n");
    yard.fill(&entry(&url, "a,b\n")).await.unwrap();
    assert!(!yard.project.path(".tidemill/cache/files/.new-old").exists());
    assert!(yard.project.path(".tidemill/cache/files/.new-young").exists());
}
