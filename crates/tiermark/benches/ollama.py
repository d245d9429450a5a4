#!/usr/bin/env python3
"""The pager beside a real runner of models, against the plain kernel, in turns: what docs/pager.md's table holds.

    sudo crates/tiermark/benches/ollama.py swap --pairs 5              from swap, 650 MiB, disk-425
    sudo crates/tiermark/benches/ollama.py mapped --pairs 5            its weights mapped, a file on that disk, and a swap file beside it
    sudo crates/tiermark/benches/ollama.py swapless --pairs 5          mapped, with no swap for what else it has
    sudo crates/tiermark/benches/ollama.py held --pairs 5              a board's processor: 2.8 tokens a second in memory
    sudo crates/tiermark/benches/ollama.py limits|neighbour|fits|touch|prompt|phases|kills|big|bench|floor
    sudo crates/tiermark/benches/ollama.py all                         every one of them: two hours and a half

Needs tiermark (TIERMARK), ollama 0.6.8 (OLLAMA) or llama-server (LLAMA_SERVER), and a GGUF (MODEL) of random weights:
`cargo run --release -p llm --example random -- FILE layers=12,embd=2048,ffn=5632,heads=16,kv_heads=16,vocab=32000`.
Ollama is to be built with the processor's wide registers, as its releases are; a plain `go install` has none, and half the speed in memory:
`CGO_CFLAGS="-O3 -march=x86-64-v3" CGO_CXXFLAGS="-O3 -march=x86-64-v3" go install github.com/ollama/ollama@v0.6.8`.
OLLAMA_NUM_PARALLEL=2 has room for two sequences, as Ollama has by itself (1 here). OLLAMA_STORE keeps Ollama's copy of it from one run to the next. Memory and processor are held by version 1 control groups. One line of JSON for each turn, then the medians.
"""
import argparse, atexit, contextlib, ctypes, json, os, pathlib, random, re, shutil, signal, statistics, subprocess, sys, tempfile, threading, time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parents[3]
TIERMARK = os.environ.get("TIERMARK", str(HERE / "target/release/tiermark"))
OLLAMA = os.environ.get("OLLAMA", "ollama")
LLAMA_SERVER = os.environ.get("LLAMA_SERVER", "llama-server")
MODEL = os.environ.get("MODEL", "random.gguf")
MEMORY, CPU = pathlib.Path("/sys/fs/cgroup/memory/tm-bench"), pathlib.Path("/sys/fs/cgroup/cpu/tm-bench")
WORK = pathlib.Path(tempfile.mkdtemp(prefix="tm-bench."))
atexit.register(shutil.rmtree, WORK, ignore_errors=True)
ENV = {**os.environ, "XDG_DATA_HOME": str(WORK / "data"), "HOME": str(WORK)}
PORT, PERIOD_US = 11621, 100_000
MIB = 1 << 20
# Tokens a second in memory.
BOARD = 2.8


