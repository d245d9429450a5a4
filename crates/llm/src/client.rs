//! Telling a runner what to do: wait until it is ready, add a model, load it, have it generate, put it away. Which words each
//! kind of runner has for that stands beside it; which process it is and what that costs the machine is for others.

use crate::blob::Blob;
use crate::error::{Asked, LlmError, excerpt};
use crate::generation::{Account, Ended, Generation, Prompt};
use crate::http::{Answer, Waiting, request};
use crate::start::{Runner, Setup};
use crate::{llama_server, ollama};
use basics::Nanos;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two looks at a runner that is not ready, or has not put its model away.
const PAUSE: Duration = Duration::from_millis(20);
/// For one such look.
const LOOK: Duration = Duration::from_secs(2);
const LEAST_LOOK: Duration = Duration::from_millis(500);
/// Bytes of the text that a generation keeps.
const MOST_TEXT: usize = 1 << 20;

/// What a line of an answer means.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// Nothing.
    Nothing,
    /// One more token, with its text.
    Token(String),
    /// The end.
    Done(Ended, Account),
    /// It cannot, in its words.
    Refused(String),
}

/// A runner that listens, and the one model that it is asked about.
#[derive(Debug, Clone)]
pub struct Client {
    runner: Runner,
    addr: SocketAddr,
    model: String,
    setup: Setup,
    patience: Duration,
}

fn since(began: Instant) -> Nanos {
    Nanos(began.elapsed().as_nanos() as u64)
}

impl Client {
    /// For the runner at `addr` and its `model`, which `llama-server` has only one of, loaded as `setup` says. `patience` is how long
    /// it may say nothing when it is asked for something: longer than a load, the prompt, and any one token take.
    ///
    /// # Errors
    /// [`LlmError::NotLoopback`].
    pub fn new(
        runner: Runner,
        addr: SocketAddr,
        model: &str,
        setup: Setup,
        patience: Duration,
    ) -> Result<Client, LlmError> {
        if !addr.ip().is_loopback() {
            return Err(LlmError::NotLoopback(addr));
        }
        Ok(Client { runner, addr, model: model.to_owned(), setup, patience })
    }

    /// The same with another patience.
    #[must_use]
    pub fn with_patience(&self, patience: Duration) -> Client {
        Client { patience, ..self.clone() }
    }

    fn asked(&self, what: &str) -> Asked {
        Asked { runner: self.runner, addr: self.addr, what: what.to_owned() }
    }

