//! Measures the masker: `masking-report [recall] [false-hits] [speed] [--verbose] [--folder PATH]`.
//!
//! Recall is measured with made-up secrets of many classes in many carriers, false hits on ordinary texts of this machine, and speed on both.

mod carriers;
mod classes;
mod corpora;
mod realistic;

use std::{collections::BTreeMap, fs, path::Path, time::Instant};

use carriers::{Carried, NAMED, NAMES, NEUTRAL, PREFIXES};
use classes::{PASSWORDS, Random, TOKENS};
use corpora::Corpus;
use pegboard::mask::{Masked, Masker, Masking};
use realistic::REALISTIC;

/// How many secrets of a class are tried in each carrier.
const TRIES: u64 = 4;
/// The most bytes that are read of each corpus.
const CORPUS: usize = 12 << 20;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let wants = |name: &str| args.iter().any(|arg| arg == name);
    let all = !["recall", "false-hits", "speed"].iter().any(|name| wants(name));
    let verbose = wants("--verbose");
    let Ok(masker) = Masker::new(&Masking::default(), []) else {
        eprintln!("the default patterns cannot be used");
        std::process::exit(1);
    };
    if all || wants("recall") {
        tokens(&masker, verbose);
        passwords(&masker, verbose);
        keys_over_lines(&masker, verbose);
        realistic_texts(&masker);
    }
    if all || wants("false-hits") || wants("speed") {
        let folder = args
            .iter()
            .position(|arg| arg == "--folder")
            .and_then(|at| args.get(at + 1));
        let found = match folder {
            Some(folder) => vec![corpora::folder_corpus(folder, Path::new(folder), CORPUS)],
            None => corpora::of_this_machine(&root(), CORPUS),
        };
        ordinary(&masker, &found, verbose);
    }
    if all || wants("speed") {
        growth(&masker);
    }
}

/// The folder of the project: the one that has a `scripts` folder, from here upwards.
fn root() -> std::path::PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let root = here
        .ancestors()
        .find(|folder| folder.join("scripts/masking-report").exists());
    root.unwrap_or(&here).to_owned()
}