def tiermark(*words):
    words = [TIERMARK, *map(str, words)]
    with subprocess.Popen(words, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as one:
        try:
            out, error = one.communicate()
        except BaseException:
            # It puts back what it changed; `subprocess.run` would kill it.
            one.terminate()
            raise
    if one.returncode:
        raise SystemExit(f"{' '.join(words)}: status {one.returncode}: {error.strip()}")
    return out


def settle(path, value, tries=50):
    """A limit below what is used takes some goes."""
    for _ in range(tries):
        try:
            return path.write_text(str(value))
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{path} does not take {value}")


class Group:
    """The control group of the program that is helped."""

    def __enter__(self):
        for path in (MEMORY, CPU):
            path.mkdir(exist_ok=True)
        self.limit(None)
        self.quota(None)
        self.ended = threading.Event()
        threading.Thread(target=self.renew, daemon=True).start()
        return self

    def renew(self):
        """Has the kernel count anew what the group holds. By old counts it takes what could be swapped for what cannot, and its memory killer
        ends whoever loads a model."""
        while not self.ended.wait(0.02):
            with contextlib.suppress(OSError):
                (MEMORY / "memory.stat").read_bytes()

    def limit(self, mib):
        settle(MEMORY / "memory.limit_in_bytes", -1 if mib is None else int(mib * MIB))

    def quota(self, cores):
        (CPU / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (CPU / "cpu.cfs_quota_us").write_text("-1" if cores is None else str(int(cores * PERIOD_US)))

    def start(self, words, env=ENV, **more):
        def enter():
            for path in (MEMORY, CPU):
                (path / "cgroup.procs").write_text(str(os.getpid()))
        return subprocess.Popen(list(map(str, words)), env=env, preexec_fn=enter, **more)

    def __exit__(self, *_):
        self.ended.set()
        for pid in (MEMORY / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        for path in (MEMORY, CPU):
            for _ in range(100):
                with contextlib.suppress(OSError):
                    path.rmdir()
                    break
                time.sleep(0.1)


@contextlib.contextmanager
def disk(profile, mounted=None, holds=None, swap=True):
    """A slow disk: as swap, or with a file system on it, and there a copy of a directory, none of it in memory, and a swap file."""
    device = json.loads(tiermark("emulate", profile, "--size", "4GiB", "--name", "tm-bench", "--detach", "--json"))["device"]
    try:
        if mounted:
            subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", device], check=True)
            mounted.mkdir(exist_ok=True)
            subprocess.run(["mount", device, mounted], check=True)
            shutil.copytree(holds, mounted / "store")
            subprocess.run(["umount", mounted], check=True)
            subprocess.run(["mount", device, mounted], check=True)
        at = mounted / "swap" if mounted else device
        if mounted and swap:
            subprocess.run(["fallocate", "-l", "1GiB", at], check=True)
            at.chmod(0o600)
        if swap:
            subprocess.run(["mkswap", at], check=True, capture_output=True)
            subprocess.run(["swapon", at], check=True)
        yield device
    finally:
        # A runner's last process may hold on for a moment, with less memory than what is to come back.
        for words in [["swapoff", mounted / "swap" if mounted else device]] * swap + [["umount", mounted]] * bool(mounted):
            for left in reversed(range(20)):
                if subprocess.run(words, stderr=None if left == 0 else subprocess.DEVNULL).returncode == 0:
                    break
                time.sleep(1)
        tiermark("emulate", "stop", "tm-bench")


class Ollama:
    """A server and its runner, in the group; the model is loaded by the first token."""

    def __init__(self, group, options, store):
        self.options = {"temperature": 0, "num_ctx": 512, **options}
        # Left to itself it makes room for two sequences of which one is used, with as much more to touch for each token.
        env = {"OLLAMA_NUM_PARALLEL": "1", **ENV, "OLLAMA_HOST": f"127.0.0.1:{PORT}", "OLLAMA_MODELS": str(store), "OLLAMA_KEEP_ALIVE": "-1"}
        self.process = group.start([OLLAMA, "serve"], env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def request(self, tokens, prompt):
        body = {"model": "bench", "prompt": prompt, "raw": True, "options": {**self.options, "num_predict": tokens}}
        def token(line):
            one = json.loads(line)
            if "error" in one:
                raise RuntimeError(one["error"])
            return None if one["done"] else one["response"]
        return "/api/generate", body, token


class Server:
    """llama.cpp's own."""

    def __init__(self, group, options, store):
        words = [LLAMA_SERVER, "-m", MODEL, "-c", 512, "-t", 2, "-np", 1, "--port", PORT, "--host", "127.0.0.1", "--cache-ram", 0]
        if not options.get("use_mmap", True):
            # Older ones have the first.
            told = subprocess.run([LLAMA_SERVER, "--help"], capture_output=True, text=True)
            words += ["--no-mmap"] if "--no-mmap" in told.stdout + told.stderr else ["--load-mode", "none"]
        self.process = group.start(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def request(self, tokens, prompt):
        body = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "stream": True, "ignore_eos": True, "cache_prompt": False}
        def token(line):
            one = json.loads(line.removeprefix(b"data: "))
            return None if one.get("stop") else one["content"]
        return "/completion", body, token


@contextlib.contextmanager
def runner(kind, group, store, **options):
    one = kind(group, options, store)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/" + ("health" if kind is Server else ""), timeout=5)
                break
            if one.process.poll() is not None:
                raise SystemExit(f"{one.process.args[0]} ended by itself, with {one.process.returncode}")
            time.sleep(0.2)
        decode(one, 1)
        yield one
    finally:
        one.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            one.process.wait(20)
        one.process.kill()
        one.process.wait()


def decode(one, tokens, prompt="krp wke aict", at=lambda _: None):
    """The moments of the tokens, the first that of asking, and the text. A token that is no text is not told by itself."""
    path, body, token = one.request(tokens, prompt)
    asked = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    times, text = [time.time()], ""
    with urllib.request.urlopen(asked, timeout=3600) as answer:
        for line in answer:
            if line.strip() and (word := token(line)) is not None:
                times.append(time.time())
                text += word
                at(len(times) - 1)
    return times, text


class Pager:
    """`tiermark pager` with its documents, one a second, by the time when they came."""

    def __init__(self, pid):
        self.documents = []
        self.process = subprocess.Popen([TIERMARK, "pager", "--pid", str(pid), "--live", "--json"], env=ENV, stdout=subprocess.PIPE,
                                        stderr=open(os.environ["PAGER_LOG"], "a") if "PAGER_LOG" in os.environ else None, text=True)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.documents.append((time.time(), json.loads(line)))

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()

    def spent(self, since=0.0):
        """Milliseconds of processor time for each MB brought in."""
        told = [(one["cpu_s"], sum(p["ahead_bytes"] for p in one["processes"]) / 1e6) for at, one in self.documents if at >= since]
        if len(told) < 2:
            return None
        first = (0, 0) if since == 0 else told[0]
        return 1e3 * (told[-1][0] - first[0]) / max(told[-1][1] - first[1], 1)

    def shares(self, since, until):
        return [p["share_of_bound"] for at, one in self.documents if since <= at <= until for p in one["processes"] if p["mode"] == "following"]


def rates(times):
    half = len(times) // 2
    return (len(times) - 1) / (times[-1] - times[0]), (len(times) - 1 - half) / (times[-1] - times[half])


def tell(**what):
    print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in what.items()}), flush=True)
    return what


def medians(turns, *names):
    for key in names:
        for paged in (False, True):
            all_of = [one[key] for one in turns if one["paged"] == paged and one.get(key) is not None]
            if all_of:
                tell(median_of=key, paged=paged, median=statistics.median(all_of), all=[round(v, 3) for v in all_of])
    pairs = list(zip([t for t in turns if t["paged"]], [t for t in turns if not t["paged"]]))
    if pairs:
        ratios = [a[names[0]] / b[names[0]] for a, b in pairs]
        tell(ratio_of=names[0], median=statistics.median(ratios), all=[round(v, 3) for v in ratios])


def store():
    """The model where Ollama looks for it."""
    at = pathlib.Path(os.environ["OLLAMA_STORE"]) if "OLLAMA_STORE" in os.environ else WORK / "store"
    if not at.exists():
        with Group() as group:
            env = {**ENV, "OLLAMA_HOST": f"127.0.0.1:{PORT}", "OLLAMA_MODELS": str(at)}
            server = group.start([OLLAMA, "serve"], env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            (WORK / "Modelfile").write_text(f"FROM {pathlib.Path(MODEL).resolve()}\n")
            time.sleep(2)
            subprocess.run([OLLAMA, "create", "bench", "-f", WORK / "Modelfile"], env=env, check=True, capture_output=True)
            server.terminate()
            server.wait()
    return at


def turn(a, paged, tokens, mapped=False, swap=True):
    """One turn on a disk of its own, with a runner of its own."""
    at = a.store
    mount = WORK / "mount" if mapped else None
    with Group() as group, disk(a.profile, mount, at, swap):
        at = mount / "store" if mapped else at
        group.limit(a.limit)
        with runner(a.kind, group, at, use_mmap=mapped) as one:
            pager = Pager(one.process.pid) if paged else None
            times, _ = decode(one, tokens)
            if pager:
                pager.stop()
            whole, settled = rates(times)
            more = {}
            if pager:
                shares = pager.shares(times[len(times) // 2], times[-1]) or [None]
                more = {"share": statistics.median(shares), "last_share": shares[-1], "ms_per_mb": pager.spent(), "ms_per_mb_settled": pager.spent(times[len(times) // 2])}
            return tell(paged=paged, tokens=len(times) - 1, whole=whole, settled=settled, **more)


def compared(a, mapped=False, swap=True):
    turns = []
    for pair in range(a.pairs):
        for paged in (False, True) if pair % 2 == 0 else (True, False):
            turns.append(turn(a, paged, a.tokens if paged else a.kernel, mapped, swap))
    medians(turns, "whole", "settled", "share", "ms_per_mb", "ms_per_mb_settled")
    kernel = statistics.median(t["whole"] for t in turns if not t["paged"])
    paged = [t for t in turns if t["paged"]]
    tell(times=statistics.median(t["whole"] for t in paged) / kernel, times_settled=statistics.median(t["settled"] for t in paged) / kernel)


def held(a):
    at, turns = a.store, []
    def in_memory(quota):
        with Group() as group, runner(a.kind, group, at, use_mmap=False) as one:
            group.quota(quota)
            return rates(decode(one, 30)[0])[0]
    quota = a.quota or 0.4
    before = in_memory(quota)
    for _ in range(a.pairs):
        # As much of a processor as makes a board of it: how far some of one goes here changes within minutes.
        for _ in range(3):
            if a.quota or abs(before / BOARD - 1) < 0.03:
                break
            quota = round(quota * BOARD / before, 2)
            before = in_memory(quota)
        with Group() as group, disk(a.profile):
            group.limit(a.limit)
            with runner(a.kind, group, at, use_mmap=False) as one:
                group.quota(quota)
                pager = Pager(one.process.pid)
                times, _ = decode(one, a.tokens)
                pager.stop()
        after = in_memory(quota)
        rate = 25 / (times[-1] - times[-26])
        turns.append(tell(quota=quota, settled=rate, whole=rates(times)[0], memory=(before + after) / 2, share=rate / ((before + after) / 2),
                          ms_per_mb=pager.spent(), ms_per_mb_settled=pager.spent(times[len(times) // 2])))
        before = after
    for key in ("settled", "memory", "share", "ms_per_mb", "ms_per_mb_settled"):
        tell(median_of=key, median=statistics.median(t[key] for t in turns))


def limits(a):
    """650, 450, 650 and 400 MiB in turn: the bound's share from the twentieth token after each change on."""
    changes, ends = {60: 450, 100: 650, 150: 400}, [60, 100, 150, 190]
    for _ in range(a.pairs):
        with Group() as group, disk(a.profile):
            group.limit(650)
            with runner(a.kind, group, a.store, use_mmap=False) as one:
                pager = Pager(one.process.pid)
                def at(token):
                    if token in changes:
                        threading.Thread(target=group.limit, args=(changes[token],)).start()
                times, _ = decode(one, ends[-1], at=at)
                pager.stop()
        told = {}
        for first, last in zip([0, *ends], ends):
            last, shares = min(last, len(times) - 1), pager.shares(times[first + 20], times[last])
            told[f"from_{first + 20}"] = {"rate": round((last - first - 20) / (times[last] - times[first + 20]), 2),
                                          "least": round(min(shares), 3), "median": round(statistics.median(shares), 3)}
        tell(ms_per_mb=pager.spent(), **told)


def neighbour(a):
    program = "import os,time; t=time.time(); b=bytearray()\nwhile len(b)<150*10**6: b+=os.urandom(1<<20)\nprint(time.time()-t,flush=True); time.sleep(30)"
    with Group() as group, disk(a.profile):
        group.limit(a.limit)
        with runner(a.kind, group, a.store, use_mmap=False) as one:
            pager, seen = Pager(one.process.pid), {}
            def at(token):
                if token == 60:
                    seen["other"], seen["at"] = group.start([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True), time.time()
            times, _ = decode(one, 180, at=at)
            pager.stop()
            took, status = seen["other"].stdout.readline().strip(), seen["other"].wait()
    def rate(since, until):
        within = [t for t in times if since <= t <= until]
        return (len(within) - 1) / (within[-1] - within[0])
    tell(took_s=float(took), status=status, before=rate(times[30], times[59]), meanwhile=rate(seen["at"], seen["at"] + 30),
         after=rate(seen["at"] + 35, times[-1]))


def fits(a):
    turns = []
    with Group() as group, runner(a.kind, group, a.store, use_mmap=False) as one:
        for pair in range(a.pairs):
            for paged in (False, True) if pair % 2 == 0 else (True, False):
                pager = Pager(one.process.pid) if paged else None
                time.sleep(1)
                turns.append({"paged": paged, "whole": rates(decode(one, 30)[0])[0]})
                if pager:
                    pager.stop()
    medians(turns, "whole")


def touch(a):
    """Random and zipf: a program of tiermark's own that touches pages, 900 MiB in the limit."""
    for pattern in ("random", "zipf"):
        turns = []
        for pair in range(a.pairs):
            with disk(a.profile), Group() as group:
                group.limit(a.limit)
                for paged in (False, True) if pair % 2 == 0 else (True, False):
                    one = group.start([walker(), 900, {"random": "r14", "zipf": "z14"}[pattern]], stdout=subprocess.PIPE, text=True)
                    assert one.stdout.readline().strip() == "ready"
                    pager = Pager(one.pid) if paged else None
                    if not paged:
                        time.sleep(0.1)
                    rate = float(one.stdout.readline().split()[2])
                    one.wait()
                    core = None
                    if pager:
                        pager.process.wait()
                        last = [d for _, d in pager.documents][-1]
                        core = last["cpu_s"] / last["elapsed_s"]
                    turns.append(tell(pattern=pattern, paged=paged, rate=rate, core=core))
        medians(turns, "rate", "core")


WALKER = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <math.h>
#include <time.h>
#include <sys/mman.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
static uint64_t s = 88172645463325252ull;
static uint64_t next(void) { s ^= s << 13; s ^= s >> 7; s ^= s << 17; return s; }
int main(int argc, char **argv) {
    size_t n = strtoull(argv[1], 0, 10) << 8;
    unsigned char *m = mmap(0, n << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(m, n << 12, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < n << 12; i += 8) *(uint64_t *)(m + i) = next();
    puts("ready"); fflush(stdout);
    unsigned long sum = 0;
    for (int p = 2; p < argc; p++) {
        double begun = now(), t = begun, last = begun, span = atof(argv[p] + 1), from = span > 14 ? 10 : 0, counted = 0, since = begun;
        uint64_t done = 0, at = 0;
        while ((t = now()) - begun < span) {
            for (int k = 0; k < 32; k++) {
                size_t i = argv[p][0] == 'c' ? at++ % n : argv[p][0] == 'r' ? next() % n
                    : (size_t)(pow(n, (next() >> 11) * 0x1p-53) - 1) * 2654435761u % n;
                if (argv[p][0] == 'z' && !(next() & 3)) m[i << 12]++; else sum += m[i << 12];
            }
            done += 32;
            if (t - begun < from) { since = t; counted = done; }
        }
        printf("%s %lu %f\n", argv[p], sum, (done - counted) / (now() - since)); fflush(stdout);
    }
}
"""


def walker():
    """Touches pages cyclically, at random or by a zipf law (a quarter of those writes), told as c16 r16; touches a second of each."""
    binary = WORK / "walker"
    if not binary.exists():
        (WORK / "walker.c").write_text(WALKER)
        subprocess.run(["cc", "-O2", "-o", binary, WORK / "walker.c", "-lm"], check=True)
    return binary


def phases(a):
    turns = []
    for pair in range(a.pairs):
        for paged in (False, True) if pair % 2 == 0 else (True, False):
            with disk(a.profile), Group() as group:
                group.limit(320)
                one = group.start([walker(), 400, "c16", "r16", "c16"], stdout=subprocess.PIPE, text=True)
                assert one.stdout.readline().strip() == "ready"
                pager = Pager(one.pid) if paged else None
                told = [float(line.split()[2]) for line in one.stdout]
                if pager:
                    pager.process.wait()
                turns.append(tell(paged=paged, status=one.wait(), **dict(zip(("cyclic", "random", "again"), told))))
    for key in ("cyclic", "random", "again"):
        medians([t for t in turns if t.get(key)], key)


def prompt(a):
    words = [f"{w}" for w in "krp wke aict atvi kpd whs aiah atsw kmr wfg ahxv atqk kkf wcu ahvj".split()]
    text = " ".join(random.Random(1).choices(words, k=500))
    turns = []
    for pair in range(a.pairs):
        for paged in (False, True) if pair % 2 == 0 else (True, False):
            with Group() as group, disk(a.profile):
                group.limit(a.limit)
                with runner(a.kind, group, a.store, use_mmap=False, num_ctx=1024) as one:
                    pager = Pager(one.process.pid) if paged else None
                    decode(one, 30 if paged else 4)
                    times, _ = decode(one, 2, prompt=text)
                    turns.append(tell(paged=paged, seconds=times[1] - times[0]))
                    if pager:
                        pager.stop()
    medians(turns, "seconds")


def settings():
    names = ["/proc/sys/vm/page-cluster", "/proc/sys/vm/swappiness", "/proc/sys/vm/watermark_scale_factor", "/sys/kernel/mm/transparent_hugepage/enabled",
             "/sys/module/zswap/parameters/enabled", *map(str, MEMORY.glob("memory.*limit*")), str(MEMORY / "memory.swappiness")]
    return {name: pathlib.Path(name).read_text() for name in names if os.access(name, os.R_OK)}


def kills(a):
    with Group() as group, runner(a.kind, group, a.store, use_mmap=False) as one:
        _, right = decode(one, 28)
    good = 0
    for round in range(a.pairs):
        with Group() as group, disk(a.profile):
            group.limit(a.limit)
            with runner(a.kind, group, a.store, use_mmap=False) as one:
                before, seen = settings(), {}
                pager = Pager(one.process.pid)
                def at(token, when=6 + round % 8):
                    if token == when:
                        pager.stop(signal.SIGKILL)
                        seen["token"] = token
                try:
                    _, text = decode(one, 28, at=at)
                except (RuntimeError, OSError) as ended:
                    # By the kernel, for want of memory.
                    text = str(ended)
                held = text == right and settings() == before
                good += held
                tell(killed_at=seen.get("token"), right=text == right, settings_same=settings() == before)
    tell(right=good, of=a.pairs)


def big(a):
    """What the pager needs beside a mapping of 16 GiB that is walked round and round."""
    program = ("import mmap,os,sys,time\nf=os.open(sys.argv[1],os.O_RDONLY); m=mmap.mmap(f,16<<30,prot=mmap.PROT_READ)\nt=time.time()\n"
               "while time.time()-t<45:\n s=time.time(); m[::4096]; print(time.time()-s,flush=True)")
    sparse = WORK / "sparse"
    with open(sparse, "wb") as file:
        file.truncate(16 << 30)
    for pair in range(a.pairs):
        for paged in (False, True) if pair % 2 == 0 else (True, False):
            with Group() as group:
                group.limit(a.limit)
                one = group.start([sys.executable, "-c", program, sparse], stdout=subprocess.PIPE, text=True)
                first = one.stdout.readline()
                pager, most = Pager(one.pid) if paged else None, 0
                passes = []
                for line in one.stdout:
                    passes.append(float(line))
                    if pager:
                        status = pathlib.Path(f"/proc/{pager.process.pid}/status")
                        if status.exists() and (found := re.search(r"VmHWM:\s+(\d+)", status.read_text())):
                            most = max(most, int(found[1]) * 1024)
                core = None
                if pager:
                    pager.process.wait()
                    last = [d for _, d in pager.documents][-1]
                    core = last["cpu_s"] / last["elapsed_s"]
                tell(paged=paged, pass_s=statistics.median(passes), passes=len(passes), peak_mb=most / 1e6, core=core)


def floor(a):
    """What the two calls alone cost here, by a program that knows beforehand what is touched next: ms of processor time for each MB."""
    call, iovec = ctypes.CDLL(None, use_errno=True).syscall, ctypes.c_ulong * 2
    def advise(pidfd, at, length, advice):
        if call(440, pidfd, iovec(at, length), 1, advice, 0) < 0:
            raise OSError(ctypes.get_errno(), "process_madvise")
    piece = int(a.piece * MIB)
    pieces = 400 * MIB // piece
    with disk(a.profile), Group() as group:
        toucher = ("import ctypes,mmap,os,sys\nn=int(sys.argv[1]); p=int(sys.argv[2]); m=mmap.mmap(-1,n*p,flags=mmap.MAP_PRIVATE|mmap.MAP_ANONYMOUS)\n"
                   "m.madvise(15)\nfor i in range(n): m[i*p:(i+1)*p]=os.urandom(p)\nprint(ctypes.addressof(ctypes.c_char.from_buffer(m)),flush=True)\n"
                   "for line in sys.stdin:\n i=int(line); m[i*p:(i+1)*p:4096]; print(flush=True)")
        one = group.start([sys.executable, "-c", toucher, pieces, piece], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        at, pidfd = int(one.stdout.readline()), os.pidfd_open(one.pid)
        for i in range(pieces):
            advise(pidfd, at + i * piece, piece, 21)
        for lap in range(a.pairs):
            begun, since = time.thread_time(), time.time()
            for i in range(pieces):
                for ahead in range(4 if i == 0 else 3, 4):
                    advise(pidfd, at + (i + ahead) % pieces * piece, piece, 3)
                one.stdin.write(f"{i}\n")
                one.stdin.flush()
                one.stdout.readline()
                advise(pidfd, at + i * piece, piece, 21)
            mb = pieces * piece / 1e6
            tell(lap=lap, ms_per_mb=1e3 * (time.thread_time() - begun) / mb, mb_per_s=mb / (time.time() - since))
        one.kill()
        one.wait()


def bench(a):
    for words in (["--quick"], ["--pairs", a.pairs]):
        print(tiermark("pager", "bench", *words), flush=True)


CASES = {"swap": compared, "mapped": lambda a: compared(a, mapped=True), "swapless": lambda a: compared(a, mapped=True, swap=False), "held": held, "limits": limits, "neighbour": neighbour, "fits": fits,
         "touch": touch, "prompt": prompt, "phases": phases, "kills": kills, "big": big, "bench": bench, "floor": floor}
# What the docs' tables hold, and in between what the two calls cost at the time.
ALL = [("floor", {"pairs": 4}), ("swap", {}), ("held", {}), ("mapped", {}), ("swapless", {"pairs": 2}), ("floor", {"pairs": 4}), ("bench", {}), ("limits", {}), ("fits", {"pairs": 20}),
       ("floor", {"pairs": 4}), ("kills", {"pairs": 10}), ("touch", {}), ("phases", {}), ("swap", {"profile": "optane-pi5", "tokens": 50, "kernel": 4}),
       ("swap", {"profile": "nvme-usb3-pi5", "tokens": 50, "kernel": 4}), ("swap", {"profile": "sd-evo-pi5", "pairs": 2, "tokens": 20, "kernel": 3}),
       ("prompt", {}), ("neighbour", {}), ("swap", {"kind": Server, "kernel": 10}), ("big", {"pairs": 2}), ("floor", {"pairs": 4})]


def everything(a):
    for case, words in ALL:
        if words.get("kind") is Server and not shutil.which(LLAMA_SERVER):
            continue
        print(time.strftime("%H:%M:%S"), case, words or "", flush=True)
        CASES[case](argparse.Namespace(**{**vars(a), "pairs": 5, **words}))


def main():
    cases = {**CASES, "all": everything}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=cases)
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=650, help="MiB")
    parser.add_argument("--tokens", type=int, default=60)
    parser.add_argument("--kernel", type=int, default=30, help="tokens without the pager")
    parser.add_argument("--profile", default="disk-425")
    parser.add_argument("--quota", type=float, help="cores; by itself what makes 2.8 tokens a second in memory")
    parser.add_argument("--piece", type=float, default=2, help="MiB in a call of floor's")
    parser.add_argument("--runner", choices=("ollama", "llama-server"), default="ollama")
    a = parser.parse_args()
    a.kind = {"ollama": Ollama, "llama-server": Server}[a.runner]
    if a.case in ("mapped", "swapless") and a.kind is Server:
        parser.error(f"{a.case}: the slow disk holds Ollama's copy of the model; leave --runner out")
    def end(*_):
        # What is put back then is not to be interrupted by a second one.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(143)
    signal.signal(signal.SIGTERM, end)
    # Before there is another group: it has one of its own.
    a.store = store() if a.kind is Ollama and a.case not in ("touch", "phases", "big", "bench", "floor") else None
    cases[a.case](a)


if __name__ == "__main__":
    main()
