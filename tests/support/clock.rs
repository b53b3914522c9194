//! A clock that stands still until a test moves it.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tidemill::clock::Clock;
use tokio::sync::watch;

/// Time as a test says it is. Sleepers wake when enough of it has passed.
#[derive(Debug)]
pub struct ManualClock {
    /// What the wall showed when nothing had passed.
    start: Mutex<Timestamp>,
    elapsed: watch::Sender<Duration>,
}

impl ManualClock {
    /// It is 2026-11-30 23:00 in UTC.
    pub fn new() -> Self {
        Self {
            start: Mutex::new("2026-11-30T23:00:00Z".parse().expect("a time")),
            elapsed: watch::Sender::new(Duration::ZERO),
        }
    }

    /// Somebody sets the clock on the wall; no time passes.
    pub fn set_wall(&self, now: Timestamp) {
        *self.start.lock().expect("a time") = now - self.passed();
    }

    fn passed(&self) -> jiff::SignedDuration {
        jiff::SignedDuration::try_from(self.elapsed()).expect("a short time")
    }

    /// How many wait for time to pass.
    pub fn sleepers(&self) -> usize {
        self.elapsed.receiver_count()
    }

    /// Lets a daemon do what it has to do, as far as it does not wait for time: its intake, its schedules and its queue
    /// wait for some when all is done. One that is ending is not waited for.
    pub async fn give_way(&self) {
        const SLEEPERS: usize = 3;
        // A disk may take its time, and one second of the test's is not to be a moment of the daemon's.
        for _ in 0..2000 {
            tokio::task::yield_now().await;
            if self.sleepers() >= SLEEPERS {
                return;
            }
        }
    }

    /// Time passes.
    pub fn advance(&self, duration: Duration) {
        self.elapsed.send_modify(|elapsed| *elapsed += duration);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

/// A clock on which waiting takes no time: it goes on by itself.
#[derive(Debug, Default)]
pub struct HastyClock(ManualClock);

#[async_trait]
impl Clock for HastyClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        self.0.advance(duration);
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.start.lock().expect("a time") + self.passed()
    }

    fn elapsed(&self) -> Duration {
        *self.elapsed.borrow()
    }

    async fn sleep(&self, duration: Duration) {
        let until = self.elapsed() + duration;
        let mut elapsed = self.elapsed.subscribe();
        elapsed.wait_for(|elapsed| *elapsed >= until).await.expect("the clock outlives its sleepers");
    }
}

#[tokio::test]
async fn sleepers_wake_when_their_time_has_come() {
    let clock = ManualClock::new();
    let before = clock.now();
    let mut sleep = clock.sleep(Duration::from_secs(2));
    tokio::select! {
        biased;
        () = &mut sleep => panic!("too early"),
        () = std::future::ready(()) => clock.advance(Duration::from_secs(2)),
    }
    sleep.await;
    assert_eq!(clock.now().duration_since(before).as_secs(), 2);
}
