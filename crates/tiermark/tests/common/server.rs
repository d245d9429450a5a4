//! A Redis server that is none of tiermark's.

use super::{patiently, sh};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A server of somebody's, which goes when the test ends.
pub struct Server {
    pub child: Child,
    socket: PathBuf,
}

impl Server {
    pub fn start(dir: &Path, more: &[&str]) -> Self {
        let socket = dir.join("socket");
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--unixsocket"]).arg(&socket).args(more).current_dir(dir);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Server { child, socket };
        patiently("the server listens", || server.socket.exists());
        server
    }

    pub fn url(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    /// Gives it these commands.
    pub fn tell(&self, commands: &str) {
        let mut command = Command::new("redis-cli");
        command.arg("-s").arg(&self.socket).arg("--pipe").stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    }

    pub fn asked(&self, command: &str) -> String {
        sh(&format!("redis-cli -s {} {command}", self.socket.display()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
