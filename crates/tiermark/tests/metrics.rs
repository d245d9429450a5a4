//! What `load redis --metrics` and `pager --metrics` serve and `export --format openmetrics` writes: read by a parser of its own, by
//! Prometheus where that is installed, and asked by every query of the dashboard. Skipped where there is no redis-server.
#![forbid(unsafe_code)]

mod common;

use common::{Home, Need, Running, possible};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

const PATIENCE: Duration = Duration::from_secs(60);
/// What Prometheus adds to every metric that it reads.
const ADDED: [&str; 2] = ["instance", "job"];

fn can(test: &str, tool: &'static str) -> bool {
    possible(test, &[Need::Tool("redis-server")]) && possible(test, &[Need::Tool(tool)])
}

/// Whether Prometheus is asked as well; a test that is not skipped for it says so all the same.
fn has_prometheus(test: &str) -> bool {
    possible(&format!("{test} (the part with Prometheus)"), &[Need::Tool("prometheus"), Need::Tool("promtool")])
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64()
}

/// The head and the body that are served there; nothing when nobody answers.
fn get(port: u16, path: &str, accept: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // By 1.0, so that an answer is not in chunks.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: here\r\nAccept: {accept}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}

/// A sample of an exposition.
#[derive(Debug)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// Samples of a text without time stamps. Values of labels hold no `",` here.
fn samples(text: &str) -> Vec<Sample> {
    let line = |line: &str| {
        let (head, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line}"));
        let (name, labels) = head.split_once('{').unwrap_or((head, "}"));
        let labels = labels.strip_suffix('}').unwrap().split("\",").filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (name, value) = pair.split_once("=\"").unwrap();
            (name.to_owned(), value.trim_end_matches('"').to_owned())
        };
        Sample { name: name.to_owned(), labels: labels.map(pair).collect(), value: value.parse().unwrap() }
    };
    text.lines().filter(|line| !line.starts_with('#')).map(line).collect()
}

/// The names of metrics with those of their labels.
type Names = BTreeMap<String, BTreeSet<String>>;

fn names(samples: &[Sample]) -> Names {
    let mut names = Names::new();
    for sample in samples {
        names.entry(sample.name.clone()).or_default().extend(sample.labels.keys().cloned());
    }
    names
}

/// All queries of a dashboard: those of its panels, its annotations and its variables.
fn queries(dashboard: &Value) -> Vec<String> {
    match dashboard {
        Value::Object(fields) => {
            let own = fields.iter().filter(|(key, _)| matches!(key.as_str(), "expr" | "definition"));
            let own = own.filter_map(|(_, value)| value.as_str().map(str::to_owned));
            own.chain(fields.values().flat_map(queries)).collect()
        }
        Value::Array(all) => all.iter().flat_map(queries).collect(),
        _ => vec![],
    }
}

