//! What a client makes of answers: those that Ollama 0.6.8 gave, byte for byte as they came (`ollama-0.6.8/`), and those of servers
//! that hang, break off or talk nonsense. Each ends in a value or one clear sentence, in the time that was allowed.
#![forbid(unsafe_code)]

use basics::{Bytes, Nanos};
use llm::{Blob, Client, Ended, Generation, LlmError, Prompt, Runner, Setup};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const SETUP: Setup = Setup { context: 512, threads: Some(1), mmap: None };
static GO_ON: AtomicBool = AtomicBool::new(false);

/// A server that reads each request and then does `with` to its connection.
fn serve(with: impl Fn(&mut TcpStream, usize) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let whole = |request: &[u8]| {
                let text = String::from_utf8_lossy(request);
                let (head, body) = text.split_once("\r\n\r\n")?;
                let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?;
                (body.len() >= length.parse().ok()?).then_some(())
            };
            while whole(&request).is_none() {
                let mut room = [0; 4096];
                match stream.read(&mut room) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => request.extend(&room[..count]),
                }
            }
            with(&mut stream, number);
        }
    });
    addr
}

/// A server that gives these answers one after the other, in pieces of 7 bytes.
fn say(answers: &[Vec<u8>]) -> SocketAddr {
    let answers = answers.to_vec();
    serve(move |stream, number| {
        for piece in answers[number.min(answers.len() - 1)].chunks(7) {
            let _ = stream.write_all(piece);
        }
    })
}

fn recorded(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/ollama-0.6.8/{name}.http"))).unwrap()
}

fn client(runner: Runner, addr: SocketAddr, patience: Duration) -> Client {
    Client::new(runner, addr, "smollm2", SETUP, patience).unwrap()
}

fn ollama(names: &[&str]) -> Client {
    let answers: Vec<Vec<u8>> = names.iter().map(|name| recorded(name)).collect();
    client(Runner::Ollama, say(&answers), Duration::from_secs(10))
}

fn prompt(tokens: u32) -> Prompt {
    Prompt { text: "Once".to_owned(), tokens: NonZeroU32::new(tokens).unwrap(), seed: 1, varied: false }
}

fn generate(client: &Client) -> Result<Generation, LlmError> {
    let mut heard = Vec::new();
    let said = client.generate(&prompt(64), &GO_ON, &mut |now| heard.push(now))?;
    assert_eq!(heard, said.instants);
    assert!(said.instants.is_sorted() && said.instants.last() <= Some(&said.total));
    Ok(said)
}

#[test]
fn ollama_makes_the_tokens_that_it_was_asked_for() {
    let said = generate(&ollama(&["length"])).unwrap();
    assert_eq!((said.ended, said.instants.len(), said.tokens()), (Ended::Asked, 8, 8));
    let account = said.account.unwrap();
    assert_eq!(account.total, Some(Nanos(4_165_256_048)));
    assert_eq!(account.load, Some(Nanos(30_719_425)));
    assert_eq!((account.prompt_tokens, account.prompt_time), (4, Nanos(1_557_616_517)));
    assert_eq!((account.tokens, account.generate_time), (8, Nanos(2_576_120_266)));
    assert!((said.rate().unwrap() - 7.0 / 2.576_120_266).abs() < 1e-9);
}

#[test]
fn ollama_comes_to_the_end_of_its_text() {
    let said = generate(&ollama(&["stop"])).unwrap();
    assert_eq!((said.ended, said.tokens(), said.instants.len()), (Ended::OwnEnd, 18, 17), "{}", said.text);
}

#[test]
fn ollama_stops_at_equal_tokens_without_an_account() {
    let said = generate(&ollama(&["repeats"])).unwrap();
    assert_eq!((said.ended, said.account), (Ended::Repeats, None));
    assert!(said.instants.len() >= 31 && said.rate().is_some(), "{}", said.text);
}

#[test]
fn ollama_tells_that_the_process_of_its_model_died() {
    let error = generate(&ollama(&["runner-killed"])).unwrap_err().to_string();
    let said = "refused: \"an error was encountered while running the model: unexpected EOF\"";
    assert!(error.contains("asked to generate 64 tokens") && error.contains(said), "{error}");
}

