//! TLS to the database with rustls, in the modes of `libpq`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::PostgresError;

/// What is verified of the server's certificate. A file of root certificates replaces those of the
/// system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verification {
    /// Nothing: the connection is encrypted, but the server may be another one.
    Off,
    /// A root certificate signed it.
    Chain(Option<PathBuf>),
    /// A root certificate signed it for this host name.
    ChainAndName(Option<PathBuf>),
}

/// Makes TLS connections.
pub(super) fn connector(verification: &Verification) -> Result<MakeRustlsConnect, PostgresError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions");
    let verifier: Arc<dyn ServerCertVerifier> = match verification {
        Verification::Off => Arc::new(NoVerification(supported(&provider))),
        Verification::Chain(roots) => Arc::new(ChainOnly(chain(roots.as_deref(), &provider)?)),
        Verification::ChainAndName(roots) => chain(roots.as_deref(), &provider)?,
    };
    let config = builder
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Verifies the chain and the name.
fn chain(
    roots: Option<&Path>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, PostgresError> {
    // `system` is the word of `libpq` for the certificates of the system.
    let file = roots.filter(|path| *path != Path::new("system"));
    let fail = |why: String| PostgresError::Certificates {
        path: file.unwrap_or(Path::new("the system")).to_owned(),
        why,
    };
    let mut store = RootCertStore::empty();
    match file {
        Some(path) => {
            let certificates = CertificateDer::pem_file_iter(path);
            for certificate in certificates.map_err(|error| fail(error.to_string()))? {
                let certificate = certificate.map_err(|error| fail(error.to_string()))?;
                store
                    .add(certificate)
                    .map_err(|error| fail(error.to_string()))?;
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            store.add_parsable_certificates(found.certs);
        }
    }
    let built = WebPkiServerVerifier::builder_with_provider(store.into(), provider.clone()).build();
    built.map_err(|error| fail(error.to_string()))
}

fn supported(provider: &CryptoProvider) -> WebPkiSupportedAlgorithms {
    provider.signature_verification_algorithms
}

/// Accepts every certificate, as `sslmode=require` does.
#[derive(Debug)]
struct NoVerification(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for NoVerification {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// Accepts a certificate for another host name, as `sslmode=verify-ca` does.
#[derive(Debug)]
struct ChainOnly(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for ChainOnly {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            self.0
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        // The name is verified last, after the chain.
        match verified {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
