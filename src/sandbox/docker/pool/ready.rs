//! One container that stands ready: how it is made, and how it is known to be clean when it is handed out.

use std::time::{Duration, Instant};

use crate::diagnostic::Result;
use crate::event::isolation::Isolation;
use crate::sandbox::ReadyImage;
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::belongings::Belongings;
use crate::sandbox::docker::container::Up;
use crate::sandbox::docker::first::Hands;
use crate::sandbox::docker::pool::shape::Shape;
use crate::workflow::units::show_duration;

/// Stands where the run's id stands on a run's own: nobody knows yet whose it will be.
const WARM: &str = "warm";
/// A proof that takes longer than a new container is not worth waiting for.
const PATIENCE: Duration = Duration::from_secs(1);

/// A container that was started and looked at, and in which nothing has run.
pub(super) struct Ready {
    pub(super) up: Up,
    pub(super) volume: String,
}

impl Docker {
    /// Makes one, as a run's own is made. Nothing when that does not work: the next run meets the same error, and tells
    /// it.
    pub(super) async fn make_ready(&self, shape: &Shape, image: &ReadyImage) -> Option<Ready> {
        let name = format!("tidemill-{WARM}-{:016x}", fastrand::u64(..));
        match self.start_ready(&name, shape, image).await {
            // Without the helper nobody could give its commands their variables.
            Ok(up) if matches!(up.hands, Hands::Helper(_)) => Some(Ready { up, volume: name }),
            Ok(_) | Err(_) => {
                let belongings = Belongings { container: name.clone(), volume: name, parts: None };
                // What is not removed now is tried again with the next sweep.
                let _ = self.discard(&belongings).await;
                None
            }
        }
    }

    async fn start_ready(&self, name: &str, shape: &Shape, image: &ReadyImage) -> Result<Up> {
        let spec = shape.spec();
        self.make_workspace(name, WARM, &spec.limits).await?;
        self.start_with_helper(name, WARM, image, &spec, None).await
    }

    /// Its isolation as it is now, when it runs, is as isolated as it was asked to be, and nobody has been in it. The
    /// error says in words what is wrong.
    pub(super) async fn prove(&self, ready: &Ready, since: Instant) -> Result<Isolation, String> {
        let up = &ready.up;
        let looking =
            async { self.read_back(&up.id, &up.asked).await.map_err(|error| error.message().to_owned()) };
        let asking = async {
            let client = up.hands.client().map_err(|error| error.to_string())?;
            client.untouched().await.map_err(|error| error.to_string())
        };
        let proof = async { tokio::try_join!(looking, asking) };
        let proved = tokio::time::timeout(PATIENCE, proof).await;
        let (isolation, ()) = proved.map_err(|_| "it does not answer".to_owned())??;
        // Whole seconds: nobody needs to know it more exactly.
        let stood = show_duration(Duration::from_secs(since.elapsed().as_secs()));
        let warm = format!(
            "it stood ready for {stood}; when it was handed out it ran and was as isolated as at its start, no process \
             ran in it but the helper, and nothing stood in /workspace, /tmp and /dev/shm"
        );
        Ok(Isolation { warm: Some(warm), ..isolation })
    }
}