#[test]
fn ollama_is_made_ready_and_told_what_to_do() {
    let ready = ollama(&["version"]);
    ready.wait_until_ready(Duration::from_secs(5), &GO_ON, &mut || true).unwrap();
    assert_eq!(ready.version(&GO_ON).unwrap(), "0.0.0");
    assert_eq!(ollama(&["tags"]).models(&GO_ON).unwrap(), ["smollm2:latest"]);
    let blob = Blob { digest: "sha256:1".to_owned(), path: "/x".into(), bytes: Bytes(1), copied: false };
    ollama(&["create"]).add_model(&blob, &GO_ON).unwrap();
    assert!(ollama(&["load"]).load(&GO_ON).unwrap().is_some());
    ollama(&["unload", "ps", "ps", "ps-none"]).unload(&GO_ON).unwrap();
}

#[test]
fn ollama_refuses_in_its_own_words() {
    let refused = |name: &str| ollama(&[name]).load(&GO_ON).unwrap_err().to_string();
    assert!(refused("missing").ends_with("asked to load the model \"smollm2\", refused: \"model 'none' not found\""));
    let large = "refused: \"model requires more system memory (2145.8 GiB) than is available (20.3 GiB)\"";
    assert!(refused("too-large").ends_with(large));
}

/// Asserts that the client's answer is an error of these words, and comes within `most`.
fn fails(client: &Client, most: Duration, words: &[&str]) {
    let began = Instant::now();
    let error = generate(client).unwrap_err().to_string();
    let took = began.elapsed();
    assert!(took < most, "{took:?}: {error}");
    assert!(error.starts_with(&format!("{} at 127.0.0.1:", runner_of(&error))) && error.len() < 700, "{error}");
    assert!(words.iter().all(|word| error.contains(word)) && !error.contains('\n'), "{error}");
}

fn runner_of(error: &str) -> &str {
    error.split(' ').next().unwrap()
}

/// Generous: other tests share the cores.
const SOON: Duration = Duration::from_secs(5);
const BOTH: [Runner; 2] = [Runner::Ollama, Runner::LlamaServer];

#[test]
fn a_server_that_hangs_is_waited_for_as_long_as_was_said_and_no_longer() {
    let patience = Duration::from_millis(300);
    let hung = |stream: &mut TcpStream, begin: &[u8]| {
        let _ = stream.write_all(begin);
        thread::sleep(Duration::from_secs(20));
    };
    for runner in BOTH {
        for begin in
            ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n{\"re"]
        {
            let addr = serve(move |stream, _| hung(stream, begin.as_bytes()));
            fails(&client(runner, addr, patience), SOON, &["said nothing for 300 ms", "allow more time"]);
        }
    }
    // One byte now and then is no line.
    let addr = serve(|stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(b" ").is_ok() {
            thread::sleep(Duration::from_millis(30));
        }
    });
    fails(&client(Runner::Ollama, addr, patience), SOON, &["said nothing for 300 ms"]);
    // Nobody takes the connection.
    let full = TcpListener::bind("127.0.0.1:0").unwrap();
    let began = Instant::now();
    let waiting = client(Runner::Ollama, full.local_addr().unwrap(), patience);
    assert!(matches!(waiting.load(&GO_ON), Err(LlmError::Silent { .. })) && began.elapsed() < SOON);
}

#[test]
fn whoever_waits_is_let_go_at_once() {
    let addr = serve(|_, _| thread::sleep(Duration::from_secs(20)));
    let cancel = Arc::new(AtomicBool::new(false));
    let later = cancel.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        later.store(true, Ordering::Relaxed);
    });
    let began = Instant::now();
    let result = client(Runner::Ollama, addr, Duration::from_secs(60)).generate(&prompt(3), &cancel, &mut |_| {});
    assert!(matches!(result, Err(LlmError::Cancelled)) && began.elapsed() < SOON, "{result:?}");
}

#[test]
fn an_answer_that_breaks_off_says_how_far_it_came() {
    let whole = recorded("length");
    let cut = whole[..whole.len() * 2 / 3].to_vec();
    let addr = say(&[cut]);
    fails(&client(Runner::Ollama, addr, SOON), SOON, &["broke off after 6 tokens", "inside its answer", "memory"]);
    for runner in BOTH {
        fails(&client(runner, say(&[vec![]]), SOON), SOON, &["broke off after 0 tokens", "before it answered"]);
    }
}

