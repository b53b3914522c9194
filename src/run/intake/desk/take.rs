//! Taking parcels: what is complete leaves the inbox as a whole or not at all, and becomes its runs.

use std::io;
use std::time::Duration;

use super::{Desk, blocking};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::Digest;
use crate::event::input::{Fingerprint, InputChange, InputFile, Role};
use crate::event::state::InputState;
use crate::event::trigger::{Params, Trigger};
use crate::run::intake::carry::{Carry, Taking, Way, bring_back, carry_all, why};
use crate::run::intake::notice::Notice;
use crate::run::intake::{place, plan, sidecar};
use crate::run::pause::passes;
use crate::store::{Claim, ClaimedFile, DropRun, NewRun, Taken, Then};
use crate::trigger::drop_folder::loops::Loops;
use crate::trigger::drop_folder::parcel::Parcel;
use crate::trigger::drop_folder::settle::Settling;
use crate::workflow::units::show_duration;

/// A parcel on its way.
struct OnTheWay<'a> {
    parcel: &'a Parcel,
    /// Files first, then what goes with them.
    members: Vec<Member>,
}

/// A file on its way.
struct Member {
    change: InputChange,
    taken: Taken,
    carry: Carry,
    role: Option<Role>,
    then: (Then, Then),
}

/// Why a parcel stays where it is.
struct Refusal {
    state: InputState,
    reason: String,
    /// It is tried again after this.
    wait: Duration,
}

impl Refusal {
    fn blocked(reason: String) -> Self {
        Self { state: InputState::Blocked, reason, wait: Settling::RETRY }
    }
}

impl Desk {
    /// Takes a group of parcels out of the inbox and queues their runs. Gives how many.
    pub(super) async fn take(&mut self, parcels: &[Parcel]) -> Result<usize> {
        let mut fit = Vec::with_capacity(parcels.len());
        for parcel in parcels {
            // Before anything is written: what may not be read stays where it is.
            match self.look_before(parcel) {
                Ok(()) => fit.push(parcel),
                Err(Some(refusal)) => self.refuse(parcel, &refusal).await?,
                // It went a moment ago; the next look shows that.
                Err(None) => {}
            }
        }
        let on_the_way = self.prepare(&fit).await?;
        let carries: Vec<Vec<Carry>> = on_the_way
            .iter()
            .map(|parcel| parcel.members.iter().map(|member| member.carry.clone()).collect())
            .collect();
        let takings: Vec<Vec<Taking>> =
            blocking(move || carries.iter().map(|parcel| carry_all(parcel)).collect()).await?;
        let (mut claims, mut claimed) = (Vec::new(), Vec::new());
        for (parcel, takings) in on_the_way.into_iter().zip(takings) {
            let Some(read) = read(&takings) else {
                let refusal = refusal(&parcel, &takings);
                self.undo(parcel, &takings, &refusal).await?;
                continue;
            };
            match sidecars(&parcel) {
                Ok(sidecars) => {
                    claims.push(self.claim_of(&parcel, &read, &sidecars).await?);
                    claimed.push(parcel);
                }
                Err(reason) => self.undo(parcel, &takings, &Refusal::blocked(reason)).await?,
            }
        }
        self.claim(&claims, &claimed).await
    }

