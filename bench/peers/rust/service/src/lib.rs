//! What both Rust peers answer with, so that they differ only in the framework that carries it.

use serde::{Deserialize, Serialize};

pub const GREETING: &str = "Hello, World!";
pub const BUCKET: &str = "hello world!";
pub const CACHE_CONTROL: &str = "public,max-age=30";
pub const FRAMEWORK: &str = "dunlin";

#[derive(Serialize)]
pub struct Message {
    pub message: &'static str,
}

#[derive(Serialize)]
pub struct UserAction {
    pub id: String,
    pub action: String,
}

/// The JSON keys are those of the Go peers.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct User {
    pub id: u32,
    pub age: u32,
    #[serde(rename = "First_Name")]
    pub first_name: String,
    #[serde(rename = "Last_Name")]
    pub last_name: String,
    pub framework: &'static str,
}

/// 1,000 users built anew, as a service does that has just read them from its database.
pub fn users() -> Vec<User> {
    (1..=1000)
        .map(|id| User {
            id,
            age: 25,
            first_name: format!("First_name{id}"),
            last_name: format!("Last_Name{id}"),
            framework: FRAMEWORK,
        })
        .collect()
}

/// The query of /sleep.
#[derive(Deserialize)]
pub struct Sleep {
    #[serde(default)]
    pub ms: u64,
}

/// The value of an option such as `-addr`.
pub fn arg(name: &str) -> Option<String> {
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == name {
            return Some(args.next().unwrap_or_else(|| panic!("{name} needs a value")));
        }
    }
    None
}

/// The value of `-addr`, or the default address.
pub fn addr() -> String {
    arg("-addr").unwrap_or_else(|| "127.0.0.1:3000".to_string())
}
