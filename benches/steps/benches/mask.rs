//! Measures the masking of 8 MiB of text on one core: `cargo bench -p pegboard-steps --bench mask [-- SHAPE…]`.

use std::time::Instant;

use pegboard_steps::shapes::SHAPES;

const BYTES: usize = 8 << 20;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let began = Instant::now();
    println!("{:20} {:>9} {:>9} {:>9}", "shape", "ms", "MB/s", "finds");
    for shape in SHAPES {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == shape.name) {
            continue;
        }
        let Some(masker) = shape.masker() else { continue };
        let text = shape.text(BYTES);
        // A warm-up, because patterns are compiled lazily.
        masker.text(&shape.text(4096));
        let before = seconds(began);
        let masked = masker.text(&text);
        let took = seconds(began) - before;
        let speed = text.len() as f64 / 1e6 / took;
        println!(
            "{:20} {:>9.0} {:>9.0} {:>9}",
            shape.name,
            took * 1e3,
            speed,
            masked.counts.total()
        );
    }
}

/// CPU time where the system reports it, so that other programs do not count; otherwise elapsed time.
fn seconds(began: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/self/schedstat").ok();
    let nanoseconds = told.and_then(|told| told.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| began.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}