    /// Whether nothing speaks against taking it; `Err(None)` when a file of it is not there any more.
    fn look_before(&mut self, parcel: &Parcel) -> Result<(), Option<Refusal>> {
        let now = self.clock.elapsed();
        let in_inbox = |change: &InputChange| self.inbox.join(change.path.as_path());
        for change in parcel.changes() {
            match self.links.open_file(&change.path) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(None),
                Err(error) => return Err(Some(Refusal::blocked(why(&error)))),
            }
        }
        for companion in parcel.company.iter().filter(|companion| companion.role == Role::Sidecar) {
            sidecar::read(&in_inbox(&companion.change)).map_err(|wrong| {
                let name = companion.change.path.display();
                Some(Refusal::blocked(format!("`{name}` (`params_from`): {wrong}")))
            })?;
        }
        if parcel.files.iter().any(|file| self.loops.is_looping(&file.path, now)) {
            let (limit, rest) = (self.watch.loop_limit, show_duration(Loops::REST));
            let reason = format!(
                "a loop: it was taken {limit} times within a minute (`loop_limit` under [watch]); left alone for {rest}"
            );
            let message = format!("{} comes again as often as it is taken", parcel.files[0].path.display());
            let warning = Diagnostic::new("watch::loop", message)
                .help("something answers to its runs by writing it again; it is left alone for some minutes");
            self.tell.say(Notice::Warned(warning.report()));
            return Err(Some(Refusal { state: InputState::Blocked, reason, wait: Loops::REST }));
        }
        Ok(())
    }

    /// Records that these parcels are complete, and where each file will be taken.
    async fn prepare<'a>(&self, parcels: &[&'a Parcel]) -> Result<Vec<OnTheWay<'a>>> {
        let changes: Vec<InputChange> = parcels.iter().flat_map(|parcel| parcel.changes().cloned()).collect();
        let mut taken = self.store.ready(&changes).await?.into_iter();
        let on_the_way = parcels.iter().map(|parcel| {
            let own: Vec<Taken> = taken.by_ref().take(parcel.changes().count()).collect();
            let members = parcel.changes().zip(own).enumerate();
            let members = members.map(|(index, (change, taken))| self.member(parcel, index, change, taken));
            OnTheWay { parcel, members: members.collect() }
        });
        Ok(on_the_way.collect())
    }

    fn member(&self, parcel: &Parcel, index: usize, change: &InputChange, taken: Taken) -> Member {
        let companion = index.checked_sub(parcel.files.len()).and_then(|index| parcel.company.get(index));
        let mut then = plan::afterwards(parcel, companion.map_or(index, |companion| companion.of));
        if place::is_read_only(&self.inbox.join(change.path.as_path())) {
            // Nothing can leave it, so that the ledger alone knows what was taken.
            then = (Then::Keep, Then::Keep);
        }
        let end = self.links.end(&change.path).cloned();
        let stays = then.0 == Then::Keep || then.1 == Then::Keep || end.is_some();
        let way = if stays { Way::Copy } else { Way::Move };
        let claimed = self.store.folder().join(&taken.claimed_path);
        let (inbox, path) = (self.inbox.clone(), change.path.clone());
        let carry = Carry { inbox, path, claimed, version: change.fingerprint, way, end };
        let role = companion.map(|companion| companion.role);
        Member { change: change.clone(), taken, carry, role, then }
    }

    async fn claim_of(
        &mut self,
        parcel: &OnTheWay<'_>,
        read: &[(Fingerprint, Digest)],
        sidecars: &[(usize, Params)],
    ) -> Result<Claim> {
        let at = self.clock.now();
        let digests: Vec<Digest> = read.iter().map(|(_, digest)| digest.clone()).collect();
        let mut runs = Vec::new();
        for work in &parcel.parcel.work {
            let Some(route) = self.workflows.iter().find(|route| route.workflow == work.route.workflow)
            else {
                continue;
            };
            let id = self.ids.fresh(at, &self.store).await?;
            let input = |file: &usize| InputFile {
                path: parcel.members[*file].change.path.clone(),
                size: read[*file].0.size,
                digest: digests[*file].clone(),
            };
            let run = NewRun {
                inputs: work.files.iter().map(input).collect(),
                params: plan::told(parcel.parcel, work, sidecars),
                input: Some(parcel.members[work.files[0]].taken.input),
                ..NewRun::new(id, &route.workflow, Trigger::Drop, route.bundle.clone(), &route.model, at)
            };
            let (place, content) = plan::sameness(parcel.parcel, work, &digests);
            let drop = &work.route.drop;
            let since = drop.window.and_then(|window| at.checked_sub(window).ok());
            runs.push(DropRun { run, place, content, dedupe: drop.dedupe, since });
        }
        let file = |(member, (fingerprint, digest)): (&Member, &(Fingerprint, Digest))| ClaimedFile {
            input: member.taken.input,
            fingerprint: *fingerprint,
            digest: digest.clone(),
            role: member.role,
            kept: member.carry.way == Way::Copy,
            on_success: member.then.0.clone(),
            on_failure: member.then.1.clone(),
        };
        Ok(Claim { files: parcel.members.iter().zip(read).map(file).collect(), runs })
    }

    /// Claims what was taken. Gives how many runs were queued.
    async fn claim(&mut self, claims: &[Claim], parcels: &[OnTheWay<'_>]) -> Result<usize> {
        let now = self.clock.elapsed();
        let done = self.store.claim(claims).await?;
        let mut queued = 0;
        for (parcel, claimed) in parcels.iter().zip(done) {
            queued += claimed.queued.len();
            for member in &parcel.members {
                let path = &member.change.path;
                match member.carry.way {
                    // It goes with the file again when that has changed.
                    Way::Copy if member.role.is_some() => {}
                    Way::Copy => self.settling.kept(path, member.change.fingerprint),
                    Way::Move => self.settling.claimed(path),
                }
                if member.role.is_none() {
                    self.refused.remove(path);
                    self.loops.took(path, now);
                }
            }
            let first = &parcel.members[0];
            if claimed.queued.is_empty() {
                match self.putter.put_duplicates_away(first.taken.input).await {
                    Err(error) if passes(&error) => return Err(error),
                    // It is kept, and the next start tries again.
                    Err(error) => self.tell.say(Notice::Warned(error.report())),
                    Ok(()) => {}
                }
            } else {
                self.tell.say(Notice::Claimed { path: first.change.path.clone(), runs: claimed.queued });
            }
        }
        Ok(queued)
    }

    /// Puts files back that were taken, if they were, and has them wait again.
    async fn undo(&mut self, parcel: OnTheWay<'_>, takings: &[Taking], refusal: &Refusal) -> Result<()> {
        for (member, taking) in parcel.members.iter().zip(takings) {
            let input = member.taken.input;
            let (carry, mark) = (member.carry.clone(), format!("again-{input}"));
            if let Err(error) = blocking(move || bring_back(&carry, &mark)).await? {
                // The ledger still says `ready`, so the next start tries again.
                let message = format!("cannot put {} back into the inbox", member.change.path.display());
                let warning = Diagnostic::new("watch::unmovable", message).cause(error).help(
                    "the inbox must be writable for this user; the file is kept in .tidemill/claimed until the next start",
                );
                self.tell.say(Notice::Warned(warning.report()));
                // And it does not stand in the inbox, so that it is not looked for there.
                self.settling.claimed(&member.change.path);
            } else if matches!(taking, Taking::Gone) {
                let reason = "it was taken out of the inbox while it was being claimed";
                self.store.put_back(input, InputState::Gone, reason).await?;
                self.settling.claimed(&member.change.path);
            } else if member.role.is_some() {
                let reason = "its file was not taken";
                self.store.put_back(input, InputState::Ignored, reason).await?;
            } else {
                self.store.put_back(input, refusal.state, &refusal.reason).await?;
                self.refuse_file(&member.change, refusal).await?;
            }
        }
        Ok(())
    }

    /// Leaves complete files where they are for now. They are looked at often, and recorded once.
    pub(super) async fn hold(&mut self, parcels: &[Parcel], reason: &str) -> Result<()> {
        let (now, mut held) = (self.clock.elapsed(), Vec::new());
        for change in parcels.iter().flat_map(|parcel| &parcel.files) {
            let (state, reason) = (InputState::Settling, Some(reason.to_owned()));
            let waits = InputChange { state, reason: reason.clone(), ..change.clone() };
            let waits = self.settling.refused(waits, Settling::RETRY, now);
            if self.refused.insert(change.path.clone(), reason.clone().unwrap_or_default()) != reason {
                held.push(waits);
            }
        }
        self.record(&held).await
    }

    async fn refuse(&mut self, parcel: &Parcel, refusal: &Refusal) -> Result<()> {
        for change in &parcel.files {
            self.refuse_file(change, refusal).await?;
        }
        Ok(())
    }

    async fn refuse_file(&mut self, change: &InputChange, refusal: &Refusal) -> Result<()> {
        let reason = refusal.reason.clone();
        let refused = InputChange { state: refusal.state, reason: Some(reason.clone()), ..change.clone() };
        let refused = self.settling.refused(refused, refusal.wait, self.clock.elapsed());
        if self.refused.insert(change.path.clone(), reason.clone()) == Some(reason) {
            // It is tried every few seconds, and was told.
            return self.store.record(&[refused]).await.map(drop);
        }
        self.record(&[refused]).await
    }
}

