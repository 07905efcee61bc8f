//! The reference service on actix-web.

use actix_web::{get, http::header, post, web, App, HttpRequest, HttpResponse, HttpServer, Responder};
use service::{Message, Sleep, UserAction};
use std::time::Duration;

#[get("/plaintext")]
async fn plaintext() -> &'static str {
    service::GREETING
}

#[get("/json")]
async fn json() -> impl Responder {
    web::Json(Message { message: service::GREETING })
}

#[get("/users/{id}")]
async fn user(id: web::Path<String>) -> String {
    id.into_inner()
}

#[get("/users/{id}/{action}")]
async fn user_action(path: web::Path<(String, String)>) -> impl Responder {
    let (id, action) = path.into_inner();
    web::Json(UserAction { id, action })
}

#[post("/echo")]
async fn echo(request: HttpRequest, body: web::Bytes) -> HttpResponse {
    let mut answer = HttpResponse::Ok();
    if let Some(value) = request.headers().get(header::CONTENT_TYPE) {
        answer.insert_header((header::CONTENT_TYPE, value.clone()));
    }
    answer.body(body)
}

#[get("/api/v1/users")]
async fn users() -> impl Responder {
    web::Json(service::users())
}

#[get("/headers")]
async fn headers() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::CACHE_CONTROL, service::CACHE_CONTROL))
        .insert_header((header::CONTENT_TYPE, "text/plain; charset=utf-8"))
        .body(service::BUCKET)
}

#[get("/sleep")]
async fn sleep(query: web::Query<Sleep>) -> &'static str {
    actix_web::rt::time::sleep(Duration::from_millis(query.ms)).await;
    service::GREETING
}

#[get("/paths/{rest:.*}")]
async fn paths() -> &'static str {
    service::GREETING
}

#[get("/healthz")]
async fn health() -> &'static str {
    "ok"
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let server = HttpServer::new(|| {
        App::new()
            .service(plaintext)
            .service(json)
            .service(user)
            .service(user_action)
            .service(echo)
            .service(users)
            .service(headers)
            .service(sleep)
            .service(paths)
            .service(health)
            // Above the largest body of the comparison.
            .app_data(web::PayloadConfig::new(1 << 20))
    })
    .bind(service::addr())?;
    println!("actix-web ready on http://{}", server.addrs()[0]);
    server.run().await
}
