//! A second server that each write is sent to, as far away as the plan says: the first one waits for no disk, and what is lost
//! with it is what was on its way.

use super::own::Beside;
use super::{Cell, Host, Site, failed};
use crate::RunError;
use basics::Nanos;
use basics::redis::{Link, Mode, Server};
use redisd::{Address, Control, Far, Knife};
use std::time::{Duration, Instant};

/// Until it has all that the first one has.
const LINKED: Duration = Duration::from_secs(120);
/// Until it sees that the first one is gone, once all on its way has arrived.
const SEEN: Duration = Duration::from_secs(30);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(5);

/// It runs. Fields go in this order.
pub(super) struct Replica {
    second: Beside,
    way: Far,
}

impl Replica {
    /// Of a server; nothing where its mode has none.
    pub fn of(server: &Server, first: &Address, site: Site<'_>) -> Result<Option<Self>, RunError> {
        let (Mode::Replica, Address::Tcp(first)) = (server.mode, first) else { return Ok(None) };
        let way = Far::to(*first, Duration::from_nanos(server.delay.unwrap_or(Nanos(0)).0)).map_err(failed)?;
        let mut settings = server.settings.clone();
        settings.insert("replicaof".to_owned(), format!("{} {}", way.address().ip(), way.address().port()));
        if let Some(password) = server.password() {
            settings.insert("masterauth".to_owned(), password.to_owned());
        }
        let second = Server { settings, link: Link::Tcp, ..server.clone() };
        Ok(Some(Replica { second: Beside::start(&second, site)?, way }))
    }

    /// Waits until it has all that the first one has.
    pub fn catch_up(&mut self, first: &mut Control) -> Result<(), RunError> {
        let begun = Instant::now();
        loop {
            let (ours, theirs) = (self.second.control.info().map_err(failed)?, first.info().map_err(failed)?);
            let linked = ours.get("master_link_status") == Some("up");
            if linked && ours.number("slave_repl_offset") == theirs.number("master_repl_offset") {
                return Ok(());
            }
            if begun.elapsed() > LINKED {
                return Err(failed(format!("the replica has not caught up within {} s", LINKED.as_secs())));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Ends it.
    pub fn end(self) -> Vec<RunError> {
        self.second.end()
    }
}

impl Cell<'_> {
    /// Its replica, where it has one, has all that there is.
    pub fn link_up(&mut self) -> Result<(), RunError> {
        match &mut self.host {
            Host::Own(own) => own.replica.as_mut().map_or(Ok(()), |replica| replica.catch_up(&mut self.control)),
            Host::Running(_) => Ok(()),
        }
    }

    /// What cuts the way to its replica, where it has one.
    pub fn way(&self) -> Option<Knife> {
        self.own()?.replica.as_ref().map(|replica| replica.way.knife())
    }

    /// The replica takes the place of the first server, which is gone, once what still arrives has arrived; false where there is none.
    pub(super) fn take_over(&mut self) -> Result<bool, RunError> {
        let Some(replica) = self.own_mut().and_then(|own| own.replica.take()) else { return Ok(false) };
        let mut second = replica.second;
        let begun = Instant::now();
        while second.control.info().map_err(failed)?.get("master_link_status") == Some("up") {
            if begun.elapsed() > SEEN {
                break;
            }
            std::thread::sleep(LOOK);
        }
        second.control.order("REPLICAOF NO ONE").map_err(failed)?;
        let Beside { control, address, helper, child, folder } = second;
        (self.address, self.control) = (address, control);
        if let Some(own) = self.own_mut() {
            (own.helper, own.child, own.taken_over) = (helper, child, Some(folder));
        }
        Ok(true)
    }
}