/// What the sidecars say that were taken.
fn sidecars(parcel: &OnTheWay<'_>) -> Result<Vec<(usize, Params)>, String> {
    let company = parcel.parcel.company.iter().zip(&parcel.members[parcel.parcel.files.len()..]);
    let sidecars = company.filter(|(companion, _)| companion.role == Role::Sidecar);
    sidecars
        .map(|(companion, member)| {
            let params = sidecar::read(&member.carry.claimed)
                .map_err(|wrong| format!("`{}` (`params_from`): {wrong}", companion.change.path.display()))?;
            Ok((companion.of, params))
        })
        .collect()
}

/// Versions and hashes, when all files were read.
fn read(takings: &[Taking]) -> Option<Vec<(Fingerprint, Digest)>> {
    let read = takings.iter().map(|taking| match taking {
        Taking::Read(fingerprint, digest) => Some((*fingerprint, digest.clone())),
        _ => None,
    });
    read.collect()
}

/// Why a parcel could not be taken: what is said of the one file that could not.
fn refusal(parcel: &OnTheWay<'_>, takings: &[Taking]) -> Refusal {
    let found = parcel.members.iter().zip(takings).find_map(|(member, taking)| {
        let (state, reason) = match taking {
            Taking::Changed(reason) => (InputState::Settling, reason.clone()),
            Taking::Blocked(reason) => (InputState::Blocked, reason.clone()),
            Taking::Gone => (InputState::Settling, "it was taken away while it was being claimed".to_owned()),
            Taking::Read(..) | Taking::Left => return None,
        };
        let reason = if parcel.members.len() > 1 {
            format!("`{}`, which goes with it: {reason}", member.change.path.display())
        } else {
            reason
        };
        Some(Refusal { state, reason, wait: Settling::RETRY })
    });
    found.unwrap_or_else(|| Refusal::blocked("it could not be taken".to_owned()))
}
