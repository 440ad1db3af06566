//! tests
use super::*;
#[test]
fn try_it() {
    let l = Config::load(&[Source::file("/tmp/cfg_try.toml")], &Env::of([("GITHUB_TOKEN", "s3cret")]));
    for p in &l.problems { println!("{p}"); }
    println!("{:#?}\n{:#}", l.config, l.show());
    println!("{}", serde_json::to_string(&Config::schema()).unwrap().len());
}
