//! Generators of made-up secrets: tokens that are recognised by their format, and passwords that only their names give away.

/// A random generator with a fixed seed, so that every run measures the same texts.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    fn text(&mut self, alphabet: &[u8], len: usize) -> String {
        (0..len).map(|_| char::from(*self.pick(alphabet))).collect()
    }
}

/// A class of tokens: its name, and a template. `{a36}` stands for 36 letters or digits; see [`alphabet`].
pub type Class = (&'static str, &'static str);

/// The templates are no secrets, and no text here looks like one.
#[rustfmt::skip]
pub const TOKENS: &[Class] = &[
    ("aws access key", "AKIA{u16}"), ("aws temporary key", "ASIA{u16}"), ("aws bedrock", "ABSK{b108}"),
    ("gcp api key", "AIza{w35}"), ("gcp oauth", "ya29.{w60}"), ("gcp client secret", "GOCSPX-{w28}"),
    ("azure client secret", "{a3}8Q~{w34}"), ("azure devops", "{a76}AZDO{a4}"), ("digitalocean", "dop_v1_{h64}"),
    ("azure storage", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={b86}=="),
    ("azure sas", "https://x.blob.core.windows.net/c?sv=2024-01-01&sig={a43}%3D"),
    ("aws presigned", "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature={h64}"),
    ("aws presigned session", "https://b.s3.amazonaws.com/k?X-Amz-Security-Token={a180}&X-Amz-Expires=300"),
    ("alibaba", "LTAI{a20}"), ("github classic", "ghp_{a36}"), ("github app", "ghs_{a36}"),
    ("github fine-grained", "github_pat_{a22}_{a59}"), ("gitlab", "glpat-{w20}"), ("gitlab runner", "glrt-{w20}"),
    ("bitbucket", "ATBB{a32}"), ("atlassian", "ATATT3{w186}"), ("npm", "npm_{a36}"), ("pypi", "pypi-AgEIcHlwaS5vcmc{w80}"),
    ("rubygems", "rubygems_{h48}"), ("crates.io", "cio{a32}"), ("docker hub", "dckr_pat_{w27}"), ("vault", "hvs.{w90}"),
    ("terraform cloud", "{a14}.atlasv1.{a67}"), ("doppler", "dp.pt.{a43}"), ("age", "AGE-SECRET-KEY-1{u58}"),
    ("anthropic", "sk-ant-api03-{w93}AA"), ("openai project", "sk-proj-{w74}T3BlbkFJ{w74}"), ("openai legacy", "sk-{a20}T3BlbkFJ{a20}"),
    ("openrouter", "sk-or-v1-{h64}"), ("hugging face", "hf_{a34}"), ("groq", "gsk_{a52}"), ("xai", "xai-{a80}"), ("replicate", "r8_{a37}"),
    ("perplexity", "pplx-{a48}"), ("langsmith", "lsv2_pt_{h32}_{h10}"), ("slack bot", "xoxb-{d12}-{d12}-{a24}"),
    ("slack webhook", "https://hooks.slack.com/services/T{u9}/B{u9}/{a24}"),
    ("discord webhook", "https://discord.com/api/webhooks/{d19}/{w68}"), ("telegram", "{d10}:AA{w33}"), ("stripe", "sk_live_{a24}"),
    ("stripe webhook", "whsec_{a32}"), ("sendgrid", "SG.{w22}.{w43}"), ("twilio", "SK{h32}"), ("mailgun", "key-{h32}"),
    ("mailchimp", "{h32}-us12"), ("shopify", "shpat_{h32}"), ("square", "EAAA{w60}"), ("grafana", "glsa_{a32}_{h8}"),
    ("new relic", "NRAK-{u27}"), ("sentry", "sntrys_eyJ{b80}"), ("databricks", "dapi{h32}"), ("postman", "PMAK-{h24}-{h34}"),
    ("linear", "lin_api_{a40}"), ("notion", "ntn_{a46}"), ("figma", "figd_{w40}"), ("tailscale", "tskey-auth-{a12}-{a32}"),
    ("planetscale", "pscale_pw_{w43}"), ("supabase", "sbp_{h40}"), ("mongodb atlas", "mdb_sa_sk_{w40}"),
    ("json web token", "eyJhbGciOiJIUzI1NiJ9.eyJ{w60}.{w43}"), ("bearer", "Authorization: Bearer {w40}"),
    ("basic", "Authorization: Basic {b32}"), ("cookie", "Set-Cookie: session={a32}; HttpOnly; Path=/"),
    ("x-api-key", "X-Api-Key: {a32}"), ("url password", "postgres://app:{a16}@db:5432/x"),
    ("redis url", "redis://:{a20}@cache:6379/0"), ("git remote", "https://ci:{a20}@git.example.org/a/b.git"),
    ("curl user", "curl -sS -u admin:{a12} https://x"), ("netrc", "machine api.example.com login u password {a16}"),
    ("pgpass", "db.example.org:5432:app:admin:{a16}"), ("unseal key", "Unseal Key 2: {b44}"), ("npmrc", "//registry.npmjs.org/:_authToken={a36}"),
    ("kubeconfig", "    client-key-data: {b200}"), ("docker auth", "{\"auths\":{\"r.example.org\":{\"auth\":\"{b32}\"}}}"),
    ("sql password", "CREATE USER app WITH PASSWORD '{a14}';"), ("identified by", "ALTER USER 'app'@'%' IDENTIFIED BY '{a14}';"),
    ("sshpass", "sshpass -p {a12} ssh root@h"), ("mysql flag", "mysql -h db -u root -p{a12} app"),
];

/// Secrets without a format. Only the name beside them tells.
#[rustfmt::skip]
pub const PASSWORDS: &[Class] = &[
    ("letters and digits", "{a16}"), ("symbols", "{s18}"), ("dots", "{a6}.{a5}.{a6}"), ("words and digits", "{W}-{W}{d2}"), ("words", "{W}{W}"),
    ("dotted words", "{W}.{W}.{W}"), ("hex", "{h32}"), ("base64", "{b22}=="), ("digits", "{d10}"), ("short", "{a8}"), ("with colon", "{a5}:{a5}!"),
    ("lower case", "{l12}"), ("uuid", "{h8}-{h4}-{h4}-{h4}-{h12}"),
];

const WORDS: &[&str] = &[
    "Sunny", "Garden", "river", "Mountain", "blue", "horse", "Battery", "staple", "winter", "Coffee", "dragon",
    "orange", "Summer", "monkey",
];

/// Fills a template in.
pub fn generate(template: &str, random: &mut Random) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let filled = after
            .split_once('}')
            .and_then(|(field, after)| Some((fill(field, random)?, after)));
        out.push_str(before);
        rest = match filled {
            Some((filled, after)) => {
                out.push_str(&filled);
                after
            }
            None => {
                out.push('{');
                after
            }
        };
    }
    out + rest
}

