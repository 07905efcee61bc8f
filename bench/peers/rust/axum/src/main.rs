//! The reference service on axum.

use axum::{
    body::Bytes,
    extract::{Path, Query},
    http::{header, HeaderMap},
    response::{IntoResponse, Json},
    routing::{get, post},
    Router,
};
use service::{Message, Sleep, User, UserAction};
use std::time::Duration;

async fn plaintext() -> &'static str {
    service::GREETING
}

async fn json() -> Json<Message> {
    Json(Message { message: service::GREETING })
}

async fn user(Path(id): Path<String>) -> String {
    id
}

async fn user_action(Path((id, action)): Path<(String, String)>) -> Json<UserAction> {
    Json(UserAction { id, action })
}

async fn echo(headers: HeaderMap, body: Bytes) -> impl IntoResponse {
    let content_type = headers.get(header::CONTENT_TYPE).cloned();
    let mut answer = HeaderMap::new();
    if let Some(value) = content_type {
        answer.insert(header::CONTENT_TYPE, value);
    }
    (answer, body)
}

async fn users() -> Json<Vec<User>> {
    Json(service::users())
}

async fn headers() -> impl IntoResponse {
    ([(header::CACHE_CONTROL, service::CACHE_CONTROL)], service::BUCKET)
}

async fn sleep(Query(query): Query<Sleep>) -> &'static str {
    tokio::time::sleep(Duration::from_millis(query.ms)).await;
    service::GREETING
}

async fn health() -> &'static str {
    "ok"
}

#[tokio::main]
async fn main() {
    let app = Router::new()
        .route("/plaintext", get(plaintext))
        .route("/json", get(json))
        .route("/users/{id}", get(user))
        .route("/users/{id}/{action}", get(user_action))
        .route("/echo", post(echo))
        .route("/api/v1/users", get(users))
        .route("/headers", get(headers))
        .route("/sleep", get(sleep))
        .route("/paths/{*rest}", get(plaintext))
        .route("/healthz", get(health));
    let listener = tokio::net::TcpListener::bind(service::addr()).await.expect("listen");
    println!("axum ready on http://{}", listener.local_addr().expect("local address"));
    axum::serve(listener, app).await.expect("serve");
}