    fn request<'a>(
        &self,
        what: &str,
        path: &str,
        body: Option<&str>,
        waiting: Waiting<'a>,
    ) -> Result<Answer<'a>, LlmError> {
        let mut answer = request(self.asked(what), path, body, waiting)?;
        if answer.status == 200 {
            return Ok(answer);
        }
        let status = answer.status;
        let said = llama_server::said(&answer.whole()?);
        let said = if said.is_empty() { format!("status {status}") } else { excerpt(&said) };
        Err(LlmError::Refused { asked: self.asked(what), said })
    }

    fn whole(&self, what: &str, path: &str, body: Option<&str>, cancel: &AtomicBool) -> Result<String, LlmError> {
        self.request(what, path, body, Waiting { cancel, patience: self.patience })?.whole()
    }

    fn strange(&self, what: &str, answer: &str) -> LlmError {
        LlmError::Garbage { asked: self.asked(what), what: excerpt(answer) }
    }

    /// Waits until it is ready, and says how long that was. It is for `llama-server`, which loads its model first, the time of loading.
    /// `alive` says whether the process still runs.
    ///
    /// # Errors
    /// [`LlmError::Gone`], [`LlmError::NotReady`] after `patience`, [`LlmError::Cancelled`].
    pub fn wait_until_ready(
        &self,
        patience: Duration,
        cancel: &AtomicBool,
        alive: &mut dyn FnMut() -> bool,
    ) -> Result<Nanos, LlmError> {
        let path = match self.runner {
            Runner::Ollama => "/api/version",
            Runner::LlamaServer => "/health",
        };
        let began = Instant::now();
        loop {
            // The last look is not cut so short that nothing could be said in it.
            let look = LOOK.min(patience.saturating_sub(began.elapsed()).max(LEAST_LOOK));
            let last = match self.request("say whether it is ready", path, None, Waiting { cancel, patience: look }) {
                Ok(_) => return Ok(since(began)),
                Err(LlmError::Cancelled) => return Err(LlmError::Cancelled),
                Err(LlmError::Unreachable { source, .. }) => source.to_string(),
                Err(LlmError::Refused { said, .. }) => format!("it says {said}"),
                Err(LlmError::Garbage { what, .. }) => format!("it answers {what}"),
                Err(LlmError::Silent { .. }) => "it says nothing".to_owned(),
                Err(error) => error.to_string(),
            };
            if !alive() {
                return Err(LlmError::Gone { runner: self.runner, addr: self.addr });
            }
            if began.elapsed() >= patience {
                return Err(LlmError::NotReady { runner: self.runner, addr: self.addr, waited: since(began), last });
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Its version in its own words; a build of Ollama by `go install` says `0.0.0`. `llama-server` says it where it is asked for its
    /// properties, and older ones do not.
    ///
    /// # Errors
    /// Those of a request.
    pub fn version(&self, cancel: &AtomicBool) -> Result<String, LlmError> {
        let what = "say its version";
        let (path, key) = match self.runner {
            Runner::Ollama => ("/api/version", "version"),
            Runner::LlamaServer => ("/props", "build_info"),
        };
        let answer = self.whole(what, path, None, cancel)?;
        let value: Option<serde_json::Value> = serde_json::from_str(&answer).ok();
        let version = value.as_ref().and_then(|value| value.get(key)?.as_str());
        version.map(str::to_owned).ok_or_else(|| self.strange(what, &answer))
    }

    /// The names of the models that it has.
    ///
    /// # Errors
    /// Those of a request.
    pub fn models(&self, cancel: &AtomicBool) -> Result<Vec<String>, LlmError> {
        let what = "name its models";
        let path = match self.runner {
            Runner::Ollama => "/api/tags",
            Runner::LlamaServer => "/v1/models",
        };
        let answer = self.whole(what, path, None, cancel)?;
        let names = match self.runner {
            Runner::Ollama => ollama::names(&answer),
            Runner::LlamaServer => llama_server::names(&answer),
        };
        names.ok_or_else(|| self.strange(what, &answer))
    }

    /// The file on this machine that the model's weights are in, where the runner says so.
    ///
    /// # Errors
    /// Those of a request: [`LlmError::Refused`] when it knows no such model.
    pub fn model_file(&self, cancel: &AtomicBool) -> Result<Option<PathBuf>, LlmError> {
        let answer = match self.runner {
            Runner::Ollama => {
                let what = format!("show the model {:?}", self.model);
                self.whole(&what, "/api/show", Some(&ollama::show(&self.model)), cancel)?
            }
            Runner::LlamaServer => self.whole("say its properties", "/props", None, cancel)?,
        };
        Ok(match self.runner {
            Runner::Ollama => ollama::shown_file(&answer),
            Runner::LlamaServer => llama_server::shown_file(&answer),
        })
    }

    /// Makes the model of a file that was placed in the runner's folder. Only Ollama needs it; `llama-server` was started with its model,
    /// and nothing is done.
    ///
    /// # Errors
    /// Those of a request.
    pub fn add_model(&self, blob: &Blob, cancel: &AtomicBool) -> Result<(), LlmError> {
        if self.runner == Runner::LlamaServer {
            return Ok(());
        }
        let what = format!("add the model {:?}", self.model);
        let body = ollama::create(&self.model, &blob.digest);
        let answer = self.whole(&what, "/api/create", Some(&body), cancel)?;
        if ollama::is_created(&answer) { Ok(()) } else { Err(self.strange(&what, &answer)) }
    }

    /// Has the model loaded, and says how long that took; nothing for `llama-server`, which had it loaded when it was ready.
    ///
    /// # Errors
    /// Those of a request: [`LlmError::Refused`] when Ollama finds the model larger than `MemAvailable` and `SwapFree` together.
    pub fn load(&self, cancel: &AtomicBool) -> Result<Option<Nanos>, LlmError> {
        if self.runner == Runner::LlamaServer {
            return Ok(None);
        }
        let what = format!("load the model {:?}", self.model);
        let began = Instant::now();
        let answer = self.whole(&what, "/api/generate", Some(&ollama::load(&self.model, &self.setup)), cancel)?;
        if ollama::is_loaded(&answer) { Ok(Some(since(began))) } else { Err(self.strange(&what, &answer)) }
    }

    /// Has Ollama put the model away and waits until the process that held it is gone. `llama-server` has its model until it is ended,
    /// and nothing is done.
    ///
    /// # Errors
    /// Those of a request.
    pub fn unload(&self, cancel: &AtomicBool) -> Result<(), LlmError> {
        if self.runner == Runner::LlamaServer {
            return Ok(());
        }
        let what = format!("put the model {:?} away", self.model);
        self.whole(&what, "/api/generate", Some(&ollama::unload(&self.model)), cancel)?;
        let (began, name) = (Instant::now(), ollama::tagged(&self.model));
        loop {
            let answer = self.whole(&what, "/api/ps", None, cancel)?;
            let loaded = ollama::names(&answer).ok_or_else(|| self.strange(&what, &answer))?;
            if !loaded.contains(&name) {
                return Ok(());
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(LlmError::Cancelled);
            }
            if began.elapsed() >= self.patience {
                return Err(LlmError::Silent { asked: self.asked(&what), waited: since(began) });
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Has Ollama forget the prompt before, which it would else not compute again where the next one begins alike: it generates
    /// a token after another text. `llama-server` is told with each request, and nothing is done.
    ///
    /// # Errors
    /// Those of [`Client::generate`].
    pub fn forget(&self, cancel: &AtomicBool) -> Result<(), LlmError> {
        if self.runner == Runner::LlamaServer {
            return Ok(());
        }
        let other = Prompt { text: "~".to_owned(), tokens: NonZeroU32::MIN, seed: 0, varied: false };
        self.generate(&other, cancel, &mut |_| {}).map(drop)
    }

    /// Has a text continued. `told` hears of each token when it comes, with the time since the request.
    ///
    /// # Errors
    /// Those of a request; [`LlmError::Broke`] when the runner ended inside its answer, [`LlmError::Refused`] when it says that its model's
    /// process did.
    pub fn generate(
        &self,
        prompt: &Prompt,
        cancel: &AtomicBool,
        told: &mut dyn FnMut(Nanos),
    ) -> Result<Generation, LlmError> {
        let what = format!("generate {} tokens", prompt.tokens);
        let (path, body, step): (_, _, fn(&str) -> Option<Step>) = match self.runner {
            Runner::Ollama => ("/api/generate", ollama::generate(&self.model, &self.setup, prompt), ollama::step),
            Runner::LlamaServer => ("/completion", llama_server::completion(prompt), llama_server::step),
        };
        let began = Instant::now();
        let mut answer = self.request(&what, path, Some(&body), Waiting { cancel, patience: self.patience })?;
        let mut heard = Heard::default();
        let most = prompt.tokens.get() as usize;
        let mut silent = 0;
        let (ended, account) = loop {
            let line = answer.line().map_err(|error| with_tokens(error, heard.instants.len()))?;
            let Some(line) = line else { break (heard.without_account(self.runner), None) };
            match step(&line) {
                Some(Step::Nothing) => {}
                Some(Step::Token(text)) => {
                    let now = since(began);
                    if heard.instants.len() >= most && !text.is_empty() || silent > most {
                        return Err(answer.garbage("more tokens than it was asked for"));
                    }
                    if text.is_empty() {
                        silent += 1;
                    } else {
                        heard.hear(&text, now);
                        told(now);
                    }
                }
                Some(Step::Done(ended, account)) => break (ended, Some(account)),
                Some(Step::Refused(said)) => {
                    return Err(LlmError::Refused { asked: self.asked(&what), said: excerpt(&said) });
                }
                None => return Err(answer.garbage(excerpt(&line))),
            }
        };
        Ok(Generation { text: heard.text, total: since(began), instants: heard.instants, account, ended })
    }
}

/// What has come of a generation.
#[derive(Debug, Default)]
struct Heard {
    text: String,
    instants: Vec<Nanos>,
    last: String,
    equal: usize,
}

impl Heard {
    fn hear(&mut self, text: &str, now: Nanos) {
        self.instants.push(now);
        if self.text.len() + text.len() <= MOST_TEXT {
            self.text.push_str(text);
        }
        let bare = text.trim();
        self.equal = if bare == self.last { self.equal + 1 } else { 1 };
        bare.clone_into(&mut self.last);
    }

    fn without_account(&self, runner: Runner) -> Ended {
        let repeats = runner == Runner::Ollama && self.equal >= ollama::MOST_EQUAL - 1;
        if repeats { Ended::Repeats } else { Ended::NoAccount }
    }
}

fn with_tokens(error: LlmError, came: usize) -> LlmError {
    match error {
        LlmError::Broke { asked, why, .. } => LlmError::Broke { asked, tokens: came, why },
        error => error,
    }
}
