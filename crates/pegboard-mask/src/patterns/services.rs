//! Tokens with a distinctive format, by the kind of service that issues them.

use super::{prefixless, service_keys};
use crate::{
    pattern::{
        Detection::{Assigned, Find, Groups, InRuns, Token},
        Pattern, pattern,
    },
    plausibility,
};

pub(super) static CLOUD: [Pattern; 18] = [
    pattern(
        "aws_secret_after_id",
        // A row of the console's CSV file or of a table: the key's ID, in some also a date, and the secret.
        &["akia", "asia"],
        Groups(
            r#"\b(?:AKIA|ASIA)[0-9A-Z]{16}["']?[ \t]*[,;:| \t][ \t]*(?:[0-9][0-9TZ:+.-]{9,31}[ \t]+)?["']?([0-9A-Za-z/+]{40})(?:[ \t\r"',;|\\]|(?m:$))"#,
        ),
    )
    .check(|_, value| plausibility::is_mixed(value) && plausibility::plausible(value)),
    pattern(
        "aws_session_token",
        &[
            "session_token",
            "sessiontoken",
            "session-token",
            "session.token",
            "security_token",
            "securitytoken",
            "security-token",
            "security.token",
        ],
        Assigned(r"session[_.-]?token|security[_.-]?token"),
    )
    .check(|_, value| value.len() >= 100 && plausibility::is_mixed(value)),
    pattern(
        "aws_bedrock_key",
        &["absk", "bedrock-api-key-"],
        Token(r"(?:ABSK[0-9A-Za-z+/]{100,}={0,2}|bedrock-api-key-[0-9A-Za-z+/_-]{40,}={0,2})"),
    ),
    pattern(
        "aws_registry_token",
        // `AWS:` and the payload of a token of the Elastic Container Registry, in base64, and the payload alone.
        &["qvdtomv5s", "eyjwyxlsb2fkijoi"],
        Token(r"(?:QVdTOmV5S[0-9A-Za-z+/]{60,}|eyJwYXlsb2FkIjoi[0-9A-Za-z+/_-]{60,})={0,2}"),
    ),
    pattern(
        "signed_url",
        &["signature=", "signature%3d"],
        Groups(
            r"(?i)(?:[?&;, ]|%26|\\u0026|^)(?:x-(?:amz|goog|oss|cos|tos|obs|bce|ms)-)?signature(?:=|%3D)([0-9A-Z%+/_~-]{24,}=*)",
        ),
    )
    .check(|_, value| is_signature(value)),
    pattern(
        "azure_ai_key",
        &["jqqj99"],
        Token(r"[0-9A-Za-z]{40,60}JQQJ99[0-9A-Za-z]{20,30}\b"),
    ),
    pattern(
        "azure_function_key",
        &[".azurewebsites.net"],
        Groups(r#"(?i)\.azurewebsites\.net/[^\s"'?]*\?(?:[^\s"'?]*&)?code=([0-9A-Z_%-]{40,}=*)"#),
    ),
    pattern(
        "azure_registry_password",
        &["+acr"],
        Token(r"[0-9A-Za-z+/]{42}\+ACR[0-9A-Za-z]{6}\b"),
    ),
    pattern("gcp_api_key", &["aiza"], Token(r"AIza[0-9A-Za-z_-]{35}")),
    pattern("gcp_oauth_token", &["ya29."], Token(r"ya29\.[0-9A-Za-z_-]{30,}")),
    pattern(
        "gcp_oauth_client_secret",
        &["gocspx-"],
        Token(r"GOCSPX-[0-9A-Za-z_-]{28}"),
    ),
    pattern(
        "azure_storage_key",
        &["accountkey", "sharedaccesskey"],
        Groups(r"(?i)(?:AccountKey|SharedAccessKey)=([0-9A-Z+/]{40,}={0,2})"),
    ),
    pattern(
        "azure_client_secret",
        &["0q~", "1q~", "2q~", "3q~", "4q~", "5q~", "6q~", "7q~", "8q~", "9q~"],
        Token(r"[0-9A-Za-z_.~-]{3}[0-9]Q~[0-9A-Za-z_.~-]{31,34}"),
    ),
    pattern(
        "azure_sas_signature",
        &["sig="],
        Groups(r"[?&;]sig=([0-9A-Za-z%+/]{40,}=*)"),
    )
    .check(|_, value| is_signature(value)),
    pattern(
        "azure_devops_pat",
        &["azdo"],
        Token(r"[0-9A-Za-z]{76}AZDO[0-9A-Za-z]{4}\b"),
    ),
    pattern("digitalocean_token", &["_v1_"], Token(r"do[opr]_v1_[0-9a-f]{64}\b")),
    pattern("alibaba_access_key", &["ltai"], Token(r"LTAI[0-9A-Za-z]{12,24}\b"))
        .check(|_, value| plausibility::is_mixed(value)),
    pattern("tencent_secret_id", &["akid"], Token(r"AKID[0-9A-Za-z]{32,36}\b")),
];

/// Whether a value may be a signature in a URL. It may begin with a percent-encoded character.
fn is_signature(value: &str) -> bool {
    plausibility::is_random(value) && plausibility::plausible(value.trim_start_matches('%'))
}

pub(super) static VCS: [Pattern; 4] = [
    pattern(
        "github_fine_grained_pat",
        &["github_pat_"],
        Token(r"github_pat_[0-9A-Za-z]{20,}_[0-9A-Za-z]{40,}"),
    ),
    pattern(
        "gitlab_token",
        &[
            "glpat-", "gldt-", "glptt-", "glrt-", "glcbt-", "glft-", "glimt-", "glagent-", "gloas-", "glsoat-",
            "glffct-",
        ],
        Token(r"(?:glpat|gldt|glptt|glrt|glcbt|glft|glimt|glagent|gloas|glsoat|glffct)-[0-9A-Za-z_.=-]{20,}"),
    ),
    pattern("bitbucket_app_password", &["atbb"], Token(r"ATBB[0-9A-Za-z]{32}\b")),
    pattern(
        "atlassian_token",
        &["atatt3", "atctt3"],
        Token(r"AT[AC]TT3[0-9A-Za-z_=-]{60,}"),
    ),
];

pub(super) static REGISTRY: [Pattern; 8] = [
    pattern(
        "package_registry_key",
        &["oy2", "akcp", "cmvmdgtu", "clojars_"],
        Token(r"(?:oy2[0-9a-z]{43}|AKCp[0-9A-Za-z]{60,}|cmVmdGtu[0-9A-Za-z]{50,}|CLOJARS_[0-9a-z]{60})\b"),
    )
    .check(|_, value| plausibility::is_random(value)),
    pattern("npm_token", &["npm_"], Token(r"npm_[0-9A-Za-z]{36}\b")),
    pattern(
        "npmrc_authtoken",
        &[":_auth", ":_password"],
        Groups(r#":_(?:auth(?:Token)?|password)[ \t]*=[ \t]*"?([^\s"]{8,})"#),
    ),
    pattern("pypi_token", &["pypi-ag"], Token(r"pypi-Ag[0-9A-Za-z_-]{50,}")),
    pattern("rubygems_token", &["rubygems_"], Token(r"rubygems_[0-9a-f]{48}\b")),
    pattern("crates_io_token", &["cio"], Token(r"cio[0-9A-Za-z]{32}\b"))
        .check(|_, value| plausibility::is_mixed(value)),
    pattern("dockerhub_token", &["dckr_"], Token(r"dckr_[op]at_[0-9A-Za-z_-]{27,}")),
    pattern(
        "docker_config_auth",
        &["auth\""],
        Groups(r#"\\*"auth\\*"[ \t]*:\s*\\*"([0-9A-Za-z+/]{16,}={0,2})\\*""#),
    )
    .keyed(),
];

pub(super) static SECRETS_MANAGER: [Pattern; 6] = [
    pattern(
        "vault_token",
        &["hvs.", "hvb.", "hvr."],
        Token(r"hv[sbr]\.[0-9A-Za-z_-]{24,}"),
    ),
    pattern(
        "vault_unseal_key",
        &["unseal key", "recovery key", "root token"],
        Groups(
            r"(?i)(?:unseal|recovery) key(?: [0-9]+)?:[ \t]*([0-9A-Z+/]{40,}={0,2})|initial root token:[ \t]*([0-9A-Z._-]{20,})",
        ),
    ),
    pattern(
        "terraform_cloud_token",
        &[".atlasv1."],
        Token(r"[0-9A-Za-z]{14}\.atlasv1\.[0-9A-Za-z_=-]{60,}"),
    ),
    pattern(
        "1password_service_token",
        &["ops_ey", "a3-"],
        Token(r"(?:ops_eyJ[0-9A-Za-z+/_-]{200,}={0,2}|A3-[0-9A-Z]{6}-[0-9A-Z]{6}-?[0-9A-Z]{5}(?:-[0-9A-Z]{5}){3}\b)"),
    ),
    pattern(
        "doppler_token",
        &["dp."],
        Token(r"dp\.(?:pt|ct|sa|st|scim|audit)\.(?:[0-9a-z_-]{2,35}\.)?[0-9A-Za-z]{40,44}\b"),
    ),
    pattern(
        "age_secret_key",
        &["age-secret-key-1"],
        Token(r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    ),
];

pub(super) static AI: [Pattern; 7] = [
    pattern(
        "ai_service_key",
        &[
            "csk-", "fw_", "tgp_v1_", "nvapi-", "jina_", "tvly-", "pcsk_", "sk-lf-", "sk-helicone-", "vck_", "rpa_", "e2b_",
            "bb_live_", "apify_api_", "ctx7sk-", "aq.ab", "wandb_v1_",
        ],
        Token(
            r"(?:csk-[0-9a-z]{40,}|fw_[0-9A-Za-z]{22,24}|tgp_v1_[0-9A-Za-z_-]{40,}|nvapi-[0-9A-Za-z_-]{50,}|jina_[0-9A-Za-z_-]{40,}|tvly-(?:(?:dev|prod)-)?[0-9A-Za-z_-]{24,}|pcsk_[0-9A-Za-z]{5,7}_[0-9A-Za-z]{50,}|sk-(?:lf|helicone)-[0-9a-z-]{28,}|vck_[0-9A-Za-z]{40,}|rpa_[0-9A-Z]{40,}[0-9A-Za-z]*|e2b_[0-9a-f]{40}|bb_live_[0-9A-Za-z_-]{24,}|apify_api_[0-9A-Za-z]{30,}|ctx7sk-[0-9a-f-]{32,}|AQ\.Ab[0-9A-Za-z_-]{40,}|wandb_v1_[0-9A-Za-z_-]{40,})",
        ),
    )
    .check(|_, value| plausibility::is_token_like(value)),
    pattern("anthropic_key", &["sk-ant-"], Token(r"sk-ant-[0-9a-z]+-[0-9A-Za-z_-]{40,}")),
    pattern(
        "openai_key",
        &["sk-"],
        Token(r"sk-(?:(?:proj|svcacct|admin|service)-[0-9A-Za-z_-]{40,}|[0-9A-Za-z]{20}T3BlbkFJ[0-9A-Za-z]{20}|[0-9A-Za-z]{32,})"),
    )
    .check(|_, value| plausibility::is_random(&value[3..])),
    pattern("openrouter_key", &["sk-or-"], Token(r"sk-or-v1-[0-9a-f]{64}\b")),
    pattern("huggingface_token", &["hf_", "api_org_"], Token(r"(?:hf|api_org)_[0-9A-Za-z]{34,}\b")),
    pattern(
        "groq_xai_replicate_perplexity",
        &["gsk_", "xai-", "r8_", "pplx-"],
        Token(r"(?:gsk_[0-9A-Za-z]{40,}|xai-[0-9A-Za-z]{60,}|r8_[0-9A-Za-z]{37}|pplx-[0-9A-Za-z]{40,})\b"),
    ),
    pattern("langsmith_key", &["lsv2_"], Token(r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}\b")),
];

pub(super) static SAAS: [Pattern; 22] = [
    pattern("service_key", &[], InRuns(service_keys::service_key)),
    pattern(
        "platform_token",
        &[
            "vcp_", "vercel_blob_rw_", "nfp_", "fm2_", "fo1_", "rnd_", "hrku-", "napi_", "pul-", "v1.0-",
        ],
        Token(
            r"(?:vcp_[0-9A-Za-z]{40,}|vercel_blob_rw_[0-9A-Za-z]{16}_[0-9A-Za-z]{24,}|nfp_[0-9A-Za-z]{36,}|(?:fm2|fo1)_[0-9A-Za-z+/_-]{40,}={0,2}|rnd_[0-9A-Za-z]{28,}|HRKU-[0-9A-Za-z_-]{36,}|napi_[0-9a-z]{60,}|pul-[0-9a-f]{40}|v1\.0-[0-9a-f]{24}-[0-9a-f]{100,})",
        ),
    )
    .check(|_, value| plausibility::is_token_like(value)),
    pattern(
        "developer_tool_token",
        &[
            "sgp_", "ccipat_", "cciprj_", "bkua_", "sqp_", "squ_", "sqa_", "dbtc_", "dbtu_", "pnu_", "phx_", "dt0c01.", "dt0s0",
            "swmtkn-1-", "::server:",
        ],
        Token(
            r"(?:sgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}|CCIP(?:AT|RJ)_[0-9A-Za-z]{16,}_[0-9a-f]{40}|bkua_[0-9a-z]{40}|sq[pua]_[0-9a-f]{40}|dbt[cu]_[0-9A-Za-z_-]{40,}|pnu_[0-9A-Za-z]{36}|phx_[0-9A-Za-z]{40,}|dt0[cs]0[0-9]\.[0-9A-Z]{8,24}\.[0-9A-Z]{64}|SWMTKN-1-[0-9a-z]{49,50}-[0-9a-z]{25}|K10[0-9a-f]{64}::(?:server|agent):[0-9A-Za-z]{16,})",
        ),
    )
    .check(|_, value| plausibility::is_token_like(value)),
    pattern(
        "business_service_token",
        &[
            "xkeysib-", "xsmtpsib-", "access_token$production$", "access-production-", "pat-na", "pat-eu", "cfpat-", "tfp_",
            "sl.u.", ":apa91b", "1//0", "eaac", "webhook.office.com/",
        ],
        Token(
            r"(?:xkeysib-[0-9a-f]{64}-[0-9A-Za-z]{16}|xsmtpsib-[0-9a-f]{64}-[0-9A-Za-z]{16}|access_token\$production\$[0-9a-z]{16}\$[0-9a-f]{32}|access-production-[0-9a-f-]{36}|pat-(?:na|eu)[0-9]-[0-9a-f]{8}-[0-9a-f-]{27}|CFPAT-[0-9A-Za-z_-]{43}|tfp_[0-9A-Za-z_]{40,}|sl\.u\.[0-9A-Za-z_-]{100,}|[0-9A-Za-z_-]{11,22}:APA91b[0-9A-Za-z_-]{100,}|1//0[0-9A-Za-z_-]{40,}|EAAC[0-9A-Za-z]{100,}|webhook\.office\.com/webhookb2/[0-9a-f@-]{36,80}/IncomingWebhook/[0-9a-f]{32}(?:/[0-9A-Za-z_-]{36,})?)",
        ),
    )
    .check(|_, value| plausibility::is_token_like(value) || value.starts_with("webhook")),
    pattern(
        "slack_webhook",
        &["hooks.slack.com"],
        Groups(r"hooks\.slack\.com/(?:services|workflows|triggers)/([0-9A-Za-z/_-]{20,})"),
    ),
    pattern("discord_bot_token", &[], Find(prefixless::discord)),
    pattern(
        "discord_webhook",
        &["webhooks/"],
        Groups(r"discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/([0-9]{15,}/[0-9A-Za-z_-]{50,})"),
    ),
    pattern(
        "telegram_bot_token",
        &[":aa"],
        Token(r"(?:bot)?[0-9]{8,10}:AA[0-9A-Za-z_-]{32,34}"),
    ),
    pattern(
        "stripe_key",
        &["k_live_", "k_test_", "k_prod_", "whsec_"],
        Token(r"(?:[sr]k_(?:live|test|prod)_[0-9A-Za-z]{16,}|whsec_[0-9A-Za-z+/]{32,}=*)"),
    ),
    pattern(
        "sendgrid_key",
        &["sg."],
        Token(r"SG\.[0-9A-Za-z_-]{16,32}\.[0-9A-Za-z_-]{40,}"),
    ),
    pattern("twilio_key", &[], Find(prefixless::twilio)),
    pattern(
        "mailgun_mailchimp",
        &[
            "key-", "-us1", "-us2", "-us3", "-us4", "-us5", "-us6", "-us7", "-us8", "-us9",
        ],
        Token(r"(?:key-[0-9a-f]{32}|[0-9a-f]{32}-us[0-9]{1,2})\b"),
    ),
    pattern(
        "shopify_token",
        &["shpat_", "shpca_", "shppa_", "shpss_"],
        Token(r"shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}\b"),
    ),
    pattern(
        "square_token",
        &["eaaa", "sq0"],
        Token(r"(?:EAAA[0-9A-Za-z_-]{56,64}|sq0[a-z]{3}-[0-9A-Za-z_-]{22,43})"),
    )
    .check(|_, value| plausibility::is_random(value)),
    pattern(
        "grafana_token",
        &["glsa_", "glc_"],
        Token(r"(?:glsa_[0-9A-Za-z]{32}_[0-9A-Fa-f]{8}\b|glc_[0-9A-Za-z+/]{32,}={0,2})"),
    ),
    pattern(
        "newrelic_sentry_datadog_prefixed",
        &["nrak-", "nrii-", "nrjs-", "nriq-", "nrra-", "sntry", "ddapp_"],
        Token(
            r"(?:NR(?:AK|II|IQ|RA)-[0-9A-Za-z_-]{27,32}|NRJS-[0-9a-f]{19}|sntry[su]_[0-9A-Za-z+/=_]{40,}|ddapp_[0-9A-Za-z]{34,})",
        ),
    ),
    pattern("newrelic_license", &["nral"], Token(r"[0-9a-f]{36}NRAL\b")),
    pattern("databricks_token", &["dapi"], Token(r"dapi[0-9a-f]{32}(?:-[0-9])?\b")),
    pattern(
        "postman_linear_notion_figma",
        &["pmak-", "lin_api_", "secret_", "ntn_", "figd_", "figu", "figo"],
        Token(
            r"(?:PMAK-[0-9a-f]{24}-[0-9a-f]{34}|lin_api_[0-9A-Za-z]{40}|secret_[0-9A-Za-z]{43}|ntn_[0-9A-Za-z]{44,}|fig[dou]r?_[0-9A-Za-z_-]{40,})\b",
        ),
    ),
    pattern(
        "tailscale_key",
        &["tskey-"],
        Token(r"tskey-(?:[a-z]+-)?[0-9A-Za-z]{8,}-[0-9A-Za-z]{20,}"),
    ),
    pattern(
        "planetscale_supabase",
        &["pscale_", "sbp_", "sb_secret_"],
        Token(r"(?:pscale_(?:pw|tkn|oauth)_[0-9A-Za-z_=.-]{32,}|sbp_[0-9a-f]{40}|sb_secret_[0-9A-Za-z_-]{20,})"),
    ),
    pattern(
        "mongodb_atlas_sa",
        &["mdb_sa_sk_"],
        Token(r"mdb_sa_sk_[0-9A-Za-z_-]{40}"),
    ),
];