/// What is wrong with the names and labels of a query. It reads as much of PromQL as the dashboard has.
fn complaints(query: &str, names: &Names) -> Vec<String> {
    const WORDS: [&str; 13] = [
        "and",
        "or",
        "unless",
        "by",
        "without",
        "on",
        "ignoring",
        "group_left",
        "group_right",
        "bool",
        "offset",
        "inf",
        "nan",
    ];
    let (mut metrics, mut labels, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    let (mut rest, mut listing, mut before) = (query, None, "");
    while let Some(first) = rest.chars().next() {
        let word_end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
        let skip = match first {
            '"' => 2 + rest[1..].find('"').unwrap(),
            '[' => 1 + rest.find(']').unwrap(),
            '{' => {
                listing = Some('}');
                1
            }
            '(' if ["by", "without", "on", "ignoring"].contains(&before) => {
                listing = Some(')');
                1
            }
            _ if Some(first) == listing => {
                listing = None;
                1
            }
            _ if first.is_ascii_digit() => word_end,
            _ if first.is_alphabetic() => {
                let word = &rest[..word_end];
                let next = rest[word_end..].trim_start();
                let call = ["(", "by ", "without "].iter().any(|then| next.starts_with(then));
                match listing {
                    Some(_) => labels.push(word),
                    None if call || WORDS.contains(&word) => {}
                    None => metrics.push(word),
                }
                before = word;
                word_end
            }
            _ => first.len_utf8(),
        };
        if !first.is_alphabetic() && !first.is_whitespace() {
            before = "";
        }
        rest = &rest[skip..];
    }
    for metric in &metrics {
        if !names.contains_key(*metric) {
            wrong.push(format!("{metric} is not exported: {query}"));
        }
    }
    for label in labels {
        let has = |metric: &&str| names.get(*metric).is_some_and(|labels| labels.contains(label));
        if !ADDED.contains(&label) && !metrics.iter().any(has) {
            wrong.push(format!("{label} is no label there: {query}"));
        }
    }
    if metrics.is_empty() {
        wrong.push(format!("it asks for nothing: {query}"));
    }
    wrong
}

/// A query of a variable: the metric, and the label whose values it wants.
fn of_variable(query: &str) -> Option<(&str, &str)> {
    query.strip_prefix("label_values(")?.strip_suffix(')')?.split_once(", ")
}

fn checked(query: &str, names: &Names) -> Vec<String> {
    match of_variable(query) {
        Some((metric, label)) => complaints(&format!("sum by ({label}) ({metric})"), names),
        None => complaints(query, names),
    }
}

/// As Grafana fills it in.
fn filled_in(query: &str) -> String {
    let mut query = query.replace("$__rate_interval", "8s");
    for variable in ["$mode", "$medium", "$payload"] {
        query = query.replace(variable, ".+");
    }
    assert!(!query.contains('$'), "{query}");
    query
}

/// A Prometheus of the test's own, ended with it.
struct Prometheus {
    child: Child,
    port: u16,
}

impl Prometheus {
    /// Reads that page once a second, if any.
    fn start(dir: &Path, scraped: Option<u16>) -> Self {
        let port = free_port();
        let config = dir.join("prometheus.yml");
        let target = scraped.map_or_else(String::new, |port| {
            format!("scrape_configs:\n- job_name: tiermark\n  static_configs:\n  - targets: ['127.0.0.1:{port}']\n")
        });
        fs::write(&config, format!("global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\n{target}")).unwrap();
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", config.display()));
        command.arg(format!("--storage.tsdb.path={}", dir.join("tsdb").display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}")).arg("--log.level=error");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut prometheus = Prometheus { child, port };
        let begun = Instant::now();
        while !get(port, "/-/ready", "*/*").is_some_and(|(head, _)| head.contains(" 200 ")) {
            assert!(
                begun.elapsed() < PATIENCE && matches!(prometheus.child.try_wait(), Ok(None)),
                "Prometheus does not start"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        prometheus
    }

    /// The `data` of an answer to a question that Prometheus understands.
    fn ask(&self, path: &str, parameters: &[(&str, &str)]) -> Value {
        let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
        let parameters: Vec<String> =
            parameters.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
        let (_, body) = get(self.port, &format!("/api/v1/{path}?{}", parameters.join("&")), "*/*").unwrap();
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["status"], "success", "{parameters:?}: {answer}");
        answer["data"].clone()
    }

    /// The numbers that a query gives, once a second between these moments.
    fn numbers(&self, query: &str, from: f64, to: f64) -> Vec<f64> {
        let (from, to) = (from.to_string(), to.to_string());
        let data = self.ask("query_range", &[("query", query), ("start", &from), ("end", &to), ("step", "1")]);
        let series = data["result"].as_array().unwrap();
        let points = series.iter().flat_map(|one| one["values"].as_array().unwrap());
        let numbers = points.map(|point| point[1].as_str().unwrap().parse::<f64>().unwrap());
        numbers.filter(|number| number.is_finite()).collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Prometheus' own reading of a page: whether it can be parsed. What else promtool dislikes are names that others chose.
fn promtool_parses(page: &str) {
    let mut command = Command::new("promtool");
    let mut child = command.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let told = child.wait_with_output().unwrap();
    assert!([Some(0), Some(3)].contains(&told.status.code()), "{}", String::from_utf8_lossy(&told.stderr));
}

/// Makes the server stand still for some ms, so that its latency monitor has an event to tell.
fn hold_up(samples: &[Sample]) {
    let server = samples.iter().find(|sample| sample.name == "redis_instance_info").unwrap();
    let mut stream =
        TcpStream::connect((Ipv4Addr::LOCALHOST, server.labels["tcp_port"].parse::<u16>().unwrap())).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"EVAL \"local i = 0 while i < 1e7 do i = i + 1 end return i\" 0\r\n").unwrap();
    stream.read_exact(&mut [0]).unwrap();
}

/// The page's figures hold together; more of them than before.
fn hold_together(all: &[Sample], least: f64) -> f64 {
    let of = |name: &str| all.iter().filter(|sample| sample.name == name).collect::<Vec<_>>();
    let mut requests = 0.0;
    for total in of("tiermark_requests_total") {
        let same = |sample: &&Sample| total.labels.iter().all(|(name, value)| sample.labels.get(name) == Some(value));
        for name in ["duration", "service"] {
            let count = of(&format!("tiermark_request_{name}_seconds_count")).into_iter().find(same).unwrap();
            let buckets: Vec<&Sample> =
                of(&format!("tiermark_request_{name}_seconds_bucket")).into_iter().filter(same).collect();
            assert_eq!(count.value, buckets.last().unwrap().value, "{count:?}");
            // An interval may end between the two times of a request, so service is at times a little ahead.
            if name == "duration" {
                assert_eq!(count.value, total.value, "{total:?}");
            }
        }
        requests += total.value;
    }
    assert!(requests >= least, "{requests} after {least}");
    requests
}

fn words<'a>(work: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["load", "redis", "--on", work, "--payload", "64", "--repeat", "1", "--keys", "2000", "--json"];
    fixed.iter().chain(more).copied().collect()
}

/// Every query of the dashboard is about what is exported, and Prometheus answers each with figures.
#[test]
fn the_dashboards_queries_are_answered() {
    const NAME: &str = "the_dashboards_queries_are_answered";
    let home = Home::new();
    let dashboard: Value = serde_json::from_str(&home.run(&["load", "redis", "--dashboard"]).code(0).out).unwrap();
    let queries = queries(&dashboard);
    assert!(queries.len() > 40, "{queries:?}");
    if !can(NAME, "redis-server") {
        return;
    }
    let with_prometheus = has_prometheus(NAME);
    let (work, port) = (home.work(), free_port());
    let prometheus = with_prometheus.then(|| Prometheus::start(home.path(), Some(port)));
    let from = now();
    let at = format!("127.0.0.1:{port}");
    let more = ["--mode", "aof-rewrite", "--runtime", "14s", "--rate", "1000", "--threads", "1", "--metrics", &at];
    let mut running: Running = home.start(&words(work.to_str().unwrap(), &more));
    let mut page = String::new();
    running.until("the page tells of requests", || {
        page = get(port, "/metrics", "text/plain").map_or_else(String::new, |(_, page)| page);
        let words =
            ["redis_up 1\n", "\ntiermark_requests_total{", "\nredis_instance_info{", "\nnode_cpu_seconds_total{"];
        words.iter().all(|word| page.contains(word))
    });
    hold_up(&samples(&page));
    let mut requests = 0.0;
    running.until("the log was rewritten", || {
        let Some((head, text)) = get(port, "/metrics", "text/plain") else { return false };
        assert!(head.contains("text/plain; version=0.0.4"), "{head}");
        let all = samples(&text);
        requests = hold_together(&all, requests);
        let of = |name: &str| all.iter().find(|sample| sample.name == name).map(|sample| sample.value);
        let seen = of("tiermark_redis_forks_total") > Some(0.0) && text.contains("redis_latency_spike_last{");
        if seen {
            page = text;
        }
        std::thread::sleep(Duration::from_millis(200));
        seen
    });
    let (head, open) = get(port, "/metrics", "application/openmetrics-text; version=1.0.0").unwrap();
    assert!(head.contains("application/openmetrics-text; version=1.0.0") && open.ends_with("# EOF\n"), "{head}");
    let told = common::finish(running).code(0);
    assert!(told.err.contains(&format!("metrics at http://{at}/metrics")), "{told:?}");
    assert!(told.json()["cells"][0]["ops_per_s"].as_f64().unwrap() > 0.0);
    // It goes with the run.
    assert!(get(port, "/metrics", "*/*").is_none());
    home.assert_clean(&work);
    let all = samples(&page);
    let exported = names(&all);
    let wrong: Vec<String> = queries.iter().flat_map(|query| checked(query, &exported)).collect();
    assert_eq!(wrong, Vec::<String>::new());
    let cell = all.iter().find(|sample| sample.name == "tiermark_requests_total").unwrap();
    assert_eq!((cell.labels["mode"].as_str(), cell.labels["payload"].as_str()), ("aof-rewrite", "64"));
    assert_eq!(cell.labels["medium"], work.canonicalize().unwrap().to_str().unwrap());
    let Some(prometheus) = prometheus else { return };
    promtool_parses(&page);
    for query in &queries {
        if let Some((metric, label)) = of_variable(query) {
            let values = prometheus.ask(&format!("label/{label}/values"), &[("match[]", metric)]);
            assert_eq!(values.as_array().map(Vec::len), Some(1), "{query}: {values}");
            continue;
        }
        // Of a threshold that a quick machine may never pass: that there is something to compare with it.
        let asked = filled_in(query.strip_suffix(" > 0").unwrap_or(query));
        assert!(!prometheus.numbers(&asked, from, now()).is_empty(), "{query}");
    }
    // The fork is where the annotation puts it: in the middle, not everywhere.
    let forks = prometheus.numbers("increase(tiermark_redis_forks_total[4s]) > 0", from, now());
    assert!(!forks.is_empty() && forks.len() < 12, "{forks:?}");
}

/// A finished run becomes a past of Prometheus: its own command takes the file, and what it then answers is the record.
#[test]
fn a_finished_run_is_told_with_time_stamps() {
    const NAME: &str = "a_finished_run_is_told_with_time_stamps";
    if !can(NAME, "redis-server") {
        return;
    }
    let (home, from) = (Home::new(), now());
    let work = home.work();
    let more = ["--mode", "rdb", "--mode", "memory-only", "--runtime", "3s", "--rate", "500", "--threads", "1"];
    home.run(&words(work.to_str().unwrap(), &more)).code(0);
    let to = now();
    let text = home.run(&["export", "last", "--format", "openmetrics", "-o", "-"]).code(0).out;
    assert!(text.ends_with("# EOF\n"), "{text}");
    let record = home.last();
    let requests = |step: usize| record.steps[step].read.operations() + record.steps[step].write.operations();
    // `name{labels} value time`.
    let last = |mode: &str, command: &str| {
        let labels = format!("tiermark_requests_total{{mode=\"{mode}\",medium=\"");
        let lines =
            text.lines().filter(|line| line.starts_with(&labels) && line.contains(&format!("command=\"{command}\"")));
        let points: Vec<(f64, f64)> = lines
            .map(|line| {
                let (value, at) = line.rsplit_once("} ").unwrap().1.split_once(' ').unwrap();
                (value.parse().unwrap(), at.parse().unwrap())
            })
            .collect();
        assert!(points.len() >= 3 && points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 < b.1), "{points:?}");
        assert!(points.iter().all(|(_, at)| (from..to).contains(at)), "{from} {points:?} {to}");
        points.last().unwrap().0
    };
    for (step, mode) in ["rdb", "memory-only"].into_iter().enumerate() {
        assert_eq!((last(mode, "get") + last(mode, "set")) as u64, requests(step));
    }
    for name in ["node_cpu_seconds_total{cpu=\"all\"", "tiermark_redis_forks_total ", "redis_rdb_last_cow_size_bytes "]
    {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name}: {text}");
    }
    if !has_prometheus(NAME) {
        return;
    }
    let file = home.path().join("run.om");
    fs::write(&file, &text).unwrap();
    let mut command = Command::new("promtool");
    command.args(["tsdb", "create-blocks-from", "openmetrics"]).arg(&file).arg(home.path().join("tsdb"));
    let told = command.output().unwrap();
    assert!(told.status.success(), "{told:?}");
    let prometheus = Prometheus::start(home.path(), None);
    let p99 = "histogram_quantile(0.99, sum by (le, mode) (rate(tiermark_request_duration_seconds_bucket[3s])))";
    assert!(prometheus.numbers(p99, from, to + 5.0).iter().all(|number| *number > 0.0));
    let most =
        prometheus.numbers("sum by (mode) (tiermark_requests_total)", from, to + 5.0).into_iter().fold(0.0, f64::max);
    assert_eq!(most as u64, requests(0).max(requests(1)));
}

#[test]
fn where_it_cannot_listen_nothing_begins() {
    let home = Home::new();
    let work = home.work();
    let program = work.join("server");
    fs::write(&program, "#!/bin/sh\ntouch began\nexit 3\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let with = |at: &str| {
        let server = program.to_str().unwrap();
        home.run(&words(work.to_str().unwrap(), &["--server", server, "--mode", "memory-only", "--metrics", at]))
    };
    with(&taken).code(4).says(&[&taken, "in use", "another port"]);
    with("0.0.0.0:9121").code(2).says(&["0.0.0.0:9121", "loopback", "127.0.0.1:9121"]);
    with("192.0.2.7:80").code(2).says(&["loopback"]);
    with("9121").code(2).says(&["an address and a port"]);
    assert!(home.run(&["runs"]).code(0).out.lines().all(|line| !line.contains("redis")));
    fs::remove_file(&program).unwrap();
    home.assert_clean(&work);
}

/// The pager tells how it stands with each process, for as long as it helps; where it cannot listen, no program is started.
#[test]
fn the_pagers_page_is_there_as_long_as_it_helps() {
    const NAME: &str = "the_pagers_page_is_there_as_long_as_it_helps";
    if !possible(NAME, &[Need::Root]) {
        return;
    }
    let (home, port) = (Home::new(), free_port());
    let at = format!("127.0.0.1:{port}");
    let mut running = home.start(&["pager", "--metrics", &at, "--", "sh", "-c", "sleep 60 & wait"]);
    let mut page = String::new();
    running.until("both processes are told of", || {
        page = get(port, "/metrics", "text/plain").map_or_else(String::new, |(_, page)| page);
        std::thread::sleep(Duration::from_millis(100));
        ["sh", "sleep"].iter().all(|name| page.contains(&format!("name=\"{name}\",mode=\"watching\"}} 1\n")))
    });
    if has_prometheus(NAME) {
        promtool_parses(&page);
    }
    let all = samples(&page);
    assert_eq!(all.iter().filter(|sample| sample.name == "tiermark_pager_laps_total").count(), 2, "{page}");
    let cpu = all.iter().find(|sample| sample.name == "tiermark_pager_cpu_seconds_total").unwrap().value;
    assert!(cpu > 0.0, "{page}");
    let taken = home.run(&["pager", "--metrics", &at, "--", "touch", home.path().join("began").to_str().unwrap()]);
    taken.code(4).says(&[&at, "in use"]);
    home.run(&["pager", "--metrics", "0.0.0.0:9121", "--", "true"]).code(2).says(&["loopback"]);
    assert!(!home.path().join("began").exists());
    let sleeper = all.iter().find(|sample| sample.labels.get("name").is_some_and(|name| name == "sleep")).unwrap();
    let sleeper = rustix::process::Pid::from_raw(sleeper.labels["pid"].parse().unwrap()).unwrap();
    rustix::process::kill_process(sleeper, rustix::process::Signal::TERM).unwrap();
    common::finish(running).code(0);
    assert!(get(port, "/metrics", "*/*").is_none());
}

/// The check of queries finds what it is there for.
#[test]
fn a_query_about_nothing_is_found() {
    let page =
        "redis_up 1\ntiermark_requests_total{mode=\"a, b\",command=\"get\"} 3\nx_bucket{le=\"+Inf\",mode=\"a\"} 1\n";
    let names = names(&samples(page));
    for fine in [
        "redis_up",
        "sum by (mode) (rate(tiermark_requests_total{command=~\"no_metric\"}[5m])) / on (job) redis_up > bool 5",
        "histogram_quantile(0.99, sum by (le, mode) (rate(x_bucket[$__rate_interval])))",
        "time() - redis_up < 5",
        "label_values(tiermark_requests_total, mode)",
    ] {
        assert_eq!(checked(fine, &names), Vec::<String>::new());
    }
    for wrong in [
        "redis_down",
        "sum by (medium) (tiermark_requests_total)",
        "rate(tiermark_requests{mode=\"a\"}[5m])",
        "tiermark_requests_total{payload=\"64\"}",
        "redis_up + redis_upp",
        "label_values(tiermark_requests_total, medium)",
        "time()",
    ] {
        assert!(!checked(wrong, &names).is_empty(), "{wrong}");
    }
}
