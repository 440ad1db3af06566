//! The rules of the scanner, and a fast check that most texts match none.

use std::sync::LazyLock;

use pegboard_mask::Keywords;
use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::{
    encoded,
    severity::FindingSeverity::{self, High, Low, Medium},
};

/// A rule by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) severity: FindingSeverity,
}

impl Rule {
    pub(super) const TAGS: Self = Self::new("invisible_tags", High);
    pub(super) const DIRECTION: Self = Self::new("text_direction", High);
    pub(super) const CONTROL: Self = Self::new("control_characters", High);
    pub(super) const ZERO_WIDTH: Self = Self::new("zero_width_characters", Medium);
    pub(super) const PADDING: Self = Self::new("padding", Medium);
    pub(super) const LENGTH: Self = Self::new("length", Low);
    pub(super) const SPELLED: Self = Self::new("spelled_out", Medium);
    pub(super) const NAME: Self = Self::new("sentence_as_name", Medium);
    pub(super) const ENCODED: Self = Self::new("encoded_text", Medium);
    pub(super) const ENCODED_INSTRUCTION: Self = Self::new("encoded_instruction", High);

    const fn new(name: &'static str, severity: FindingSeverity) -> Self {
        Self { name, severity }
    }
}

/// Each rule searches text in normal form: small letters and single spaces. Gaps are bounded, and `[^.]` keeps most within a sentence.
const RULES: &[(Rule, &str)] = &[
    (
        Rule::new("override", High),
        r"\b(ignore|disregard|forget|override|overrule|bypass)\b[^.]{0,40}\b(previous|prior|above|earlier|preceding|existing|all|any|other|your|these|those|system|safety|original|user'?s?)\b[^.]{0,30}\b(instructions?|prompts?|rules|guidelines|directives?|commands|polic(y|ies)|constraints|safeguards|restrictions)\b",
    ),
    (
        Rule::new("override", High),
        r"\b(system override|new (system )?instructions? ?:|updated instructions? ?:|developer mode|jailbreak|do anything now|you are now (in|a|an|the|dan)\b|from now on,? you (must|will|are|should)|these instructions (override|supersede|take precedence)|highest priority instructions?)",
    ),
    (
        Rule::new("concealment", High),
        r"\b(do not|don'?t|dont|never|without|must not|should not|avoid|refrain from|no need to)\b[^.]{0,20}\b(tell|telling|inform|informing|mention|mentioning|notify|notifying|reveal|revealing|alert|alerting|disclose|disclosing|let)\b[^.]{0,25}\b(user|users|human|humans|person|operator|anyone|anybody|them)\b",
    ),
    (
        Rule::new("concealment", High),
        r"\b((do not|don'?t|never) (mention|reveal|disclose|explain|acknowledge) (this|that|these|the) (instruction|step|note|requirement|message|fact|action|file|call)s?|(keep|hide) (this|it|that)? ?(a )?(secret|hidden) from (the )?user|hide this from|(secretly|covertly|surreptitiously)\b|(user|human) (must|should|does|will|need) ?not (know|see|be (told|informed|aware|notified))|without (the )?user'?s? (knowledge|consent|noticing|awareness|knowing))",
    ),
    (
        Rule::new("imitated_role", High),
        r"(<\|? ?/? ?(important|system|secret|hidden|override|admin|im_start|im_end|endoftext|sudo|critical|assistant|instructions?) ?\|?>|\[ ?/? ?(system|inst|important|admin|hidden) ?\]|<<sys>>|#+ ?(system|new instruction|instruction override|assistant) ?:|\b(system|assistant|developer) ?(message|note|prompt)? ?: ?(you|ignore|always|the user|please|from now))",
    ),
    (
        Rule::new("prompt_theft", High),
        r"\b(reveal|print|output|repeat|leak|include|send|pass|copy|provide|disclose|append|dump|share|return|summari[sz]e|put|insert|write|forward)\b[^.]{0,40}\b(system prompt|system message|developer message|hidden prompt|initial (prompt|instructions)|your instructions|chain of thought|(conversation|chat) (history|transcript|log)|(entire|whole|full|complete) (conversation|chat|context)|previous messages|all (previous )?tool (results|outputs))\b",
    ),
    (
        Rule::new("secret_file", High),
        r"(\.ssh\b|\bid_(rsa|ed25519|ecdsa|dsa)\b|\.git-credentials|\.netrc\b|\.pgpass|\.gnupg|/etc/(passwd|shadow)|\bmcp\.json|claude_desktop_config|\.aws/credentials|\.docker/config\.json|\.bash_history|\.zsh_history|wallet\.dat|authorized_keys|known_hosts|\blogin\.keychain|cookies\.sqlite|/proc/(self|\d+)/environ|application_default_credentials)",
    ),
    (
        Rule::new("secret_file", High),
        r"\b(read|open|cat|access|fetch|include|send|upload|contents? of|attach|copy|print|extract|paste|pass)\b[^.]{0,40}( |/|'|\x22|\()(\.env(\.\w+)?|\.kube/config|\.aws|\.npmrc|\.pypirc|\.config/gcloud)\b",
    ),
    (
        Rule::new("secret_requested", High),
        r"\b(pass|send|include|provide|put|append|attach|insert|supply|copy|forward|embed|place|fill|write|store|set)\b[^.]{0,50}\b(user'?s|all|any|every|environment|found|available|known|current|their|your|agent'?s|model'?s|other)\b[^.]{0,25}\b(api[ _-]?keys?|passwords?|secrets?|secret keys?|(access|auth|session|bearer) ?tokens?|credentials|private keys?|env(ironment)? var(iable)?s|cookies|ssh keys?)\b[^.]{0,40}\b(in|as|into|to|via|through|with|using|here)\b",
    ),
    (
        Rule::new("secret_requested", High),
        r"\b(contents?|value|values|copy) of\b[^.]{0,30}\b(ssh keys?|private keys?|api[ _-]?keys?|password( file| store)?s?|env(ironment)? (file|var(iable)?s)|credentials? file|secrets? file|os\.environ|keychain)\b",
    ),
    (
        Rule::new("preparation", High),
        r"\b(before|prior to|in order to|to) (you )?(using|calling|running|invoking|executing|use|call|run)\b[^.]{0,40}\b(this|the|any|other|it|tool)\b[^.]{0,60}\b(read|open|cat|access|load|send|upload|collect|gather)\b[^.]{0,40}(~/|/etc|/home|/root|\.\w+ file|secret|credential|password|private key|api key|config file|environment)",
    ),
    (
        Rule::new("side_channel", High),
        r"(\bsidenote\b|\bside[ -]note\b|\bexfiltrat\w*|\b(send|post|upload|forward|transmit|submit|report|mail|copy|leak)\b[^.]{0,60}\b(contents?|results?|outputs?|data|conversation|history|messages?|files?|secrets?|keys?|tokens?|everything|responses?|it|them|query|arguments?|emails?|documents?)\b[^.]{0,30}\bto:? ?(https?://|[\w.+-]+@[\w-]+\.[a-z]|\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}|attacker|our server|this (url|endpoint|webhook|address)))",
    ),
    (
        Rule::new("cross_tool", High),
        r"\b(bcc|cc|recipient|redirect|forward|reply-to|payee|destination|send (it|them|all)|change (the|its))\b[^.]{0,50}( to| is| with| add|=|:) ?:? ?([\w.+-]+@[\w-]+\.[a-z]{2,}|\+\d[\d -]{6,}|0x[0-9a-f]{16,})",
    ),
    (
        Rule::new("cross_tool", Medium),
        r"\b(when(ever)?|before|after|each time|every time|if|while) (you )?(call|calling|use|using|invoke|invoking|run|running|execute|executing|send|sending)\b[^.]{0,50}\b(other|another|different)\b[^.]{0,20}\b(tool|server|function)s?\b[^.]{0,60}\b(must|always|also|make sure|be sure|ensure|add|append|replace|change)\b",
    ),
    (
        Rule::new("cross_tool", Medium),
        r"\b(do not|don'?t|never|stop) (use|using|call|calling|trust)\b[^.]{0,30}\b(any other|all other|other servers?'?|another server'?s?|the (official|original|other))\b[^.]{0,20}\b(tool|server|function)s?\b|\b(this|it) (tool )?(replaces|supersedes|is the (only|official) (secure|safe|trusted)|has replaced)\b[^.]{0,30}\b(tool|server|version)",
    ),
    (
        Rule::new("threat", Medium),
        r"\b(otherwise|or else|if you (do not|don'?t|fail)|failure to (do so|comply))\b[^.]{0,60}\b(user|users|data|account|you|they|someone|people|database|system|everything)\b[^.]{0,30}\b(will|may|could)\b[^.]{0,20}\b(die|be (deleted|lost|fired|terminated|harmed|destroyed|shut down|leaked)|lose|crash)\b",
    ),
    (
        Rule::new("code_download", High),
        r"(\b(curl|wget|iwr|invoke-webrequest)\b.{0,80}\| ?(sudo )?(ba|z|da)?sh\b|\b(bash|sh) <\(|\bbase64 (-d|--decode)\b|\beval\(atob|\bpowershell\b.{0,20} -e(nc|ncodedcommand)?\b|\bnc -e\b|/dev/tcp/|\brm -rf (/|~|\$))",
    ),
    (Rule::new("html_comment", Medium), r"<!--"),
    (
        Rule::new("external_image", Medium),
        r"(!\[[^\]]{0,80}\]\( ?https?://|<img[^>]{0,80}src ?= ?.?https?://|<script\b|<iframe\b|\bjavascript:|\bdata:(text|application)/[\w.+-]+[;,])",
    ),
];

