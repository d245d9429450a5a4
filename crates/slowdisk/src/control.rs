//! How a running disk is asked and told: a Unix socket that only its owner can open, one JSON object a line each way.

use crate::emulator::Steering;
use crate::error::{SlowdiskError, io_at};
use crate::faults::Fault;
use crate::figures::Figures;
use crate::registry::{Description, SOCKET};
use rustix::fs::Mode;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use sys::process::{Identity, Life};

/// A question may be no longer, and take no longer to be asked.
const LONGEST: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(5);
/// For the disk to be gone after it agreed to stop.
const GONE: Duration = Duration::from_secs(20);

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
enum Question {
    Show,
    Fault { faults: Vec<String> },
    Stop,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
enum Answer {
    Figures { figures: Box<Figures> },
    Done,
    Refused { why: String },
    Failed { why: String },
}

/// Answers on the socket until the process ends.
pub(crate) fn serve(folder: &Path, steering: Arc<Steering>) -> Result<(), SlowdiskError> {
    let path = folder.join(SOCKET);
    let listener = UnixListener::bind(&path).map_err(io_at("listen on", &path))?;
    // Its folder is closed to others already.
    rustix::fs::chmod(&path, Mode::RUSR | Mode::WUSR).map_err(|e| io_at("protect", &path)(e.into()))?;
    let answer_all = move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                std::thread::sleep(Duration::from_millis(50));
                continue;
            };
            // Whoever asks and does not wait for the answer loses it.
            let _ = converse(&stream, &steering);
        }
    };
    std::thread::Builder::new()
        .name("control".into())
        .spawn(answer_all)
        .map_err(io_at("start the thread for", &path))?;
    Ok(())
}

fn converse(stream: &UnixStream, steering: &Steering) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    let mut reader = BufReader::new(stream.take(LONGEST));
    while reader.read_line(&mut line)? > 0 {
        let answer = match serde_json::from_str(&line) {
            Ok(question) => answer(question, steering),
            Err(error) => Answer::Failed { why: format!("the question cannot be read: {error}") },
        };
        send(stream, &answer)?;
        line.clear();
    }
    Ok(())
}

fn answer(question: Question, steering: &Steering) -> Answer {
    match question {
        Question::Show => Answer::Figures { figures: Box::new(steering.disk.figures()) },
        Question::Fault { faults } => {
            // All or none.
            match faults.iter().map(|spec| spec.parse::<Fault>()).collect::<Result<Vec<_>, _>>() {
                Ok(faults) => {
                    faults.into_iter().for_each(|fault| steering.disk.fault(fault));
                    Answer::Done
                }
                Err(error) => Answer::Failed { why: error.to_string() },
            }
        }
        Question::Stop => match steering.in_use() {
            Some(why) => Answer::Refused { why },
            None => {
                steering.stop.store(true, SeqCst);
                Answer::Done
            }
        },
    }
}

fn send(mut stream: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// One that asks.
#[derive(Debug)]
pub struct Client {
    folder: PathBuf,
    owner: Identity,
}

impl Client {
    /// For this disk, which has this folder.
    pub fn new(description: &Description, folder: &Path) -> Self {
        Client { folder: folder.to_owned(), owner: description.owner.clone() }
    }

    fn ask(&self, question: &Question) -> Result<Answer, SlowdiskError> {
        let path = self.folder.join(SOCKET);
        let stream = UnixStream::connect(&path).map_err(io_at("reach the emulated disk at", &path))?;
        let converse = || -> io::Result<Answer> {
            stream.set_read_timeout(Some(PATIENCE))?;
            send(&stream, question)?;
            let mut line = String::new();
            BufReader::new(stream.take(LONGEST)).read_line(&mut line)?;
            Ok(serde_json::from_str(&line)?)
        };
        match converse().map_err(io_at("ask the emulated disk at", &path))? {
            Answer::Refused { why } => Err(SlowdiskError::Refused(why)),
            Answer::Failed { why } => Err(SlowdiskError::Told(why)),
            answer => Ok(answer),
        }
    }

    /// Its figures.
    ///
    /// # Errors
    /// [`SlowdiskError::Io`] when it does not answer.
    pub fn figures(&self) -> Result<Figures, SlowdiskError> {
        match self.ask(&Question::Show)? {
            Answer::Figures { figures } => Ok(*figures),
            _ => Err(SlowdiskError::Told("the emulated disk answered something else".to_owned())),
        }
    }

    /// Puts faults to work, all or none of them.
    ///
    /// # Errors
    /// [`SlowdiskError::Told`] with what is wrong with one; [`SlowdiskError::Io`].
    pub fn fault(&self, faults: &[String]) -> Result<(), SlowdiskError> {
        self.ask(&Question::Fault { faults: faults.to_vec() }).map(drop)
    }

    /// Stops it, and waits until it is gone.
    ///
    /// # Errors
    /// [`SlowdiskError::Refused`] while something uses it.
    pub fn stop(&self) -> Result<(), SlowdiskError> {
        self.ask(&Question::Stop)?;
        let began = Instant::now();
        while self.owner.life().is_ok_and(|life| life != Life::Gone) {
            if began.elapsed() > GONE {
                let why =
                    "the emulated disk agreed to stop and is not gone yet; look again with `tiermark emulate list`";
                return Err(SlowdiskError::Told(why.to_owned()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}