fn fill(field: &str, random: &mut Random) -> Option<String> {
    if field == "W" {
        return Some((*random.pick(WORDS)).to_owned());
    }
    let (kind, len) = field.split_at_checked(1)?;
    Some(random.text(alphabet(kind)?, len.parse().ok()?))
}

fn alphabet(kind: &str) -> Option<&'static [u8]> {
    Some(match kind {
        "a" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        "u" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        "l" => b"abcdefghijklmnopqrstuvwxyz",
        "d" => b"0123456789",
        "h" => b"0123456789abcdef",
        "b" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "w" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
        "s" => b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789!@#$%^&*()-_=+[]{};:,.?/|~",
        _ => return None,
    })
}

/// The part of a token's text that must not be readable: what the template's longest field became.
pub fn secret_part(template: &str, seed: u64) -> (String, String) {
    let fields: Vec<&str> = template
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}'))
        .map(|(field, _)| field)
        .filter(|field| alphabet(&field[..1]).is_some() && field[1..].parse::<usize>().is_ok())
        .collect();
    let longest = fields
        .iter()
        .max_by_key(|field| field[1..].parse::<usize>().unwrap_or(0));
    let marked = longest.map_or_else(
        || template.to_owned(),
        |field| template.replacen(&format!("{{{field}}}"), &format!("\u{1}{{{field}}}\u{2}"), 1),
    );
    let text = generate(&marked, &mut Random::new(seed));
    let secret = text
        .split_once('\u{1}')
        .and_then(|(_, rest)| rest.split_once('\u{2}'))
        .map_or_else(|| text.clone(), |(secret, _)| secret.to_owned());
    (text.replace(['\u{1}', '\u{2}'], ""), secret)
}
