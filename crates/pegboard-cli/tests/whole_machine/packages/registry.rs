//! As much of an npm registry as `npx` needs to find packages and fetch them.

use std::{collections::HashMap, fs, net::SocketAddr, path::Path, process::Command, sync::Arc};

use axum::{Router, extract::Request, http::StatusCode, response::IntoResponse as _};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use pegboard_base::sync::Mutex;
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime::Runtime};

/// A registry that answers until it is dropped.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) address: SocketAddr,
    fetched: Arc<Mutex<Vec<String>>>,
    _runtime: Runtime,
}

impl Registry {
    /// Serves every `.tgz` in a folder as the newest version of its package.
    pub(crate) fn of(folder: &Path) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let answers = Arc::new(answers(folder, address));
        let fetched = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&fetched);
        let app = Router::new().fallback(move |request: Request| {
            let path = request.uri().path().replace("%2f", "/").replace("%2F", "/");
            let answer = answers.get(&path).cloned();
            if path.ends_with(".tgz") {
                log.lock().push(path);
            }
            async move {
                match answer {
                    Some(body) => body.into_response(),
                    None => StatusCode::NOT_FOUND.into_response(),
                }
            }
        });
        runtime.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            address,
            fetched,
            _runtime: runtime,
        }
    }

    /// The packages that were fetched, sorted.
    pub(crate) fn fetched(&self) -> Vec<String> {
        let mut fetched = self.fetched.lock().clone();
        fetched.sort();
        fetched
    }
}

/// Bodies by path: a document for each package, and its file.
fn answers(folder: &Path, address: SocketAddr) -> HashMap<String, Vec<u8>> {
    let mut answers = HashMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "tgz") {
            continue;
        }
        let content = fs::read(&path).unwrap();
        let mut manifest = manifest(&path);
        let file = format!("/-/{}", path.file_name().unwrap().to_str().unwrap());
        let digest = ring::digest::digest(&ring::digest::SHA512, &content);
        manifest["dist"] = json!({
            "tarball": format!("http://{address}{file}"),
            "integrity": format!("sha512-{}", STANDARD.encode(digest)),
        });
        let (name, version) = (manifest["name"].clone(), manifest["version"].clone());
        let document = json!({
            "name": name,
            "dist-tags": { "latest": version },
            "versions": { version.as_str().unwrap(): manifest },
        });
        answers.insert(
            format!("/{}", name.as_str().unwrap()),
            document.to_string().into_bytes(),
        );
        answers.insert(file, content);
    }
    answers
}

/// The `package.json` of a package.
pub(crate) fn manifest(package: &Path) -> Value {
    let mut tar = Command::new("tar");
    tar.args(["-xOzf"]).arg(package).arg("package/package.json");
    serde_json::from_str(&crate::packages::run(&mut tar).succeeds()).unwrap()
}
