//! Resolves grant words (`mcp_integration`, `mcp_<server>`, `mcp_<server>_<tool>`) against the tools that the servers offer.

use super::granted::Granted;
use pegboard_base::name::ServerName;

/// The word that grants everything.
const EVERYTHING: &str = "mcp_integration";

/// The tools that one server offers, as far as they are known.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    /// The name of the server.
    pub server: &'a ServerName,
    /// The names of its tools; `None` if they were never listed.
    pub tools: Option<&'a [String]>,
}

/// Adds the grant of one word.
///
/// The operator chooses server names and the server chooses tool names, so a word that could be either means the server. A word that could
/// mean tools of several servers is ambiguous and grants none of them; a server that was never listed may have such a tool too.
pub(super) fn resolve(word: &str, offers: &[Offer<'_>], granted: &mut Granted) {
    if word == EVERYTHING {
        granted.everything = true;
        return;
    }
    if let Some(offer) = offers.iter().find(|offer| is_server(word, offer.server)) {
        granted.globs.push((offer.server.clone(), "*".to_owned()));
        return;
    }
    let mut found: Vec<(&ServerName, &String)> = Vec::new();
    let mut unsure: Vec<&ServerName> = Vec::new();
    for offer in offers {
        match offer.tools {
            Some(tools) => {
                let tool = tools.iter().find(|tool| is_tool(word, offer.server, tool));
                found.extend(tool.map(|tool| (offer.server, tool)));
            }
            None if may_be_of(word, offer.server) => unsure.push(offer.server),
            None => {}
        }
    }
    granted.unsure.extend(unsure.iter().map(|server| (*server).clone()));
    match (found.as_slice(), unsure.as_slice()) {
        ([(server, tool)], []) => granted.tools.push(((*server).clone(), (*tool).clone())),
        ([], _) => {}
        (found, unsure) => {
            let found = found.iter().map(|(server, tool)| format!("`{server}.{tool}`"));
            let unsure = unsure.iter().map(|server| format!("a tool of `{server}`"));
            let meanings: Vec<_> = found.chain(unsure).collect();
            granted.warnings.push(format!(
                "the grant `{word}` could mean {}, so it grants none of them",
                meanings.join(" or ")
            ));
        }
    }
}

fn is_server(word: &str, server: &ServerName) -> bool {
    word.strip_prefix("mcp_") == Some(server.as_str())
}

fn is_tool(word: &str, server: &ServerName, tool: &str) -> bool {
    after_server(word, server) == Some(tool)
}

fn may_be_of(word: &str, server: &ServerName) -> bool {
    after_server(word, server).is_some_and(|tool| !tool.is_empty())
}

fn after_server<'a>(word: &'a str, server: &ServerName) -> Option<&'a str> {
    word.strip_prefix("mcp_")?
        .strip_prefix(server.as_str())?
        .strip_prefix('_')
}
