//! Checks a bearer token. Only asymmetric signatures count, by a key of the issuer that fits the algorithm; the token
//! must be valid now, and meant for this server.

use axum::http::HeaderMap;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;

use super::bearer;
use super::config::Auth;

/// Longer ones are not parsed.
const MAX_BYTES: usize = 16 * 1024;
/// How far clocks may differ.
const LEEWAY_S: u64 = 30;

/// Why a token is not accepted. The caller is told, so it contains nothing of the token.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("No bearer token: send `Authorization: Bearer …` with a token of the issuer.")]
    Missing,
    #[error("The bearer token is malformed.")]
    Malformed,
    #[error("The bearer token is signed in a way that is not accepted here.")]
    Algorithm,
    #[error("The bearer token does not name its key (`kid`).")]
    NoKeyId,
    #[error("The bearer token names a key that the issuer does not have.")]
    UnknownKey,
    #[error("The signature of the bearer token is wrong.")]
    Signature,
    #[error("The bearer token has expired: get a new one.")]
    Expired,
    #[error("The bearer token is not valid yet.")]
    NotYetValid,
    #[error("The bearer token is of another issuer.")]
    Issuer,
    #[error("The bearer token is for another audience.")]
    Audience,
    #[error("The bearer token lacks a claim, or one has the wrong type.")]
    Claims,
    #[error("Tokens cannot be checked now, because the issuer's keys cannot be read: {0}.")]
    NoKeys(String),
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
}

/// The caller: the `sub` of an accepted token.
pub(crate) async fn authenticate(auth: &Auth, headers: &HeaderMap) -> Result<String, TokenError> {
    let token = bearer(headers)?;
    if token.len() > MAX_BYTES {
        return Err(TokenError::Malformed);
    }
    // An unknown algorithm, such as `none`, does not parse.
    let header = decode_header(token).map_err(|_| TokenError::Malformed)?;
    if family(header.alg).is_none() {
        return Err(TokenError::Algorithm);
    }
    let id = header.kid.ok_or(TokenError::NoKeyId)?;
    let found = auth.keys.find(&id).await.map_err(TokenError::NoKeys)?;
    let key = found.ok_or(TokenError::UnknownKey)?;
    if !fits(&key, header.alg) {
        return Err(TokenError::Algorithm);
    }
    let decoding = DecodingKey::from_jwk(&key).map_err(|_| TokenError::UnknownKey)?;
    let mut rules = Validation::new(header.alg);
    rules.leeway = LEEWAY_S;
    rules.validate_nbf = true;
    rules.set_issuer(&[&auth.issuer]);
    rules.set_audience(&[&auth.audience]);
    rules.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    let claims = decode::<Claims>(token, &decoding, &rules).map_err(|error| {
        use jsonwebtoken::errors::ErrorKind;
        match error.kind() {
            ErrorKind::InvalidSignature => TokenError::Signature,
            ErrorKind::ExpiredSignature => TokenError::Expired,
            ErrorKind::ImmatureSignature => TokenError::NotYetValid,
            ErrorKind::InvalidIssuer => TokenError::Issuer,
            ErrorKind::InvalidAudience => TokenError::Audience,
            ErrorKind::MissingRequiredClaim(_) | ErrorKind::Json(_) => TokenError::Claims,
            _ => TokenError::Malformed,
        }
    })?;
    let caller = claims.claims.sub;
    if caller.is_empty() {
        return Err(TokenError::Claims);
    }
    Ok(caller)
}

#[derive(PartialEq)]
enum Family {
    Rsa,
    P256,
    P384,
    Ed25519,
}

/// `None`: a shared secret, which nobody publishes.
fn family(algorithm: Algorithm) -> Option<Family> {
    match algorithm {
        Algorithm::RS256
        | Algorithm::RS384
        | Algorithm::RS512
        | Algorithm::PS256
        | Algorithm::PS384
        | Algorithm::PS512 => Some(Family::Rsa),
        Algorithm::ES256 => Some(Family::P256),
        Algorithm::ES384 => Some(Family::P384),
        Algorithm::EdDSA => Some(Family::Ed25519),
        _ => None,
    }
}

/// Whether the key is one for signatures by this algorithm.
fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let of_key = match &key.algorithm {
        AlgorithmParameters::RSA(_) => Some(Family::Rsa),
        AlgorithmParameters::EllipticCurve(curve) => match curve.curve {
            EllipticCurve::P256 => Some(Family::P256),
            EllipticCurve::P384 => Some(Family::P384),
            _ => None,
        },
        AlgorithmParameters::OctetKeyPair(pair) => {
            (pair.curve == EllipticCurve::Ed25519).then_some(Family::Ed25519)
        }
        _ => None,
    };
    let common = &key.common;
    let named = common.key_algorithm.as_ref().map(ToString::to_string);
    of_key.is_some()
        && of_key == family(algorithm)
        && named.is_none_or(|named| named == format!("{algorithm:?}"))
        && matches!(common.public_key_use, None | Some(PublicKeyUse::Signature))
}