/// Texts of which every match of a rule has one.
const STEMS: &[&str] = &[
    "ignore",
    "disregard",
    "forget",
    "overrid",
    "overrule",
    "bypass",
    "instruction",
    "developer mode",
    "jailbreak",
    "anything now",
    "you are now",
    "from now on",
    "precedence",
    "tell",
    "inform",
    "mention",
    "notif",
    "reveal",
    "alert",
    "disclos",
    "let the",
    "let any",
    "let them",
    "let user",
    "let human",
    "hide this",
    "secret",
    "covertly",
    "surreptitiously",
    "not know",
    "hidden",
    "not see",
    "not be ",
    "without",
    "<important",
    "system>",
    "<hidden",
    "hidden>",
    "<override",
    "<admin",
    "<im_",
    "<|",
    "important>",
    "admin>",
    "sudo>",
    "critical>",
    "assistant>",
    "[system",
    "[inst",
    "[/inst",
    "[important",
    "[admin",
    "[hidden",
    "<<sys",
    "system:",
    "assistant:",
    "developer:",
    "message:",
    "note:",
    "prompt",
    "conversation",
    "chat ",
    "transcript",
    "entire",
    "whole",
    "previous",
    "tool results",
    "tool outputs",
    "chain of",
    ".ssh",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "id_dsa",
    "git-credentials",
    "netrc",
    "pgpass",
    "gnupg",
    "/etc/",
    "mcp.json",
    "claude_desktop",
    ".aws",
    ".docker/config",
    "_history",
    "wallet.dat",
    "authorized_keys",
    "known_hosts",
    "keychain",
    "cookies",
    "/proc/",
    "default_credentials",
    ".env",
    ".kube",
    "npmrc",
    "pypirc",
    "gcloud",
    "api key",
    "api_key",
    "api-key",
    "apikey",
    "password",
    "token",
    "credential",
    "private key",
    "env var",
    "environment",
    "ssh key",
    "config file",
    "sidenote",
    "side note",
    "side-note",
    "exfiltrat",
    "http://",
    "https://",
    "@",
    "attacker",
    "our server",
    "webhook",
    "endpoint",
    "bcc",
    "0x",
    "+1",
    "+2",
    "+3",
    "+4",
    "+5",
    "+6",
    "+7",
    "+8",
    "+9",
    "other tool",
    "another tool",
    "other server",
    "another server",
    "other function",
    "different tool",
    "official",
    "original",
    "replaces",
    "supersedes",
    "replaced",
    "otherwise",
    "or else",
    "if you",
    "failure to",
    "curl",
    "wget",
    "iwr",
    "invoke-web",
    "<(",
    "base64",
    "atob",
    "powershell",
    "nc -e",
    "rm -rf",
    "<!--",
    "![",
    "<img",
    "<script",
    "<iframe",
    "javascript:",
    "data:text",
    "data:app",
    "\\u00",
    "%",
    "&#",
    "\n\n\n\n",
    "\\n\\n\\n\\n",
    "          ",
    "any other",
    "all other",
    "the other",
    "another ",
    "this url",
    "this address",
    "send the",
    "send all",
    "send it",
    "send them",
    "send any",
    "upload",
    "transmit",
    "leak",
    "~/",
    "/home/",
    "/root",
    "full con",
    "full chat",
    "complete con",
    "complete chat",
    "/dev/tcp",
    "system :",
];