/// Hits and tries, by class or carrier.
#[derive(Default)]
struct Recall(BTreeMap<&'static str, (u64, u64)>);

impl Recall {
    fn count(&mut self, name: &'static str, is_hidden: bool) {
        let entry = self.0.entry(name).or_default();
        entry.0 += u64::from(is_hidden);
        entry.1 += 1;
    }

    fn print(&self, title: &str, verbose: bool) {
        let (hits, tries) = self.0.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        println!(
            "{title}: {hits} of {tries} hidden, {:.2} %",
            100.0 * hits as f64 / tries.max(1) as f64
        );
        for (name, (hits, tries)) in &self.0 {
            if hits < tries || verbose {
                println!(
                    "    {name:28} {hits:>6} of {tries:>6}  {:.1} %",
                    100.0 * *hits as f64 / *tries as f64
                );
            }
        }
    }
}

fn tokens(masker: &Masker, verbose: bool) {
    let (mut by_class, mut by_carrier) = (Recall::default(), Recall::default());
    for (class, template) in TOKENS {
        for (carrier, carry) in NEUTRAL {
            for seed in 1..=TRIES {
                let (text, secret) = classes::secret_part(template, seed * 7919 + 17);
                let shown = masked(masker, carry("", &text));
                let is_hidden = !leaks(&shown, &secret);
                if !is_hidden && verbose {
                    println!("LEAK {class} / {carrier}: {}", shown.escape_debug());
                }
                by_class.count(class, is_hidden);
                by_carrier.count(carrier, is_hidden);
            }
        }
    }
    by_class.print("tokens by class", false);
    by_carrier.print("tokens by carrier", false);
}

fn passwords(masker: &Masker, verbose: bool) {
    let (mut by_class, mut by_carrier, mut by_name) = (Recall::default(), Recall::default(), Recall::default());
    let mut skipped = 0;
    let mut random = Random::new(99);
    for (carrier, carry) in NAMED {
        for (class, template) in PASSWORDS {
            for name in NAMES {
                let secret = classes::generate(template, &mut random);
                if !is_writable(carrier, &secret) {
                    skipped += 1;
                    continue;
                }
                let shown = masked(masker, carry(name, &secret));
                let is_hidden = !leaks(&shown, &secret);
                if !is_hidden && verbose {
                    println!(
                        "LEAK {class} / {carrier} / {name}: {secret} in {}",
                        shown.escape_debug()
                    );
                }
                by_class.count(class, is_hidden);
                by_carrier.count(carrier, is_hidden);
                by_name.count(name, is_hidden);
            }
        }
    }
    by_class.print("passwords by class", false);
    by_carrier.print("passwords by carrier", false);
    by_name.print("passwords by name", false);
    println!(
        "{skipped} passwords were skipped, which their carrier cannot hold without quotes, or which are templates"
    );
}

/// Whether a carrier can hold the secret at all: where there are no quotes, a sign such as `#` or `;` ends it. A variable or a template is no
/// secret anywhere.
fn is_writable(carrier: &str, secret: &str) -> bool {
    let is_reference = secret.starts_with(['<', '`', '*'])
        || ["${", "{{", "$(", "***"].iter().any(|sign| secret.contains(sign))
        || secret.starts_with('{') && secret.ends_with('}');
    let is_bare = matches!(
        carrier,
        "env file"
            | "cmd"
            | "ini"
            | "properties"
            | "compose"
            | "log"
            | "numbered lines"
            | "comment"
            | "kubectl describe"
            | "vault table"
    );
    let breaks = is_bare
        && (secret.contains(['#', ';', '&', '|', ','])
            || secret.starts_with(['$', '%', '{', '(', '@', '[', '=', '>', '!', '"', '\'']));
    !is_reference && !breaks
}

fn realistic_texts(masker: &Masker) {
    let mut hidden = 0;
    for (text, secret) in REALISTIC {
        let text = text.replace("@@", secret);
        let shown = masker.text(&text).text.into_owned();
        match leaks(&shown, secret) {
            true => println!("LEAK realistic: {}", shown.escape_debug()),
            false => hidden += 1,
        }
    }
    println!("texts of commands and files: {hidden} of {} hidden", REALISTIC.len());
}

fn keys_over_lines(masker: &Masker, verbose: bool) {
    let mut recall = Recall::default();
    let mut random = Random::new(5);
    for prefix in PREFIXES {
        for _ in 0..TRIES {
            let (pem, body) = carriers::pem(&mut random);
            let lines: Vec<String> = pem.lines().map(|line| format!("{prefix}{line}")).collect();
            let cut: Vec<String> = lines[..4].to_vec();
            let forms = [
                ("whole", lines.join("\n")),
                ("truncated", cut.join("\n")),
                ("escaped", serde_json::json!({"log": lines.join("\n")}).to_string()),
            ];
            for (form, text) in forms {
                let shown = masker.text(&text).text.into_owned();
                let is_hidden = !body.iter().any(|line| shown.contains(&line[8..40]));
                if !is_hidden && verbose {
                    println!("LEAK pem {form} {prefix:?}: {}", shown.escape_debug());
                }
                recall.count(form, is_hidden);
            }
        }
    }
    recall.print("private keys with line prefixes", false);
}

fn masked(masker: &Masker, carried: Carried) -> String {
    match carried {
        Carried::Text(text) => masker.text(&text).text.into_owned(),
        Carried::Value(mut value) => {
            masker.value(&mut value);
            value.to_string()
        }
    }
}

/// Whether half of a secret can be read. Escapes of JSON are ignored.
fn leaks(shown: &str, secret: &str) -> bool {
    let plain = shown
        .replace('\\', "")
        .replace("&amp;", "&")
        .replace("&lt;", "<")
        .replace("&quot;", "\"");
    let secret = secret.replace('\\', "");
    let chars: Vec<char> = secret.chars().collect();
    let half = (chars.len() / 2).max(4).min(chars.len());
    chars
        .windows(half)
        .any(|part| plain.contains(&part.iter().collect::<String>()))
}

fn ordinary(masker: &Masker, corpora: &[Corpus], verbose: bool) {
    println!(
        "{:28} {:>8} {:>7} {:>9} {:>8}",
        "corpus", "MB", "hits", "hits/MB", "MB/s"
    );
    let (mut bytes, mut hits) = (0, 0);
    let mut report = String::new();
    for corpus in corpora {
        let began = Instant::now();
        let before = seconds(began);
        let masked: Vec<(usize, Masked<'_>)> = corpus
            .texts
            .iter()
            .enumerate()
            .map(|(at, (_, text))| (at, masker.text(text)))
            .filter(|(_, masked)| !masked.counts.is_empty())
            .collect();
        let took = seconds(began) - before;
        let found: usize = masked.iter().map(|(_, masked)| masked.counts.total()).sum();
        let size = corpus.bytes() as f64 / 1e6;
        println!(
            "{:28} {size:>8.2} {found:>7} {:>9.2} {:>8.0}",
            corpus.name,
            found as f64 / size,
            size / took
        );
        bytes += corpus.bytes();
        hits += found;
        for (at, masked) in &masked {
            let (path, text) = &corpus.texts[*at];
            show(&corpus.name, path, text, &masked.text, &mut report);
        }
    }
    println!(
        "{:28} {:>8.2} {hits:>7} {:>9.2}",
        "all",
        bytes as f64 / 1e6,
        hits as f64 / (bytes as f64 / 1e6)
    );
    if verbose && fs::write("masking-hits.txt", &report).is_ok() {
        println!("the lines with hits are in masking-hits.txt");
    }
}

/// Speed on logs and on texts full of secrets, of several sizes: if the cost is linear, it is the same for all.
fn growth(masker: &Masker) {
    for size in [1, 4, 16] {
        for corpus in [corpora::logs(size << 20), corpora::full_of_secrets(size << 20)] {
            let began = Instant::now();
            let before = seconds(began);
            let found = masker.text(&corpus.texts[0].1).counts.total();
            let took = seconds(began) - before;
            let bytes = corpus.bytes() as f64 / 1e6;
            println!("{:28} {bytes:>8.2} {found:>7} {:>18.0}", corpus.name, bytes / took);
        }
    }
}

/// Adds the lines that masking has changed.
fn show(corpus: &str, path: &Path, text: &str, masked: &str, report: &mut String) {
    let before: std::collections::HashSet<&str> = text.lines().collect();
    for line in masked
        .lines()
        .filter(|line| line.contains("[MASKED") && !before.contains(line))
    {
        report.push_str(&format!(
            "{corpus}\t{}\t{}\n",
            path.display(),
            line.chars().take(300).collect::<String>().trim()
        ));
    }
}

/// CPU time where the system reports it, so that other programs do not count; otherwise elapsed time.
fn seconds(began: Instant) -> f64 {
    let told = fs::read_to_string("/proc/self/schedstat").ok();
    let nanoseconds = told.and_then(|told| told.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| began.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}
