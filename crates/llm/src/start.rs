//! What to start: the program, its arguments and its whole environment as plain data, so that another process, already in
//! the cgroup where the runner belongs, can become it. Nothing is started here.

use crate::error::LlmError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A program that runs models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runner {
    /// `ollama serve`; the weights are in its child `ollama runner`.
    Ollama,
    /// llama.cpp's `llama-server`; one process.
    LlamaServer,
}

impl fmt::Display for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Runner::Ollama => "Ollama",
            Runner::LlamaServer => "llama-server",
        })
    }
}

impl Runner {
    /// The name of its program.
    pub fn program(self) -> &'static str {
        match self {
            Runner::Ollama => "ollama",
            Runner::LlamaServer => "llama-server",
        }
    }

    pub(crate) fn source(self) -> &'static str {
        match self {
            Runner::Ollama => "https://ollama.com",
            Runner::LlamaServer => "https://github.com/ggml-org/llama.cpp",
        }
    }

    /// Its program in the folders of `path`, which is what the variable `PATH` holds.
    ///
    /// # Errors
    /// [`LlmError::NotFound`].
    pub fn find(self, path: &OsStr) -> Result<PathBuf, LlmError> {
        std::env::split_paths(path)
            .map(|folder| folder.join(self.program()))
            .find(|program| is_program(program))
            .ok_or_else(|| LlmError::NotFound { runner: self, searched: path.to_string_lossy().into_owned() })
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// What the model is loaded with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Tokens of the context: the prompt's and the generated ones. The KV cache is made for as many.
    pub context: u32,
    /// Threads that compute; the runner's own choice when not said.
    pub threads: Option<u32>,
    /// Whether the weights are a mapped file or read into anonymous memory. When not said, Ollama 0.6.8 reads them (on a CPU), and
    /// llama-server maps them.
    pub mmap: Option<bool>,
}

/// Which runner, and where it has its model from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "runner", rename_all = "kebab-case")]
pub enum Serves {
    /// Models that were added to its own folder.
    Ollama {
        /// The folder, as [`Blob::place`](crate::Blob::place) takes it.
        models: PathBuf,
    },
    /// One file.
    LlamaServer {
        /// The GGUF.
        model: PathBuf,
    },
}

/// A runner to be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Its program.
    pub program: PathBuf,
    /// Where on 127.0.0.1 it shall listen.
    pub port: u16,
    /// A folder of its own, which it takes for its user's home and may write to.
    pub home: PathBuf,
    /// Which runner it is.
    pub serves: Serves,
    /// What the model is loaded with; Ollama is told with each request instead.
    pub setup: Setup,
}

/// A program to become: plain data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Its path.
    pub program: String,
    /// What it is given, without its own name.
    pub arguments: Vec<String>,
    /// All that its environment shall hold.
    pub environment: BTreeMap<String, String>,
}

impl Command {
    /// As the standard library has it, with nothing to read.
    pub fn to_std(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.arguments).env_clear().envs(&self.environment).stdin(Stdio::null());
        command
    }
}

/// What of this process's environment a runner needs as well: where libraries are, and room for what is for a while.
const INHERITED: [&str; 3] = ["PATH", "LD_LIBRARY_PATH", "TMPDIR"];

fn text(path: &Path) -> Result<String, LlmError> {
    path.to_str().map(str::to_owned).ok_or_else(|| LlmError::Path(path.to_owned()))
}

impl Start {
    /// Where it will listen.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Which runner it is.
    pub fn runner(&self) -> Runner {
        match self.serves {
            Serves::Ollama { .. } => Runner::Ollama,
            Serves::LlamaServer { .. } => Runner::LlamaServer,
        }
    }