#[test]
fn an_end_without_an_account_is_told_from_an_end() {
    let answer =
        b"HTTP/1.1 200 OK\r\n\r\n{\"response\":\"a\",\"done\":false}\n{\"response\":\"b\",\"done\":false}".to_vec();
    let said = generate(&client(Runner::Ollama, say(&[answer]), SOON)).unwrap();
    assert_eq!((said.text.as_str(), said.ended, said.account, said.tokens()), ("ab", Ended::NoAccount, None, 2));
}

#[test]
fn nonsense_is_called_so() {
    let ok = |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes();
    let chunked = |body: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}").into_bytes();
    let token = "{\"response\":\"a\",\"done\":false}\n";
    for (answer, words) in [
        (b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), "no HTTP"),
        (vec![0xff; 5000], "no HTTP"),
        (ok("\u{1b}[2Jhello"), "\\u{1b}[2Jhello"),
        (ok("{}"), "{}"),
        (ok("[1,2]\n"), "[1,2]"),
        (ok(&token.repeat(65)), "more tokens than it was asked for"),
        (chunked("zz\r\n"), "a chunk without a length"),
        (chunked("2\r\nabcd\r\n"), "a chunk longer than its length"),
        (chunked("fffffffffffffffffff\r\n"), "a chunk without a length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n".to_vec(), "content of length \"-4\""),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n".to_vec(), "transfer coding \"gzip\""),
        ([&ok("aaa")[..36], b"\xff\xff\xff"].concat(), ""),
    ] {
        let addr = say(&[answer]);
        fails(&client(Runner::Ollama, addr, SOON), SOON, &[words]);
    }
    let gone = |runner| client(runner, say(&[ok("what")]), SOON);
    fails(&gone(Runner::LlamaServer), SOON, &["answered what no such runner answers: \"what\""]);
    assert!(gone(Runner::Ollama).models(&GO_ON).unwrap_err().to_string().contains("\"what\""));
    assert!(gone(Runner::LlamaServer).version(&GO_ON).unwrap_err().to_string().contains("\"what\""));
}

#[test]
fn what_has_no_end_is_not_kept() {
    for (begin, words) in [
        ("HTTP/1.1 200 OK\r\n\r\n", "a line of over 4 MiB"),
        ("HTTP/1.1 200 OK\r\nX: ", "before any content"),
        ("HTTP/1.1 500 No\r\n\r\n", "over 16 MiB"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;", "a chunk's length that does not end"),
    ] {
        let addr = serve(move |stream, _| {
            let _ = stream.write_all(begin.as_bytes());
            while stream.write_all(&[b'a'; 65536]).is_ok() {}
        });
        fails(&client(Runner::Ollama, addr, Duration::from_secs(30)), Duration::from_secs(20), &[words]);
    }
}

#[test]
fn one_that_never_gets_ready() {
    let port = llm::free_port().unwrap();
    let nobody = client(Runner::Ollama, ([127, 0, 0, 1], port).into(), SOON);
    let wait = |client: &Client, alive: bool| {
        client.wait_until_ready(Duration::from_millis(200), &GO_ON, &mut || alive).unwrap_err().to_string()
    };
    assert!(wait(&nobody, false).starts_with("Ollama ended before it answered at 127.0.0.1:"));
    assert!(wait(&nobody, true).contains("Connection refused"));
    let loading = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 65\r\n\r\n\
                    {\"error\":{\"code\":503,\"message\":\"Loading model\",\"type\":\"unavail\"}}";
    let loading = client(Runner::LlamaServer, say(&[loading.to_vec()]), SOON);
    let told = wait(&loading, true);
    assert!(
        told.contains("was not ready at") && told.contains("it says \"Loading model\"; allow it more time"),
        "{told}"
    );
    let far = Client::new(Runner::Ollama, ([192, 0, 2, 1], 1).into(), "m", SETUP, SOON).unwrap_err().to_string();
    assert!(far.starts_with("192.0.2.1:1 is not on loopback"), "{far}");
}
