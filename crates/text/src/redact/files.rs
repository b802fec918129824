//! Recognises files that usually hold secrets by name, without opening them.

use std::path::Path;

/// File extensions of key containers.
const KEY_CONTAINERS: &[&str] = &[
    "pem", "key", "p12", "pfx", "jks", "keystore", "ppk", "kdbx", "gpg", "keytab", "ovpn",
];
/// Words that mark a file as secret.
const SECRET_WORDS: &[&str] = &[
    "secret",
    "secrets",
    "credential",
    "credentials",
    "password",
    "passwords",
    "passwd",
];
/// Dot files in which programs keep passwords.
const LOGIN_FILES: &[&str] = &[
    "netrc",
    "pgpass",
    "npmrc",
    "pypirc",
    "htpasswd",
    "dockercfg",
    "vault_pass",
];
/// Extensions of data files. Source code may mention passwords without containing one.
const DATA_EXTENSIONS: &[&str] = &[
    "",
    "json",
    "yml",
    "yaml",
    "toml",
    "ini",
    "cfg",
    "conf",
    "txt",
    "properties",
    "xml",
    "csv",
];
/// Last words of template files, which contain no real values.
const TEMPLATE_WORDS: &[&str] = &["example", "sample", "template", "dist", "pub"];

/// Whether a file of this name usually holds secrets: `.env`, `id_ed25519`, `server.pem`, `.netrc`,
/// `credentials.json`.
pub fn is_secret_file(path: &Path) -> bool {
    let Some(name) = path
        .file_name()
        .map(|name| name.to_string_lossy().to_ascii_lowercase())
    else {
        return false;
    };
    let words: Vec<&str> = name.split('.').filter(|word| !word.is_empty()).collect();
    let (Some(first), Some(last)) = (words.first().copied(), words.last().copied()) else {
        return false;
    };
    if TEMPLATE_WORDS.contains(&last) {
        return false;
    }
    let ending = if words.len() > 1 { last } else { "" };
    let is_dot_file = name.starts_with('.') || name.starts_with('_');
    let is_environment = last == "env" || (is_dot_file && first == "env");
    let is_private_key =
        KEY_CONTAINERS.contains(&ending) || (first.starts_with("id_") && ending.is_empty());
    let is_login =
        is_dot_file && words.len() == 1 && LOGIN_FILES.contains(&first.trim_start_matches('_'));
    let mut parts = name.split(|c: char| !c.is_ascii_alphanumeric());
    let has_secret_name = parts.any(|part| SECRET_WORDS.contains(&part))
        && (DATA_EXTENSIONS.contains(&ending) || words.len() == 1);
    is_environment || is_private_key || is_login || has_secret_name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_files_are_recognised_by_name() {
        for name in [
            ".env",
            ".env.production",
            "prod.env",
            "config/.ENV.local",
            "id_rsa",
            "deploy/id_ed25519",
            "server.pem",
            "tls/private.key",
            "store.p12",
            ".netrc",
            "_netrc",
            ".npmrc",
            ".git-credentials",
            "credentials.json",
            "client_secret.json",
            "secrets.yml",
            "passwords.txt",
        ] {
            assert!(is_secret_file(Path::new(name)), "{name}");
        }
        for name in [
            "",
            "src/lib.rs",
            ".env.example",
            "env.rs",
            "environment.py",
            "id_map.rs",
            "id_rsa.pub",
            "key.rs",
            "keys.py",
            "secrets.py",
            "password_test.go",
            "test_credentials.rb",
            "package.json",
            "Cargo.toml",
            ".gitignore",
            "public.md",
        ] {
            assert!(!is_secret_file(Path::new(name)), "{name}");
        }
    }
}
