//! Runs a fuzz target without coverage: replays its corpus, then runs mutations of it for a set time. `scripts/fuzz` starts it.

use std::{
    fs::{self, File},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{Seek as _, Write as _},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use pegboard_fuzz::{Mutator, TARGETS, Target, parse_dictionary};

/// An input that takes longer is reported.
const HANG: Duration = Duration::from_secs(20);
/// The stack of a thread of tokio, on which most of this code runs.
const STACK: usize = 2 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<(), String> {
    let [name, what, more @ ..] = arguments else {
        let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "usage: pegboard-fuzz TARGET SECONDS [SEED] | TARGET FILE\ntargets: {}",
            names.join(" ")
        ));
    };
    let (name, target) = TARGETS
        .iter()
        .find(|(known, _)| known == name)
        .ok_or_else(|| format!("there is no target `{name}`"))?;
    let session = Session::new(name, *target)?;
    let seconds: Option<u64> = what.parse().ok();
    let seed = match more {
        [seed, ..] => seed
            .parse()
            .map_err(|_| format!("`{seed}` is no seed: it must be a whole number"))?,
        [] => 1,
    };
    let file = PathBuf::from(what);
    let body = move || match seconds {
        Some(seconds) => session.fuzz(seed, Duration::from_secs(seconds)),
        None => session
            .replay(&[(file.clone(), read(&file)?)])
            .map(|()| println!("{}: passes", file.display())),
    };
    let runner = thread::Builder::new().stack_size(STACK).spawn(body);
    let runner = runner.map_err(|error| format!("no thread can be started: {error}"))?;
    runner
        .join()
        .unwrap_or_else(|_| Err("the driver itself failed".to_owned()))
}

/// The run of one target.
struct Session {
    name: &'static str,
    target: Target,
    folder: PathBuf,
    /// Holds the current input, for failures that end the process at once, such as a stack overflow.
    current: Mutex<File>,
    panics: Panics,
    watch: Arc<Watch>,
}

impl Session {
    fn new(name: &'static str, target: Target) -> Result<Self, String> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let artifacts = folder.join("artifacts");
        let failed = |error| format!("{} cannot be written: {error}", artifacts.display());
        fs::create_dir_all(&artifacts).map_err(failed)?;
        let current = File::create(artifacts.join(format!("{name}.current"))).map_err(failed)?;
        let watch = Watch::start(artifacts.join(format!("{name}.current")));
        Ok(Self {
            name,
            target,
            folder,
            current: Mutex::new(current),
            panics: Panics::install(),
            watch,
        })
    }

    /// Replays the corpus, then runs mutations of it.
    fn fuzz(&self, seed: u64, time: Duration) -> Result<(), String> {
        let corpus = self.corpus()?;
        self.replay(&corpus)?;
        let tokens = fs::read_to_string(self.folder.join(format!("dictionaries/{}.dict", self.name)));
        let tokens = parse_dictionary(&tokens.unwrap_or_default());
        let count = corpus.len();
        let mut mutator = Mutator::new(seed, corpus.into_iter().map(|(_, input)| input).collect(), tokens);
        let (started, mut runs) = (Instant::now(), 0_u64);
        while started.elapsed() < time {
            let input = mutator.next_input();
            self.one(&input)
                .map_err(|panic| self.report(&input, &format!("seed {seed}, run {runs}"), &panic))?;
            runs += 1;
        }
        let seconds = started.elapsed().as_secs();
        println!(
            "{:14} {count:3} inputs of the corpus, {runs:8} mutations in {seconds} s, seed {seed}",
            self.name
        );
        Ok(())
    }

    fn replay(&self, inputs: &[(PathBuf, Vec<u8>)]) -> Result<(), String> {
        for (path, input) in inputs {
            self.one(input)
                .map_err(|panic| format!("{}: {}\nfailed: {panic}", self.name, path.display()))?;
        }
        Ok(())
    }

    /// Runs the target on one input. Fails with the message of its panic.
    fn one(&self, input: &[u8]) -> Result<(), String> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = current
            .rewind()
            .and_then(|()| current.set_len(0))
            .and_then(|()| current.write_all(input));
        drop(current);
        self.watch.begin();
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.target)(input)));
        self.watch.end();
        let panics = self.panics.take();
        outcome.map_err(|_| panics)
    }

    /// Writes the input that failed to a file, and says how to run it again.
    fn report(&self, input: &[u8], origin: &str, panic: &str) -> String {
        let mut hasher = DefaultHasher::new();
        input.hash(&mut hasher);
        let path = self
            .folder
            .join(format!("artifacts/{}-{:016x}", self.name, hasher.finish()));
        let written = match fs::write(&path, input) {
            Ok(()) => format!("run it again with: scripts/fuzz {} {}", self.name, path.display()),
            Err(error) => format!(
                "{} cannot be written: {error}\nthe input: {}",
                path.display(),
                input.escape_ascii()
            ),
        };
        format!("{}: failed ({origin}): {panic}\n{written}", self.name)
    }

    fn corpus(&self) -> Result<Vec<(PathBuf, Vec<u8>)>, String> {
        let folder = self.folder.join("corpus").join(self.name);
        let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        if paths.is_empty() {
            return Err(format!("{} has no inputs", folder.display()));
        }
        paths.into_iter().map(|path| Ok((path.clone(), read(&path)?))).collect()
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The messages of the panics of the current input. The masker catches panics on purpose, so they are not printed as they happen.
struct Panics(Arc<Mutex<String>>);

impl Panics {
    fn install() -> Self {
        let last = Arc::new(Mutex::new(String::new()));
        let hook = last.clone();
        std::panic::set_hook(Box::new(move |panic| {
            let mut messages = hook.lock().unwrap_or_else(PoisonError::into_inner);
            *messages += &format!("{panic}\n");
        }));
        Self(last)
    }

    fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Ends the process if one input takes too long.
struct Watch {
    started: Instant,
    /// When the current input was started, in milliseconds after `started`. Zero between inputs.
    since: AtomicU64,
}

impl Watch {
    fn start(current: PathBuf) -> Arc<Self> {
        let watch = Arc::new(Self {
            started: Instant::now(),
            since: AtomicU64::new(0),
        });
        let seen = watch.clone();
        thread::spawn(move || {
            loop {
                thread::sleep(Duration::from_secs(1));
                let since = seen.since.load(Ordering::Relaxed);
                if since > 0 && seen.now().saturating_sub(since) > HANG.as_millis() as u64 {
                    eprintln!("an input takes longer than {} s: {}", HANG.as_secs(), current.display());
                    std::process::abort();
                }
            }
        });
        watch
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64 + 1
    }

    fn begin(&self) {
        self.since.store(self.now(), Ordering::Relaxed);
    }

    fn end(&self) {
        self.since.store(0, Ordering::Relaxed);
    }
}