static FINDER: LazyLock<Keywords> = LazyLock::new(|| Keywords::new(STEMS.to_vec()));

static SET: LazyLock<Option<(RegexSet, Vec<Regex>)>> = LazyLock::new(|| {
    // Text in normal form is ASCII, so the rules need no Unicode tables.
    let set = RegexSetBuilder::new(RULES.iter().map(|(_, pattern)| pattern))
        .unicode(false)
        .size_limit(64 << 20)
        .dfa_size_limit(16 << 20)
        .build()
        .ok()?;
    let one = |(_, pattern): &(Rule, &str)| RegexBuilder::new(pattern).unicode(false).build().ok();
    let all: Option<Vec<Regex>> = RULES.iter().map(one).collect();
    Some((set, all?))
});

/// Returns whether a text, or a JSON document with texts, may match a rule. Most do not, and this is fast.
pub(super) fn may_match(text: &str) -> bool {
    FINDER.occur_in(text) || encoded::is_unusual(text)
}

/// Calls `found` with each rule that matches a text in normal form, and the text around the match.
pub(super) fn matches(text: &str, mut found: impl FnMut(Rule, &str)) {
    let Some((set, rules)) = SET.as_ref() else {
        return;
    };
    let mut named: Vec<&str> = Vec::new();
    for index in set.matches(text.as_bytes()) {
        let (Some(regex), Some((rule, _))) = (rules.get(index), RULES.get(index)) else {
            continue;
        };
        if named.contains(&rule.name) {
            continue;
        }
        named.push(rule.name);
        let excerpt = regex.find(text.as_bytes()).and_then(|hit| {
            let start = text.floor_char_boundary(hit.start().saturating_sub(20));
            text.get(start..)
        });
        found(*rule, excerpt.unwrap_or(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_compiles() {
        assert!(SET.is_some());
    }
}
