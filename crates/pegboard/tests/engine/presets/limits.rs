//! Limits in a config file, under every preset.

use pegboard::*;

#[test]
fn every_pair_of_limits_loads_under_every_preset() {
    let limits = [
        "call_timeout",
        "call_total_timeout",
        "connect_timeout",
        "list_timeout",
        "write_timeout",
        "stop_timeout",
        "era_silence",
        "health_interval",
        "health_timeout",
    ];
    let mut bad = Vec::new();
    for preset in ["pegboard", "tarsy", "ai-agent", "antwort", "goat", "minion"] {
        for a in limits {
            for b in limits {
                for (x, y) in [("1s", "2s"), ("700s", "3s"), ("3s", "700s"), ("1ms", "24h")] {
                    for place in 0..3 {
                        let (ta, tb) = (
                            format!("{a} = '{x}'\n"),
                            if a == b {
                                String::new()
                            } else {
                                format!("{b} = '{y}'\n")
                            },
                        );
                        let (top, own) = match place {
                            0 => (format!("{ta}{tb}"), String::new()),
                            1 => (ta, tb),
                            _ => (tb, ta),
                        };
                        let text = format!("preset = '{preset}'\n{top}[servers.x]\ncommand = 'a'\n{own}");
                        let loaded = Config::from_text(&text, Format::Toml, &Env::new(|_| None));
                        for problem in &loaded.problems {
                            let told = problem.to_string();
                            // Two written limits may contradict each other.
                            if !told.contains("must not be less than")
                                && !told.contains("unknown")
                                && !told.contains("must be between")
                                && !told.contains("at most")
                                && !told.contains("at least")
                            {
                                bad.push(format!("{preset} {a}={x} {b}={y} {place}: {told}"));
                            }
                        }
                        if let Some(server) = loaded.config.servers.values().next()
                            && server.limits.call_total_timeout < server.limits.call_timeout
                        {
                            bad.push(format!("{preset} {a}={x} {b}={y}: total < idle"));
                        }
                    }
                }
            }
        }
    }
    bad.dedup();
    assert!(
        bad.is_empty(),
        "{} of them, as {:#?}",
        bad.len(),
        &bad[..bad.len().min(12)]
    );
}
