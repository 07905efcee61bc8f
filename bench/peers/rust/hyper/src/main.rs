//! The reference service on hyper alone: HTTP/1.1 and 2, in clear text or by TLS.

use http_body_util::Full;
use hyper::{
    body::{Bytes, Incoming},
    header::{HeaderValue, CONTENT_TYPE},
    service::service_fn,
    Request, Response, StatusCode,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
};
use service::Message;
use std::{convert::Infallible, fs::File, io::BufReader, sync::Arc};
use tokio_rustls::{
    rustls::{
        pki_types::{pem::PemObject, CertificateDer, PrivateKeyDer},
        ServerConfig,
    },
    TlsAcceptor,
};

fn answer(content_type: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(body.into()));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

fn text(body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    answer("text/plain; charset=utf-8", body)
}

fn json(body: &impl serde::Serialize) -> Response<Full<Bytes>> {
    answer("application/json", serde_json::to_vec(body).expect("serialize"))
}

async fn serve(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(match request.uri().path() {
        "/plaintext" => text(service::GREETING),
        "/json" => json(&Message { message: service::GREETING }),
        "/api/v1/users" => json(&service::users()),
        "/healthz" => text("ok"),
        path => match path.strip_prefix("/users/") {
            Some(id) if !id.contains('/') => text(id.to_owned()),
            _ => {
                let mut answer = text("not found");
                *answer.status_mut() = StatusCode::NOT_FOUND;
                answer
            }
        },
    })
}

/// By TLS, if there are -tls-cert and -tls-key.
fn acceptor() -> Option<TlsAcceptor> {
    let open = |name| service::arg(name).map(|path| BufReader::new(File::open(path).expect("open")));
    let (cert, key) = (open("-tls-cert")?, open("-tls-key")?);
    let chain = CertificateDer::pem_reader_iter(cert).collect::<Result<Vec<_>, _>>().expect("certificate");
    let key = PrivateKeyDer::from_pem_reader(key).expect("key");
    let mut config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).expect("pair");
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Some(TlsAcceptor::from(Arc::new(config)))
}

#[tokio::main]
async fn main() {
    let tls = acceptor();
    let listener = tokio::net::TcpListener::bind(service::addr()).await.expect("listen");
    println!("hyper ready on {}", listener.local_addr().expect("local address"));
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let tls = tls.clone();
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let server = Builder::new(TokioExecutor::new());
            let _ = match tls {
                None => server.serve_connection(TokioIo::new(stream), service_fn(serve)).await,
                Some(tls) => match tls.accept(stream).await {
                    Ok(stream) => server.serve_connection(TokioIo::new(stream), service_fn(serve)).await,
                    Err(_) => Ok(()),
                },
            };
        });
    }
}
