//! A step in the middle of which its server is lost, and after which it is started again.

use super::{Running, write_account};
use crate::RunError;
use crate::pressed::Heard;
use crate::ready::Targets;
use crate::redis::{Cell, Cut};
use basics::plan::Step;
use basics::pressure::Load;
use basics::redis::{Lose, Served, Server};
use engine::Ended;
use record::StepRecord;

impl Running<'_, '_> {
    /// Loads the server until it is lost, starts it again, and looks for what it had acknowledged.
    pub(super) fn lose(
        &mut self,
        how: Lose,
        cell: &mut Cell<'_>,
        (server, step): (&Server, &Step),
        disks: Vec<String>,
        targets: &mut Targets<'_>,
        account: &mut StepRecord,
    ) -> Result<(), RunError> {
        let (cancel, program) = (self.runner.interrupted, self.runner.program);
        // What the file system needs to be one is durable before: a disk that lies is asked about the server's data.
        cell.settle();
        targets.media().flush(&server.medium)?;
        let version = cell.version()?;
        cell.link_up()?;
        targets.media().begin_trouble(&server.medium)?;
        let disk = match how {
            Lose::Power => targets.media().take_power(&server.medium),
            Lose::Kill => None,
        };
        let cut = Cut::new(how, &step.job, disk, cell.way())?;
        let run = |sink: &mut dyn FnMut(Heard<'_>)| cell.run_until_lost(&step.job, &cut, cancel, sink);
        let (mut outcome, gone) = self.watched(step, Some(disks), account, run)?;
        let each = std::mem::take(&mut outcome.each);
        if !matches!(outcome.ended, Ended::Failed { .. } | Ended::Time | Ended::Operations) {
            return write_account(outcome, account);
        }
        cell.bury()?;
        let unmountable = match how {
            Lose::Power => targets.media().return_power(&server.medium)?,
            Lose::Kill => None,
        };
        let did_not_start = match unmountable {
            Some(why) => Some(format!("its file system is gone: {why}")),
            None => cell.again(targets.site(program)),
        };
        let lost = cell.look_for(&each, step.job.block.smallest(), &cut, gone, did_not_start, cancel)?;
        let served = cell.account_of_lost(version, &outcome, lost);
        let served = Served { payload: step.job.block.mean(), ..served };
        account.load = Some(Box::new(Load { redis: Some(Box::new(served)), ..Load::default() }));
        // That its connections broke is what was meant to happen.
        outcome.ended = Ended::Time;
        write_account(outcome, account)?;
        account.ended_by = how.happened().to_owned();
        Ok(())
    }
}