    /// What has to be executed.
    ///
    /// # Errors
    /// [`LlmError::Path`].
    pub fn command(&self) -> Result<Command, LlmError> {
        let mut environment: BTreeMap<String, String> =
            INHERITED.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect();
        let mut set = |name: &str, value: String| environment.insert(name.to_owned(), value);
        set("HOME", text(&self.home)?);
        let arguments = match &self.serves {
            Serves::Ollama { models } => {
                set("OLLAMA_HOST", self.addr().to_string());
                set("OLLAMA_MODELS", text(models)?);
                // At its start it would delete what no model of its own refers to yet.
                set("OLLAMA_NOPRUNE", "1".to_owned());
                // More would multiply the context, and hide the prompt from `Client::forget`.
                set("OLLAMA_NUM_PARALLEL", "1".to_owned());
                set("OLLAMA_MAX_LOADED_MODELS", "1".to_owned());
                // From a slow tier a load may stand still for longer than the 5 minutes that it allows by itself.
                set("OLLAMA_LOAD_TIMEOUT", "24h".to_owned());
                set("OLLAMA_KEEP_ALIVE", "-1".to_owned());
                set("OLLAMA_NOHISTORY", "1".to_owned());
                vec!["serve".to_owned()]
            }
            Serves::LlamaServer { model } => {
                let mut arguments: Vec<String> = ["--host", "127.0.0.1", "--port"].map(str::to_owned).into();
                arguments.extend([self.port.to_string(), "-m".to_owned(), text(model)?]);
                arguments.extend(["-c".to_owned(), self.setup.context.to_string(), "-np".to_owned(), "1".to_owned()]);
                // Warming up would touch all weights before anybody looks; layers on a GPU would not be in a tier.
                arguments.extend(["--no-warmup", "-ngl", "0"].map(str::to_owned));
                if let Some(threads) = self.setup.threads {
                    arguments.extend(["-t".to_owned(), threads.to_string()]);
                }
                // In the environment, because it ends at an option that it does not know: `--no-mmap` went in 2026, for `--load-mode`.
                match self.setup.mmap {
                    None => {}
                    Some(true) => {
                        set("LLAMA_ARG_LOAD_MODE", "mmap".to_owned());
                        set("LLAMA_ARG_MMAP", "true".to_owned());
                    }
                    Some(false) => {
                        set("LLAMA_ARG_LOAD_MODE", "none".to_owned());
                        set("LLAMA_ARG_MMAP", "false".to_owned());
                        set("LLAMA_ARG_NO_MMAP", "1".to_owned());
                    }
                }
                arguments
            }
        };
        Ok(Command { program: text(&self.program)?, arguments, environment })
    }
}

/// A port of 127.0.0.1 on which nobody listens now; the next one to ask may get it as well.
///
/// # Errors
/// What the system says when there is none.
pub fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    fn setup(mmap: Option<bool>) -> Setup {
        Setup { context: 512, threads: Some(2), mmap }
    }

    #[test]
    fn ollama_is_kept_to_its_own_folders_and_to_loopback() {
        let serves = Serves::Ollama { models: "/m".into() };
        let start = Start { program: "/o".into(), port: 7, home: "/h".into(), serves, setup: setup(None) };
        let command = start.command().unwrap();
        assert_eq!((command.program.as_str(), command.arguments.join(" ")), ("/o", "serve".to_owned()));
        let said: Vec<(&str, &str)> = command
            .environment
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .filter(|(name, _)| !INHERITED.contains(name))
            .collect();
        assert_eq!(
            said,
            [
                ("HOME", "/h"),
                ("OLLAMA_HOST", "127.0.0.1:7"),
                ("OLLAMA_KEEP_ALIVE", "-1"),
                ("OLLAMA_LOAD_TIMEOUT", "24h"),
                ("OLLAMA_MAX_LOADED_MODELS", "1"),
                ("OLLAMA_MODELS", "/m"),
                ("OLLAMA_NOHISTORY", "1"),
                ("OLLAMA_NOPRUNE", "1"),
                ("OLLAMA_NUM_PARALLEL", "1"),
            ]
        );
        let again: Command = serde_json::from_str(&serde_json::to_string(&command).unwrap()).unwrap();
        assert_eq!(again, command);
    }

    #[test]
    fn llama_server_is_told_on_its_command_line() {
        let serves = Serves::LlamaServer { model: "/m.gguf".into() };
        let mut start = Start { program: "/l".into(), port: 7, home: "/h".into(), serves, setup: setup(Some(false)) };
        let said = "--host 127.0.0.1 --port 7 -m /m.gguf -c 512 -np 1 --no-warmup -ngl 0 -t 2";
        assert_eq!(start.command().unwrap().arguments.join(" "), said);
        let mut told = |mmap| {
            start.setup.mmap = mmap;
            let environment = start.command().unwrap().environment;
            let told = environment.iter().filter(|(name, _)| name.starts_with("LLAMA_ARG_"));
            told.map(|(name, value)| format!("{}={value}", &name["LLAMA_ARG_".len()..])).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(told(None), "");
        assert_eq!(told(Some(true)), "LOAD_MODE=mmap MMAP=true");
        assert_eq!(told(Some(false)), "LOAD_MODE=none MMAP=false NO_MMAP=1");
        start.program = OsStr::from_bytes(b"/\xff").into();
        assert!(start.command().unwrap_err().to_string().contains("is not UTF-8"));
    }

    #[test]
    fn a_program_is_a_file_that_may_be_executed() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("a"), dir.path().join("b"));
        for folder in [&first, &second] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("ollama"), "").unwrap();
        }
        std::fs::set_permissions(second.join("ollama"), PermissionsExt::from_mode(0o755)).unwrap();
        let path = std::env::join_paths([&first, &second]).unwrap();
        assert_eq!(Runner::Ollama.find(&path).unwrap(), second.join("ollama"));
        assert!(Runner::LlamaServer.find(&path).unwrap_err().to_string().starts_with("there is no program"));
    }
}
